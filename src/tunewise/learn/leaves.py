"""What a leaf may answer: its choices in order, or nothing where the default did no worse on held-out problems."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tunewise.formats.dataset import Floats, Numbers
from tunewise.learn.growing import Grown
from tunewise.models import Leaf, Split

_TRUST = 10.0  # problems that what is expected of a leaf counts for, besides those in it that were held out


@dataclass(frozen=True)
class Evidence:
    """What is known of the measured problems: where they are, and what was lost on each while it was held out."""

    ends: Numbers  # the node that each problem ends at
    ours: Floats  # log regret of what was answered
    default: Floats | None  # of the default; None: there is none, so no leaf abstains

    def expected_gain(self, guessed: float) -> float:
        """Return what a leaf should gain over the default: as the teacher guesses, or as all problems gain if less."""
        return guessed if self.default is None else min(guessed, float((self.default - self.ours).mean()))


def nodes_of(
    grown: Grown, leaves: int, evidence: Evidence, default: int | None, is_unsafe: Callable[[int, Numbers], bool]
) -> tuple[Split | Leaf, ...]:
    """Return the nodes of the tree of so many leaves, children after parents, without questions that decide nothing.

    `default` is the default's place among the choices. `is_unsafe` says of a choice and the numbers of the problems
    in its leaf whether that leaf must abstain.
    """
    made: list[Split | Leaf | None] = []

    def add(number: int) -> int:
        place = len(made)
        made.append(None)
        branch = grown.branches[number]
        if branch.question is None or not grown.is_split(number, leaves) or _is_settled(grown, number, leaves):
            made[place] = leaf_of(grown, number, leaves, evidence, default, is_unsafe)
            return place
        question = branch.question
        low = add(branch.low)
        made[place] = Split(question.column, low, add(branch.high), question.threshold, question.words)
        return place

    add(0)
    return tuple(node for node in made if node is not None)


def leaf_of(
    grown: Grown,
    number: int,
    leaves: int,
    evidence: Evidence,
    default: int | None,
    is_unsafe: Callable[[int, Numbers], bool],
) -> Leaf:
    """Return the leaf that stands for a node and all below it."""
    cost = grown.branches[number].cost
    ranking = tuple(np.argsort(cost, kind="stable").tolist())
    inside = np.flatnonzero(np.isin(evidence.ends, below(grown, number, leaves)))
    if default is None or evidence.default is None:
        ours = theirs = _mean(evidence.ours[inside], float(cost[ranking[0]]))
    else:
        theirs = _mean(evidence.default[inside], float(cost[default]))
        expected = evidence.expected_gain(float(cost[default] - cost[ranking[0]]))
        gain = _mean(evidence.default[inside] - evidence.ours[inside], expected)
        ours = theirs if ranking[0] == default else max(theirs - gain, 0.0)
        if ours >= theirs and ranking[0] != default:
            ranking = ()
    if ranking and is_unsafe(ranking[0], inside):
        ranking = ()
    return Leaf(ranking, len(inside), _rounded(ours), _rounded(theirs))


def below(grown: Grown, number: int, leaves: int) -> list[int]:
    """Return the numbers of the leaves under a node, in the tree of so many leaves."""
    if not grown.is_split(number, leaves):
        return [number]
    branch = grown.branches[number]
    return below(grown, branch.low, leaves) + below(grown, branch.high, leaves)


def _is_settled(grown: Grown, number: int, leaves: int) -> bool:
    """Return whether all leaves under a node, and the node itself, name the same choice first."""
    named = {int(grown.branches[leaf].cost.argmin()) for leaf in (number, *below(grown, number, leaves))}
    return len(named) == 1


def _mean(held_out: Floats, guessed: float) -> float:
    return float((held_out.sum() + _TRUST * guessed) / (len(held_out) + _TRUST))


def _rounded(log_regret: float) -> float:
    return float(f"{np.exp(log_regret):.4g}")
