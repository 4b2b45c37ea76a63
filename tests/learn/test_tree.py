"""The tree learner finds planted rules, survives gaps and failures, and is the same every time."""

import numpy as np
import pytest
from measured import crossing, measured

from tunewise.formats.dataset import DataSet
from tunewise.learn.options import Training
from tunewise.learn.tree import TreeLearner, sampled
from tunewise.learn.validate import validate
from tunewise.models import Leaf, Model, Tree, dump, parse


def fit(data: DataSet, **options: object) -> Model:
    return TreeLearner().fit(data, Training(**{"validation_share": 0.5, **options}))  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def model() -> Model:
    return fit(crossing())


def leaves_of(model: Model) -> list[Leaf]:
    assert isinstance(model.body, Tree)
    return [node for node in model.body.nodes if isinstance(node, Leaf)]


def test_a_planted_rule_is_found(model: Model) -> None:
    found = validate(model, crossing(200, seed=1))
    assert found.regret.geomean < 1.08
    assert found.default_regret is not None
    assert found.default_regret.geomean > 1.4


def test_the_model_is_sound_and_survives_being_written(model: Model) -> None:
    assert parse(dump(model)) == model


def test_only_derived_columns_that_are_asked_about_are_kept(model: Model) -> None:
    assert isinstance(model.body, Tree)
    asked = {node.column for node in model.body.nodes if not isinstance(node, Leaf)}
    assert set(range(3, 3 + len(model.columns.derived))) <= asked


def test_every_leaf_that_answers_ranks_all_choices(model: Model) -> None:
    assert {len(leaf.ranking) for leaf in leaves_of(model)} <= {0, len(model.choices)}


def test_support_adds_up_to_all_problems(model: Model) -> None:
    assert sum(leaf.support for leaf in leaves_of(model)) == 120


def test_no_answering_leaf_did_worse_than_the_default_while_held_out(model: Model) -> None:
    for leaf in leaves_of(model):
        assert not leaf.ranking or leaf.ranking[0] == model.default or leaf.regret < leaf.default_regret


def test_the_card_has_scores_of_held_out_problems(model: Model) -> None:
    scores = model.card.scores
    assert 1 <= scores["regret"] < 1.2
    assert scores["problems"] == 120


def test_equal_seeds_give_equal_models(model: Model) -> None:
    assert fit(crossing()) == model


def test_a_choice_that_fails_is_not_chosen() -> None:
    data = crossing(60)
    times = data.times_s.copy()
    times[:, 1] = np.inf
    features = {c.name: [c.at(p) for p in range(len(data))] for c in data.features}
    learned = fit(measured(features, times))  # type: ignore[arg-type]
    assert {"choice": "c1"} not in [learned.choose(data.problem(number)) for number in range(len(data))]


def test_gaps_in_the_measurements_are_no_obstacle() -> None:
    data = crossing(150)
    times = data.times_s.copy()
    gaps = np.random.default_rng(0).random(times.shape) < 0.3
    gaps[:, 0] = False
    times[gaps] = np.nan
    features = {c.name: [c.at(p) for p in range(len(data))] for c in data.features}
    found = validate(fit(measured(features, times)), crossing(200, seed=1))  # type: ignore[arg-type]
    assert found.default_regret is not None
    assert found.regret.geomean < 0.85 * found.default_regret.geomean


def test_noise_alone_teaches_nothing_that_loses_to_the_default() -> None:
    chance = np.random.default_rng(0)
    times = np.exp(chance.normal(0, 0.2, (80, 3)))
    times[:, 0] *= 0.8
    learned = fit(measured({"n": list(range(1, 81))}, times))
    held = measured({"n": list(range(1, 81))}, np.exp(chance.normal(0, 0.2, (80, 3))) * [0.8, 1.0, 1.0])
    found = validate(learned, held)
    assert found.default_regret is not None
    assert found.regret.geomean < found.default_regret.geomean * 1.03


def test_the_portfolio_is_as_small_as_asked() -> None:
    learned, data = fit(crossing(60), portfolio=2), crossing(200, seed=1)
    assert len(learned.choices) == 2
    assert {len(leaf.ranking) for leaf in leaves_of(learned)} <= {0, 2}
    assert validate(learned, data).regret.geomean < validate(fit(crossing(60), portfolio=1), data).regret.geomean


def test_a_default_that_has_no_place_is_answered_by_abstaining() -> None:
    sizes = list(range(1, 61))
    small = np.array(sizes)[:, None] <= 30
    learned = fit(measured({"n": sizes}, np.where(small, [1.0, 3.0, 4.0], [3.0, 1.0, 4.0])), portfolio=1)
    assert (learned.choices, learned.default) == (({"choice": "c1"},), None)
    assert learned.choose({"n": 5}) is None
    assert learned.choose({"n": 55}) == {"choice": "c1"}


def test_a_default_is_named_where_there_is_room() -> None:
    learned = fit(crossing(60), portfolio=3)
    assert learned.default is not None
    assert learned.choices[learned.default] == {"choice": "c0"}


def test_two_problems_are_enough_not_to_fail() -> None:
    learned = fit(measured({"n": [1.0, 9.0]}, np.array([[1.0, 2.0], [2.0, 1.0]])))
    learned.check()


def test_a_single_problem_is_enough_not_to_fail() -> None:
    fit(measured({"n": [4.0]}, np.array([[1.0, 2.0]]))).check()


def test_a_model_abstains_far_outside_what_was_seen(model: Model) -> None:
    assert model.choose({"n": 4096, "m": 4096, "dtype": "a"}) is not None
    assert model.choose({"n": 10**6, "m": 64, "dtype": "a"}) is None
    assert model.choose({"n": 64, "m": 64, "dtype": "c"}) is None


def test_many_problems_are_thinned() -> None:
    sizes = np.arange(1.0, 5001.0)
    data = measured({"n": sizes.tolist()}, np.ones((5000, 2)))
    assert len(sampled(data, seed=0)) < 5000
    assert sampled(data, seed=0).fingerprint == sampled(data, seed=0).fingerprint
