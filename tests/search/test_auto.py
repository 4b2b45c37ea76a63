"""The default search: its promises, and what it makes of failures, batches and memory."""

import random
import sys
from collections.abc import Callable
from math import inf

import pytest

from tunewise.decision import Config, Failure, Places, Space, Timing, Trial, integer, pow2
from tunewise.search import WITHOUT, Exhaustive, LocalSearch, Strategy, make
from tunewise.search.auto import Auto, Parts
from tunewise.testing.strategy_contract import StrategyContract

Cost = Callable[[Config], float]
KERNEL = Space(
    {
        "x": pow2(16, 256),
        "y": pow2(1, 16),
        "tile": list(range(1, 9)),
        "unroll": [1, 2, 4, 8],
        "kind": ["a", "b", "c"],
        "shared": [0, 1],
    },
    rules=["x * y >= 32", "x * y <= 1024"],
)


class TestAuto(StrategyContract):
    def make(self, space: Space, seed: int) -> Strategy:
        return Auto(space, seed=seed)


class TestAutoInManyRows(StrategyContract):
    """The same promises where only some of the configs are candidates at a time."""

    @pytest.fixture(autouse=True)
    def _small_pool(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("tunewise.search.pool.MOST", 20)

    def make(self, space: Space, seed: int) -> Strategy:
        return Auto(space, seed=seed)


def cost(config: Config) -> float:
    x, y, tile = (int(str(config[name])) for name in ("x", "y", "tile"))
    slow = {"a": 1.0, "b": 1.3, "c": 2.0}[str(config["kind"])]
    return slow * (1 + abs(x * y - 256) / 128) * (1 + 0.2 * abs(tile - 4)) * (2 - 0.5 * int(str(config["shared"])))


def trial(config: Config, cost: Cost = cost) -> Trial:
    time_s = cost(config)
    return Trial(config, Failure("runtime") if time_s == inf else Timing((time_s,)))


def run(strategy: Strategy, evaluations: int, cost: Cost = cost, batch: int = 1) -> list[Config]:
    asked: list[Config] = []
    while len(asked) < evaluations:
        configs = strategy.ask(batch)
        strategy.tell([trial(config, cost) for config in configs])
        asked += configs
    return asked


def best(asked: list[Config], cost: Cost = cost) -> float:
    return min(map(cost, asked)) / min(map(cost, KERNEL))


def test_it_finds_the_best_of_thousands_in_few_evaluations() -> None:
    assert [best(run(Auto(KERNEL, seed=seed), 80)) for seed in range(3)] == [1.0] * 3


def test_a_batch_is_different_configs_and_finds_the_best_too() -> None:
    asked = run(Auto(KERNEL, seed=1), 64, batch=16)
    assert len({KERNEL.places(config) for config in asked}) == 64
    assert best(asked) < 1.1


def test_what_fails_is_soon_asked_no_more() -> None:
    def fails_often(config: Config) -> float:
        return inf if config["kind"] == "a" else cost(config)

    asked = run(Auto(KERNEL, seed=0), 60, fails_often)
    failed = [fails_often(config) == inf for config in asked]
    assert sum(failed[30:]) <= 3
    assert best(asked, fails_often) == 1.0


def test_a_space_where_everything_fails_is_searched_on() -> None:
    asked = run(Auto(KERNEL, seed=0), 30, lambda config: inf)
    assert len({KERNEL.places(config) for config in asked}) == 30


def test_a_space_of_more_than_a_million_million_configs_is_searched() -> None:
    space = Space({name: integer(1, 100_000) for name in ("a", "b", "c")}, rules=["a + b + c < 200_000"])

    def far(config: Config) -> float:
        return 1.0 + sum(abs(int(str(value)) - 30_000) for value in config.values()) / 10_000

    asked = run(Auto(space, seed=0), 40, far)
    chance = space.sample(40, 0)
    assert all(config in space for config in asked)
    assert min(map(far, asked)) < min(map(far, chance))


def test_what_other_devices_like_is_asked_first_and_helps() -> None:
    strategy = Auto(KERNEL, seed=0)
    strategy.tell([trial(config, lambda c: 3 * cost(c)) for config in KERNEL], origin="a twin")
    assert best([strategy.ask(1)[0]]) == 1.0


def test_trials_from_elsewhere_are_not_results_from_here() -> None:
    strategy = Auto(KERNEL, seed=0)
    strategy.tell([trial(config) for config in KERNEL], origin="a twin")
    assert len(strategy.ask(7)) == 7


def test_a_few_trials_from_elsewhere_help_too() -> None:
    rng = random.Random(0)
    few = rng.sample(list(KERNEL), 60)

    def after(evaluations: int, seed: int, origin: str) -> float:
        strategy = Auto(KERNEL, seed=seed)
        if origin:
            strategy.tell([trial(config) for config in few], origin=origin)
        return best(run(strategy, evaluations))

    assert sum(after(8, seed, "other") for seed in range(4)) < sum(after(8, seed, "") for seed in range(4))


def test_an_origin_that_knows_other_parameters_is_heard() -> None:
    strategy = Auto(KERNEL, seed=0)
    partial = [{name: value for name, value in config.items() if name != "kind"} for config in KERNEL.sample(50)]
    strategy.tell(
        [Trial({**config, "more": 1}, Timing((1.0 + which,))) for which, config in enumerate(partial)], origin="o"
    )
    assert len(run(strategy, 20)) == 20


def test_a_hostile_origin_does_not_keep_it_from_the_best() -> None:
    strategy = Auto(KERNEL, seed=0)
    strategy.tell([trial(config, lambda c: 1 / cost(c)) for config in KERNEL], origin="upside down")
    assert best(run(strategy, 50)) == 1.0


def test_past_trials_replace_the_first_guesses() -> None:
    past = KERNEL.sample(30, 0)
    strategy = Auto(KERNEL, seed=0)
    strategy.tell([trial(config) for config in past])
    asked = run(strategy, 15)
    assert not {KERNEL.places(c) for c in past} & {KERNEL.places(c) for c in asked}
    assert best(asked) == 1.0


def test_every_part_can_be_left_out_for_comparison() -> None:
    def first(name: str) -> list[Places]:
        return [KERNEL.places(config) for config in run(make(name, KERNEL, budget=100), 8)]

    assert set(WITHOUT.values()) == set(Parts.__dataclass_fields__)
    assert all(len(set(first(name))) == 8 for name in WITHOUT)
    assert first("auto without first") != first("auto")


def test_auto_lists_what_is_few_and_models_the_rest() -> None:
    assert isinstance(make("auto", Space({"a": [1, 2, 3]}), budget=10), Exhaustive)
    assert isinstance(make("auto", KERNEL, budget=10), Auto)


def test_auto_without_numpy_searches_locally(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tunewise.search.auto", None)
    assert isinstance(make("auto", KERNEL, budget=10), LocalSearch)
    assert isinstance(make("auto", KERNEL, budget=10_000), Exhaustive)
