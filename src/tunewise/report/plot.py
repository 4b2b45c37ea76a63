"""What pictures of curves have in common: a frame, a scale for regret, and a grid with labels that do not collide."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import log

from tunewise.report.markup import Markup, element

_LETTER, _LINE = 7.6, 18.0  # pixels of a label
_NARROW, _USUAL, _WIDE = 0.42, 0.64, 0.86  # widths of characters, in ems, of the widest fonts in use
_TICKS = (1, 1.01, 1.02, 1.05, 1.1, 1.2, 1.5, 2, 3, 5, 10, 20, 50, 100, 1000)


@dataclass(frozen=True, slots=True)
class Frame:
    """The size of a picture and its margins, in pixels; places inside are given as shares from the lower left."""

    width: int
    height: int
    left: int
    right: int
    top: int
    bottom: int

    def x(self, share: float) -> float:
        """Return the pixel of a share of the width."""
        return round(self.left + (self.width - self.left - self.right) * share, 1)

    def y(self, share: float) -> float:
        """Return the pixel of a share of the height."""
        return round(self.height - self.bottom - (self.height - self.top - self.bottom) * share, 1)


@dataclass(frozen=True, slots=True)
class Excess:
    """A scale for ratios to the best: the logarithm of the excess over 1, with a place for none at all."""

    top: float
    floor: float  # added to every excess before its logarithm

    @classmethod
    def of(cls, seen: Iterable[float]) -> "Excess":
        """Return a scale on which all the ratios seen have a place."""
        least, most = 1e300, 1.0
        for value in seen:
            least, most = min(least, value), max(most, value)
        floor = min(0.1, max(0.003, 0.5 * (least - 1)))
        return cls(max(most, 1 + 2 * floor), floor)

    def share(self, value: float) -> float:
        """Return the place of a ratio, 0 for 1 and 1 for the top."""
        low, high = log(self.floor), log(self.top - 1 + self.floor)
        return (log(min(max(value, 1.0), self.top) - 1 + self.floor) - low) / (high - low)

    def ticks(self) -> list[tuple[float, str]]:
        """Return the places and the words of round ratios."""
        return [(self.share(tick), f"{tick:g}") for tick in _TICKS if tick <= self.top]


Ticks = Sequence[tuple[float, str]]  # places as shares, and what is written there


def grid(frame: Frame, across: Ticks, up: Ticks, *, titles: tuple[str, str]) -> Iterator[Markup]:
    """Yield the lines behind the curves, the axes, and what is written beside them."""
    left, right, top, bottom = frame.x(0), frame.x(1), frame.y(1), frame.y(0)
    for y, word in apart([(frame.y(share), word) for share, word in up], lambda word: _LINE):
        yield element("line", class_="grid", x1=left, y1=y, x2=right, y2=y)
        yield element("text", word, class_="soft end", x=left - 8, y=y + 4)
    for x, word in apart([(frame.x(share), word) for share, word in across], lambda word: _LETTER * len(word) + 8):
        yield element("line", class_="grid", x1=x, y1=top, x2=x, y2=bottom)
        yield element("text", word, class_="soft middle", x=x, y=bottom + 18)
    yield element("path", class_="axis", d=f"M{left} {top}V{bottom}H{right}")
    yield element("text", titles[0], class_="ink middle", x=(left + right) / 2, y=bottom + 40)
    turned = f"translate({max(14.0, left - 54)} {(top + bottom) / 2}) rotate(-90)"
    yield element("text", titles[1], class_="ink middle", transform=turned)


def apart(ticks: Iterable[tuple[float, str]], size: Callable[[str], float]) -> Iterator[tuple[float, str]]:
    """Yield the ticks, in order, whose words do not run into those of the one before."""
    placed: float | None = None
    for position, word in ticks:
        if placed is None or abs(position - placed) >= size(word):
            placed = position
            yield position, word


def text_width(text: str, *, size: float = 13.0, is_bold: bool = False) -> float:
    """Return about how many pixels a text takes, on the wide side: the reader's font is not known here."""
    ems = sum(
        _NARROW if c in "iljtfrI.,:;'|!()[] " else _WIDE if c.isupper() or c in "mwMW@%≤" else _USUAL for c in text
    )
    return ems * size * (1.1 if is_bold else 1.0)


def polyline(points: Iterable[tuple[float, float]], **attributes: str | None) -> Markup:
    """Return a line through points given in pixels."""
    return element("polyline", **attributes, points=" ".join(f"{x:.1f},{y:.1f}" for x, y in points))


def svg(frame: Frame, *parts: Markup, title: str, description: str) -> Markup:
    """Return the picture that parts make, with words for those who cannot see it."""
    return element(
        "svg",
        element("title", title),
        element("desc", description),
        *parts,
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {frame.width} {frame.height}",
        width=frame.width,
        height=frame.height,
        role="img",
        aria_label=f"{title}. {description}",
    )
