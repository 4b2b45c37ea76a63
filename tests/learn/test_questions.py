"""A question splits problems where the best choices of both sides cost least."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tunewise.learn.questions import Question, Sample, ask, bins, short_between

FINITE = st.floats(min_value=-1e9, max_value=1e9, allow_subnormal=False)


def best_question(
    table: np.ndarray,
    costs: np.ndarray,
    words: tuple[bool, ...] = (False,),
    least_weight: float = 1.0,
    measured: int | None = None,
) -> Question | None:
    count = len(table)
    sample = Sample(
        table, np.array(words), costs, np.ones(count), np.ones(len(words)), count if measured is None else measured
    )
    return ask(bins(sample), sample, np.arange(count), least_weight)


def rises(count: int, border: int) -> tuple[np.ndarray, np.ndarray]:
    """Return sizes 1, 2, ... and costs of two choices, the second being better beyond the border."""
    sizes = np.arange(1, count + 1, dtype=float)
    beyond = sizes > border
    return sizes[:, None], np.stack([beyond * 1.0, ~beyond * 1.0], axis=1)


@given(FINITE, FINITE)
def test_a_threshold_lies_between_its_neighbours(one: float, other: float) -> None:
    low, high = sorted((one, other))
    if low < high:
        assert low <= short_between(low, high) < high


def test_a_threshold_is_short() -> None:
    assert short_between(412.0, 977.0) == 600.0
    assert short_between(64.0, 65.0) == 64.0


def test_the_border_is_found() -> None:
    question = best_question(*rises(100, 60))
    assert question is not None
    assert (question.column, question.threshold) == (0, 60.0)


def test_the_border_is_found_among_more_values_than_bins() -> None:
    question = best_question(*rises(20_000, 6_000))
    assert question is not None
    assert 5_900 <= question.threshold <= 6_100


def test_words_are_split_by_subset() -> None:
    words = np.array([0.0, 1.0, 2.0, 3.0] * 5)[:, None]
    odd = words[:, 0] % 2
    question = best_question(words, np.stack([odd, 1 - odd], axis=1), words=(True,))
    assert question is not None
    assert question.words in ((0, 2), (1, 3))


def test_each_side_keeps_a_row_that_was_measured() -> None:
    table, costs = rises(100, 60)
    question = best_question(table, costs, measured=40)
    assert question is not None
    assert question.threshold < 40
    assert best_question(table, costs, measured=0) is None


def test_each_side_keeps_enough() -> None:
    question = best_question(*rises(100, 2), least_weight=10)
    assert question is None or 10 <= question.threshold <= 90


def test_nothing_is_asked_where_costs_are_alike() -> None:
    assert best_question(np.arange(10.0)[:, None], np.ones((10, 2))) is None


def test_a_column_of_less_worth_loses_a_tie() -> None:
    sizes, costs = rises(50, 20)
    table = np.concatenate([sizes * 2, sizes], axis=1)
    sample = Sample(table, np.array([False, False]), costs, np.ones(50), np.array([0.8, 1.0]), 50)
    question = ask(bins(sample), sample, np.arange(50), 1.0)
    assert question is not None
    assert question.column == 1
