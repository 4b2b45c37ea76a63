"""Problems drawn for a data set: a grid, or sizes spread evenly or normally over their logarithms."""

import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, Protocol

from tunewise.decision.problem import Feature, Problem
from tunewise.errors import InvalidProblem

_PATIENCE = 1000  # draws in a row that bring nothing new, before what there is has to do
_LARGEST = 1 << 53


class Draw(Protocol):
    """How one feature is drawn."""

    def draw(self, rng: random.Random) -> Feature:
        """Return a value."""


@dataclass(frozen=True, slots=True)
class LogUniform:
    """Every order of magnitude between two bounds is as likely as any other; whole bounds give whole numbers."""

    low: float
    high: float
    multiple: int = 1

    def __post_init__(self) -> None:
        if not 0 < self.low <= self.high < math.inf:
            raise InvalidProblem(f"sizes from {self.low} to {self.high} cannot be drawn: give 0 < low <= high")
        if self.is_whole and self._ends[0] > self._ends[1]:
            lacks = f"none is a multiple of {self.multiple}"
            raise InvalidProblem(f"sizes from {self.low} to {self.high} cannot be drawn: {lacks}; give others")

    @property
    def is_whole(self) -> bool:
        """Whether the numbers are whole: both bounds are."""
        return not (isinstance(self.low, float) or isinstance(self.high, float))

    @property
    def _ends(self) -> tuple[int, int]:
        """The least and the largest multiple between the bounds."""
        return int(-(-self.low // self.multiple) * self.multiple), int(self.high // self.multiple * self.multiple)

    def draw(self, rng: random.Random) -> Feature:
        """Return a number from low to high."""
        value = math.exp(rng.uniform(math.log(self.low), math.log(self.high)))
        if not self.is_whole:
            return value
        least, largest = self._ends
        return min(largest, max(least, _rounded(value, self.multiple)))


@dataclass(frozen=True, slots=True)
class LogNormal:
    """The logarithm is normal with a mean and a deviation, as sizes in real programs are; whole numbers."""

    mean: float
    deviation: float
    multiple: int = 1

    def __post_init__(self) -> None:
        if not (math.isfinite(self.mean) and 0 <= self.deviation < math.inf):
            raise InvalidProblem(f"no sizes have a log mean of {self.mean} and a log deviation of {self.deviation}")
        if self.mean > math.log(_LARGEST):
            size = f"{math.log(self.mean):.1f} for a size of {self.mean:g}"
            raise InvalidProblem(f"a log mean of {self.mean:g} is beyond all sizes: give logarithms, such as {size}")

    def draw(self, rng: random.Random) -> Feature:
        """Return a whole number, at least one multiple."""
        drawn = rng.gauss(self.mean, self.deviation)
        return _rounded(math.exp(min(drawn, math.log(_LARGEST))), self.multiple)


@dataclass(frozen=True, slots=True)
class OneOf:
    """One of several values, each as likely."""

    values: tuple[Feature, ...]

    def draw(self, rng: random.Random) -> Feature:
        """Return one of the values."""
        return rng.choice(self.values)


def grid(values: Mapping[str, Sequence[Any]]) -> list[Problem]:
    """Return every combination of values, the last name changing fastest."""
    return [Problem(dict(zip(values, combination, strict=True))) for combination in product(*values.values())]


def drawn(features: Mapping[str, Draw], count: int, seed: int = 0) -> list[Problem]:
    """Return up to `count` different problems; fewer where no more are to be had.

    The first problems of a longer list are those of a shorter one with the same seed, so a data set can grow.
    """
    rng = random.Random(seed)
    found: dict[Problem, None] = {}
    vain = 0
    while len(found) < count and vain < _PATIENCE:
        problem = Problem({name: feature.draw(rng) for name, feature in features.items()})
        vain = vain + 1 if problem in found else 0
        found[problem] = None
    return list(found)


def _rounded(value: float, multiple: int) -> int:
    return max(1, round(value / multiple)) * multiple
