"""All columns of one problem and many choices in one array, worked out in a few steps however many columns there are.

A column is kept once for every combination of the parameters it looks at, not for every choice: where tiles are of five
sizes there are five numbers of tiles. Columns that need the same operation and nothing of each other are one step.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from tunewise.models.columns import Columns, Derived, Op, apply

Floats = NDArray[np.float64]
Numbers = NDArray[np.int64]
Group = frozenset[int]  # parameters, by their place in a config


@dataclass(frozen=True, eq=False)
class Step:
    """One operation on many places of the pool at once."""

    op: Op
    left: Numbers
    right: Numbers
    out: slice


@dataclass(frozen=True, eq=False)
class Pool:
    """The places of all columns; those that need no problem are filled in."""

    values: Floats
    steps: tuple[Step, ...]
    starts: tuple[int, ...]  # of each column, where its numbers begin
    combinations: tuple[
        Numbers | None, ...
    ]  # of each column, which of its numbers each choice has; None: it has but one

    def filled(self, known: Sequence[float]) -> Floats:
        """Return the pool of a problem whose inputs are given."""
        values = self.values.copy()
        values[: len(known)] = known
        for step in self.steps:
            left, right = values.take(step.left, mode="clip"), values.take(step.right, mode="clip")
            values[step.out] = apply(step.op, left, right)  # type: ignore[arg-type]  # arrays are numbers to it
        return values


def pool(columns: Columns, settings: Floats) -> Pool:
    """Return the pool for choices whose parameters are given, a row a choice."""
    plan = _Plan(settings)
    for number in range(len(columns.problem)):
        plan.place(number, Group(), 0)
    for number in range(len(columns.config)):
        plan.place(len(columns.problem) + number, Group((number,)), 0)
    for number, derived in enumerate(columns.derived, start=len(columns.inputs)):
        plan.derive(number, derived)
    return plan.pool(columns)


@dataclass
class _Waiting:
    """One operation on two columns, by their keys; its result has a key too."""

    key: int
    op: Op
    left: int
    right: int
    rank: int  # how many steps must come before


@dataclass
class _Plan:
    """Columns as they are added: which parameters each looks at, and what must be done before it.

    Keys from 0 are the model's columns; those below 0 are constants, and results on the way to a product of many.
    """

    settings: Floats
    groups: dict[int, Group] = field(default_factory=dict)
    ranks: dict[int, int] = field(default_factory=dict)
    constants: dict[int, float] = field(default_factory=dict)
    waiting: list[_Waiting] = field(default_factory=list)
    starts: dict[int, int] = field(default_factory=dict)
    known: dict[Group, tuple[Numbers, Numbers]] = field(default_factory=dict)

    def place(self, key: int, group: Group, rank: int) -> None:
        """Note a column."""
        self.groups[key], self.ranks[key] = group, rank

    def derive(self, number: int, derived: Derived) -> None:
        """Note the operations that make a derived column, from left to right."""
        left, *others = derived.of
        if derived.by is not None:
            others.append(self._constant(derived.by))
        for place, right in enumerate(others):
            key = number if place == len(others) - 1 else -len(self.groups) - 1
            rank = max(self.ranks[left], self.ranks[right]) + 1
            self.waiting.append(_Waiting(key, derived.op, left, right, rank))
            self.place(key, self.groups[left] | self.groups[right], rank)
            left = key

    def pool(self, columns: Columns) -> Pool:
        """Return the pool: inputs first, then the results of each step side by side."""
        first = len(columns.problem)
        inputs = [key for key in self.groups if self.ranks[key] == 0]
        total = 0
        for key in inputs:
            total = self._put(key, total)
        steps = []
        for rank, op in sorted({(one.rank, one.op) for one in self.waiting}):
            some = [one for one in self.waiting if (one.rank, one.op) == (rank, op)]
            start = total
            for one in some:
                total = self._put(one.key, total)
            left, right = (
                np.concatenate([self._spread(getattr(one, side), self.groups[one.key]) for one in some])
                for side in ("left", "right")
            )
            steps.append(Step(op, left, right, slice(start, total)))
        values = np.ones(total)
        for key in inputs:
            if first <= key:
                where = slice(self.starts[key], self.starts[key] + self._count(key))
                values[where] = self.settings[self._combined(self.groups[key])[0], key - first]
            elif key < 0:
                values[self.starts[key]] = self.constants[key]
        every = range(len(columns.inputs) + len(columns.derived))
        places = tuple(self._combined(self.groups[n])[1] if self.groups[n] else None for n in every)
        return Pool(values, tuple(steps), tuple(self.starts[n] for n in every), places)

    def _constant(self, value: float) -> int:
        key = -len(self.groups) - 1
        self.constants[key] = value
        self.place(key, Group(), 0)
        return key

    def _put(self, key: int, start: int) -> int:
        self.starts[key] = start
        return start + self._count(key)

    def _count(self, key: int) -> int:
        return len(self._combined(self.groups[key])[0]) if self.groups[key] else 1

    def _spread(self, key: int, wider: Group) -> Numbers:
        """Return where the numbers of a column are found for each combination of some parameters."""
        group, start = self.groups[key], self.starts[key]
        if not wider:
            return np.array([start])
        first = self._combined(wider)[0]
        return start + self._combined(group)[1][first] if group else np.full(len(first), start)

    def _combined(self, group: Group) -> tuple[Numbers, Numbers]:
        """Return the first choice of each combination of some parameters, and of each choice its combination."""
        if group not in self.known:
            asked = self.settings[:, sorted(group)]
            _, first, place = np.unique(asked, axis=0, return_index=True, return_inverse=True)
            self.known[group] = first.astype(np.int64), place.reshape(-1).astype(np.int64)
        return self.known[group]
