"""Trees of the libraries as plain values: they guess the same for every row."""

import numpy as np
import pytest
from sklearn.tree import DecisionTreeRegressor
from tiled import tiled

from tunewise.errors import InvalidModel
from tunewise.learn.boosting import Plan, guesses
from tunewise.learn.coding import coding
from tunewise.learn.columns import needed, worked_out
from tunewise.learn.derived import matrix
from tunewise.learn.forests import evaluate, from_lightgbm, from_sklearn, renumbered, used
from tunewise.learn.keeping import boosted_on, offer
from tunewise.learn.options import Training
from tunewise.learn.pairs import pairs
from tunewise.models import Forest, Split

KNOWN = pairs(tiled(20), Training(), 10**6)


@pytest.mark.parametrize("objective", ["regression", "lambdarank"])
def test_the_forest_guesses_what_lightgbm_predicts(objective: str) -> None:
    plan = Plan(trees=40, boosters=2, objective=objective)  # type: ignore[arg-type]
    offered = offer(KNOWN, 0)
    numbers = offered.best(30) if 4 in offered.best(30) else sorted([4, *offered.best(30)])
    shown = matrix(KNOWN.values, offered.derived, numbers)
    boosters = boosted_on(KNOWN, offered.derived, numbers, plan, seed=3)
    columns, places = needed(KNOWN.problem_inputs, KNOWN.config_inputs, offered.derived, numbers)
    forest = from_lightgbm(boosters, [places[n] for n in numbers], columns, plan.scale)
    forest.check(columns, 1)
    every = np.stack(worked_out(KNOWN.values, columns.derived), axis=1)
    expected = guesses(boosters, shown, plan)
    assert np.abs(evaluate(forest, every) - expected).max() < 1e-9
    asked = [forest.added(list(row)) for row in every[::7]]
    assert np.abs(np.array(asked) - expected[::7]).max() < 1e-9
    assert any(node.words for nodes in forest.trees for node in nodes if isinstance(node, Split))


def test_the_nodes_guess_what_scikit_learn_predicts() -> None:
    columns = list(KNOWN.values.T)
    coded = coding(columns, [0, 1, 2, 3, 4, 5], {4: 2})
    codes = coded.encode(columns)
    tree = DecisionTreeRegressor(max_leaf_nodes=40, random_state=0).fit(codes, KNOWN.target)
    nodes = from_sklearn(tree.tree_, coded)
    assert evaluate(Forest((nodes,)), KNOWN.values) == pytest.approx(tree.predict(codes), abs=1e-12)
    assert any(isinstance(node, Split) and node.words for node in nodes)


def test_codes_tell_apart_what_single_precision_cannot() -> None:
    values = np.array([1.0, 1.0 + 1e-12, 1.0 + 2e-12])
    coded = coding([values], [0], {})
    assert coded.encode([values])[:, 0].tolist() == [0.0, 1.0, 2.0]
    assert values[0] < coded.threshold(0, 0.5) < values[1]


def test_columns_are_renumbered_together_with_the_questions() -> None:
    columns = list(KNOWN.values.T)
    coded = coding(columns, [1, 2], {})
    tree = DecisionTreeRegressor(max_leaf_nodes=4, random_state=0).fit(coded.encode(columns), KNOWN.target)
    forest = Forest((from_sklearn(tree.tree_, coded),))
    assert set(used(forest)) <= {1, 2}
    moved = renumbered(forest, {1: 0, 2: 1})
    assert (evaluate(moved, KNOWN.values[:, 1:3]) == evaluate(forest, KNOWN.values)).all()


def test_a_question_about_missing_values_is_refused() -> None:
    class Booster:
        def dump_model(self) -> dict[str, object]:
            leaf = {"leaf_value": 1.0}
            node = {"split_feature": 0, "threshold": 1.0, "decision_type": "<=", "missing_type": "NaN"}
            return {"tree_info": [{"tree_structure": {**node, "left_child": leaf, "right_child": leaf}}]}

    columns, _ = needed(KNOWN.problem_inputs, KNOWN.config_inputs, (), ())
    with pytest.raises(InvalidModel, match="'m' is missing"):
        from_lightgbm([Booster()], [0], columns)
