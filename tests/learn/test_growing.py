"""A tree grows question by question, and every smaller tree is its beginning."""

import numpy as np

from tunewise.learn.growing import Grown, Limits, Sample, grow


def sample(count: int = 400) -> Sample:
    """Return rows on which no single question helps much: which choice is best is an exclusive or."""
    chance = np.random.default_rng(0)
    table = chance.uniform(0, 1, (count, 2))
    is_first = (table[:, 0] > 0.55) ^ (table[:, 1] > 0.4)
    costs = np.stack([~is_first, is_first], axis=1) * 1.0
    return Sample(table, np.zeros(2, dtype=bool), costs, np.ones(count), np.ones(2))


def lost(grown: Grown, rows: Sample, leaves: int) -> float:
    chosen = grown.first_choices()[grown.places(rows.table, leaves)]
    return float(rows.costs[np.arange(len(chosen)), chosen].mean())


def test_an_exclusive_or_is_learned() -> None:
    rows = sample()
    assert lost(grow(rows, Limits(depth=4, leaves=8)), rows, 8) < 0.03


def test_a_tree_of_few_leaves_is_the_beginning_of_one_of_many() -> None:
    rows = sample()
    small, large = grow(rows, Limits(depth=4, leaves=3)), grow(rows, Limits(depth=4, leaves=8))
    assert np.array_equal(small.places(rows.table, 3), large.places(rows.table, 3))


def test_limits_are_kept() -> None:
    rows = sample()
    assert grow(rows, Limits(depth=2, leaves=100)).leaves <= 4
    assert grow(rows, Limits(depth=10, leaves=5)).leaves == 5
    ends = grow(rows, Limits(depth=10, leaves=50), least_weight=30).places(rows.table, 50)
    assert np.unique(ends, return_counts=True)[1].min() >= 30
