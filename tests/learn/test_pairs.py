"""The table of pairs: what a row is worth, and which configs may win."""

from dataclasses import replace

import numpy as np
import pytest
from tiled import CONFIGS, tiled

from tunewise.decision import Config
from tunewise.errors import InvalidData
from tunewise.formats.dataset import TIMED, Column, DataSet, Rows
from tunewise.learn.options import Training
from tunewise.learn.pairs import contenders, pairs, tiles_of, top_costs
from tunewise.learn.regret import quick_s
from tunewise.models import Number, Word


def rows(samples: list[list[float]], configs: int) -> Rows:
    count = len(samples)
    starts = np.concatenate([[0], np.cumsum([len(s) for s in samples])]).astype(np.int64)
    status = np.array([TIMED if s else 2 for s in samples], dtype=np.int8)
    number = np.arange(count)
    return Rows(number // configs, number % configs, status, np.array([x for s in samples for x in s]), starts)


def small(samples: list[list[float]], configs: tuple[dict[str, object], ...]) -> DataSet:
    problems = len(samples) // len(configs)
    return DataSet("d", (Column("m", np.arange(1.0, problems + 1)),), configs, rows(samples, len(configs)))


def test_a_row_whose_samples_were_mostly_disturbed_keeps_its_quick_quarter() -> None:
    found = quick_s(rows([[9.0, 1.0, 8.0, 1.1, 7.0, 9.0, 8.0], [], [3.0]], 3))
    assert found[0] == 1.1
    assert np.isnan(found[1])
    assert found[2] == 3.0


def test_what_failed_costs_twice_as_much_as_the_slowest() -> None:
    table = pairs(small([[1.0], [], [2.0], [8.0]], ({"a": 1}, {"a": 2})), Training(), 100)
    assert np.exp(table.cost) == pytest.approx([1.0, 8.0, 1.0, 4.0])


def test_a_pair_that_was_never_tried_has_no_row() -> None:
    data = tiled(10, missing=0.5)
    assert len(pairs(data, Training(), 10**6)) == len(data.rows) < 10 * len(CONFIGS)


def test_a_large_table_is_thinned_by_whole_problems() -> None:
    table = pairs(tiled(40), Training(), 10 * len(CONFIGS))
    assert set(table.sizes) == {len(CONFIGS)}
    assert len(table.sizes) == 10
    assert len(table.sampled(3 * len(CONFIGS), seed=1).sizes) == 3


def test_parameters_are_numbers_or_words_and_constants_are_left_out() -> None:
    configs = ({"a": 1, "b": "x", "c": 3}, {"a": True, "b": "y", "c": 3})
    table = pairs(small([[1.0], [2.0]], configs), Training(), 100)
    assert table.config_inputs == (Number("a", 1.0, 1.0), Word("b", ("x", "y")))


def test_configs_that_nothing_tells_apart_are_refused() -> None:
    with pytest.raises(InvalidData, match="no number or word to tell them apart"):
        pairs(small([[1.0], [2.0]], ({"a": None}, {"a": 1})), Training(), 100)


def test_a_single_config_cannot_be_ranked() -> None:
    with pytest.raises(InvalidData, match="one config only, and nothing to rank; give data of others too"):
        pairs(small([[1.0]], ({"a": 1},)), Training(), 100)


def test_the_target_is_centred_within_every_problem() -> None:
    table = pairs(tiled(8), Training(), 10**6)
    sums = np.bincount(table.problem, weights=table.weight * table.target)
    assert sums == pytest.approx(np.zeros(8), abs=1e-9)


def test_times_of_another_unit_make_the_same_table() -> None:
    data = tiled(8)
    scaled = replace(data, rows=replace(data.rows, samples_s=data.rows.samples_s * 1024.0))
    assert pairs(scaled, Training(), 10**6).cost == pytest.approx(pairs(data, Training(), 10**6).cost)


def test_weights_of_problems_scale_their_rows() -> None:
    data = tiled(4)
    heavy = pairs(data, Training(weights=lambda d: np.array([3.0, 1.0, 1.0, 1.0])), 10**6)
    plain = pairs(data, Training(), 10**6)
    ran = data.rows.status == TIMED
    ratio = (heavy.weight / plain.weight)[ran]
    assert ratio[heavy.problem[ran] == 0] == pytest.approx(2.0)
    assert ratio[heavy.problem[ran] == 1] == pytest.approx(2.0 / 3.0)
    assert heavy.share.tolist() == pytest.approx(np.where(heavy.problem == 0, 2.0, 2.0 / 3.0).tolist())


def test_tiles_are_the_whole_numbers_of_some_configs() -> None:
    odd: Config = {"rows": 2, "columns": 4.5, "order": "8"}
    configs = ({"rows": 6, "columns": 64.0, "order": "row", "pack": True}, {"rows": 4096}, odd, {"rows": 8})
    data = replace(tiled(2), configs=configs)
    assert tiles_of(data, np.array([0, 1, 2])) == (6.0, 64.0)


def test_contenders_are_those_that_win_somewhere_and_the_ones_named() -> None:
    table = pairs(small([[1.1], [9.0], [1.0], [1.0], [9.0], [1.0]], ({"a": 1}, {"a": 2}, {"a": 3})), Training(), 100)
    assert contenders(table, 9, []).tolist() == [2, 0]
    assert contenders(table, 1, []).tolist() == [2]
    assert contenders(table, 2, [1]).tolist() == [2, 1]


def test_the_best_of_the_first_k_is_what_a_ranking_costs() -> None:
    table = pairs(small([[1.0], [2.0], [4.0], [4.0]], ({"a": 1}, {"a": 2})), Training(), 100)
    guesses = np.array([1.0, 0.0, 0.0, 1.0])
    assert np.exp(top_costs(table, table.cost, guesses, 1)) == pytest.approx([2.0, 1.0])
    assert np.exp(top_costs(table, table.cost, guesses, 2)) == pytest.approx([1.0, 1.0])
