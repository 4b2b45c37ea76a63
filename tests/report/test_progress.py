"""Tuning progress: the best so far falls to one, failures count, and trials of one config add up."""

import samples

from tunewise.decision import Failure, Timing, Trial
from tunewise.report.progress import best_so_far, progress
from tunewise.session.recall import Measured


def test_the_best_so_far_falls_to_one() -> None:
    outcomes = [Timing((4.0,)), Failure("crash"), Timing((8.0,)), Timing((2.0,))]
    assert best_so_far(outcomes) == [2.0, 2.0, 2.0, 1.0]


def test_until_something_ran_the_worst_time_stands() -> None:
    assert best_so_far([Failure("crash"), Timing((1.0,)), Timing((3.0,))]) == [3.0, 1.0, 1.0]


def test_where_nothing_ran_there_is_no_curve() -> None:
    assert best_so_far([Failure("crash")]) == []


def test_problems_evaluations_and_failures_are_counted() -> None:
    found = progress(samples.measured(problems=2))
    assert found is not None
    assert (found.problems, found.evaluations, found.failures) == (2, 6, 2)
    assert [line.name for line in found.lines] == ["geometric mean", "kind=flat, n=0", "kind=flat, n=1"]
    assert [list(line.values) for line in found.lines] == [[2.0, 2.0, 1.0]] * 3


def test_many_problems_become_their_mean_and_their_worst() -> None:
    found = progress(samples.measured(problems=20))
    assert found is not None
    assert [line.name for line in found.lines] == ["geometric mean", "worst problem"]


def test_one_config_measured_twice_is_one_evaluation() -> None:
    trials = samples.measured(problems=1)
    again = Measured(trials[0].subject, Trial(trials[0].trial.config, Timing((1e-6,))))
    found = progress([*trials, again])
    assert found is not None
    assert found.evaluations == 3


def test_without_trials_there_is_no_progress() -> None:
    assert progress([]) is None
