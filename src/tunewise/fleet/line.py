"""The queue of a plan: which unit a device gets next, and what becomes of one that fails, dies or has to wait."""

import time
from collections import Counter, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from tunewise.fleet.plans import Unit

MOST_DEATHS = 3  # of the process that does a unit, before the unit is to blame
MOST_LOSSES = 6  # of the node that does a unit
_BUSY_S = 2.0  # until a unit is tried again that somebody else is at


@dataclass(slots=True)
class Line:
    """The units of one kind of hardware: each is waiting, in hand, done or failed."""

    units: Sequence[Unit]
    clock: Callable[[], float] = time.monotonic
    waiting: deque[Unit] = field(default_factory=deque)
    delayed: list[tuple[float, Unit]] = field(default_factory=list)
    in_hand: set[str] = field(default_factory=set)
    done: set[str] = field(default_factory=set)
    failed: dict[str, str] = field(default_factory=dict)  # id -> why
    deaths: Counter[str] = field(default_factory=Counter)
    losses: Counter[str] = field(default_factory=Counter)
    slices: Counter[tuple[int, int]] = field(default_factory=Counter)  # of each table, those that are not done yet

    def __post_init__(self) -> None:
        self.waiting.extend(self.units)
        self.slices.update(_table(unit) for unit in self.units if unit.kind == "slice")

    @property
    def is_over(self) -> bool:
        """Whether every unit is done or failed."""
        return len(self.done) + len(self.failed) >= len(self.units)

    def take(self) -> Unit | None:
        """Return the next unit and count it as in hand; None while there is none that can be begun."""
        self._wake()
        for _ in range(len(self.waiting)):
            unit = self.waiting.popleft()
            if unit.kind != "conclude" or not self.slices[_table(unit)]:
                self.in_hand.add(unit.id)
                return unit
            self.waiting.append(unit)
        return None

    def end(self, unit: Unit) -> None:
        """Note that a unit is done."""
        self.in_hand.discard(unit.id)
        self.done.add(unit.id)
        if unit.kind == "slice":
            self.slices[_table(unit)] -= 1

    def fail(self, unit: Unit, why: str) -> None:
        """Note that a unit cannot be done, and why; what depends on it fails too."""
        self.in_hand.discard(unit.id)
        self.failed[unit.id] = why
        if unit.kind == "slice":
            for other in [
                other for other in self.waiting if other.kind == "conclude" and _table(other) == _table(unit)
            ]:
                self.waiting.remove(other)
                self.failed[other.id] = f"{unit.id} failed"

    def give_back(self, unit: Unit, *, is_busy: bool = False) -> None:
        """Put a unit back: at the front, or for a while behind all others if somebody else is at it."""
        self.in_hand.discard(unit.id)
        if is_busy:
            self.delayed.append((self.clock() + _BUSY_S, unit))
        else:
            self.waiting.appendleft(unit)

    def died(self, unit: Unit, how: str) -> None:
        """Note that the process doing a unit died: the unit is tried again, a few times."""
        self.deaths[unit.id] += 1
        if self.deaths[unit.id] >= MOST_DEATHS:
            self.fail(unit, f"its process died {MOST_DEATHS} times, the last time {how}")
        else:
            self.give_back(unit)

    def lost(self, unit: Unit) -> None:
        """Note that the node doing a unit is gone: the unit is tried elsewhere, unless it takes every node with it."""
        self.losses[unit.id] += 1
        if self.losses[unit.id] >= MOST_LOSSES:
            self.fail(unit, f"{MOST_LOSSES} nodes were lost while they were at it")
        else:
            self.give_back(unit)

    def _wake(self) -> None:
        now = self.clock()
        self.waiting.extend(unit for due, unit in self.delayed if due <= now)
        self.delayed = [(due, unit) for due, unit in self.delayed if due > now]


def _table(unit: Unit) -> tuple[int, int]:
    return unit.work, unit.problem
