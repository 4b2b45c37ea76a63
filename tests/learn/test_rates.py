"""Rates of work: never negative, true where they can be, and few where few say as much."""

from collections.abc import Callable

import numpy as np
import pytest

from tunewise.formats.dataset import Floats
from tunewise.learn.rates import few_rates, rates_of


def _amounts(rows: int, columns: int) -> Floats:
    return np.random.default_rng(0).uniform(1, 100, (rows, columns))


@pytest.mark.parametrize("found", [rates_of, few_rates])
def test_rates_are_never_negative_and_explain_what_they_can(found: Callable[..., Floats]) -> None:
    amounts = _amounts(50, 3)
    rates = found(amounts, np.log(amounts @ [2e-9, 0.0, 5e-9]), np.ones(50))
    assert rates == pytest.approx([2e-9, 0.0, 5e-9], abs=1e-15)


def test_what_takes_next_to_nothing_is_dropped_and_what_takes_time_is_not() -> None:
    amounts = _amounts(200, 5)
    true = np.array([2e-9, 1e-11, 5e-9, 2e-11, 1e-9])
    log_seconds = np.log(amounts @ true)
    assert (rates_of(amounts, log_seconds, np.ones(200)) > 0).all()
    few = few_rates(amounts, log_seconds, np.ones(200))
    assert np.flatnonzero(few).tolist() == [0, 2, 4]
    assert np.abs(np.log(amounts @ few) - log_seconds).max() < 0.1


@pytest.mark.parametrize("rows", [1, 2, 5])
def test_fewer_times_than_amounts_and_amounts_of_nothing_are_no_hindrance(rows: int) -> None:
    amounts = _amounts(rows, 6)
    amounts[:, 2] = 0.0
    rates = few_rates(amounts, np.log(amounts.sum(axis=1) * 1e-9), np.ones(rows))
    assert rates[2] == 0
    assert rates.any()
    assert np.abs(np.log(amounts @ rates * 1e9 / amounts.sum(axis=1))).max() < 0.2


def test_what_weighs_nothing_is_not_explained() -> None:
    amounts = _amounts(60, 2)
    seconds = np.where(np.arange(60) < 30, amounts @ [1e-9, 0.0], amounts @ [0.0, 1e-9])
    rates = rates_of(amounts, np.log(seconds), np.where(np.arange(60) < 30, 1.0, 0.0))
    assert rates == pytest.approx([1e-9, 0.0], abs=1e-15)
