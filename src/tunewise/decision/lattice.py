"""The lattice of a group: all its legal combinations, as paths through few states, counted and drawn without a list.

Parameters are bound one after the other. Combinations that no later rule can tell apart share a state, so the work
follows the number of different running sums, products and open values, not the number of combinations.
"""

from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from math import prod

import numpy as np

from tunewise.decision.bounds import hopeless
from tunewise.decision.columns import Book, Column, book, distinct_numbers, first_and_inverse
from tunewise.decision.params import Param, Value
from tunewise.decision.residual import Step, plan
from tunewise.decision.rules import Rule
from tunewise.decision.vectors import Array, Unvectorised
from tunewise.errors import InvalidRule

MOST_MOVES = 3_000_000  # out of the states of one level: about a second of work
_SAFE = 1 << 62


class TooWide(Exception):
    """More states than can be handled; `depth` parameters were bound by then."""

    def __init__(self, depth: int) -> None:
        super().__init__(depth)
        self.depth = depth


@dataclass(frozen=True)
class Level:
    """The moves from the states of one level to those of the next: each gives a parameter one of its places.

    The moves of a state lie together, from `starts[state]` to `starts[state + 1]`.
    """

    param: Param
    starts: Array
    places: Array
    children: Array


@dataclass(frozen=True)
class Lattice:
    """All legal combinations of some parameters, as paths from the one first state to the last level."""

    levels: tuple[Level, ...]

    @cached_property
    def below(self) -> tuple[Array, ...]:
        """For each level, how many combinations lie below the moves before each move, and below all of them."""
        exact = np.int64 if prod(len(level.param) for level in self.levels) < _SAFE else object
        counts = np.ones(1, exact)
        sums: list[Array] = []
        for level in reversed(self.levels):
            sums.append(np.concatenate([np.zeros(1, exact), np.cumsum(counts[level.children])]))
            counts = sums[-1][level.starts[1:]] - sums[-1][level.starts[:-1]]
        return tuple(reversed(sums))

    @property
    def count(self) -> int:
        """How many combinations there are."""
        return int(self.below[0][-1])

    def values(self, rank: int) -> dict[str, Value]:
        """Return the combination of that rank."""
        state, picked = 0, dict[str, Value]()
        for level, below in zip(self.levels, self.below, strict=True):
            first, last = int(level.starts[state]), int(level.starts[state + 1])
            rank += int(below[first])
            move = bisect_right(below, rank, first, last) - 1
            rank -= int(below[move])
            picked[level.param.name] = level.param.values[int(level.places[move])]
            state = int(level.children[move])
        return picked

    def rows(self) -> dict[str, Array]:
        """Return every combination: a column of places for each parameter."""
        states, columns = np.zeros(1, np.int64), dict[str, Array]()
        for level, below in zip(self.levels, self.below, strict=True):
            alive = below[1:] > below[:-1]
            starts = np.concatenate([np.zeros(1, np.int64), np.cumsum(alive)])[level.starts]
            places, children = level.places[alive], level.children[alive]
            widths = (starts[1:] - starts[:-1])[states]
            which = np.repeat(np.arange(len(states)), widths)
            within = np.arange(len(which)) - np.repeat(np.cumsum(widths) - widths, widths)
            moves = starts[states[which]] + within
            columns = {name: held[which] for name, held in columns.items()}
            columns[level.param.name] = places[moves]
            states = children[moves]
        return columns

    def nearest(self, distance: Callable[[Param], Array]) -> dict[str, Value] | None:
        """Return the combination whose distances sum to the least (of several, one); None where there is none.

        `distance` gives, for a parameter, how far away each of its places is.
        """
        costs, best = np.zeros(1), list[Array]()
        for level in reversed(self.levels):
            through = distance(level.param)[level.places] + costs[level.children]
            costs, first = _least(through, level.starts)
            best.append(first)
        if not np.isfinite(costs[0]):
            return None
        state, picked = 0, dict[str, Value]()
        for level, first in zip(self.levels, reversed(best), strict=True):
            move = int(first[state])
            picked[level.param.name] = level.param.values[int(level.places[move])]
            state = int(level.children[move])
        return picked


def build(order: Sequence[Param], rules: Sequence[Rule]) -> Lattice:
    """Return the lattice of the combinations that meet all rules; raises TooWide where it would be too large."""
    if max(map(len, order)) > MOST_MOVES:
        raise TooWide(0)
    books = {param.name: book(param.values) for param in order}
    states, count, levels = dict[str, Column](), 1, list[Level]()
    for depth, step in enumerate(plan(order, rules)):
        if count * len(step.param) > MOST_MOVES:
            raise TooWide(depth)
        try:
            level, states = _level(step, states, count, books)
        except (Unvectorised, InvalidRule):  # another rule may forbid what this one broke on
            raise TooWide(depth) from None
        levels.append(level)
        count = int(level.children.max(initial=-1)) + 1
    return Lattice(tuple(levels))


def _level(
    step: Step, states: Mapping[str, Column], count: int, books: Mapping[str, Book]
) -> tuple[Level, dict[str, Column]]:
    width = len(step.param)
    grid = {name: Column(held.places[:, None], held.book) for name, held in states.items()}
    grid[step.param.name] = Column(np.arange(width), books[step.param.name])
    mask = reduce(np.logical_and, (condition.mask(grid) for condition in step.due), np.ones((), bool))
    which, places = np.nonzero(np.broadcast_to(mask, (count, width)))
    rows = {name: Column(held.places[which], held.book) for name, held in states.items()}
    rows[step.param.name] = Column(places, books[step.param.name])
    kept = {
        name: rows[name] if how is None else _plain(how.vector(rows).array, which) for name, how in step.kept.items()
    }
    doomed = reduce(np.logical_or, (hopeless(tree, kept, books) for tree in step.pending), np.zeros((), bool))
    if doomed.any():
        alive = np.flatnonzero(~np.broadcast_to(doomed, which.shape))
        which, places = which[alive], places[alive]
        kept = {name: Column(held.places[alive], held.book) for name, held in kept.items()}
    kept = {name: held if step.kept[name] is None else _coded(held) for name, held in kept.items()}
    first, children = _merged(kept, len(which))
    starts = np.searchsorted(which, np.arange(count + 1))
    following = {name: Column(held.places[first], held.book) for name, held in kept.items()}
    return Level(step.param, starts, places, children), following


def _plain(values: Array, which: Array) -> Column:
    """Return computed values as a column in which each has a place of its own."""
    return Column(np.arange(len(which)), Book((), np.broadcast_to(values, which.shape)))


def _coded(column: Column) -> Column:
    """Return the column with equal values at one place."""
    assert column.book.numbers is not None
    distinct, places = distinct_numbers(column.book.numbers[column.places])
    low, high = (int(distinct[0]), int(distinct[-1])) if distinct.size and distinct.dtype.kind in "bi" else (0, 0)
    return Column(places, Book(distinct.tolist(), distinct, low, high))


def _merged(kept: Mapping[str, Column], count: int) -> tuple[Array, Array]:
    """Return one row of each state, and the state of each row."""
    if not kept or not count:
        return np.zeros(min(1, count), np.int64), np.zeros(count, np.int64)
    columns = list(kept.values())
    return first_and_inverse([held.places for held in columns], [len(held.book.values) for held in columns])


def _least(costs: Array, starts: Array) -> tuple[Array, Array]:
    """Return the least cost of each run of moves, endless for an empty one, and where it first stands."""
    runs = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    order = np.lexsort((costs, runs))
    padded = np.concatenate([costs[order], np.full(1, np.inf)])
    empty = starts[1:] == starts[:-1]
    least = np.where(empty, np.inf, padded[starts[:-1]])
    first = np.concatenate([order, np.zeros(1, np.int64)])[starts[:-1]]
    return least, first
