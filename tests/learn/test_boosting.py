"""Boosting: what further trees, grown on what the first choice loses, are worth."""

import numpy as np
from tiled import tiled

from tunewise.formats.dataset import Floats
from tunewise.learn.boosting import Plan, boosted, guesses
from tunewise.learn.options import Training
from tunewise.learn.pairs import Pairs, pairs, top_costs

SMALL = Plan(trees=10, leaves=4, boosters=2)
FINISHED = Plan(trees=10, leaves=4, boosters=2, finish=40)


def lost(table: Pairs, plan: Plan) -> Floats:
    words = np.zeros(table.values.shape[1], dtype=np.bool_)
    return top_costs(table, table.cost, guesses(boosted(table.values, words, table, plan, 0), table.values, plan), 1)


def test_a_finish_makes_the_first_choice_lose_less() -> None:
    table = pairs(tiled(40), Training(), 10**6)
    assert lost(table, FINISHED).mean() < 0.9 * lost(table, SMALL).mean()


def test_a_finish_cares_most_for_the_problems_that_count_most() -> None:
    data = tiled(40)
    heavy = np.arange(len(data)) % 8 == 0
    counted = pairs(data, Training(weights=lambda _: np.where(heavy, 50.0, 0.1)), 10**6)
    alike = pairs(data, Training(), 10**6)
    assert lost(counted, FINISHED)[heavy].mean() < lost(alike, FINISHED)[heavy].mean()


def test_rows_that_no_column_tells_apart_have_no_finish() -> None:
    table = pairs(tiled(1), Training(), 10**6)
    constant = np.ones((len(table), 3))
    assert len(boosted(constant, np.zeros(3, dtype=np.bool_), table, FINISHED, 0)) == 2


def test_boosters_of_a_finish_are_added_to_the_others() -> None:
    table = pairs(tiled(10), Training(), 10**6)
    words = np.zeros(table.values.shape[1], dtype=np.bool_)
    assert [len(boosted(table.values, words, table, plan, 0)) for plan in (SMALL, FINISHED)] == [2, 4]


def test_a_single_row_is_learned_from() -> None:
    table = pairs(tiled(2), Training(), 10**6)
    one = table.of(np.arange(len(table)) == 0)
    words = np.zeros(one.values.shape[1], dtype=np.bool_)
    assert np.isfinite(guesses(boosted(one.values, words, one, SMALL, 0), one.values, SMALL)).all()


def test_boosters_learn_what_was_not_told() -> None:
    table = pairs(tiled(30), Training(), 10**6)
    words = np.zeros(table.values.shape[1], dtype=np.bool_)
    nothing_left = guesses(boosted(table.values, words, table, SMALL, 0, told=table.cost), table.values, SMALL)
    assert np.abs(nothing_left).max() < 1e-9
    finished = guesses(boosted(table.values, words, table, FINISHED, 0, told=table.cost), table.values, FINISHED)
    assert top_costs(table, table.cost, finished + table.cost, 1).mean() < 0.01
