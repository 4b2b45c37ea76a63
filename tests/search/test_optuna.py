"""Optuna's samplers keep the promises of every strategy."""

import pytest

from tunewise.decision import Space
from tunewise.search import Strategy, make
from tunewise.testing.strategy_contract import StrategyContract

optuna = pytest.importorskip("optuna", reason="Optuna is not installed")


class TestOptunaTpe(StrategyContract):
    def make(self, space: Space, seed: int) -> Strategy:
        return make("optuna:tpe", space, seed=seed)


class TestOptunaRandom(StrategyContract):
    def make(self, space: Space, seed: int) -> Strategy:
        return make("optuna:random", space, seed=seed)


class TestOptunaCmaEs(StrategyContract):
    def make(self, space: Space, seed: int) -> Strategy:
        pytest.importorskip("cmaes", reason="cmaes is not installed")
        return make("optuna:cmaes", space, seed=seed)


def test_what_the_program_lets_optuna_say_stays_as_it_was() -> None:
    before = optuna.logging.get_verbosity()
    make("optuna:tpe", Space({"a": [1, 2]}))
    assert optuna.logging.get_verbosity() == before
