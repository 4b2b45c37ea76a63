"""What a leaf may answer: its choices in order, or nothing where the default did no worse on held-out problems."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tunewise.formats.dataset import Floats, Numbers
from tunewise.learn.growing import Grown
from tunewise.models import Leaf, Split

_TRUST = 10.0  # problems that what is expected of a leaf counts for, besides those in it that were held out
_ENOUGH = 5  # held-out problems against which no expectation counts


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
    grown: Grown, evidence: Evidence, default: int | None, is_unsafe: Callable[[int, Numbers], bool]
) -> tuple[Split | Leaf, ...]:
    """Return the nodes of a tree, children after parents.

    `default` is the default's place among the choices. `is_unsafe` says of a choice and the numbers of the problems
    in its leaf whether that leaf must abstain.
    """
    made: list[Split | Leaf | None] = []

    def add(number: int) -> int:
        place = len(made)
        made.append(None)
        branch = grown.branches[number]
        if branch.question is None:
            inside = np.flatnonzero(evidence.ends == number)
            made[place] = leaf_of(branch.cost, inside, evidence, default, is_unsafe)
            return place
        question = branch.question
        low = add(branch.low)
        made[place] = Split(question.column, low, add(branch.high), question.threshold, question.words)
        return place

    add(0)
    return tuple(node for node in made if node is not None)


def leaf_of(
    cost: Floats, inside: Numbers, evidence: Evidence, default: int | None, is_unsafe: Callable[[int, Numbers], bool]
) -> Leaf:
    """Return the leaf for what choices cost there, and the numbers of the measured problems inside."""
    ranking = tuple(np.argsort(cost, kind="stable").tolist())
    if default is None or evidence.default is None:
        ours = theirs = _told(evidence.ours[inside], float(cost[ranking[0]]))
    else:
        gains = evidence.default[inside] - evidence.ours[inside]
        expected = evidence.expected_gain(float(cost[default] - cost[ranking[0]]))
        theirs = _told(evidence.default[inside], float(cost[default]))
        ours = theirs if ranking[0] == default else max(theirs - _told(gains, expected), 0.0)
        if ranking[0] != default and min(_mean(gains, expected), _told(gains, expected)) <= 0:
            ranking = ()
    if ranking and is_unsafe(ranking[0], inside):
        ranking = ()
    return Leaf(ranking, len(inside), _rounded(ours), _rounded(theirs))


def _mean(held_out: Floats, guessed: float) -> float:
    return float((held_out.sum() + _TRUST * guessed) / (len(held_out) + _TRUST))


def _told(held_out: Floats, guessed: float) -> float:
    """Return what held-out problems say, by themselves where they are enough."""
    return float(held_out.mean()) if len(held_out) >= _ENOUGH else _mean(held_out, guessed)


def _rounded(log_regret: float) -> float:
    return float(f"{np.exp(log_regret):.4g}")
