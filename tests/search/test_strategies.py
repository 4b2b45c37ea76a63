"""Every strategy keeps the same promises."""

from tunewise.decision import Space
from tunewise.search import Exhaustive, LocalSearch, RandomSearch, Seeded, Strategy
from tunewise.testing.strategy_contract import StrategyContract


class TestExhaustive(StrategyContract):
    def make(self, space: Space, seed: int) -> Strategy:
        return Exhaustive(space, seed=seed)


class TestRandomSearch(StrategyContract):
    def make(self, space: Space, seed: int) -> Strategy:
        return RandomSearch(space, seed=seed)


class TestLocalSearch(StrategyContract):
    def make(self, space: Space, seed: int) -> Strategy:
        return LocalSearch(space, seed=seed)


class TestSeeded(StrategyContract):
    def make(self, space: Space, seed: int) -> Strategy:
        return Seeded(space, space.sample(3, seed), RandomSearch(space, seed=seed))


SPACE = Space({"a": list(range(20)), "b": list(range(20))})


def test_seeds_are_asked_first_in_rank_order_and_only_once() -> None:
    seeds = [{"a": 5, "b": 5}, {"a": 1, "b": 2}, {"a": 5, "b": 5}]
    seeded = Seeded(SPACE, seeds, Exhaustive(SPACE))
    asked = [config for _ in range(100) for config in seeded.ask(7)]
    assert asked[:2] == seeds[:2]
    assert len(asked) == 400
