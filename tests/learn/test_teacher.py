"""Teachers know choices from parameters where these outnumber the problems, and by themselves elsewhere."""

from dataclasses import replace

import numpy as np
import pytest
from measured import crossing, measured
from tiled import tiled

from tunewise.formats.dataset import DataSet
from tunewise.learn import boosting, teacher
from tunewise.learn.columns import Frame, frame
from tunewise.learn.options import Training
from tunewise.learn.regret import charged
from tunewise.learn.study import study
from tunewise.learn.teacher import Teaching, by_choice, by_parameters, teaching_for

FEW = tiled(16)
OPTIONS = Training(portfolio=6)


def lost(way: Teaching, known: DataSet, asked: DataSet) -> float:
    """Return the log regret of a teacher's first choices on problems that it did not see."""
    made, seen = way(known, np.ones(len(known)), OPTIONS), frame(known, 2.0)
    guessed = made.guess(Frame(seen.inputs, frame(asked, 2.0).values, seen.whole), np.arange(len(made.choices)))
    return float(charged(asked)[np.arange(len(asked)), made.choices[guessed.argmin(axis=1)]].mean())


def test_parameters_tell_more_of_choices_that_were_seen_on_a_few_problems() -> None:
    asked = tiled(60, seed=7)
    assert lost(by_parameters, FEW, asked) < lost(by_choice, FEW, asked)


def oblique(count: int, seed: int = 0) -> DataSet:
    """Return a decision of three choices whose borders run slantwise through sizes, with no steps in any time."""
    chance = np.random.default_rng(seed)
    n, m, k = (np.exp(chance.uniform(0, np.log(4096), count)) for _ in range(3))
    times = np.stack([n**0.7 * m**0.6 + 5, n**0.5 * k**0.6 + 20, m**0.8 * k**0.3 + n**0.2 + 2], axis=1)
    return measured({"n": n, "m": m, "k": k}, times * np.exp(chance.normal(0, 0.02, times.shape)) * 1e-6)


def fitting(count: int, seed: int = 0) -> DataSet:
    """Return a decision of two choices: the second is best for multiples of 8, and twice as slow else."""
    chance = np.random.default_rng(seed)
    n = np.where(chance.random(count) < 0.5, 8, 1) * chance.integers(1, 512, count)
    times = np.stack([np.full(count, 2.0), np.where(n % 8 == 0, 1.0, 4.0)], axis=1)
    return measured({"n": n.tolist()}, times * np.exp(chance.normal(0, 0.02, times.shape)) * 1e-6)


def test_a_process_beside_the_trees_tells_borders_that_run_slantwise(monkeypatch: pytest.MonkeyPatch) -> None:
    known, asked = oblique(60), oblique(300, seed=7)
    together = lost(by_choice, known, asked)
    monkeypatch.setattr(teacher, "process_of", lambda *_: None)
    assert together < 0.7 * lost(by_choice, known, asked)


def test_trees_alone_are_heard_where_a_process_sees_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    known, asked = fitting(80), fitting(300, seed=7)
    together = lost(by_choice, known, asked)
    monkeypatch.setattr(teacher, "process_of", lambda *_: None)
    assert together <= lost(by_choice, known, asked) + 0.01


def test_problems_without_weight_say_nothing() -> None:
    data, weights = oblique(12), np.zeros(12)
    weights[[3, 7]] = 6.0
    made, alone = by_choice(data, weights, OPTIONS), by_choice(data.take(np.array([3, 7])), np.ones(2), OPTIONS)
    asked = frame(data, 2.0)
    firsts = [one.choices[one.guess(asked, np.arange(len(one.choices))).argmin(axis=1)] for one in (made, alone)]
    assert firsts[0][[3, 7]].tolist() == firsts[1][[3, 7]].tolist()


@pytest.mark.parametrize("way", [by_choice, by_parameters])
def test_guesses_are_regrets_of_the_choices_in_question(way: Teaching) -> None:
    made = way(FEW, np.ones(len(FEW)), OPTIONS)
    guessed = made.guess(frame(FEW, 2.0), np.arange(len(made.choices)))
    assert guessed.shape == (len(FEW), len(made.choices))
    assert guessed.min() >= 0
    assert list(made.choices) == sorted(set(made.choices))
    few = np.array([0, 3])
    assert made.guess(frame(FEW, 2.0), few) == pytest.approx(guessed[:, few] - guessed[:, few].min(axis=1)[:, None])


def test_choices_that_outnumber_the_problems_are_known_by_their_parameters() -> None:
    assert teaching_for(FEW) is by_parameters


def test_every_choice_is_learned_by_itself_where_problems_are_many() -> None:
    assert teaching_for(tiled(60)) is by_choice


def test_choices_without_parameters_are_learned_by_themselves() -> None:
    assert teaching_for(crossing(2)) is by_choice


def test_choices_that_share_no_parameter_are_learned_by_themselves() -> None:
    apart = tuple({f"own{number}": number, "order": "row"} for number in range(len(FEW.configs)))
    assert teaching_for(replace(FEW, configs=apart)) is by_choice


def test_without_lightgbm_every_choice_is_learned_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(teacher, "is_installed", lambda: False)
    assert teaching_for(FEW) is by_choice
    assert boosting.is_installed()


@pytest.mark.parametrize(("data", "is_far"), [(FEW, True), (tiled(60), False)])
def test_a_tree_is_trusted_as_far_out_as_its_teacher(data: DataSet, is_far: bool) -> None:
    known = study(data, np.ones(len(data)), OPTIONS, teaching_for(data)).problems
    for column, feature in zip(known.inputs, data.features, strict=True):
        assert (column.value(float(8 * feature.values.max())) is not None) is is_far
