"""Conditions of a table's rules: a value, a set, a range or a bucket of one feature, and how narrow each is."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import inf, isfinite
from typing import Any

from tunewise.decision import Feature, Problem
from tunewise.errors import InvalidProblem

MAX_SET = 1000  # values of a set
MAX_BUCKET = 1 << 62
_RANGE, _BUCKET = ("min", "max"), "bucket"


@dataclass(frozen=True, slots=True)
class OneOf:
    """The feature is one of some numbers and words; a single one is an exact value."""

    values: tuple[Feature, ...]

    def holds(self, value: object) -> bool:
        """Return whether a feature's value is one of them; a number is never a word."""
        return any(value == own and isinstance(value, str) == isinstance(own, str) for own in self.values)

    @property
    def exact(self) -> Feature | None:
        """The only value, or None where there are several."""
        return self.values[0] if len(self.values) == 1 else None

    @property
    def plain(self) -> Any:
        """The condition as a table writes it."""
        return self.values[0] if len(self.values) == 1 else list(self.values)

    def __str__(self) -> str:
        return f"={self.values[0]}" if len(self.values) == 1 else f" in {', '.join(map(str, self.values))}"


@dataclass(frozen=True, slots=True)
class Between:
    """The feature is a number from `least` to `most`, both included; an end that is open is infinite."""

    least: float = -inf
    most: float = inf

    def holds(self, value: object) -> bool:
        """Return whether a feature's value is a number of the range."""
        return isinstance(value, int | float) and self.least <= value <= self.most

    @property
    def plain(self) -> Any:
        """The condition as a table writes it."""
        ends = {"min": self.least, "max": self.most}
        return {name: end for name, end in ends.items() if isfinite(end)}

    def __str__(self) -> str:
        if isfinite(self.least) and isfinite(self.most):
            return f" from {self.least} to {self.most}"
        return f" at least {self.least}" if isfinite(self.least) else f" at most {self.most}"


@dataclass(frozen=True, slots=True)
class Bucket:
    """The feature is a number that is rounded up to this power of two: more than half of it, and not more than it."""

    size: int

    def holds(self, value: object) -> bool:
        """Return whether a feature's value is a number of the bucket."""
        return isinstance(value, int | float) and self.size / 2 < value <= self.size

    @property
    def plain(self) -> Any:
        """The condition as a table writes it."""
        return {_BUCKET: self.size}

    def __str__(self) -> str:
        return f" in the bucket of {self.size}"


Condition = OneOf | Between | Bucket
Narrowness = tuple[int, int, int, int, float]


def condition(name: str, raw: object) -> Condition:
    """Return the condition that a table writes for a feature; raises ValueError with what is wrong with it."""
    if isinstance(raw, Mapping):
        return _bucket(raw) if _BUCKET in raw else _between(raw)
    if not isinstance(raw, list):
        return OneOf((_feature(name, raw),))
    if not 0 < len(raw) <= MAX_SET:
        raise ValueError(f"a set has 1 to {MAX_SET} values, not {len(raw)}")
    return OneOf(tuple(dict.fromkeys(_feature(name, value) for value in raw)))


def narrowness(conditions: Iterable[Condition]) -> Narrowness:
    """Return how specific some conditions are together; a larger one is asked first.

    Counted are exact values, then sets and buckets, then ranges closed on both sides, then open ones; of those that
    are equal in all four, the one whose sets and ranges are smaller is the narrower.
    """
    counts, width = [0, 0, 0, 0], 0.0
    for one in conditions:
        counts[_grade(one)] += 1
        width += _width(one)
    return counts[0], counts[1], counts[2], counts[3], -width


def covers(wide: Condition, narrow: Condition) -> bool:
    """Return whether whatever meets the narrow condition meets the wide one too."""
    if isinstance(narrow, OneOf):
        return all(wide.holds(value) for value in narrow.values)
    if isinstance(wide, OneOf):
        return False
    wide_low, wide_is_open, wide_high = _ends(wide)
    low, is_open, high = _ends(narrow)
    is_above = wide_low < low or (wide_low == low and (is_open or not wide_is_open))
    return is_above and high <= wide_high


def _grade(one: Condition) -> int:
    if isinstance(one, OneOf):
        return 0 if len(one.values) == 1 else 1
    if isinstance(one, Bucket):
        return 1
    return 2 if isfinite(one.least) and isfinite(one.most) else 3


def _width(one: Condition) -> float:
    if isinstance(one, OneOf):
        return float(len(one.values))
    if isinstance(one, Bucket):
        return one.size / 2
    return one.most - one.least if isfinite(one.least) and isfinite(one.most) else 0.0


def _ends(one: Between | Bucket) -> tuple[float, bool, float]:
    """Return the lower end, whether it is left out, and the upper end."""
    return (one.least, False, one.most) if isinstance(one, Between) else (one.size / 2, True, one.size)


def _feature(name: str, raw: object) -> Feature:
    try:
        return Problem({name: raw})[name]
    except InvalidProblem as error:
        raise ValueError(str(error)) from None


def _between(raw: Mapping[str, object]) -> Between:
    if not raw or set(raw) - set(_RANGE):
        raise ValueError('write a value, a list of values, {"min": 1, "max": 64}, or {"bucket": 64}')
    ends = {name: _number(name, value) for name, value in raw.items()}
    found = Between(ends.get("min", -inf), ends.get("max", inf))
    if found.least > found.most:
        raise ValueError(f"min={found.least} is more than max={found.most}, which no number meets")
    return found


def _bucket(raw: Mapping[str, object]) -> Bucket:
    size = raw[_BUCKET]
    if (
        len(raw) > 1
        or isinstance(size, bool)
        or not isinstance(size, int)
        or not 0 < size <= MAX_BUCKET
        or size & size - 1
    ):
        raise ValueError(f"a bucket is a power of two alone, such as {{{_BUCKET!r}: 64}}, not {dict(raw)!r:.100}")
    return Bucket(size)


def _number(name: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not isfinite(value):
        raise ValueError(f"{name}={value!r:.100} is not a number")
    return value
