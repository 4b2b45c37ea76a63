"""A tree grown question by question, the most useful one first, so that every smaller tree is its beginning."""

from collections.abc import Sequence
from dataclasses import dataclass
from heapq import heappop, heappush

import numpy as np

from tunewise.formats.dataset import Flags, Floats, Numbers
from tunewise.learn.questions import Bins, Question, ask, bins, sides


@dataclass(frozen=True)
class Sample:
    """Rows to grow a tree on: their columns, what every choice costs there, and how much each row counts."""

    table: Floats
    words: Flags
    costs: Floats
    weights: Floats
    worth: Floats  # of each column, see Bins


@dataclass(frozen=True)
class Limits:
    """How far a tree may grow."""

    depth: int
    leaves: int


@dataclass(frozen=True)
class Branch:
    """A node: the costs of its rows, and, if it was split, the question, its children, and when that happened."""

    cost: Floats  # mean of each choice
    weight: float
    question: Question | None = None
    low: int = -1
    high: int = -1
    turn: int = 0  # the tree of n leaves has the splits of turns below n - 1


@dataclass(frozen=True)
class Grown:
    """A tree and all smaller ones it grew from: nodes are numbered as they came."""

    branches: tuple[Branch, ...]

    @property
    def leaves(self) -> int:
        """How many leaves the whole tree has."""
        return (len(self.branches) + 1) // 2

    def is_split(self, number: int, leaves: int) -> bool:
        """Return whether a node is split in the tree of so many leaves."""
        branch = self.branches[number]
        return branch.question is not None and branch.turn < leaves - 1

    def places(self, table: Floats, leaves: int) -> Numbers:
        """Return the node at which each row ends in the tree of so many leaves."""
        ends = np.zeros(len(table), dtype=np.int64)
        waiting = [(0, np.arange(len(table)))]
        while waiting:
            number, rows = waiting.pop()
            ends[rows] = number
            branch = self.branches[number]
            if branch.question is not None and self.is_split(number, leaves):
                waiting += zip((branch.low, branch.high), sides(branch.question, rows, table), strict=True)
        return ends

    def first_choices(self) -> Numbers:
        """Return for every node, whether it is split or not, the choice that costs least."""
        return np.array([branch.cost.argmin() for branch in self.branches], dtype=np.int64)


def grow(sample: Sample, limits: Limits, least_weight: float = 1.0) -> Grown:
    """Return a tree grown on a sample; the question that saves most, anywhere in the tree, is asked next.

    Each side of a split keeps at least `least_weight`; a measured problem and those drawn near it weigh one.
    """
    cut = bins(sample.table, sample.words, sample.worth)
    branches = [_branch(sample, np.arange(len(sample.table)))]
    members, depths = [np.arange(len(sample.table))], [0]
    waiting: list[tuple[float, int, Question]] = []
    _await(waiting, 0, _question(cut, sample, members[0], limits.depth, least_weight))
    for turn in range(limits.leaves - 1):
        if not waiting:
            break
        _, number, question = heappop(waiting)
        children = len(branches), len(branches) + 1
        branches[number] = _split(branches[number], question, children, turn)
        for rows in sides(question, members[number], sample.table):
            depths.append(depths[number] + 1)
            branches.append(_branch(sample, rows))
            members.append(rows)
            _await(waiting, len(branches) - 1, _question(cut, sample, rows, limits.depth - depths[-1], least_weight))
        members[number] = members[number][:0]
    return Grown(tuple(branches))


def _question(cut: Bins, sample: Sample, rows: Numbers, depth_left: int, least_weight: float) -> Question | None:
    if depth_left <= 0 or sample.weights[rows].sum() < 2 * least_weight:
        return None
    return ask(cut, rows, sample.costs, sample.weights, least_weight)


def _await(waiting: list[tuple[float, int, Question]], number: int, question: Question | None) -> None:
    if question is not None:
        heappush(waiting, (-question.gain, number, question))


def _branch(sample: Sample, rows: Numbers) -> Branch:
    weights = sample.weights[rows]
    return Branch(np.average(sample.costs[rows], axis=0, weights=weights), float(weights.sum()))


def _split(branch: Branch, question: Question, children: Sequence[int], turn: int) -> Branch:
    return Branch(branch.cost, branch.weight, question, children[0], children[1], turn)
