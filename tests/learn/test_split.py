"""Splits are by problem or by device, and repeats of a problem never stand on both sides."""

from collections.abc import Sequence

import numpy as np
import pytest

from tunewise.errors import InvalidData
from tunewise.formats.dataset import Column, DataSet, Rows
from tunewise.learn.split import by_device, by_problem, fold_of, folds, groups


def data_of(sizes: Sequence[float], words: Sequence[str] = (), device: Sequence[int] = ()) -> DataSet:
    """Return data of one config, measured once on every problem."""
    count = len(sizes)
    columns = [Column("n", np.array(sizes, dtype=float))]
    if words:
        known = tuple(sorted(set(words)))
        columns.append(Column("dtype", np.array([known.index(word) for word in words], dtype=float), known))
    zeros = np.zeros(count, dtype=np.int64)
    rows = Rows(np.arange(count), zeros, zeros.astype(np.int8), np.ones(count), np.arange(count + 1))
    devices = tuple({"hardware.name": f"cpu-{number}"} for number in range(max(device, default=0) + 1))
    return DataSet(
        "toy",
        tuple(columns),
        ({"choice": "a"},),
        rows,
        devices=devices,
        device=np.array(device) if len(device) else None,
    )


def sizes_of(data: DataSet) -> set[float]:
    return set(data.features[0].values.tolist())


def test_every_problem_is_on_one_side_and_the_share_is_kept() -> None:
    data = data_of([2**n for n in range(20)])
    train, test = by_problem(data, 0.3, seed=1)
    assert (len(train), len(test)) == (14, 6)
    assert sizes_of(train) | sizes_of(test) == sizes_of(data)
    assert not sizes_of(train) & sizes_of(test)
    assert len(test.rows) == 6


def test_numbers_near_the_smallest_doubles_are_split_too() -> None:
    train, test = by_problem(data_of([5e-324 * n for n in range(5)] + [2.0**n for n in range(15)]), 0.3, seed=1)
    assert len(train) + len(test) == 20


def test_equal_seeds_split_alike_and_others_do_not() -> None:
    data = data_of([2**n for n in range(20)])
    held = [sizes_of(by_problem(data, 0.3, seed)[1]) for seed in (1, 1, 2)]
    assert held[0] == held[1] != held[2]


def test_repeats_of_a_problem_stay_together() -> None:
    data = data_of([100_000 + n % 2 + 10_000 * (n // 4) for n in range(80)], device=[n // 2 % 2 for n in range(80)])
    assert len(set(groups(data).tolist())) == 20
    for seed in range(10):
        train, test = by_problem(data, 0.3, seed)
        near = [{round(size / 1000) for size in sizes_of(side)} for side in (train, test)]
        assert not near[0] & near[1]
        assert len(test) == 24


def test_words_tell_problems_apart() -> None:
    assert groups(data_of([8, 8, 8.001], ["f4", "f8", "f4"])).tolist() == [0, 1, 0]


def test_a_narrow_sweep_is_still_split() -> None:
    data = data_of([1000 + n / 100 for n in range(20)])
    assert len(set(groups(data).tolist())) == 20


def test_every_problem_is_held_out_by_one_fold() -> None:
    data = data_of([2**n for n in range(20)] * 2, device=[0] * 20 + [1] * 20)
    fold = fold_of(data, 5, seed=3)
    assert np.array_equal(fold[:20], fold[20:])
    assert np.bincount(fold).tolist() == [8] * 5
    held = [sizes_of(test) for _, test in folds(data, 5, seed=3)]
    assert set.union(*held) == sizes_of(data)
    assert sum(map(len, held)) == 20
    assert all(not sizes_of(train) & sizes_of(test) for train, test in folds(data, 5, seed=3))


def test_devices_are_held_out_whole() -> None:
    data = data_of([2**n for n in range(12)], device=[n % 4 for n in range(12)])
    train, test = by_device(data, 0.25, seed=0)
    assert train.device is not None
    assert test.device is not None
    assert len(set(test.device.tolist())) == 1
    assert not set(train.device.tolist()) & set(test.device.tolist())


@pytest.mark.parametrize(
    ("problems", "share", "held"),
    [
        ((10, 10, 10), 0.3, {10}),
        ((80, 10, 10), 0.3, {20}),
        ((40, 30, 30), 0.3, {30}),
        ((99, 100, 101), 0.3, {99, 100, 101}),
        ((5, 95), 0.9, {95}),
        ((1, 1), 0.01, {1}),
    ],
)
def test_the_devices_held_out_come_nearest_to_the_share(problems: Sequence[int], share: float, held: set[int]) -> None:
    device = [number for number, count in enumerate(problems) for _ in range(count)]
    data = data_of(range(len(device)), device=device)
    assert {len(by_device(data, share, seed)[1]) for seed in range(20)} == held


def test_another_seed_holds_out_another_device() -> None:
    data = data_of([2**n for n in range(12)], device=[n % 4 for n in range(12)])
    assert {int(by_device(data, 0.25, seed)[1].device[0]) for seed in range(30)} == {0, 1, 2, 3}


def test_one_device_in_two_environments_is_one_device() -> None:
    data = data_of([1, 2], device=[0, 1])
    same = DataSet(
        "toy",
        data.features,
        data.configs,
        data.rows,
        devices=({"hardware.a": 1}, {"hardware.a": 1, "policy.b": 2}),
        device=data.device,
    )
    with pytest.raises(InvalidData, match="takes two different devices, and the data have 1; give"):
        by_device(same, 0.5)


@pytest.mark.parametrize("share", [0.0, 1.0, -1.0, float("nan")])
def test_a_share_that_makes_no_sense_is_refused(share: float) -> None:
    with pytest.raises(InvalidData, match="cannot be held out"):
        by_problem(data_of([1, 2, 3]), share)


def test_too_little_data_is_refused() -> None:
    with pytest.raises(InvalidData, match="takes two different problems, and the data have 1; give"):
        by_problem(data_of([1, 1]), 0.5)
    with pytest.raises(InvalidData, match="cannot be cut into 3 folds"):
        fold_of(data_of([1, 2]), 3)


@pytest.mark.parametrize("share", [0.01, 0.99])
def test_no_side_is_ever_empty(share: float) -> None:
    assert all(len(side) for side in by_problem(data_of([1, 2, 3]), share))
