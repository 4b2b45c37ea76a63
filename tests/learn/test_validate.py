"""Validation counts what was chosen against what was measured, by hand-made numbers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import msgspec
import numpy as np
import pytest
from measured import crossing, measured

from tunewise.errors import InvalidData
from tunewise.formats.dataset import DataSet
from tunewise.learn.options import Training
from tunewise.learn.training import train
from tunewise.learn.validate import validate


@dataclass(frozen=True)
class Table:
    """Ranks by a table from the feature n."""

    answers: Mapping[int, Sequence[int]]
    choices: tuple[dict[str, str], ...] = ({"choice": "c0"}, {"choice": "c1"}, {"choice": "c2"})

    def rank(self, features: Mapping[str, object]) -> list[int]:
        return list(self.answers[features["n"]])  # type: ignore[index]


def data(default: int | None = 0) -> DataSet:
    times = np.array([[2.0, 1.0, 4.0], [1.0, 2.0, 4.0], [4.0, 2.0, 1.0], [1.0, 3.0, np.nan]])
    return measured({"n": [1, 2, 3, 4], "dtype": ["a", "a", "b", "b"]}, times, default)


def test_regret_is_chosen_over_best() -> None:
    found = validate(Table({1: [1], 2: [1], 3: [1, 2], 4: [0]}), data())
    assert found.regret.geomean == pytest.approx(4 ** (1 / 4))
    assert found.regret.max == pytest.approx(2)
    assert found.problems == 4


def test_where_a_model_abstains_the_default_answers() -> None:
    found = validate(Table({1: [], 2: [], 3: [2], 4: []}), data())
    assert found.coverage == 0.25
    assert found.regrets["ours"] == pytest.approx([2, 1, 1, 1])
    assert found.counts == {"correct": 1, "wrong": 0, "unsure": 3, "unmeasured": 0}


def test_without_a_default_an_abstention_costs_the_slowest() -> None:
    found = validate(Table({1: [], 2: [0], 3: [2], 4: [0]}), data(default=None))
    assert found.default_regret is None
    assert found.speedup_over_default is None
    assert found.regrets["ours"][0] == pytest.approx(4)


def test_top_k_is_the_best_of_the_first_k() -> None:
    found = validate(Table({1: [0, 2, 1], 2: [0], 3: [0, 1, 2], 4: [0]}), data())
    assert found.top[1] == pytest.approx(8 ** (1 / 4))
    assert found.top[3] == pytest.approx(1)


def test_what_was_never_tried_is_counted_and_scored_as_the_default() -> None:
    found = validate(Table({1: [1], 2: [0], 3: [2], 4: [2]}), data())
    assert found.counts == {"correct": 3, "wrong": 0, "unsure": 0, "unmeasured": 1}
    assert found.regrets["ours"] == pytest.approx([1, 1, 1, 1])


def test_a_choice_that_is_not_in_the_data_is_unmeasured_and_the_next_one_takes_no_credit() -> None:
    choices = ({"choice": "elsewhere"}, {"choice": "c1"}, {"choice": "c2"})
    found = validate(Table({1: [0, 1], 2: [1], 3: [0, 2], 4: []}, choices), data())
    assert found.counts == {"correct": 0, "wrong": 1, "unsure": 1, "unmeasured": 2}
    assert found.coverage == 0.75
    assert found.regrets["ours"] == pytest.approx([2, 2, 4, 1])  # c0, the default, on the first and the third
    assert found.top[3] == pytest.approx(2 ** (1 / 4))  # the second choice counts among three
    assert found.worst[0].chosen == {"choice": "elsewhere"}


@pytest.mark.parametrize(("samples", "noise"), [(1, None), (2, 1.0)])
def test_noise_of_single_samples_is_unknown(samples: int, noise: float | None) -> None:
    found = validate(Table({1: [0]}), measured({"n": [1]}, np.array([[1.0, 2.0, 3.0]]), samples=samples))
    assert found.as_json()["noise_floor"] == noise


def test_a_model_is_known_to_have_seen_its_own_data() -> None:
    known, other = crossing(30), crossing(30, seed=1)
    model = train(known, Training(), "tree")
    assert [validate(model, one).is_seen for one in (known, other)] == [True, False]
    assert "learned from these very data" in validate(model, known).warnings[0]
    assert not validate(model, other).warnings


def test_data_of_another_decision_are_told() -> None:
    model = train(crossing(30), Training(name="softmax"), "tree")
    (warning,) = validate(model, crossing(30, seed=1)).warnings
    assert "of the decision softmax and the data are of toy" in warning


def test_the_baselines_are_there() -> None:
    found = validate(Table({1: [1], 2: [0], 3: [2], 4: [0]}), data())
    assert found.default_regret is not None
    assert found.default_regret.geomean == pytest.approx(8 ** (1 / 4))
    assert found.best_single == {"choice": "c0"}
    assert found.speedup_over_default == pytest.approx(8 ** (1 / 4))


def test_categories_and_worst_problems_are_named() -> None:
    found = validate(Table({1: [2], 2: [0], 3: [2], 4: [0]}), data())
    assert found.by_category["dtype"]["a"].max == pytest.approx(4)
    assert found.by_category["dtype"]["b"].max == pytest.approx(1)
    problem, chosen, best, regret = found.worst[0]
    assert (dict(problem), chosen, best) == ({"dtype": "a", "n": 1}, {"choice": "c2"}, {"choice": "c1"})
    assert regret == pytest.approx(4)


def test_rankings_may_be_configs() -> None:
    @dataclass(frozen=True)
    class Configs:
        choices: tuple[dict[str, str], ...] = ()

        def rank(self, features: Mapping[str, object]) -> list[dict[str, str]]:
            return [{"choice": "c1"}, {"choice": "unheard of"}]

    assert validate(Configs(), data()).regrets["ours"] == pytest.approx([1, 2, 2, 3])


def test_a_default_can_be_named() -> None:
    found = validate(Table({1: [], 2: [], 3: [], 4: []}), data(default=None), default={"choice": "c1"})
    assert found.regrets["ours"] == pytest.approx([1, 2, 2, 3])
    with pytest.raises(InvalidData, match="is not among the 3 configs"):
        validate(Table({}), data(), default={"choice": "c9"})


def test_a_default_of_one_parameter_can_be_named_by_its_value() -> None:
    found = validate(Table({1: [], 2: [], 3: [], 4: []}), data(default=None), default="c1")
    assert found.regrets["ours"] == pytest.approx([1, 2, 2, 3])
    with pytest.raises(InvalidData, match="the default 'c9' is none of the 3 configs, such as"):
        validate(Table({}), data(), default="c9")


def test_the_result_is_plain_json() -> None:
    found = msgspec.json.decode(msgspec.json.encode(validate(Table({1: [1], 2: [], 3: [2], 4: [0]}), data()).as_json()))
    assert found["regret"] == {"geomean": 1.0, "p95": 1.0, "max": 1.0}
    assert found["top"]["3"] == 1.0
    assert found["coverage"] == 0.75
