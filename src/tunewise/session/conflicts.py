"""Conflicts: origins that tell different things of one and the same, and which of them stands."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import inf
from typing import Generic, Literal, TypeVar

from tunewise.decision import Problem
from tunewise.errors import InvalidData

OnConflict = Literal["best", "newest", "fail"]
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Conflict:
    """Two origins that tell different things of one problem: which one stands, and which one does not.

    `about` is the config that both measured, or `the winner`.
    """

    decision: str
    problem: Problem
    about: str
    kept: str = ""
    dropped: str = ""

    def __str__(self) -> str:
        problem = str(self.problem) or "its one problem"
        return f"{self.kept} and {self.dropped} tell different things of {self.decision}, {problem}: {self.about}"


@dataclass(frozen=True, slots=True)
class Side(Generic[T]):
    """What one origin tells: a file, the store or a table. A later one has a larger `rank`."""

    origin: str
    told: T
    rank: int = 0
    time_s: float = inf  # of the fastest, where it tells any
    at: float = 0.0  # of the latest, where it tells when


def settle(sides: Sequence[Side[T]], rule: OnConflict, about: Conflict) -> tuple[Side[T], list[Conflict]]:
    """Return the side that stands, and a conflict for each of the others.

    By `best` the fastest stands, and where no time is told the last; by `newest` the latest, and where no date is told
    the last. Raises InvalidData by `fail` if there is more than one side.
    """
    chosen = _chosen(sides, rule)
    found = [replace(about, kept=chosen.origin, dropped=side.origin) for side in sides if side is not chosen]
    if found and rule == "fail":
        raise InvalidData(f"{found[0]}; choose with --on-conflict best or newest")
    return chosen, found


def _chosen(sides: Sequence[Side[T]], rule: OnConflict) -> Side[T]:
    if rule == "newest":
        return max(sides, key=lambda side: (side.at, side.rank))
    if any(side.time_s < inf for side in sides):
        return min(sides, key=lambda side: (side.time_s, side.rank))
    return max(sides, key=lambda side: side.rank)
