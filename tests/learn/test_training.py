"""A training run does what its options say, and its card tells what was done."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from measured import crossing, measured

from tunewise.decision import Config
from tunewise.errors import InvalidData, NotFound
from tunewise.formats.dataset import DataSet, Floats
from tunewise.learn.options import Training
from tunewise.learn.training import LEARNERS, fence_of, prepared, smallest, train
from tunewise.learn.validate import validate
from tunewise.models import Card, Columns, Leaf, Model, Number, Tree

QUICK = {"validation_share": 0.5, "created": "2026-01-31"}


def quick(**options: object) -> Training:
    return Training(**{**QUICK, **options})  # type: ignore[arg-type]


def flat(count: int = 40, choices: int = 3) -> DataSet:
    """Return problems of one size each, on which a later choice is faster, by a factor of two from last to first."""
    times = np.tile(np.linspace(2, 1, choices), (count, 1))
    return measured({"n": list(range(1, count + 1))}, times)


def answers(model: Model) -> set[int]:
    assert isinstance(model.body, Tree)
    return {leaf.ranking[0] if leaf.ranking else -1 for leaf in model.body.nodes if isinstance(leaf, Leaf)}


def test_the_card_tells_what_the_model_is_about() -> None:
    data = flat()
    card = train(data, quick(name="other", fence={"hardware.name": "x"}), "tree").card
    assert (card.decision, card.learner, card.created) == ("other", "tree", "2026-01-31")
    assert card.fence == {"hardware.name": "x"}
    assert card.fingerprint == data.fingerprint


def test_problems_kept_out_of_training_are_scored() -> None:
    scores = train(flat(), quick(test_share=0.25), "tree").card.scores
    assert scores["test.problems"] == 10
    assert scores["problems"] == 30
    assert scores["test.regret"] == pytest.approx(1.0)


def test_further_data_are_scored_by_their_names() -> None:
    scores = train(flat(), quick(evaluation={"night": flat(7)}), "tree").card.scores
    assert scores["night.problems"] == 7


@pytest.mark.parametrize("learner", ["tree", "regression", "ranker"])
def test_a_feature_may_take_any_double(learner: str) -> None:
    chance = np.random.default_rng(0)
    sizes, x = chance.permutation(np.arange(1.0, 31)), np.linspace(-1.0, 1.0, 30) * 1.79e308
    times = np.where(np.arange(2) == (x < 0)[:, None], 1.0, 3.0) * np.exp(chance.normal(0, 0.01, (30, 2)))
    model = train(measured({"n": sizes.tolist(), "x": x.tolist()}, times), quick(), learner)
    assert [model.choose({"n": 5, "x": side * 1e308}) for side in (-1.0, 1.0)] == [{"choice": "c1"}, {"choice": "c0"}]


def test_a_net_takes_a_feature_of_any_double() -> None:
    pytest.importorskip("torch")
    data = measured({"x": (np.linspace(-1.0, 1.0, 12) * 1e200).tolist()}, np.tile([1.0, 2.0], (12, 1)))
    assert train(data, quick(epochs=1), "net").choose({"x": -5e199}) is not None


def test_rows_can_be_filtered() -> None:
    model = train(flat(), quick(filter_rows=lambda data: data.take(data.features[0].values <= 10)), "tree")
    assert model.columns.problem == (Number("n", 1.0, 20.0),)


def test_features_can_be_added_by_name() -> None:
    def parity(problem: object) -> str:
        return "odd" if problem["n"] % 2 else "even"  # type: ignore[index]

    odd = np.arange(1, 41) % 2 == 1
    data = measured({"n": list(range(1, 41))}, np.where(odd[:, None], [2.0, 1.0], [1.0, 2.0]))
    model = train(data, quick(add_features={"parity": parity, "half": lambda problem: problem["n"] / 2}), "tree")
    assert [column.name for column in model.columns.problem] == ["n", "parity", "half"]
    assert model.choose({"n": 8, "parity": "odd", "half": 4.0}) == {"choice": "c1"}
    assert model.choose({"n": 8, "parity": "even", "half": 4.0}) == {"choice": "c0"}


def test_a_default_can_be_named_and_is_a_choice_where_there_is_room() -> None:
    model = train(flat(), quick(default={"choice": "c1"}, portfolio=2), "tree")
    assert model.default is not None
    assert model.choices[model.default] == {"choice": "c1"}


def test_choices_can_be_made_to_stay() -> None:
    model = train(flat(choices=5), quick(portfolio=2, always_included=({"choice": "c2"},)), "tree")
    assert {"choice": "c2"} in model.choices


def test_a_default_that_is_made_to_stay_is_named_beyond_the_portfolio() -> None:
    model = train(flat(), quick(portfolio=1, always_included=({"choice": "c0"}, {"choice": "c1"})), "tree")
    assert model.choices == ({"choice": "c0"}, {"choice": "c1"})
    assert model.default == 0


def test_an_unsafe_leaf_abstains() -> None:
    seen: list[tuple[Config, int]] = []

    def is_unsafe(config: Config, data: DataSet) -> bool:
        seen.append((config, len(data)))
        return True

    assert answers(train(flat(), quick(unsafe=is_unsafe), "tree")) == {-1}
    assert seen == [({"choice": "c2"}, 40)]


@pytest.mark.parametrize("default", ["c0", None])
def test_where_an_unsafe_leaf_abstains_the_card_counts_what_validation_counts(default: str | None) -> None:
    model = train(flat(), quick(unsafe=lambda config, data: True, default=default), "tree")
    assert model.card.scores["regret"] == pytest.approx(validate(model, flat(), default=default).regret.geomean, 1e-3)


def test_weights_say_which_problems_matter() -> None:
    times = np.array([[1.0, 1.5]] * 30 + [[1.5, 1.0]] * 10)
    data = measured({"n": [5.0] * 40}, times)  # nothing tells the problems apart

    def heavy(data: DataSet) -> Floats:
        return np.where(data.times_s[:, 0] > data.times_s[:, 1], 9.0, 1.0)

    model, weighed = (train(data, quick(weights=weights), "tree") for weights in (None, heavy))
    assert [model.choices[model.rank({"n": 5})[0]]["choice"], weighed.rank({"n": 5})[:1]] == ["c0", [1]]


def test_rankings_are_as_long_as_asked() -> None:
    assert len(train(flat(choices=5), quick(ranking=2), "tree").rank({"n": 3})) == 2


def test_a_grid_is_tried_and_the_smallest_of_equals_is_taken() -> None:
    model = train(flat(), quick(grid={"max_leaves": (2, 16)}), "tree")
    assert model.choose({"n": 3}) == {"choice": "c2"}
    with pytest.raises(InvalidData, match="no such options"):
        train(flat(), quick(grid={"depth": (1, 2)}), "tree")


def scored(regrets: Sequence[float]) -> list[Model]:
    columns = Columns(problem=(Number("n", 0, 1),))
    cards = [Card(decision="toy", learner=str(place), scores={"regret": r}) for place, r in enumerate(regrets)]
    return [Model(card=card, choices=({"x": 1},), columns=columns, body=Tree((Leaf((0,)),))) for card in cards]


def test_auto_takes_the_first_that_is_within_tolerance_of_the_best() -> None:
    assert smallest(scored([1.10, 1.05, 1.04]), Training(readable=0.02)).card.learner == "1"
    assert smallest(scored([1.05, 1.04]), Training(readable=0.02)).card.learner == "0"


def test_auto_makes_a_tree_of_few_choices() -> None:
    assert train(crossing(40), quick()).card.learner == "tree"


def test_auto_makes_a_tree_where_leaves_may_be_unsafe() -> None:
    assert train(flat(choices=5), quick(portfolio=2, unsafe=lambda config, data: False)).card.learner == "tree"


def test_the_card_of_a_short_ranking_tells_what_that_ranking_loses() -> None:
    times = np.where(np.arange(40)[:, None] < 20, [1.0, 3.0], [3.0, 1.0])
    data = measured({"n": list(range(1, 41))}, times)
    scores = train(data, quick(ranking=1), "regression").card.scores
    assert scores["regret"] > 1.7  # either config is right on half of the problems


def test_an_unknown_learner_is_named_with_those_there_are() -> None:
    with pytest.raises(NotFound, match=r"no learner 'oracle'; the learners are auto, tree"):
        train(flat(), quick(), "oracle")


def test_learners_have_names_of_their_own() -> None:
    names = [learner.name for learner in LEARNERS]
    assert len(set(names)) == len(names)


def test_options_that_make_no_sense_are_refused() -> None:
    for options in ({"portfolio": 0}, {"ranking": 0}, {"test_share": 1.0}, {"margin": 0.5}):
        with pytest.raises(InvalidData, match=next(iter(options))):
            Training(**options)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"add_features": {"n": lambda problem: 1.0}}, "add_features names n, which the data have already"),
        ({"add_features": {"x": lambda problem: float("nan")}}, "the added feature x is nan"),
        ({"add_features": {"x": lambda problem: [1, 2]}}, "the added feature x is a list"),
        ({"add_features": {"x": 3}}, "does not map names to functions"),
        ({"add_features": [3]}, "add_features is a list; give a mapping by name"),
        ({"evaluation": None}, "evaluation is a NoneType; give a mapping by name"),
        ({"evaluation": {"other": "log.txt"}}, "evaluation has 'other', which is no DataSet"),
        ({"weights": lambda data: np.ones(3)}, "weights returned 3 numbers for 40 problems"),
        ({"weights": lambda data: -np.ones(len(data))}, r"weights returned -1\.0; return finite numbers"),
        ({"weights": lambda data: np.full(len(data), np.nan)}, "weights returned nan"),
        ({"weights": lambda data: np.zeros(len(data))}, "all weights are 0"),
        ({"weights": lambda data: None}, "weights returned one number for 40"),
        ({"weights": 3}, "weights=3 is not a function"),
        ({"filter_rows": lambda data: None}, "filter_rows returned nothing"),
        ({"grid": {"max_leaves": ()}}, r"the grid has max_leaves=\(\); give the values to try"),
        ({"grid": {"max_leaves": 4}}, "the grid has max_leaves=4; give the values to try"),
        ({"default": "c111"}, "default names 'c111', which is not one of the 3 configs"),
        ({"default": 5}, "default names 5, which is not one of the 3 configs"),
        ({"always_included": ({"choice": "c9"},)}, "always_included names {'choice': 'c9'}, which is not one of"),
        ({"always_included": {"choice": "c1"}}, "is one config; give a tuple"),
    ],
)
def test_hooks_and_options_that_do_not_fit_the_data_are_told_in_a_sentence(
    options: dict[str, object], said: str
) -> None:
    with pytest.raises(InvalidData, match=said):
        train(flat(), quick(**options), "tree")


def test_configs_of_one_parameter_may_be_named_by_its_value() -> None:
    model = train(flat(choices=5), quick(default="c1", always_included=("c2",), portfolio=2), "tree")
    assert {"choice": "c2"} in model.choices
    assert prepared(flat(), quick(default="c1")).default == 1


class Careful(Training):
    """Hooks as methods, and an option as an attribute."""

    max_leaves = 2

    def filter_rows(self, data: DataSet) -> DataSet:  # type: ignore[override]
        return data.take(data.features[0].values <= 10)

    def unsafe(self, config: Config, data: DataSet) -> bool:  # type: ignore[override]
        return self.seed == 1

    def weights(self, data: DataSet) -> Floats:  # type: ignore[override]
        return np.ones(len(data))


def test_a_subclass_may_define_hooks_as_methods() -> None:
    model = train(flat(), Careful(validation_share=0.5, seed=1), "tree")
    assert model.columns.problem == (Number("n", 1.0, 20.0),)
    assert answers(model) == {-1}
    assert -1 not in answers(train(flat(), Careful(validation_share=0.5), "tree"))


def test_a_method_where_a_mapping_belongs_is_told_in_a_sentence() -> None:
    class Eager(Training):
        def add_features(self, results: DataSet) -> DataSet:  # type: ignore[override]
            return results

    with pytest.raises(InvalidData, match="add_features is a method; give a mapping by name, in a subclass as a plain"):
        Eager()


def test_a_copy_of_a_subclass_asks_its_own_methods() -> None:
    first = Careful(seed=1)
    second = replace(first, seed=0)
    assert (first.unsafe({}, flat()), second.unsafe({}, flat())) == (True, False)
    assert (second.max_leaves, Careful(max_leaves=3).max_leaves) == (2, 3)
    assert Careful(unsafe=lambda config, data: True).unsafe({}, flat())


class Fixed:
    """A learner of somebody else's: always the last config."""

    name = "fixed"

    def fit(self, data: DataSet, options: Training) -> Model:
        column = Number("n", 0, 1000)
        card = Card(decision=data.decision, learner=self.name)
        return Model(card=card, choices=(data.configs[-1],), columns=Columns((column,)), body=Tree((Leaf((0,)),)))


def test_a_learner_of_ones_own_is_trained_and_scored() -> None:
    card = train(flat(), quick(), Fixed()).card
    assert (card.learner, card.scores["regret"]) == ("fixed", 1.0)
    with pytest.raises(InvalidData, match="is no learner; give a name, or an object"):
        train(flat(), quick(), Fixed)  # type: ignore[arg-type]


def test_data_without_features_are_refused() -> None:
    data = flat()
    empty = DataSet("toy", (), data.configs, data.rows)
    with pytest.raises(InvalidData, match="the problems have no features"):
        prepared(empty, Training())


def test_the_fence_is_what_all_devices_share() -> None:
    data = flat()
    devices = ({"hardware.name": "x", "hardware.cores": 2}, {"hardware.name": "x", "hardware.cores": 4})
    assert fence_of(DataSet("toy", data.features, data.configs, data.rows, devices=devices)) == {"hardware.name": "x"}


def test_a_default_that_fails_where_another_runs_is_not_answered() -> None:
    sizes = np.arange(1, 61)
    fast = np.where(sizes > 30, np.inf, sizes * 1.0)
    model = train(measured({"n": sizes.tolist()}, np.stack([fast, sizes * 2.0], axis=1)), quick(), "tree")
    assert [model.choose({"n": n}) for n in (10, 50)] == [{"choice": "c0"}, {"choice": "c1"}]


def test_one_problem_is_learned_but_nothing_is_said_of_others() -> None:
    scores = train(flat(1, choices=12), quick()).card.scores
    assert set(scores) == {"best_single_regret", "default_regret"}


@pytest.mark.parametrize("learner", ["tree", "ranker"])
def test_the_card_tells_what_the_default_and_a_single_choice_cost(learner: str) -> None:
    scores = train(flat(9), quick(), learner).card.scores
    assert scores["default_regret"] == pytest.approx(2.0)
    assert scores["best_single_regret"] == pytest.approx(1.0)
