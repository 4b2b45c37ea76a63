"""Best-so-far curves of several strategies as one SVG picture, readable on light and dark pages."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import log

from tunewise.report.colours import dash, line_class, stylesheet
from tunewise.report.markup import Markup, element, short
from tunewise.report.plot import Excess, Frame, grid, polyline, svg

_WIDE = Frame(820, 460, left=76, right=220, top=52, bottom=62)
_SMALL = Frame(480, 300, left=68, right=16, top=14, bottom=56)
_POINTS = 240  # of a curve: more cannot be told apart
_MANY = 50  # evaluations from which on the first few, all chance, are left out
_TICKS = (1, 2, 3, 5, 10, 25, 50, 100, 200, 400, 800, 2000, 5000, 10_000, 100_000)
_TITLES = ("evaluations (log scale)", "best time found / optimum (log of the excess)")


@dataclass(frozen=True, slots=True)
class Line:
    """One curve: a name, and best / optimum after every evaluation, the first one first."""

    name: str
    values: Sequence[float]


def picture(lines: Sequence[Line], *, title: str = "", note: str = "") -> str:
    """Return the curves as the text of an SVG file that stands for itself; the legend lists the best one first."""
    axes = _Axes.of(lines, _WIDE)
    ranked = _ranked(lines)
    gap = min(22.0, (_WIDE.height - _WIDE.top - 30) / len(lines))  # between entries of the legend
    drawn = svg(
        _WIDE,
        element("style", Markup(stylesheet())),
        element("rect", class_="paper", width=_WIDE.width, height=_WIDE.height),
        element("text", short(title, 84), class_="ink head", x=_WIDE.left, y=26),
        element("text", short(note, 100), class_="soft", x=_WIDE.left, y=42),
        *_drawn(axes, lines, _TITLES),
        *(part for place, i in enumerate(ranked) for part in _entry(place, gap, i, lines[i])),
        title=title or "Best time found over the optimum",
        description=_told(lines),
    )
    return f"{drawn}\n"


def figure(lines: Sequence[Line], *, title: str) -> Markup:
    """Return the curves as a small picture for a page that has the stylesheet and a legend of its own."""
    axes = _Axes.of(lines, _SMALL)
    titles = (_TITLES[0], "best so far / best found")
    return svg(_SMALL, *_drawn(axes, lines, titles), title=title, description=_told(lines))


@dataclass(frozen=True, slots=True)
class _Axes:
    """Evaluations on a log scale, and the excess over the optimum on one that still has a place for none."""

    frame: Frame
    first: int
    last: int
    excess: Excess

    @classmethod
    def of(cls, lines: Sequence[Line], frame: Frame) -> "_Axes":
        assert lines
        assert all(line.values for line in lines)
        last = max(len(line.values) for line in lines)
        first = 5 if last >= _MANY else 1
        return cls(frame, first, last, Excess.of(value for line in lines for value in line.values[first - 1 :]))

    def across(self, evaluations: int) -> float:
        return log(evaluations / self.first) / log(max(self.last, self.first + 1) / self.first)

    def shown(self) -> list[int]:
        ratio = (self.last / self.first) ** (1 / _POINTS)
        return sorted({min(self.last, round(self.first * ratio**i)) for i in range(_POINTS + 1)})


def _drawn(axes: _Axes, lines: Sequence[Line], titles: tuple[str, str]) -> Iterator[Markup]:
    inside = [(axes.across(tick), f"{tick:g}") for tick in _TICKS if axes.first <= tick <= axes.last]
    yield from grid(axes.frame, inside, axes.excess.ticks(), titles=titles)
    for number in reversed(_ranked(lines)):  # the best on top
        yield _curve(axes, number, lines[number])


def _curve(axes: _Axes, number: int, line: Line) -> Markup:
    points = [n for n in axes.shown() if n <= len(line.values)] or [1]
    places = ((axes.frame.x(axes.across(n)), axes.frame.y(axes.excess.share(line.values[n - 1]))) for n in points)
    return polyline(places, class_=f"line {line_class(number)}", stroke_dasharray=dash(number))


def _entry(place: int, gap: float, number: int, line: Line) -> Iterator[Markup]:
    x, y = _WIDE.width - _WIDE.right + 20, round(_WIDE.top + 12 + gap * place, 1)
    look = {"class_": f"line {line_class(number)}", "stroke_dasharray": dash(number)}
    yield element("line", **look, x1=x, y1=y, x2=x + 26, y2=y)
    yield element("text", short(line.name, 18), class_="ink", x=x + 34, y=y + 4)
    yield element("text", f"{line.values[-1]:.3f}", class_="soft end", x=_WIDE.width - 14, y=y + 4)


def _ranked(lines: Sequence[Line]) -> list[int]:
    return sorted(range(len(lines)), key=lambda number: lines[number].values[-1])


def _told(lines: Sequence[Line]) -> str:
    told = ", ".join(f"{lines[i].name} {lines[i].values[-1]:.3f}" for i in _ranked(lines))
    return f"Best time found / optimum at the end: {told}"
