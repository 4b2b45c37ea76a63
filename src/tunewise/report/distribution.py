"""Regret curves: which share of the problems is answered within which factor of the best."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import ceil, isfinite

from tunewise.report.colours import dash, line_class
from tunewise.report.markup import Markup, element
from tunewise.report.plot import Excess, Frame, grid, polyline, svg

_FRAME = Frame(480, 320, left=68, right=16, top=14, bottom=56)
_POINTS = 200  # of a curve: more cannot be told apart
_WIDEST = 100.0  # regret beyond which all problems share the right edge
_SHARES = (0, 0.25, 0.5, 0.75, 1)


@dataclass(frozen=True, slots=True)
class Regrets:
    """The regret of one way of choosing on every problem, in ascending order; infinite where what it chose failed."""

    name: str
    values: Sequence[float]
    number: int = 0  # of its colour

    @classmethod
    def of(cls, name: str, values: Sequence[float], number: int = 0) -> "Regrets":
        """Return the regrets in order; problems of which nothing is known (NaN) are left out."""
        return cls(name, sorted(value for value in values if value == value), number)

    def within(self, factor: float) -> float:
        """Return the share of problems whose regret is at most a factor."""
        return sum(value <= factor for value in self.values) / len(self.values)

    def steps(self) -> Iterator[tuple[float, float]]:
        """Yield (regret, share of problems with at most that) at evenly spaced shares, ascending."""
        count = len(self.values)
        for place in sorted({ceil(count * (i + 1) / _POINTS) for i in range(_POINTS)}):
            yield self.values[place - 1], place / count


def figure(curves: Sequence[Regrets], *, title: str, noise_floor: float | None = None) -> Markup:
    """Return the curves as a picture; those listed first are drawn on top, and the noise floor is a grey band."""
    finite = (min(value, _WIDEST) for curve in curves for value in curve.values if isfinite(value))
    scale = Excess.of(finite)
    across = scale.ticks()
    parts = [*_band(scale, noise_floor)] if noise_floor else []
    titles = ("time chosen / best time (log of the excess)", "share of problems")
    parts += grid(_FRAME, across, [(share, f"{share:.0%}") for share in _SHARES], titles=titles)
    parts += [_curve(scale, curve) for curve in reversed(curves)]
    return svg(_FRAME, *parts, title=title, description=_told(curves))


def _band(scale: Excess, noise_floor: float) -> Iterator[Markup]:
    left, right = _FRAME.x(0), _FRAME.x(scale.share(noise_floor))
    top = _FRAME.y(1)
    yield element("rect", class_="band", x=left, y=top, width=right - left, height=_FRAME.y(0) - top)


def _curve(scale: Excess, curve: Regrets) -> Markup:
    """Return a staircase from the lower left to the upper right edge."""
    points, height = [(scale.share(1.0), 0.0)], 0.0
    for regret, share in curve.steps():
        if not isfinite(regret):
            break
        place = scale.share(regret)
        points += [(place, height), (place, share)]
        height = share
    points.append((1.0, height))
    pixels = ((_FRAME.x(x), _FRAME.y(y)) for x, y in points)
    return polyline(pixels, class_=f"line {line_class(curve.number)}", stroke_dasharray=dash(curve.number))


def _told(curves: Sequence[Regrets]) -> str:
    return "Share of problems within 5 % of the best: " + ", ".join(f"{c.name} {c.within(1.05):.0%}" for c in curves)
