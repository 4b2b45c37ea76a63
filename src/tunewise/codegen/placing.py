"""Where a tree works its formulas out: at the node below which all are that need them, and no earlier."""

from collections.abc import Mapping

from tunewise.codegen.formulas import Formulas
from tunewise.models import Split, Tree


def places(tree: Tree, formulas: Formulas, ahead: frozenset[int]) -> dict[int, list[int]]:
    """Return which of the columns `ahead` each node works out before it asks, those that others need first."""
    depths, parents = _ways(tree)
    found: dict[int, int] = {}
    for number in depths:
        node = tree.nodes[number]
        if isinstance(node, Split):
            for column in formulas.ahead([node.column]) | ahead.intersection([node.column]):
                found[column] = _meeting(found.get(column, number), number, depths, parents)
    placed: dict[int, list[int]] = {}
    for column in sorted(found):
        placed.setdefault(found[column], []).append(column)
    return placed


def _ways(tree: Tree) -> tuple[dict[int, int], dict[int, int]]:
    """Return how deep every node is, and which one is above it."""
    depths, parents, waiting = {0: 0}, {0: 0}, [0]
    while waiting:
        number = waiting.pop()
        node = tree.nodes[number]
        if isinstance(node, Split):
            for child in (node.low, node.high):
                depths[child], parents[child] = depths[number] + 1, number
                waiting.append(child)
    return depths, parents


def _meeting(one: int, other: int, depths: Mapping[int, int], parents: Mapping[int, int]) -> int:
    """Return the deepest node that two nodes are below."""
    while one != other:
        if depths[one] >= depths[other]:
            one = parents[one]
        else:
            other = parents[other]
    return one
