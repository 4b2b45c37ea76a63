"""The tree of a model as an SVG picture: yes leads right, no leads down, lines as thick as the support they carry."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import sqrt
from textwrap import wrap

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
_QUESTION = 48  # characters of a question
_LEAST = 8  # of what it is about
_LINE, _LETTER = 17, 6.6  # pixels of what numbers stand for, under the tree
_WIDE = 720  # pixels that it has at least
_THICKEST = 9.0
_INDENT = "    "


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
    return f"{figure(words, title=f'The tree of {model.card.decision}', is_alone=True)}\n"


def figure(words: Outline, *, title: str, is_alone: bool = False) -> Markup:
    """Return the tree as a picture; one that `is_alone` has its own style, and says what its numbers stand for.

    Any other is for a page that has the stylesheet, and tables of formulas and choices.
    """
    root, rows = _place(words.root, 0, 0)
    columns = _columns(root)
    across, height = _right(columns), int(rows * _ROW + 2 * _MARGIN)
    drawn = [*_lines(root, columns, max(1, words.root.support)), *_boxes(root, columns)]
    if is_alone:
        key = {**words.formulas, **words.choices}
        across = max(across, _WIDE) if key else across
        said = list(_key(key, across))
        drawn = [*_paper(), *drawn, *_written(said, height + _LINE)]
        height += _LINE * (len(said) + 1) if said else 0
    told = f"{words.leaves} leaves" + (f", {words.hidden} of them not shown" if words.hidden else "")
    return svg(Frame(across, height, 0, 0, 0, 0), *drawn, title=title, description=told)


def width(words: Outline) -> int:
    """Return how many pixels wide the tree is drawn."""
    return _right(_columns(_place(words.root, 0, 0)[0]))


def _right(columns: Sequence[float]) -> int:
    return int(columns[-1] + _MARGIN)


def _paper() -> Iterator[Markup]:
    yield element("style", Markup(stylesheet()))
    yield element("rect", class_="paper", width="100%", height="100%")


def _key(key: Mapping[str, str], width: int) -> Iterator[str]:
    """Yield lines that say what numbers stand for."""
    for number, meaning in key.items():
        yield from wrap(f"{number} = {meaning}", int((width - 4 * _MARGIN) / _LETTER), subsequent_indent=_INDENT)


def _written(lines: Sequence[str], top: float) -> Iterator[Markup]:
    for place, line in enumerate(lines):
        x = _MARGIN + (2 * _MARGIN if line.startswith(_INDENT) else 0)
        yield element("text", line.strip(), class_="soft small", x=x, y=top + place * _LINE)


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
        return text_width(_asked(part)) + 20
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
    words = element("text", _asked(part), class_="ink", x=x + 10, y=y + 4.5)
    return element("g", element("title", f"{part.text}? ({count(part.support, 'problem')})"), rect, words)


def _asked(part: Question) -> str:
    """Return a question as it is drawn: a long name is cut off before what is asked about it."""
    test = short(part.test, _QUESTION - _LEAST - 1)
    return f"{short(part.about, _QUESTION - len(test) - 1)} {test}"


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
