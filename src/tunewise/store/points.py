"""Problems as points in space, so that a database finds the nearest ones by an index instead of reading all of them."""

import functools
import hashlib
import struct
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice, product
from math import inf, isfinite, log
from typing import Any, Literal, NamedTuple, Protocol

import msgspec

from tunewise.decision import Problem, Subject, canonical
from tunewise.errors import TunewiseError
from tunewise.store.base import Remembered, united

AXES = 3  # more numbers than that share axes: the cost of a box doubles with each
_CONSIDERED = 64  # points of a box that are compared, or four times as many as wanted: of more, a smaller box is taken
_MOST_CONSIDERED = 1_024  # where a box does not tell who is nearest
MOST_RANGES = 2**AXES  # of a box
_NOTHING = (0, -1)  # a range without a cell
_BITS = 60  # of a cell: it fits a signed whole number of every database
_BITS_AT_ONCE = 10  # interleaved by a table
_FARTHEST = 50.0  # logarithms beyond that share the outermost cells
_SLACK = 1e-9  # of a box: what rounding makes of the logarithm of a quotient
_HALVINGS = 16  # of the reach of a box
_WIDEST = 1_500.0  # no two floats are farther apart than that, in logarithms


class Point(NamedTuple):
    """Where a subject lies, as columns of a table.

    `family` is equal for problems of one decision that differ in positive numbers only, `alike` if the policy and the
    environment are equal too. `cell` is the point on a curve that fills the space: who is near in space lies in a few
    ranges of it. `about` stands for the digest.
    """

    about: int
    family: int
    alike: int
    cell: int
    x: float
    y: float
    z: float
    logs: bytes  # of all positive numbers, in the order of their names


class Candidate(NamedTuple):
    """A point as an index gives it back."""

    subject: int  # number of its row
    about: int
    logs: bytes


@dataclass(frozen=True, slots=True)
class Box:
    """All points within `reach` of a point on every axis, and the ranges of cells that cover it."""

    key: int
    low: tuple[float, ...]
    high: tuple[float, ...]
    ranges: tuple[tuple[int, int], ...]

    def holds(self, point: Point) -> bool:
        """Return whether a point lies inside."""
        at = (point.x, point.y, point.z)
        return all(low <= value <= high for low, value, high in zip(self.low, at, self.high, strict=True))


Key = Literal["family", "alike"]
_ENDS = ("first", "last")  # of a range of cells


def box_values(box: Box) -> dict[str, Any]:
    """Return a box as parameters of a query: bounds of each axis, and its ranges, as MOST_RANGES pairs and as lists."""
    bounds = {f"low_{axis}": low for axis, low in zip("xyz", box.low, strict=True)}
    bounds |= {f"high_{axis}": high for axis, high in zip("xyz", box.high, strict=True)}
    ranges = (*box.ranges, *[_NOTHING] * (MOST_RANGES - len(box.ranges)))
    pairs = {f"first_{place}": first for place, (first, _) in enumerate(ranges)}
    pairs |= {f"last_{place}": last for place, (_, last) in enumerate(ranges)}
    lists = {"firsts": [first for first, _ in box.ranges], "lasts": [last for _, last in box.ranges]}
    return {"key": box.key, **bounds, **pairs, **lists}


class Seeker(Protocol):
    """What finds the points of a box; it may be asked for many boxes."""

    def look(self, box: Box, most: int) -> list[Candidate]:
        """Return the points of a box, at most so many."""

    def count(self, box: Box, most: int) -> int:
        """Return how many points a box holds, or `most` if there are more."""


def point_of(subject: Subject, digest: str) -> Point:
    """Return where a subject lies."""
    return _point(subject.decision, subject.problem, _home(subject.policy, subject.environment.must), digest)


def points_of(rows: Iterable[tuple[int, str, str]]) -> Iterator[tuple[int, Point]]:
    """Yield row numbers and points of rows of (number, digest, body); a row that is no subject has none."""
    homes: dict[tuple[bytes, bytes], str] = {}  # there are far fewer environments than problems
    for number, digest, body in rows:
        try:
            fact = _ROW.decode(body)
            key = bytes(fact.policy), bytes(fact.environment)
            if key not in homes:
                parts = msgspec.json.decode(fact.environment, type=list[tuple[str, Any, str]])
                must = {name: value for name, value, match in parts if match == "must"}
                homes[key] = _home(msgspec.json.decode(fact.policy), must)
            yield number, _point(fact.decision, Problem(fact.problem), homes[key], digest)
        except (ValueError, TypeError, RecursionError, TunewiseError):
            continue


def distance(ours: Subject, theirs: Subject) -> float:
    """Return the largest log ratio of any number, or infinity unless all else is equal."""
    our_logs, their_logs = ours.problem.numeric, theirs.problem.numeric
    if _family(ours.decision, ours.problem) != _family(theirs.decision, theirs.problem):
        return inf
    if _home(ours.policy, ours.environment.must) != _home(theirs.policy, theirs.environment.must):
        return inf
    return max((log_ratio(value, their_logs[name]) for name, value in our_logs.items()), default=inf)


def are_near(ours: Problem, theirs: Problem, ratio: float) -> bool:
    """Return whether two problems of one decision differ in numbers only, each by `ratio` at most."""
    if len(ours) != len(theirs):
        return False
    limit, numbers = log(ratio), theirs.numeric
    return ours.categorical == theirs.categorical and all(
        name in numbers and log_ratio(value, numbers[name]) <= limit for name, value in ours.numeric.items()
    )


def log_ratio(ours: float, theirs: float) -> float:
    """Return how far apart two numbers are as the logarithm of their ratio: 0 if equal, infinity across zero."""
    if ours == theirs:
        return 0.0
    if ours <= 0 or theirs <= 0:
        return inf
    ratio = ours / theirs
    return abs(log(ratio)) if 0 < ratio < inf else abs(log(ours) - log(theirs))


def nearest(point: Point, key: int, limit: int, seeker: Seeker, reach: float = _WIDEST) -> list[Candidate]:
    """Return up to `limit` points within `reach`, nearest first, each subject once; not the point itself.

    Where very many lie within the smallest box that has enough of them, some are compared and not all.
    """
    enough = range(limit + 1, max(_CONSIDERED, 4 * limit) + 1)
    halvings = _halvings(point, key, reach, enough, seeker)
    box = box_around(point, key, reach * 0.5**halvings)
    ranked = _ranked(point, seeker.look(box, enough.stop))
    # Where numbers share axes, whoever is beyond the reach of the box may be farther than somebody outside of it.
    while halvings and not _is_sure(ranked, limit, reach * 0.5**halvings):
        halvings -= 1
        rows = seeker.look(box_around(point, key, reach * 0.5**halvings), _MOST_CONSIDERED)
        ranked = _ranked(point, rows)
        if len(rows) == _MOST_CONSIDERED:
            break
    return [row for far, _, row in ranked[:limit] if far <= reach + _SLACK]


def _is_sure(ranked: Sequence[tuple[float, int, Candidate]], limit: int, reach: float) -> bool:
    """Return whether nobody outside of a box of that reach can be nearer than the first so many inside."""
    return len(ranked) >= limit and ranked[limit - 1][0] <= reach


def _ranked(point: Point, rows: Iterable[Candidate]) -> list[tuple[float, int, Candidate]]:
    """Return points with their distance and row, nearest first, each subject once; not the point itself."""
    own = struct.unpack(f"<{len(point.logs) // 8}d", point.logs)
    apart: dict[int, tuple[float, int, Candidate]] = {}
    for row in rows:
        if row.about != point.about:
            ranked = _apart(own, row.logs), row.subject, row
            apart[row.about] = min(apart.get(row.about, ranked), ranked)
    return sorted(apart.values())


def _halvings(point: Point, key: int, reach: float, enough: range, seeker: Seeker) -> int:
    """Return how often a reach is to be halved for a box that holds enough points, or more if none holds just that."""
    if seeker.count(box_around(point, key, reach), enough.stop) < enough.stop:
        return 0
    more, fewer = 0, _HALVINGS
    while more + 1 < fewer:
        middle = (more + fewer) // 2
        held = seeker.count(box_around(point, key, reach * 0.5**middle), enough.stop)
        if held in enough:
            return middle
        more, fewer = (middle, fewer) if held >= enough.stop else (more, middle)
    return more


def sure(subject: Subject, ratio: float, found: Iterable[Remembered]) -> list[Remembered]:
    """Return what is tuned and really as near as that, nearest first: an index rounds, and it may be damaged."""
    ranked = [(distance(subject, one.subject), one) for one in found if one.verdicts]
    ranked.sort(key=lambda pair: pair[0])
    return [one for far, one in ranked if far <= log(ratio)]


def merged(subject: Subject, found: Sequence[Sequence[Remembered]], limit: int) -> list[Remembered]:
    """Return what several stores say is near as one list, nearest first."""
    rows = united(found)
    return rows if sum(map(bool, found)) < 2 else sorted(rows, key=lambda one: distance(subject, one.subject))[:limit]


def box_around(point: Point, key: int, reach: float) -> Box:
    """Return the box of all points within `reach` on every axis, for those whose `family` or `alike` is `key`."""
    at, axes = (point.x, point.y, point.z), min(len(point.logs) // 8, AXES)
    low, high = (tuple(value + side * (reach + _SLACK) for value in at) for side in (-1, 1))
    return Box(key, low, high, _ranges(low[:axes], high[:axes]))


class Index:
    """Points in memory, found as a database finds them."""

    def __init__(self) -> None:
        self._points: dict[int, Point] = {}
        self._sorted: list[tuple[int, int, int]] = []  # (family or alike, cell, number)

    def add(self, number: int, point: Point, key: int) -> None:
        """Put a point where those are looked for whose `family` or `alike` is `key`; harmless to do twice."""
        entry = key, point.cell, number
        place = bisect_left(self._sorted, entry)
        if self._sorted[place : place + 1] != [entry]:
            self._sorted.insert(place, entry)
            self._points[number] = point

    def look(self, box: Box, most: int) -> list[Candidate]:
        """Return the points of a box, at most so many."""
        return list(islice(self._inside(box), most))

    def count(self, box: Box, most: int) -> int:
        """Return how many points a box holds, or `most` if there are more."""
        return len(self.look(box, most))

    def _inside(self, box: Box) -> Iterator[Candidate]:
        for first, last in box.ranges:
            for place in range(bisect_left(self._sorted, (box.key, first)), len(self._sorted)):
                key, cell, number = self._sorted[place]
                if (key, cell) > (box.key, last):
                    break
                point = self._points[number]
                if box.holds(point):
                    yield Candidate(number, point.about, point.logs)


class _Row(msgspec.Struct):
    """A row of subjects, as far as it is needed here: environments repeat, and are read once."""

    decision: str
    problem: dict[str, int | float | str]
    policy: msgspec.Raw
    environment: msgspec.Raw


_ROW = msgspec.json.Decoder(_Row)


def _point(decision: str, problem: Problem, home: str, digest: str) -> Point:
    family = _family(decision, problem)
    logs = [log(value) for _, value in problem.features if not isinstance(value, str) and value > 0]
    at = _axes(logs)
    x, y, z = (*at, 0.0, 0.0, 0.0)[:AXES]
    return Point(_hashed(digest), _hashed(family), _hashed(family + home), _cell(at), x, y, z, _packed(logs))


def _family(decision: str, problem: Problem) -> str:
    """Return what must be equal for two problems to be compared by numbers. Zero is near to nothing but itself."""
    words: dict[str, Any] = {
        name: value if isinstance(value, str) or value <= 0 else [] for name, value in problem.features
    }
    return canonical.encode([decision, words])


def _home(policy: Sequence[Any], must: Mapping[str, Any]) -> str:
    return canonical.encode([policy, must])


def _axes(logs: Sequence[float]) -> list[float]:
    """Return a position on at most AXES axes: never farther apart than the numbers are, and the same for so many."""
    if len(logs) <= AXES:
        return list(logs)
    return [_mean(logs[first::AXES]) for first in range(AXES)]


def _mean(logs: Sequence[float]) -> float:
    # Weighed: of two numbers one often grows as the other shrinks, and their plain mean stays where it is.
    weights = [1 / (1 + place) for place in range(len(logs))]
    return sum(weight * value for weight, value in zip(weights, logs, strict=True)) / sum(weights)


def _apart(ours: Sequence[float], theirs: bytes) -> float:
    if not isinstance(theirs, bytes) or len(theirs) != 8 * len(ours):  # a damaged row
        return inf
    values = struct.unpack(f"<{len(ours)}d", theirs)
    apart = [abs(our - their) for our, their in zip(ours, values, strict=True)]
    return max(apart, default=inf) if all(map(isfinite, apart)) else inf


def _cell(at: Sequence[float]) -> int:
    """Return the number of the smallest cell around a position: the bits of its coordinates in turns."""
    return _interleaved([_step(value, len(at)) for value in at])


def _ranges(low: Sequence[float], high: Sequence[float]) -> tuple[tuple[int, int], ...]:
    """Return the ranges that cover a box: of cells so large that two on each axis are enough."""
    axes = len(low)
    ends = [(_step(least, axes), _step(most, axes)) for least, most in zip(low, high, strict=True)]
    level = max((max(most - least, 1).bit_length() - 1 for least, most in ends), default=0)
    while any((most >> level) - (least >> level) > 1 for least, most in ends):
        level += 1
    # Of the part of a box that lies in a cell, its lowest corner comes first on the curve and its highest last.
    sides = [
        [
            (
                _spread(max(least, cell << level), axes) << axis,
                _spread(min(most, (cell + 1 << level) - 1), axes) << axis,
            )
            for cell in sorted({least >> level, most >> level})
        ]
        for axis, (least, most) in enumerate(ends)
    ]
    return tuple((sum(first for first, _ in part), sum(last for _, last in part)) for part in product(*sides))


def _step(value: float, axes: int) -> int:
    steps = 1 << (_BITS // axes)
    share = (max(-_FARTHEST, min(value, _FARTHEST)) + _FARTHEST) / (2 * _FARTHEST)
    return min(int(share * steps), steps - 1)


def _interleaved(steps: Sequence[int]) -> int:
    axes = len(steps)
    return sum(_spread(step, axes) << axis for axis, step in enumerate(steps))


def _spread(step: int, axes: int) -> int:
    """Return the bits of a number with so much room between them that those of the other axes fit in."""
    table, spread, shift = _spread_bits(axes), 0, 0
    while step:
        spread |= table[step % len(table)] << (shift * axes)
        step, shift = step >> _BITS_AT_ONCE, shift + _BITS_AT_ONCE
    return spread


@functools.cache
def _spread_bits(axes: int) -> tuple[int, ...]:
    gap = "0" * (axes - 1)
    return tuple(int(gap.join(f"{bits:b}"), 2) for bits in range(1 << _BITS_AT_ONCE))


def _packed(logs: Sequence[float]) -> bytes:
    return struct.pack(f"<{len(logs)}d", *logs)


def _hashed(text: str) -> int:
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big", signed=True)
