"""The baselines keep the promises of every strategy, and find what they are after."""

from itertools import product

import pytest

from tunewise.decision import Config, Space, Timing, Trial, integer
from tunewise.errors import MissingPart
from tunewise.formats.recorded import Row, recording
from tunewise.search import STRATEGIES, Strategy, make
from tunewise.search.annealing import SimulatedAnnealing
from tunewise.search.evolution import DifferentialEvolution
from tunewise.search.genetic import Genetic
from tunewise.session.replaying import replay
from tunewise.testing.strategy_contract import StrategyContract

NAMES = ["annealing", "genetic", "evolution"]


class TestSimulatedAnnealing(StrategyContract):
    def make(self, space: Space, seed: int) -> Strategy:
        return SimulatedAnnealing(space, seed=seed)


class TestGenetic(StrategyContract):
    def make(self, space: Space, seed: int) -> Strategy:
        return Genetic(space, seed=seed)


class TestDifferentialEvolution(StrategyContract):
    def make(self, space: Space, seed: int) -> Strategy:
        return DifferentialEvolution(space, seed=seed)


HUGE = Space({name: integer(1, 1000) for name in "abcd"}, rules=["a % 2 == 0", "a + b > 50", "c <= d"])


@pytest.mark.parametrize("name", NAMES)
def test_a_space_far_too_large_to_list_is_searched_downhill(name: str) -> None:
    strategy = make(name, HUGE, seed=1)
    times = []
    for _ in range(30):
        batch = strategy.ask(10)
        assert len(batch) == 10
        trials = [Trial(c, Timing((1.0 + sum(abs(int(c[n]) - 500) for n in "abcd"),))) for c in batch]  # type: ignore[arg-type]
        times += [t.outcome.time_s for t in trials if isinstance(t.outcome, Timing)]
        strategy.tell(trials)
    assert sum(times[-50:]) < sum(times[:50])


def hill(config: Config) -> float:
    """A slope with a ripple on it, as kernels have them: downhill is a good idea, and not the whole story."""
    a, b, c, d = (int(config[name]) for name in "abcd")  # type: ignore[arg-type]
    return 1 + abs(a - 5) + abs(b - 2) + 2 * abs(c - 6) + (a * b + d) % 3


@pytest.mark.parametrize("name", [*NAMES, "local"])
def test_a_hill_is_descended_with_fewer_evaluations_than_by_chance(name: str) -> None:
    configs = [dict(zip("abcd", values, strict=True)) for values in product(range(8), repeat=4)]
    hills = recording("hill", [Row(config, Timing((hill(config),))) for config in configs])

    def evaluations(strategy: str) -> float:
        return sum(min(replay(hills, strategy, budget=300, seed=seed).needed(1.01), 300) for seed in range(5))

    assert evaluations(name) < 0.9 * evaluations("random")


@pytest.mark.parametrize("name", [s.name for s in STRATEGIES if not s.name.startswith("optuna:")])
def test_trials_of_elsewhere_say_nothing_to_a_baseline(name: str) -> None:
    space = Space({"a": list(range(6)), "b": list(range(6))})
    told = [Trial(config, Timing((1.0,))) for config in space]
    strategy, alone = make(name, space, seed=3), make(name, space, seed=3)
    strategy.tell(told, origin="another device")
    assert strategy.ask(5) == alone.ask(5) != []


@pytest.mark.parametrize("name", NAMES)
def test_past_trials_are_where_a_baseline_goes_on_from(name: str) -> None:
    space = Space({"a": list(range(100)), "b": list(range(100))})
    past = [Trial(config, Timing((1.0 + abs(int(config["a"]) - 50),))) for config in space.sample(60, 5)]  # type: ignore[arg-type]
    strategy = make(name, space, seed=2)
    strategy.tell(past)
    seen = {space.places(trial.config) for trial in past}
    for _ in range(60):
        (config,) = strategy.ask(1)
        assert space.places(config) not in seen
        strategy.tell([Trial(config, Timing((1.0 + abs(int(config["a"]) - 50),)))])  # type: ignore[arg-type]


def test_optuna_that_is_not_installed_is_named_with_the_way_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    from tunewise.search import optuna

    def missing(name: str) -> None:
        raise ImportError(name=name)

    monkeypatch.setattr(optuna, "import_module", missing)
    with pytest.raises(MissingPart, match=r"'optuna:tpe' needs optuna, which is not installed: pip install optuna"):
        make("optuna:tpe", HUGE)
