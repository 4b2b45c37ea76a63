"""Best-so-far curves of several strategies as one SVG picture, readable on light and dark pages."""

import html
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import log

_WIDTH, _HEIGHT = 820, 460
_LEFT, _RIGHT, _TOP, _BOTTOM = 76, 220, 52, 62
_POINTS = 240  # of a curve: more cannot be told apart
_MANY = 50  # evaluations from which on the first few, all chance, are left out
_APART = 18  # pixels between two labels of an axis
_TICKS_X = (1, 2, 3, 5, 10, 25, 50, 100, 200, 400, 800, 2000, 5000, 10_000, 100_000)
_TICKS_Y = (1, 1.01, 1.02, 1.05, 1.1, 1.2, 1.5, 2, 3, 5, 10, 20, 50, 100, 1000)
_NO_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
# Eight colours that colour-blind people can tell apart, for a white page and for a black one; dashes go on from there.
_LIGHT = ("#0072b2", "#d55e00", "#00805e", "#b3457f", "#9a6a00", "#6a51a3", "#1f1f1f", "#7a7a7a")
_DARK = ("#58b4f0", "#ff8f4f", "#2fcf9f", "#f08cc0", "#f0c040", "#b9a4f0", "#f0f0f0", "#a0a0a0")
_DASHES = ("", "7 4", "2 3")


@dataclass(frozen=True, slots=True)
class Line:
    """One curve: a name, and best / optimum after every evaluation, the first one first."""

    name: str
    values: Sequence[float]


def picture(lines: Sequence[Line], *, title: str = "", note: str = "") -> str:
    """Return the curves as the text of an SVG file that stands for itself; the legend lists the best one first."""
    assert lines
    assert all(line.values for line in lines)
    axes = _Axes.of(lines)
    ranked = sorted(range(len(lines)), key=lambda i: lines[i].values[-1])
    gap = min(22.0, (_HEIGHT - _TOP - 30) / len(lines))  # between entries of the legend
    told = ", ".join(f"{lines[i].name} {lines[i].values[-1]:.3f}" for i in ranked)
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" '
            f'width="{_WIDTH}" height="{_HEIGHT}" role="img">',
            f"<title>{_text(title or 'Best time found over the optimum')}</title>",
            f"<desc>{_text(f'Best time found / optimum at the end: {told}')}</desc>",
            f"<style>{_style()}</style>",
            f'<rect class="paper" width="{_WIDTH}" height="{_HEIGHT}"/>',
            f'<text class="ink head" x="{_LEFT}" y="26">{_text(_short(title, 84))}</text>',
            f'<text class="soft" x="{_LEFT}" y="42">{_text(_short(note, 100))}</text>',
            *_grid(axes),
            *(_curve(axes, i, lines[i]) for i in reversed(ranked)),  # the best on top
            *(part for place, i in enumerate(ranked) for part in _entry(place, gap, i, lines[i])),
            "</svg>\n",
        ]
    )


@dataclass(frozen=True, slots=True)
class _Axes:
    """Evaluations on a log scale, and the excess over the optimum on one that still has a place for none."""

    first: int
    last: int
    top: float
    floor: float  # added to every excess before its logarithm

    @classmethod
    def of(cls, lines: Sequence[Line]) -> "_Axes":
        last = max(len(line.values) for line in lines)
        first = 5 if last >= _MANY else 1
        seen = [value for line in lines for value in line.values[first - 1 :]]
        floor = min(0.1, max(0.003, 0.5 * (min(seen) - 1)))
        return cls(first, last, max(*seen, 1 + 2 * floor), floor)

    def x(self, evaluations: int) -> float:
        span = log(max(self.last, self.first + 1) / self.first)
        return _LEFT + (_WIDTH - _LEFT - _RIGHT) * log(evaluations / self.first) / span

    def y(self, value: float) -> float:
        low, high = log(self.floor), log(self.top - 1 + self.floor)
        share = (log(max(value, 1.0) - 1 + self.floor) - low) / (high - low)
        return _HEIGHT - _BOTTOM - (_HEIGHT - _TOP - _BOTTOM) * share

    def shown(self) -> list[int]:
        ratio = (self.last / self.first) ** (1 / _POINTS)
        return sorted({min(self.last, round(self.first * ratio**i)) for i in range(_POINTS + 1)})


def _grid(axes: _Axes) -> Iterator[str]:
    right, bottom = _WIDTH - _RIGHT, _HEIGHT - _BOTTOM
    for y, value in _apart([(axes.y(tick), tick) for tick in _TICKS_Y if tick <= axes.top]):
        yield f'<line class="grid" x1="{_LEFT}" y1="{y:.1f}" x2="{right}" y2="{y:.1f}"/>'
        yield f'<text class="soft end" x="{_LEFT - 8}" y="{y + 4:.1f}">{value:g}</text>'
    inside = [tick for tick in _TICKS_X if axes.first <= tick <= axes.last]
    for x, value in _apart([(axes.x(tick), tick) for tick in inside], 28):
        yield f'<line class="grid" x1="{x:.1f}" y1="{_TOP}" x2="{x:.1f}" y2="{bottom}"/>'
        yield f'<text class="soft middle" x="{x:.1f}" y="{bottom + 18}">{value:g}</text>'
    yield f'<path class="axis" d="M{_LEFT} {_TOP}V{bottom}H{right}"/>'
    middle = (_TOP + bottom) / 2
    yield f'<text class="ink middle" x="{(_LEFT + right) / 2}" y="{bottom + 44}">evaluations (log scale)</text>'
    turned = f'transform="translate(22 {middle}) rotate(-90)"'
    yield f'<text class="ink middle" {turned}>best time found / optimum (log of the excess)</text>'


def _apart(ticks: Sequence[tuple[float, float]], least: float = _APART) -> Iterator[tuple[float, float]]:
    """Yield the ticks, in order, that do not run into the one before them."""
    placed: float | None = None
    for position, value in ticks:
        if placed is None or abs(position - placed) >= least:
            placed = position
            yield position, value


def _curve(axes: _Axes, number: int, line: Line) -> str:
    points = [n for n in axes.shown() if n <= len(line.values)] or [1]
    path = " ".join(f"{axes.x(n):.1f},{axes.y(line.values[n - 1]):.1f}" for n in points)
    return f'<polyline class="line {_class(number)}"{_dash(number)} points="{path}"/>'


def _entry(place: int, gap: float, number: int, line: Line) -> Iterator[str]:
    x, y = _WIDTH - _RIGHT + 20, round(_TOP + 12 + gap * place, 1)
    yield f'<line class="line {_class(number)}"{_dash(number)} x1="{x}" y1="{y}" x2="{x + 26}" y2="{y}"/>'
    yield f'<text class="ink" x="{x + 34}" y="{y + 4}">{_text(_short(line.name, 18))}</text>'
    yield f'<text class="soft end" x="{_WIDTH - 14}" y="{y + 4}">{line.values[-1]:.3f}</text>'


def _style() -> str:
    def colours(palette: Sequence[str]) -> str:
        return "".join(f".c{i}{{stroke:{colour}}}" for i, colour in enumerate(palette))

    def page(paper: str, ink: str, soft: str, grid: str) -> str:
        return (
            f".paper{{fill:{paper}}}.ink{{fill:{ink}}}.soft{{fill:{soft}}}"
            f".grid{{stroke:{grid};stroke-width:1}}.axis{{stroke:{soft};fill:none}}"
        )

    return (
        "text{font:13px system-ui,-apple-system,'Segoe UI',Helvetica,Arial,sans-serif}.head{font-weight:600;"
        "font-size:15px}.end{text-anchor:end}.middle{text-anchor:middle}"
        ".line{fill:none;stroke-width:2;stroke-linejoin:round}"
        + page("#ffffff", "#1f2328", "#59636e", "#e3e7eb")
        + colours(_LIGHT)
        + "@media (prefers-color-scheme:dark){"
        + page("#0d1117", "#e6edf3", "#9aa4ae", "#252c35")
        + colours(_DARK)
        + "}"
    )


def _class(number: int) -> str:
    return f"c{number % len(_LIGHT)}"


def _dash(number: int) -> str:
    dash = _DASHES[number // len(_LIGHT) % len(_DASHES)]
    return f' stroke-dasharray="{dash}"' if dash else ""


def _text(text: str) -> str:
    return html.escape(_NO_XML.sub("\ufffd", text))


def _short(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"
