"""A tree grows question by question, and every smaller tree is its beginning."""

import numpy as np

from tunewise.learn.growing import Branch, Grown, Limits, grow
from tunewise.learn.questions import Question, Sample


def sample(count: int = 400) -> Sample:
    """Return rows on which no single question helps much: which choice is best is an exclusive or."""
    chance = np.random.default_rng(0)
    table = chance.uniform(0, 1, (count, 2))
    is_first = (table[:, 0] > 0.55) ^ (table[:, 1] > 0.4)
    costs = np.stack([~is_first, is_first], axis=1) * 1.0
    return Sample(table, np.zeros(2, dtype=bool), costs, np.ones(count), np.ones(2), count)


def lost(grown: Grown, rows: Sample, leaves: int) -> float:
    chosen = grown.first_choices()[grown.cut(leaves).places(rows.table)]
    return float(rows.costs[np.arange(len(chosen)), chosen].mean())


def test_an_exclusive_or_is_learned() -> None:
    rows = sample()
    assert lost(grow(rows, Limits(depth=4, leaves=8)), rows, 8) < 0.03


def test_a_tree_of_few_leaves_is_the_beginning_of_one_of_many() -> None:
    rows = sample()
    small, large = grow(rows, Limits(depth=4, leaves=3)), grow(rows, Limits(depth=4, leaves=8))
    assert np.array_equal(small.places(rows.table), large.cut(3).places(rows.table))


def test_limits_are_kept() -> None:
    rows = sample()

    def sizes(limits: Limits, least_weight: float = 1.0) -> np.ndarray:
        return np.unique(grow(rows, limits, least_weight).places(rows.table), return_counts=True)[1]

    assert len(sizes(Limits(depth=2, leaves=100))) <= 4
    assert len(sizes(Limits(depth=10, leaves=5))) == 5
    assert sizes(Limits(depth=10, leaves=50), least_weight=30).min() >= 30


def branching(low_cost: list[float], high_cost: list[float]) -> Grown:
    """Return a tree of one question, with the costs of two choices on both sides."""
    both = (np.array(low_cost) + np.array(high_cost)) / 2
    question = Question(column=0, gain=1.0, threshold=5.0)
    return Grown((Branch(both, 20.0, question, 1, 2), *(Branch(np.array(c), 10.0) for c in (low_cost, high_cost))))


def test_a_question_that_saves_less_than_the_tolerance_is_not_asked() -> None:
    grown = branching([0.0, 0.5], [0.02, 0.0])  # the best single choice costs 0.01
    assert grown.cut(2, tolerance=0.009).branches[0].question is not None
    assert grown.cut(2, tolerance=0.011).branches[0].question is None
    assert grown.cut(2).branches[0].question is not None


def test_a_question_whose_answers_are_the_same_is_not_asked() -> None:
    assert branching([0.0, 0.5], [0.1, 0.9]).cut(2).branches[0].question is None


def test_a_question_stays_for_what_is_saved_below_it_as_long_as_its_answers_differ() -> None:
    question = Question(column=0, gain=1.0, threshold=5.0)
    leaves = [Branch(np.array(cost), 5.0) for cost in ([0.0, 0.3], [0.006, 0.0], [0.0, 0.3], [0.1, 0.0])]
    one, other = (Branch((a.cost + b.cost) / 2, 10.0) for a, b in (leaves[:2], leaves[2:]))
    splits = [Branch(one.cost, 10.0, question, 3, 4, 1), Branch(other.cost, 10.0, question, 5, 6, 2)]
    grown = Grown((Branch((one.cost + other.cost) / 2, 20.0, question, 1, 2, 0), *splits, *leaves))
    asked = [branch.question is not None for branch in grown.cut(4, tolerance=0.005).branches]
    assert asked == [True, False, True, False, False, False, False]
    assert not any(branch.question for branch in grown.cut(2, tolerance=0.005).branches)
