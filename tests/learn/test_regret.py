"""Costs are honest where a choice failed or was never tried."""

import numpy as np
import pytest
from measured import measured

from tunewise.errors import InvalidData
from tunewise.learn.regret import charged, expected, quick_s, with_times

NAN, INF = np.nan, np.inf


def test_a_failure_is_charged_twice_the_slowest_choice() -> None:
    data = measured({"n": [1.0]}, np.array([[2.0, INF, 1.0, 8.0]]))
    assert np.exp(charged(data))[0] == pytest.approx([2, 16, 1, 8])
    assert np.exp(expected(data))[0] == pytest.approx([2, 16, 1, 8])


def test_a_failure_costs_more_than_the_only_one_that_ran() -> None:
    data = measured({"n": [1.0]}, np.array([[INF, 1.0]]))
    assert np.exp(charged(data))[0] == pytest.approx([2, 1])
    assert np.exp(expected(data))[0] == pytest.approx([2, 1])


@pytest.mark.filterwarnings("error")
def test_times_of_any_size_are_compared() -> None:
    data = measured({"n": [1.0]}, np.array([[1e-300, 1e300]]))
    assert charged(data)[0] == pytest.approx([0, 600 * np.log(10)])


def test_what_was_never_tried_is_judged_as_the_default() -> None:
    data = measured({"n": [1.0]}, np.array([[2.0, NAN, 1.0, 8.0]]))
    assert np.exp(charged(data))[0] == pytest.approx([2, 2, 1, 8])


def test_a_default_that_was_never_tried_is_not_taken_as_a_failure() -> None:
    data = measured({"n": [1.0]}, np.array([[NAN, 1.0, 2.0]]))
    assert np.exp(charged(data))[0] == pytest.approx([2, 1, 2])


def test_what_was_never_tried_is_judged_as_the_slowest_without_a_default() -> None:
    data = measured({"n": [1.0]}, np.array([[2.0, NAN, 1.0, 8.0]]), default=None)
    assert np.exp(charged(data))[0] == pytest.approx([2, 8, 1, 8])


def test_what_was_never_tried_is_never_expected_to_beat_the_default() -> None:
    chance = np.random.default_rng(0)
    times = chance.uniform(1, 3, (200, 6))
    times[chance.random(times.shape) < 0.5] = NAN
    times[:, 0] = 1.5
    data = measured({"n": list(range(1, 201))}, times)
    costs = expected(data)
    missing = np.isnan(times)
    assert np.isfinite(costs).all()
    assert (costs >= costs[:, :1])[missing].all()


def test_a_choice_that_is_missing_for_a_reason_is_expected_to_be_slow() -> None:
    times = np.ones((100, 3)) * [2.0, 1.0, 4.0]
    times[:10, 1] = NAN
    assert np.exp(expected(measured({"n": list(range(1, 101))}, times)))[0, 1] > 1.8  # of at most 2: the slowest


def test_slow_outliers_do_not_reach_what_is_learned_from() -> None:
    data = measured({"n": [1.0]}, np.array([[1.0, 2.0]]), samples=7)
    data.rows.samples_s[2:7] *= 50.0
    assert quick_s(data.rows) == pytest.approx([1.0, 2.0])


def test_problems_on_which_nothing_ran_are_left_out() -> None:
    data = measured({"n": [1.0, 2.0]}, np.array([[INF, INF], [1.0, 2.0]]))
    assert len(with_times(data)) == 1
    with pytest.raises(InvalidData, match="nothing ran on any of the 1 problems"):
        with_times(data.take([0]))
