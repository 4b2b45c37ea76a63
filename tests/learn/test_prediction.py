"""How well times are predicted: errors in logarithms and milliseconds, by words, and the worst of them."""

from math import exp, log
from struct import pack

import numpy as np
import pytest
from measured import measured

from tunewise.errors import InvalidData
from tunewise.learn.prediction import prediction, predicts_times, together
from tunewise.models import (
    Card,
    Columns,
    Forest,
    Guess,
    Layer,
    Leaf,
    Level,
    Model,
    Net,
    Number,
    Scale,
    Split,
    Tree,
    Word,
    Work,
)

COLUMNS = Columns(problem=(Number("n", 1.0, 100.0), Word("dtype", ("a", "b"))), config=(Word("choice", ("c0", "c1")),))
# c0 takes half of the time of c1 on every problem, by this forest.
FOREST = Forest(((Split(2, 1, 2, words=(0,)), Guess(-log(2)), Guess(0.0)),))
DATA = measured(
    {"n": [1, 10, 100], "dtype": ["a", "a", "b"]}, np.array([[1.0, 2.0, 9.0], [10.0, 20.0, 9.0], [100.0, 400.0, 9.0]])
)


def model(body: Forest | Net | Tree = FOREST, columns: Columns = COLUMNS) -> Model:
    choices = ({"choice": "c0"}, {"choice": "c1"})
    return Model(card=Card(decision="toy"), choices=choices, columns=columns, body=body)


def row(*numbers: float) -> bytes:
    return pack(f"<{len(numbers)}f", *numbers)


def net(level: Level | None) -> Net:
    """Return a net that guesses log 2 more for c1 than for c0."""
    return Net((Scale(2, 0.0, 1.0, word=1),), (Layer(1, 1, row(log(2)), row(0.0)),), level=level)


def test_a_model_that_knows_no_level_is_compared_without_it() -> None:
    found = prediction(model(), DATA)
    assert found.is_centred
    assert (found.errors.rows, found.errors.problems, found.unknown) == (6, 3, 3)  # c2 is none of its choices
    assert found.errors.mse == pytest.approx((log(2) / 2) ** 2 * 2 / 6)
    assert found.errors.rmse == pytest.approx(found.errors.mse**0.5)


def test_the_time_of_work_is_predicted_for_the_choices_that_have_rates() -> None:
    halved = Forest((), work=Work((0,), ((1e-9, 1.0), (1e-9, 2.0)), 1.0))
    found = prediction(model(halved), DATA)
    assert (found.errors.rows, found.unknown) == (6, 3)
    assert found.errors.mse == pytest.approx((log(2) / 2) ** 2 * 2 / 6)


def test_errors_in_milliseconds_are_those_of_times() -> None:
    found = prediction(model(), DATA.take([2]))
    centre = log(200)  # of 100 and 400 s
    low, high = exp(centre - log(2) / 2), exp(centre + log(2) / 2)
    assert found.errors.rmse_ms == pytest.approx(1e3 * (((low - 100) ** 2 + (high - 400) ** 2) / 2) ** 0.5)


def test_errors_are_told_apart_by_words() -> None:
    by = prediction(model(), DATA).by["dtype"]
    assert by["a"].mse == pytest.approx(0.0, abs=1e-12)
    assert by["b"].mse == pytest.approx((log(2) / 2) ** 2)
    assert prediction(model(), DATA, by=()).by == {}


def test_the_worst_predictions_come_first() -> None:
    worst = prediction(model(), DATA, worst=2).worst
    first, second = sorted(worst, key=lambda miss: miss.actual_s)  # both are off by the same factor
    assert dict(first.problem) == dict(second.problem) == {"n": 100, "dtype": "b"}
    assert (first.config, first.actual_s) == ({"choice": "c0"}, 100.0)
    assert (second.config, second.actual_s) == ({"choice": "c1"}, 400.0)
    assert first.predicted_s == pytest.approx(100 * 2**0.5)
    assert first.factor == pytest.approx(second.factor) == pytest.approx(2**0.5)


def test_a_net_with_a_level_predicts_seconds() -> None:
    level = Level((Scale(0, 0.0, 20.0),), (Layer(1, 1, row(0.0), row(log(10.0))),))  # 10 s, whatever the problem
    found = prediction(model(net(level)), DATA.take([1]))
    assert not found.is_centred
    assert found.errors.mse == pytest.approx(0.0, abs=1e-9)
    assert found.errors.rmse_ms == pytest.approx(0.0, abs=0.01)


def test_a_net_without_a_level_is_centred() -> None:
    assert prediction(model(net(None)), DATA).is_centred


def test_problems_out_of_bounds_are_counted_as_unknown() -> None:
    far = measured({"n": [10, 1000], "dtype": ["a", "a"]}, np.array([[1.0, 2.0], [1.0, 2.0]]))
    found = prediction(model(), far)
    assert (found.errors.rows, found.unknown) == (2, 2)


def test_failures_are_not_counted() -> None:
    failed = measured({"n": [10, 20], "dtype": ["a", "a"]}, np.array([[1.0, np.inf], [1.0, 2.0]]))
    assert prediction(model(), failed).errors.rows == 3


def test_several_decisions_are_put_together_and_told_apart() -> None:
    parts = [prediction(model(), DATA.take([number])) for number in (0, 2)]
    whole, both = together(parts, "ops"), prediction(model(), DATA.take([0, 2]))
    assert whole.errors.as_json() == pytest.approx(both.errors.as_json())
    assert whole.by["dtype"]["b"] == both.by["dtype"]["b"]
    assert list(whole.by["decision"]) == ["toy"]
    assert whole.worst[0] == both.worst[0]
    assert whole.as_json()["rmse_log"] == pytest.approx(both.errors.rmse)
    with pytest.raises(InvalidData):
        together([])


def test_models_that_rank_only_predict_no_times() -> None:
    tree = model(Tree((Leaf((0,)),)), Columns(problem=COLUMNS.problem))
    order = model(Forest(FOREST.trees, is_order=True))
    assert not predicts_times(tree)
    assert not predicts_times(order)
    with pytest.raises(InvalidData, match="predicts no times"):
        prediction(order, DATA)


def test_a_feature_that_is_none_of_words_is_refused() -> None:
    with pytest.raises(InvalidData, match="'n' is no feature of words"):
        prediction(model(), DATA, by=["n"])


def test_data_of_which_nothing_is_known_are_refused() -> None:
    with pytest.raises(InvalidData, match="knows none"):
        prediction(model(), measured({"n": [1000], "dtype": ["a"]}, np.array([[1.0, 2.0]])))
