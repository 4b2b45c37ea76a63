"""The bodies of models: a tree whose leaves rank choices, and a forest that guesses the time of every choice."""

import reprlib
from collections.abc import Sequence
from functools import cached_property
from math import log
from typing import TypeVar

import msgspec

from tunewise.errors import InvalidModel
from tunewise.models.columns import Columns, Input, Word
from tunewise.models.effort import A_TREE, AN_OPERATION, check_steps
from tunewise.models.work import E, Work

MAX_NODES, MAX_DEPTH, MAX_TREES = 200_000, 64, 2_000
MAX_GUESS = 1e6  # nothing adds up to infinity
MAX_WITH_WORK = 500.0  # e to the power of what trees add up to stays finite, where it is taken


class Split(msgspec.Struct, frozen=True, tag="split", forbid_unknown_fields=True, dict=True):
    """A question about one column: numbers up to the threshold, or the words listed, go to node `low`, others `high`.

    Nodes are numbered through their tree, and children come after their parent.
    """

    column: int
    low: int
    high: int
    threshold: float = 0.0
    words: tuple[int, ...] = ()

    @cached_property
    def listed(self) -> frozenset[int]:
        """The words: whether one is among them takes as long for thousands as for two."""
        return frozenset(self.words)


class Leaf(msgspec.Struct, frozen=True, tag="leaf", forbid_unknown_fields=True):
    """An answer: choices by number, best first; none means that the model abstains here."""

    ranking: tuple[int, ...] = ()
    support: int = 0  # problems it was learned from
    regret: float = (
        1.0  # of its first choice on problems that were held out; what is expected counts where they are few
    )
    default_regret: float = 1.0  # of the default, likewise


class Guess(msgspec.Struct, frozen=True, tag="guess", forbid_unknown_fields=True):
    """A number, one term of the logarithm of a time."""

    value: float
    support: int = 0


End = TypeVar("End", Leaf, Guess)


class Tree(msgspec.Struct, frozen=True, tag="tree", forbid_unknown_fields=True):
    """A decision tree over the columns of a problem."""

    nodes: tuple[Split | Leaf, ...]

    def leaf(self, row: Sequence[float]) -> Leaf:
        """Return the leaf a row ends in."""
        return _end(self.nodes, row)

    def path(self, row: Sequence[float]) -> tuple[list[tuple[Split, bool]], Leaf]:
        """Return the questions a row meets, each with whether it goes to `low`, and the leaf it ends in."""
        met, node = [], self.nodes[0]
        while isinstance(node, Split):
            is_low = row[node.column] in node.listed if node.words else row[node.column] <= node.threshold
            met.append((node, is_low))
            node = self.nodes[node.low if is_low else node.high]
        return met, node

    def check(self, columns: Columns, choices: int) -> None:
        """Raise InvalidModel unless every path ends in a leaf that names existing choices."""
        if columns.config:
            raise InvalidModel("a tree looks at the problem only, and this one has columns of a config")
        _check_nodes(self.nodes, columns)
        for node in self.nodes:
            if isinstance(node, Leaf):
                distinct = set(node.ranking)
                if len(distinct) < len(node.ranking) or not all(0 <= n < choices for n in distinct):
                    raise InvalidModel(f"a leaf ranks {reprlib.repr(node.ranking)}, and there are {choices} choices")


class Forest(msgspec.Struct, frozen=True, tag="forest", forbid_unknown_fields=True):
    """Regression trees over the columns of problem and config: their guesses add up to the logarithm of a time.

    With `is_order` they add up to a number that grows with the time, and is no logarithm of it. With `work` they add up
    to what the time of the work that is to be done does not tell.
    """

    trees: tuple[tuple[Split | Guess, ...], ...]
    base: float = 0.0
    is_order: bool = False
    work: Work | None = None

    def key(self, row: Sequence[float], choice: int) -> float:
        """Return what choices are ranked by: the logarithm of a time, or with work the time, up to a constant."""
        total = self.added(row)
        return total if self.work is None else E**total * self.work.seconds(row, choice) ** self.work.share

    def guess(self, row: Sequence[float], choice: int) -> float:
        """Return the logarithm of the time a row is expected to take, up to a constant."""
        key = self.key(row, choice)
        return key if self.work is None else log(key)

    def added(self, row: Sequence[float]) -> float:
        """Return what the trees add up to."""
        total = self.base
        for nodes in self.trees:
            total += _end(nodes, row).value
        return total

    def check(self, columns: Columns, choices: int) -> None:
        """Raise InvalidModel unless every path of every tree ends in a guess."""
        if not choices or len(self.trees) > MAX_TREES or sum(map(len, self.trees)) > MAX_NODES:
            raise InvalidModel(f"a forest of {len(self.trees)} trees for {choices} choices")
        splits = sum(_check_nodes(nodes, columns) for nodes in self.trees)
        amounts = 0 if self.work is None else len(self.work.amounts)
        operations = columns.operations + amounts
        check_steps(choices, splits + A_TREE * len(self.trees) + AN_OPERATION * operations)
        largest = max((abs(n.value) for nodes in self.trees for n in nodes if isinstance(n, Guess)), default=0.0)
        if not (largest <= MAX_GUESS and abs(self.base) <= MAX_GUESS):
            raise InvalidModel(f"a guess of {max(largest, abs(self.base)):g}; logarithms of times are small numbers")
        if self.work is not None:
            self._check_with_work(self.work, columns, choices)

    def _check_with_work(self, work: Work, columns: Columns, choices: int) -> None:
        if self.is_order:
            raise InvalidModel("a forest that only knows an order cannot add to the time of work")
        work.check(columns, choices)
        guesses = ([abs(node.value) for node in nodes if isinstance(node, Guess)] for nodes in self.trees)
        farthest = abs(self.base) + sum(map(max, guesses))
        if farthest > MAX_WITH_WORK:
            raise InvalidModel(f"trees that may add up to {farthest:g}; logarithms of times are small numbers")


def _end(nodes: Sequence[Split | End], row: Sequence[float]) -> End:
    """Return the node without a question that a row comes to."""
    node = nodes[0]
    while isinstance(node, Split):  # one loop and no calls: a forest is asked thousands of times for one ranking
        value = row[node.column]
        node = nodes[node.low if (value in node.listed if node.words else value <= node.threshold) else node.high]
    return node


def _check_nodes(nodes: Sequence[Split | Leaf | Guess], columns: Columns) -> int:
    """Return how many splits a row meets at most; raises InvalidModel unless every path comes to an end."""
    if not 0 < len(nodes) <= MAX_NODES:
        raise InvalidModel(f"a tree of {len(nodes)} nodes")
    inputs, total = columns.inputs, len(columns.inputs) + len(columns.derived)
    depth = {0: 0}
    for number, node in enumerate(nodes):
        if number not in depth:
            raise InvalidModel(f"node {number} belongs to no parent")
        if not isinstance(node, Split):
            continue
        _check_split(number, node, inputs, total)
        for child in (node.low, node.high):
            if not number < child < len(nodes) or child in depth:
                raise InvalidModel(f"node {number} has the child {child}, which is not its own")
            depth[child] = depth[number] + 1
            if depth[child] > MAX_DEPTH:
                raise InvalidModel(f"a tree deeper than {MAX_DEPTH} levels")
    return max(depth.values())


def _check_split(number: int, split: Split, inputs: Sequence[Input], total: int) -> None:
    if not 0 <= split.column < total:
        raise InvalidModel(f"node {number} asks for column {split.column} of {total}")
    column = inputs[split.column] if split.column < len(inputs) else None
    if not isinstance(column, Word):
        if split.words:
            raise InvalidModel(f"node {number} asks a number for a word")
        return
    distinct = set(split.words)
    if not distinct or len(distinct) < len(split.words) or not all(0 <= word < len(column.words) for word in distinct):
        raise InvalidModel(f"node {number} asks for words {reprlib.repr(split.words)} of {column.name!r}")
