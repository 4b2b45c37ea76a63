"""A tree grown question by question, the most useful one first, so that every smaller tree is its beginning."""

from collections.abc import Sequence
from dataclasses import dataclass
from heapq import heappop, heappush

import numpy as np

from tunewise.formats.dataset import Floats, Numbers
from tunewise.learn.questions import Bins, Question, Sample, ask, bins, sides

_NOTHING = 1e-12  # of log regret: what rounding makes of none


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

    @property
    def closed(self) -> "Branch":
        """The same node without its question."""
        return Branch(self.cost, self.weight)

    @property
    def first(self) -> int:
        """The choice that costs least."""
        return int(self.cost.argmin())


@dataclass(frozen=True)
class Grown:
    """A tree and all smaller ones it grew from: nodes are numbered as they came."""

    branches: tuple[Branch, ...]

    def cut(self, leaves: int, tolerance: float = 0.0) -> "Grown":
        """Return the tree of so many leaves, without questions that decide nothing or too little to be told.

        That is so where the answers below a question cost no more than `tolerance` less than the best single one
        there, in log regret on the problems that come to it. Nodes keep their numbers.
        """
        kept = [branch if branch.turn < leaves - 1 else branch.closed for branch in self.branches]
        cost = [branch.cost.min() * branch.weight for branch in kept]
        for number in reversed(range(len(kept))):  # children come after their parents
            branch = kept[number]
            if branch.question is None:
                continue
            least = cost[number]
            cost[number] = cost[branch.low] + cost[branch.high]
            is_worth_it = least - cost[number] > max(tolerance, _NOTHING) * branch.weight
            if not is_worth_it or _agree(kept[branch.low], kept[branch.high]):
                kept[number] = branch.closed
        return Grown(tuple(kept))

    def places(self, table: Floats) -> Numbers:
        """Return the node at which each row ends."""
        ends = np.zeros(len(table), dtype=np.int64)
        waiting = [(0, np.arange(len(table)))]
        while waiting:
            number, rows = waiting.pop()
            ends[rows] = number
            branch = self.branches[number]
            if branch.question is not None:
                waiting += zip((branch.low, branch.high), sides(branch.question, rows, table), strict=True)
        return ends

    def first_choices(self) -> Numbers:
        """Return for every node, whether it is split or not, the choice that costs least."""
        return np.array([branch.first for branch in self.branches], dtype=np.int64)


def grow(sample: Sample, limits: Limits, least_weight: float = 1.0) -> Grown:
    """Return a tree grown on a sample; the question that saves most, anywhere in the tree, is asked next.

    Each side of a split keeps at least `least_weight`; a measured problem and those drawn near it weigh one.
    """
    cut = bins(sample)
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


def _agree(one: Branch, other: Branch) -> bool:
    """Return whether two nodes are leaves that name the same choice first."""
    return one.question is None and other.question is None and one.first == other.first


def _question(cut: Bins, sample: Sample, rows: Numbers, depth_left: int, least_weight: float) -> Question | None:
    if depth_left <= 0 or sample.weights[rows].sum() < 2 * least_weight:
        return None
    return ask(cut, sample, rows, least_weight)


def _await(waiting: list[tuple[float, int, Question]], number: int, question: Question | None) -> None:
    if question is not None:
        heappush(waiting, (-question.gain, number, question))


def _branch(sample: Sample, rows: Numbers) -> Branch:
    weights = sample.weights[rows]
    return Branch(np.average(sample.costs[rows], axis=0, weights=weights), float(weights.sum()))


def _split(branch: Branch, question: Question, children: Sequence[int], turn: int) -> Branch:
    return Branch(branch.cost, branch.weight, question, children[0], children[1], turn)
