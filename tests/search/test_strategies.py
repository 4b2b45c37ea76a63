"""Every strategy keeps the same promises."""

from tunewise.decision import Space
from tunewise.search import Exhaustive, LocalSearch, RandomSearch, Seed, Seeded, Strategy
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
        return Seeded(space, [Seed(config) for config in space.sample(3, seed)], RandomSearch(space, seed=seed))


class TestSeededByHeuristics(StrategyContract):
    def make(self, space: Space, seed: int) -> Strategy:
        seeds = [Seed(config, by, False) for by in ("one", "two") for config in space.sample(3, seed)]
        moves = [Seed(config, "one") for config in space.sample(9, seed + 1)]
        return Seeded(space, seeds, RandomSearch(space, seed=seed), seed=seed, moves=lambda config: moves)
