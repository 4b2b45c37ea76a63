"""The best-so-far curve of a run that goes on, as a picture whose parts move while the page is open."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import ceil, floor, log, log10

from tunewise.report.live_signs import Run
from tunewise.report.live_slots import Slots
from tunewise.report.markup import Markup
from tunewise.report.plot import Frame
from tunewise.report.wording import seconds

_FRAME = Frame(380, 210, left=64, right=18, top=10, bottom=42)
_TICKS = 6  # places for marks on an axis
_LOG_FROM = 3.0  # times between the slowest and the fastest from which on a log scale tells more
_UNITS = (("s", 1.0), ("ms", 1e-3), ("us", 1e-6), ("ns", 1e-9))


@dataclass(frozen=True, slots=True)
class _Scale:
    """Values between two ends as shares, on a straight or a log scale."""

    low: float
    high: float
    is_log: bool = False

    def share(self, value: float) -> float:
        """Return the place of a value, from 0 to 1."""
        if self.is_log:
            return log(value / self.low) / log(self.high / self.low)
        return (value - self.low) / (self.high - self.low)

    def ticks(self) -> list[float]:
        """Return round values inside, as many as there are places for at most."""
        found = _round_ratios(self.low, self.high) if self.is_log else _round_steps(self.low, self.high)
        return [value for value in found if self.low <= value <= self.high * (1 + 1e-9)][:_TICKS]


@dataclass(frozen=True, slots=True)
class _Drawn:
    """A curve with its scales: evaluations across, seconds up, shown in a unit."""

    points: Sequence[tuple[int, float]] = ()
    across: _Scale = _Scale(0, 1)
    up: _Scale = _Scale(0, 1)
    unit: tuple[str, float] = _UNITS[0]
    default_s: float | None = None

    @classmethod
    def of(cls, run: Run | None) -> "_Drawn":
        """Return the curve of a run; nothing is drawn where none has a time yet."""
        points = _steps(run) if run is not None else []
        if run is None or not points:
            return cls()
        times = [time_s for _, time_s in points] + ([run.default_s] if run.default_s is not None else [])
        low, high = min(times), max(times)
        unit = next((one for one in _UNITS if low >= one[1]), _UNITS[-1])
        return cls(points, _Scale(0, max(run.budget or 0, points[-1][0])), _up(low, high), unit, run.default_s)

    def corners(self) -> str:
        """Return the places of all points, for a polyline."""
        return " ".join(f"{_FRAME.x(self.across.share(n))},{_FRAME.y(self.up.share(t))}" for n, t in self.points)


def picture(slots: Slots, name: str, run: Run | None) -> Markup:
    """Return the curve of a run: the best time against evaluations, and a dashed line where the default is."""
    drawn = _Drawn.of(run)
    told = f"Best time {seconds(run.best_s)} after {run.done:,} evaluations" if run is not None else ""
    line = slots.element("polyline", f"{name}-line", changing={"points": drawn.corners()}, class_="line c0")
    return slots.element(
        "svg",
        name,
        slots.text("title", f"{name}-title", told),
        *_axes(slots, name, drawn),
        *_default(slots, name, drawn),
        line,
        hidden=not drawn.points,
        viewBox=f"0 0 {_FRAME.width} {_FRAME.height}",
        role="img",
        aria_labelledby=f"{name}-title",
    )


def _axes(slots: Slots, name: str, drawn: _Drawn) -> Iterator[Markup]:
    yield from _marks(slots, f"{name}-x", _across_marks(drawn.across) if drawn.points else [])
    yield from _marks(slots, f"{name}-y", _up_marks(drawn.up, drawn.unit[1]) if drawn.points else [])
    yield slots.fixed("path", class_="axis", d=f"M{_FRAME.x(0)} {_FRAME.y(1)}V{_FRAME.y(0)}H{_FRAME.x(1)}")
    yield slots.fixed("text", "evaluations", class_="ink middle", x=_FRAME.x(0.5), y=_FRAME.height - 8)
    title = f"best time ({drawn.unit[0]}{', log' if drawn.up.is_log else ''})"
    turned = f"translate(14 {_FRAME.y(0.5)}) rotate(-90)"
    yield slots.text("text", f"{name}-unit", title, class_="ink middle", transform=turned)


def _default(slots: Slots, name: str, drawn: _Drawn) -> Iterator[Markup]:
    """Yield the line where the default is and its word, below the line where there is more room."""
    is_hidden = drawn.default_s is None
    level = _FRAME.y(0 if drawn.default_s is None else drawn.up.share(drawn.default_s))
    path = {"d": f"M{_FRAME.x(0)} {level}H{_FRAME.x(1)}"}
    yield slots.element("path", f"{name}-default", hidden=is_hidden, changing=path, class_="line c1 dashed")
    below = level + 15 if level < _FRAME.y(0.5) else level - 6
    word = {"y": f"{below:.1f}"}
    end = _FRAME.x(1) - 2
    yield slots.element("text", f"{name}-word", "default", hidden=is_hidden, changing=word, class_="soft end", x=end)


def _steps(run: Run) -> list[tuple[int, float]]:
    """Return the corners of the curve: a best time stands until a better one is found."""
    corners: list[tuple[int, float]] = []
    for evaluations, time_s in run.curve:
        if corners:
            corners.append((evaluations, corners[-1][1]))
        corners.append((evaluations, time_s))
    if corners:
        corners.append((max(run.done, corners[-1][0]), corners[-1][1]))
    return corners


def _up(low: float, high: float) -> _Scale:
    """Return a scale for times with some room at both ends."""
    if high / low >= _LOG_FROM:
        return _Scale(low / 1.15, high * 1.15, is_log=True)
    room = (high - low) or high
    return _Scale(max(0.0, low - 0.3 * room), high + 0.15 * room)


def _across_marks(scale: _Scale) -> list[tuple[float, float, str]]:
    whole = [tick for tick in scale.ticks() if tick == int(tick)]
    return [(_FRAME.x(scale.share(tick)), _FRAME.y(0) + 17, f"{int(tick):,}") for tick in whole]


def _up_marks(scale: _Scale, unit_s: float) -> list[tuple[float, float, str]]:
    return [(_FRAME.x(0) - 7, _FRAME.y(scale.share(tick)), f"{tick / unit_s:.4g}") for tick in scale.ticks()]


def _marks(slots: Slots, name: str, marks: Sequence[tuple[float, float, str]]) -> Iterator[Markup]:
    """Yield places for the marks of an axis; on the upright one each has a line behind the curve."""
    for number in range(_TICKS):
        x, y, word = marks[number] if number < len(marks) else (0.0, 0.0, "")
        is_up = name.endswith("y")
        line = slots.fixed("path", class_="grid", d=f"M7 0H{_FRAME.x(1) - _FRAME.x(0) + 7}") if is_up else None
        look = {"class_": "soft end", "y": 4} if is_up else {"class_": "soft middle"}
        yield slots.element(
            "g",
            f"{name}{number}",
            line,
            slots.text("text", f"{name}{number}-text", word, **look),
            hidden=number >= len(marks),
            changing={"transform": f"translate({x:.1f} {y:.1f})"},
        )


def _round_steps(low: float, high: float) -> list[float]:
    """Return multiples of 1, 2 or 5 times a power of ten, about five of them."""
    rough = (high - low) / (_TICKS - 1.5)
    power = 10.0 ** floor(log10(rough))
    step = next(power * factor for factor in (1, 2, 5, 10) if power * factor >= rough)
    return [step * number for number in range(ceil(low / step), floor(high / step) + 1)]


def _round_ratios(low: float, high: float) -> list[float]:
    """Return 1, 2 and 5 times powers of ten, or only the powers where there are many."""
    powers = range(floor(log10(low)), ceil(log10(high)) + 1)
    for factors in ((1, 2, 5), (1, 3), (1,)):
        found = [factor * 10.0**power for power in powers for factor in factors]
        inside = [value for value in found if low <= value <= high]
        if len(inside) <= _TICKS:
            return inside
    return inside[:: ceil(len(inside) / _TICKS)]
