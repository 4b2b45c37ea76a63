"""Softmax over rows in C: each exponential computed once, cheaply, in vectors that fit the row."""

from collections.abc import Sequence

from tunewise.decision import Config, ReductionFact
from tunewise.decision.registers import native_width
from tunewise.heuristics import roles
from tunewise.heuristics.case import Case
from tunewise.heuristics.expert import Expert
from tunewise.heuristics.matching import On, ceil_div

_SHORT = 3  # vectors: in a shorter row a ragged end weighs as much as the rest
_SOFTMAX = 3  # passes over a row


class SoftmaxVectors(Expert):
    """Store each exponential and scale it later: a store and a load cost less than computing it again.

    The polynomial with the fewest terms comes first, for the check says whether it is exact enough. Vectors are as
    wide as a register, and half as wide for rows of less than three of them with a ragged end. Two vectors a step
    hide the latency of their sums; a row of one vector takes one.
    """

    name = "c-softmax-vectors"
    backend = "c"
    hardware = On(kinds=("cpu",))
    most = 2

    def seeds(self, problem: Case) -> Sequence[Config]:
        """Return the rule's config, and the same with steps twice as long where the row has them."""
        fact, played = problem.fact(ReductionFact), roles.cast(problem.space, roles.SOFTMAX)
        if fact is None or fact.passes < _SOFTMAX or not played.offers("algorithm", "store"):
            return []
        width = native_width(problem.hardware)
        if fact.columns < _SHORT * width and fact.columns % width:
            width //= 2
        steps = [2, 4] if fact.columns >= 4 * width else [min(2, ceil_div(fact.columns, width))]
        return [played.config(algorithm="store", width=width, unroll=unroll, exp="poly5", block=0) for unroll in steps]
