"""A portfolio is a few choices that together lose little."""

import numpy as np

from tunewise.learn.portfolio import cover


def test_two_specialists_beat_one_that_is_never_bad() -> None:
    costs = np.array([[0.0, 1.0, 0.3], [0.0, 1.0, 0.3], [1.0, 0.0, 0.3], [1.0, 0.0, 0.3]])
    assert cover(costs, np.ones(4), 1).tolist() == [2]
    assert cover(costs, np.ones(4), 2).tolist() == [0, 1]


def test_a_choice_that_saves_nothing_is_not_kept() -> None:
    costs = np.array([[0.0, 0.5, 0.0], [0.0, 0.5, 0.2]])
    assert cover(costs, np.ones(2), 3).tolist() == [0]


def test_what_must_stay_stays_beyond_the_limit() -> None:
    costs = np.array([[0.0, 0.5, 0.7], [0.0, 0.5, 0.7]])
    assert cover(costs, np.ones(2), 1, always=[1, 2]).tolist() == [1, 2]
    assert cover(costs, np.ones(2), 3, always=[1, 2]).tolist() == [0, 1, 2]


def test_what_is_there_anyway_takes_no_place() -> None:
    costs = np.array([[0.0, 1.0, 0.3], [1.0, 0.0, 0.3], [1.0, 1.0, 0.2]])
    assert cover(costs, np.ones(3), 1, free=2).tolist() in ([0, 2], [1, 2])
    assert cover(costs, np.ones(3), 2, free=2).tolist() == [0, 1, 2]
    assert cover(costs, np.ones(3), 2, always=[2], free=2).tolist() in ([0, 2], [1, 2])


def test_weights_say_which_problems_matter() -> None:
    costs = np.array([[0.0, 1.0], [1.0, 0.0]])
    assert cover(costs, np.array([1.0, 3.0]), 1).tolist() == [1]
