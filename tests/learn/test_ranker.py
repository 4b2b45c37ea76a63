"""The rankers: what they lose on problems they have not seen, and what they make of awkward data."""

import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tiled import CONFIGS, tiled

from tunewise.errors import InvalidData
from tunewise.formats import datasets
from tunewise.formats.dataset import DataSet
from tunewise.learn.gbdt import GbdtLearner
from tunewise.learn.net import NetLearner
from tunewise.learn.options import Training
from tunewise.learn.ranker import Budget, RankerLearner
from tunewise.learn.regression import RegressionLearner
from tunewise.learn.split import by_problem
from tunewise.learn.validate import validate
from tunewise.models import Forest, Model, dump, parse

SHARED = os.environ.get("TUNEWISE_DATA", "")
KNOWN, HELD_OUT = by_problem(tiled(60), 0.3, seed=1)


class QuickRanker(RankerLearner):
    """The same with less of everything."""

    budget = Budget(choices=8, columns=(16,), trees=(20,), boosters=1)


@pytest.fixture(scope="module")
def model() -> Model:
    return RankerLearner().fit(KNOWN, Training())


def test_a_ranker_finds_the_tile_that_fits_a_problem_it_has_not_seen(model: Model) -> None:
    found = validate(model, HELD_OUT)
    assert found.regret.geomean < 1.06
    assert found.top[3] < 1.04
    assert found.default_regret is not None
    assert found.default_regret.geomean > 1.2


def test_a_ranker_looks_at_tiles_where_these_decide(model: Model) -> None:
    assert any("ceil(m / rows)" in name for name in model.columns.names)


def test_with_fewer_problems_than_configs_a_law_may_tell_what_trees_cannot() -> None:
    known, held_out = tiled(24, seed=3), tiled(60, seed=4)
    made = RankerLearner().fit(known, Training())
    assert isinstance(made.body, Forest)
    assert made.body.work is not None
    assert len(made.body.work.rates) == len(made.choices)
    assert validate(made, held_out).top[3] < 1.05
    assert parse(dump(made)) == made


def test_with_many_problems_trees_are_asked_alone(model: Model) -> None:
    assert isinstance(model.body, Forest)
    assert (len(KNOWN) < len(KNOWN.configs)) == (model.body.work is not None)


def test_configs_that_fail_are_not_ranked_among_the_first(model: Model) -> None:
    for number in range(len(HELD_OUT)):
        first = [model.choices[choice] for choice in model.rank(HELD_OUT.problem(number))[:3]]
        assert all(choice["rows"] * choice["columns"] < 2048 for choice in first)


def test_a_model_is_read_back_equal(model: Model) -> None:
    assert parse(dump(model)) == model


def test_the_card_says_how_it_did_on_problems_held_out(model: Model) -> None:
    assert 1.0 <= model.card.scores["regret"] < 1.15
    assert model.card.scores["problems"] == len(KNOWN)


def test_the_default_and_what_is_always_included_are_ranked_too() -> None:
    named = CONFIGS[-1]
    made = QuickRanker().fit(tiled(12), Training(always_included=(named,)))
    assert dict(named) in made.choices
    assert made.choices[made.default or 0] == CONFIGS[0]


@pytest.mark.parametrize("learner", [QuickRanker(), RegressionLearner()])
def test_rankings_of_pairs_are_as_long_as_asked(learner: RankerLearner | RegressionLearner) -> None:
    data = tiled(12)
    made = learner.fit(data, Training(ranking=3))
    assert 1 < len(made.rank(data.problem(0))) <= 3
    assert "regret" not in made.card.scores  # that of a ranking of all configs would flatter it


def test_of_one_ranked_config_it_is_the_one_that_loses_least() -> None:
    data = tiled(40)
    made = QuickRanker().fit(data, Training(ranking=1))
    assert made.choices == (validate(made, data).best_single,)


@pytest.mark.parametrize("learner", [QuickRanker(), RegressionLearner(), NetLearner()])
def test_learners_without_leaves_refuse_a_word_on_leaves(
    learner: RankerLearner | RegressionLearner | NetLearner,
) -> None:
    with pytest.raises(InvalidData, match=f"leaves of a tree, and the learner {learner.name} has none"):
        learner.fit(tiled(6), Training(unsafe=lambda config, data: True))


def test_equal_data_and_seeds_give_equal_models() -> None:
    first, second = (QuickRanker().fit(tiled(12), Training(seed=4)) for _ in range(2))
    assert dump(first) == dump(second)


def test_half_of_the_measurements_are_enough() -> None:
    sparse = tiled(60, missing=0.5)
    known, _ = by_problem(sparse, 0.3, seed=1)
    assert validate(RankerLearner().fit(known, Training()), HELD_OUT).top[3] < 1.06


@pytest.mark.parametrize("problems", [1, 2, 3])
@pytest.mark.parametrize("learner", [QuickRanker(), RegressionLearner()])
def test_a_handful_of_problems_makes_a_model_that_answers(
    learner: RankerLearner | RegressionLearner, problems: int
) -> None:
    data = tiled(problems)
    made = learner.fit(data, Training())
    made.check()
    assert made.rank(data.problem(0))


def test_problems_far_outside_are_not_answered(model: Model) -> None:
    assert model.rank({"m": 10**6, "n": 64}) == []
    assert model.rank({"m": 64}) == []


def test_a_regression_tree_is_one_tree_of_few_leaves() -> None:
    made = RegressionLearner().fit(KNOWN, Training())
    assert isinstance(made.body, Forest)
    assert len(made.body.trees) == 1
    assert len(made.body.trees[0]) <= 2 * 64 - 1
    found = validate(made, HELD_OUT)
    assert found.default_regret is not None
    assert found.regret.geomean < found.default_regret.geomean


def test_the_large_ranker_ranks_every_config_that_may_win() -> None:
    class Quick(GbdtLearner):
        budget = replace(GbdtLearner.budget, trees=(40,), columns=(24,), boosters=1)

    made = Quick().fit(KNOWN, Training())
    assert made.card.learner == "gbdt"
    assert validate(made, HELD_OUT).top[3] < 1.06


def test_a_large_data_set_is_learned_from_by_a_part_of_its_problems() -> None:
    data = tiled(400)
    made = QuickRanker().fit(data, Training())
    assert len(made.choices) <= 8
    assert made.card.scores["problems"] < len(data)


def shared_gemm() -> DataSet:
    return datasets.read([Path(SHARED) / "choices" / "c_gemm.csv"])


@pytest.mark.full
@pytest.mark.skipif(not SHARED, reason="TUNEWISE_DATA does not name the folder of shared data")
def test_the_first_three_of_160_gemm_configs_hold_one_that_is_nearly_best() -> None:
    data = shared_gemm()
    default = data if data.default is not None else replace(data, default=0)
    lost = []
    for seed in range(5):
        known, held_out = by_problem(default, 0.3, seed=seed)
        lost.append(np.log(validate(RankerLearner().fit(known, Training()), held_out).top[3]))
    assert np.exp(np.mean(lost)) < 1.08
