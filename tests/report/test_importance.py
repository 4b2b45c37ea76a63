"""The shares of columns follow from what questions about them save."""

from dataclasses import replace

import numpy as np
import pytest
import samples

from tunewise.formats.dataset import DataSet
from tunewise.models import Columns, Leaf, Model, Split, Tree
from tunewise.report.importance import Importance, importance


def shares(found: Importance) -> dict[str, float]:
    return {one.name: one.share for one in found.shares}


def two_level_tree() -> Model:
    """Asks for the kind first, which tells nothing, then for the size, which tells all."""
    leaves = [Leaf((number % 2,), support=1) for number in range(4)]
    sizes = [Split(0, 3, 4, threshold=10.0), Split(0, 5, 6, threshold=10.0)]
    model = samples.model()
    columns = Columns(problem=model.columns.problem)
    return _replaced(model, columns, Tree((Split(1, 1, 2, words=(0,)), *sizes, *leaves)))


def _replaced(model: Model, columns: Columns, body: Tree) -> Model:
    made = Model(card=model.card, choices=model.choices, default=model.default, columns=columns, body=body)
    made.check()
    return made


def test_a_column_that_tells_all_has_the_whole_share() -> None:
    found = importance(two_level_tree(), samples.data())
    assert found.method == "splits"
    assert shares(found) == {"n": pytest.approx(1)}


def test_shares_add_up_to_one_with_the_largest_first() -> None:
    data = samples.data()
    by_kind = np.where(data.features[1].values[data.rows.problem] == 1, 8.0, 0.25)
    slower = np.where(data.rows.config == 0, by_kind, 1.0)
    counts = np.diff(data.rows.starts)
    changed = replace(data, rows=replace(data.rows, samples_s=data.rows.samples_s * np.repeat(slower, counts)))
    found = shares(importance(two_level_tree(), changed))
    assert set(found) == {"n", "kind"}
    assert sum(found.values()) == pytest.approx(1)
    assert list(found.values()) == sorted(found.values(), reverse=True)


def test_a_forest_is_judged_by_shuffling_features() -> None:
    found = importance(samples.forest(), samples.data())
    assert found.method == "shuffling"
    assert shares(found) == {"n": pytest.approx(1)}


def test_a_model_that_knows_none_of_the_problems_has_no_shares() -> None:
    assert importance(samples.model("other"), samples.data()).shares == ()


def test_problems_on_which_nothing_ran_do_not_count() -> None:
    data = samples.data()
    assert shares(importance(two_level_tree(), without_times(data))) == {"n": pytest.approx(1)}


def without_times(data: DataSet) -> DataSet:
    """Return the data with every run of the first problem failed."""
    lost = data.rows.problem == 0
    counts = np.where(lost, 0, np.diff(data.rows.starts))
    starts = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    samples_s = data.rows.samples_s[np.repeat(~lost, np.diff(data.rows.starts))]
    status = np.where(lost, 1, data.rows.status).astype(np.int8)
    return replace(data, rows=replace(data.rows, samples_s=samples_s, starts=starts, status=status))
