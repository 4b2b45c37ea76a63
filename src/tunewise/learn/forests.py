"""Trees of scikit-learn and LightGBM as plain values: the same questions, the same guesses."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from msgspec.structs import replace

from tunewise.errors import InvalidModel
from tunewise.formats.dataset import Floats
from tunewise.learn.coding import Coding
from tunewise.models import Columns, Forest, Guess, Split, Word

Nodes = tuple[Split | Guess, ...]


def from_lightgbm(boosters: Sequence[Any], numbers: Sequence[int], columns: Columns, scale: float = 1.0) -> Forest:
    """Return the forest of some boosters, whose guess is `scale` times the sum of what they predict.

    `numbers` are the model's columns that the boosters saw. Raises InvalidModel for a tree that asks what our
    questions cannot, such as for a missing value.
    """
    dumped = [tree for booster in boosters for tree in booster.dump_model()["tree_info"]]
    return Forest(tuple(_lightgbm_tree(tree["tree_structure"], numbers, columns, scale) for tree in dumped))


def from_sklearn(tree: Any, coding: Coding) -> Nodes:
    """Return a scikit-learn regression tree that was grown on codes as nodes that ask for the columns themselves."""
    return tuple(_sklearn_node(tree, number, coding) for number in range(tree.node_count))


def used(forest: Forest) -> list[int]:
    """Return the columns that a forest asks about."""
    amounts = () if forest.work is None else forest.work.amounts
    return sorted({*amounts, *(node.column for nodes in forest.trees for node in nodes if isinstance(node, Split))})


def renumbered(forest: Forest, numbers: Mapping[int, int]) -> Forest:
    """Return the forest that asks for the same columns under their new numbers."""
    trees = tuple(tuple(_renumbered(node, numbers) for node in nodes) for nodes in forest.trees)
    work = forest.work and replace(forest.work, amounts=tuple(numbers[number] for number in forest.work.amounts))
    return replace(forest, trees=trees, work=work)


def evaluate(forest: Forest, matrix: Floats) -> Floats:
    """Return what the trees add up to for every row of an array of all columns: what `Forest.added` returns."""
    total = np.full(len(matrix), forest.base)
    for nodes in forest.trees:
        total += _evaluate(nodes, matrix)
    return total


def _lightgbm_tree(structure: Mapping[str, Any], numbers: Sequence[int], columns: Columns, scale: float) -> Nodes:
    nodes: list[Split | Guess] = []
    places: list[tuple[int, int]] = []  # of every node: its parent, and on which side it is
    waiting: list[tuple[Mapping[str, Any], int, int]] = [(structure, -1, 0)]
    while waiting:
        node, parent, side = waiting.pop()
        places.append((parent, side))
        number = len(nodes)
        if "leaf_value" in node:
            nodes.append(Guess(scale * float(node["leaf_value"]), int(node.get("leaf_count", 0))))
            continue
        nodes.append(_lightgbm_split(node, numbers, columns))
        waiting += [(node["right_child"], number, 1), (node["left_child"], number, 0)]
    return _linked(nodes, places)


def _lightgbm_split(node: Mapping[str, Any], numbers: Sequence[int], columns: Columns) -> Split:
    column = numbers[node["split_feature"]]
    if node["decision_type"] == "<=":
        if node.get("missing_type", "None") != "None":  # of words it says so too, and treats what is missing as a word
            raise InvalidModel(f"a tree that asks whether {columns.names[column]!r} is missing cannot be kept")
        return Split(column, 0, 0, threshold=float(node["threshold"]))
    word = columns.inputs[column]
    assert isinstance(word, Word)
    words = tuple(n for n in map(int, str(node["threshold"]).split("||")) if n < len(word.words))
    return Split(column, 0, 0, words=words)


def _linked(nodes: Sequence[Split | Guess], places: Sequence[tuple[int, int]]) -> Nodes:
    children = np.zeros((len(nodes), 2), dtype=np.int64)
    for number, (parent, side) in enumerate(places):
        if parent >= 0:
            children[parent, side] = number
    return tuple(
        Split(node.column, int(low), int(high), node.threshold, node.words) if isinstance(node, Split) else node
        for node, (low, high) in zip(nodes, children, strict=True)
    )


def _sklearn_node(tree: Any, number: int, coding: Coding) -> Split | Guess:
    low, high = int(tree.children_left[number]), int(tree.children_right[number])
    if low < 0:
        return Guess(float(tree.value[number, 0, 0]), int(tree.n_node_samples[number]))
    flag = int(tree.feature[number])
    column, word = coding.flags[flag]
    if word is not None:
        return Split(column, high, low, words=(word,))
    return Split(column, low, high, threshold=coding.threshold(flag, float(tree.threshold[number])))


def _renumbered(node: Split | Guess, numbers: Mapping[int, int]) -> Split | Guess:
    if isinstance(node, Guess):
        return node
    return Split(numbers[node.column], node.low, node.high, node.threshold, node.words)


def _evaluate(nodes: Nodes, matrix: Floats) -> Floats:
    found = np.empty(len(matrix))
    waiting = [(0, np.arange(len(matrix)))]
    while waiting:
        number, rows = waiting.pop()
        node = nodes[number]
        if isinstance(node, Guess):
            found[rows] = node.value
            continue
        values = matrix[rows, node.column]
        low = np.isin(values, node.words) if node.words else values <= node.threshold
        waiting += [(node.low, rows[low]), (node.high, rows[~low])]
    return found
