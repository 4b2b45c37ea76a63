"""The tree of a model as an SVG picture: yes leads right, no leads down, lines as thick as the support they carry."""

from collections.abc import Iterator
from dataclasses import dataclass
from math import sqrt

from tunewise.models import Model
from tunewise.report.colours import area_class, line_class, stylesheet
from tunewise.report.markup import Markup, element, short
from tunewise.report.outline import Ending, Outline, Part, Question, Stub, outline
from tunewise.report.plot import Frame, svg, text_width
from tunewise.report.wording import count

_ROW = 46  # pixels from leaf to leaf
_BOX = 26  # height of a question
_GAP = 44  # between the columns, room for yes and no
_STEM = 18  # from the left edge of a question to its line down
_MARGIN = 10
_QUESTION = 36  # characters of a question
_THICKEST = 9.0


@dataclass(frozen=True, slots=True)
class _Placed:
    """A part with the middle of its left edge."""

    part: Part
    depth: int
    y: float
    children: tuple["_Placed", ...] = ()


def picture(model: Model, *, most: int = 48) -> str | None:
    """Return the tree as the text of an SVG file that stands for itself; None where the model is no single tree."""
    words = outline(model, most=most)
    if words is None:
        return None
    paper = element("rect", class_="paper", width="100%", height="100%")
    return f"{figure(words, title=f'The tree of {model.card.decision}', below=_under(paper))}\n"


def figure(words: Outline, *, title: str, below: Markup | None = None) -> Markup:
    """Return the tree as a picture for a page that has the stylesheet; `below` lies under it."""
    root, rows = _place(words.root, 0, 0)
    columns = _columns(root)
    frame = Frame(int(columns[-1] + _MARGIN), int(rows * _ROW + 2 * _MARGIN), 0, 0, 0, 0)
    drawn = [*_lines(root, columns, max(1, words.root.support)), *_boxes(root, columns)]
    told = f"{words.leaves} leaves" + (f", {words.hidden} of them not shown" if words.hidden else "")
    return svg(frame, *([below] if below is not None else []), *drawn, title=title, description=told)


def _under(paper: Markup) -> Markup:
    return Markup(element("style", Markup(stylesheet())) + paper)


def _place(part: Part, depth: int, row: int) -> tuple[_Placed, int]:
    """Return a part with all below it placed, and the first row that is still free."""
    if not isinstance(part, Question):
        return _Placed(part, depth, _MARGIN + (row + 0.5) * _ROW), row + 1
    yes, row = _place(part.yes, depth + 1, row)
    no, row = _place(part.no, depth + 1, row)
    return _Placed(part, depth, yes.y, (yes, no)), row  # the root stands at the top left, where a box starts to scroll


def _all(root: _Placed) -> Iterator[_Placed]:
    yield root
    for child in root.children:
        yield from _all(child)


def _columns(root: _Placed) -> list[float]:
    """Return the left edge of every column, and the right edge of the picture.

    Only questions make a column wide: what ends a path has its row for itself from there on to the right.
    """
    deepest = max(placed.depth for placed in _all(root))
    widths = [0.0] * deepest
    for placed in _all(root):
        if placed.children:
            widths[placed.depth] = max(widths[placed.depth], _width(placed.part))
    edges = [float(_MARGIN)]
    for width in widths:
        edges.append(edges[-1] + width + _GAP)
    return [*edges, max(edges[placed.depth] + _width(placed.part) for placed in _all(root))]


def _width(part: Part) -> float:
    if isinstance(part, Question):
        return text_width(short(part.text, _QUESTION)) + 20
    if isinstance(part, Stub):
        return text_width(_stub_text(part)) + 8
    return max(text_width(part.label, is_bold=True), text_width(part.remark, size=12)) + 24


def _lines(root: _Placed, columns: list[float], total: int) -> Iterator[Markup]:
    for placed in _all(root):
        left = columns[placed.depth]
        for child, word in zip(placed.children, ("yes", "no"), strict=False):
            right = columns[child.depth]
            if word == "yes":
                path = f"M{left + _width(placed.part):.1f} {placed.y:.1f}H{right:.1f}"
            else:  # nothing else stands in this column before the row of the child
                down = left + _STEM
                path = f"M{down:.1f} {placed.y + _BOX / 2:.1f}V{child.y - 10:.1f}q0 10 10 10H{right:.1f}"
            width = 1 + (_THICKEST - 1) * sqrt(child.part.support / total)
            yield element("path", class_="edge", d=path, stroke_width=round(width, 1))
            yield element("text", word, class_="soft end", x=right - 6, y=child.y - 8)


def _boxes(root: _Placed, columns: list[float]) -> Iterator[Markup]:
    for placed in _all(root):
        x = columns[placed.depth]
        if isinstance(placed.part, Question):
            yield _question(placed.part, x, placed.y)
        elif isinstance(placed.part, Ending):
            yield _ending(placed.part, x, placed.y)
        else:
            yield _stub(placed.part, x, placed.y)


def _question(part: Question, x: float, y: float) -> Markup:
    rect = element("rect", class_="box", x=x, y=y - _BOX / 2, width=_width(part), height=_BOX, rx=6)
    words = element("text", short(part.text, _QUESTION), class_="ink", x=x + 10, y=y + 4.5)
    return element("g", element("title", f"{part.text}? ({count(part.support, 'problem')})"), rect, words)


def _ending(part: Ending, x: float, y: float) -> Markup:
    height, is_answer = 38, part.choice is not None
    look = line_class(part.choice) if part.choice is not None else "hint dashed"
    rect = element("rect", class_=f"leaf {look}", x=x, y=y - height / 2, width=_width(part), height=height, rx=6)
    bar = element("rect", class_=area_class(part.choice or 0), x=x, y=y - height / 2, width=6, height=height, rx=3)
    label = element("text", part.label, class_="ink strong", x=x + 14, y=y - 3)
    remark = element("text", part.remark, class_="soft small", x=x + 14, y=y + 13)
    return element(
        "g", element("title", f"{part.label}: {part.remark}"), rect, bar if is_answer else None, label, remark
    )


def _stub(part: Stub, x: float, y: float) -> Markup:
    return element("text", _stub_text(part), class_="soft", x=x + 4, y=y + 4.5)


def _stub_text(part: Stub) -> str:
    return f"… {part.leaves} more leaves, {count(part.support, 'problem')}"
