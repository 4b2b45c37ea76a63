"""What every search strategy promises, as tests to inherit."""

from collections.abc import Sequence

from tunewise.decision import Config, Failure, Outcome, Param, Scalar, Space, Timing, Trial, permutation, pow2
from tunewise.search.base import Strategy


class StrategyContract:
    """Inherit, say how to `make` the strategy, and every promise is tested."""

    def make(self, space: Space, seed: int) -> Strategy:
        """Return a fresh strategy."""
        raise NotImplementedError

    def test_it_asks_only_legal_configs_and_none_twice(self) -> None:
        """The whole space, in batches of odd sizes."""
        space = _mixed()
        asked = _drain(self.make(space, 0), space)
        assert all(config in space for config in asked)
        assert len({space.places(config) for config in asked}) == len(asked)

    def test_it_reaches_every_config_and_then_says_so(self) -> None:
        """An empty answer means finished, and nothing was left out."""
        space = _mixed()
        strategy = self.make(space, 0)
        assert len(_drain(strategy, space)) == space.count()
        assert strategy.ask(5) == []

    def test_the_same_seed_and_history_ask_the_same(self) -> None:
        """A run depends on its seed only."""
        space = _mixed()
        alone = _drain(self.make(space, 3), space)
        _drain(self.make(space, 4), space)
        assert _drain(self.make(space, 3), space) == alone

    def test_it_never_asks_for_more_than_wanted(self) -> None:
        """A batch has at most `n` configs."""
        strategy = self.make(_mixed(), 1)
        assert [len(strategy.ask(n)) <= n for n in (1, 2, 17)] == [True] * 3

    def test_it_hears_trials_it_never_asked_for(self) -> None:
        """Past runs are told: failures, and configs that the space no longer has."""
        space = _mixed()
        strategy = self.make(space, 0)
        strategy.tell([Trial({"gone": 1}, Timing((1.0,))), Trial(next(iter(space)), Failure("crash"))])
        assert strategy.ask(3)

    def test_an_impossible_space_is_finished_at_once(self) -> None:
        """No legal config, nothing to ask."""
        assert self.make(Space({"a": [1, 2]}, rules=["a > 5"]), 0).ask(4) == []


def _mixed() -> Space:
    params: dict[str, Param | Sequence[Scalar]] = {
        "tile": pow2(1, 16),
        "kind": ["x", "y", "z"],
        "order": permutation("ij"),
        "on": [True, False],
    }
    return Space(params, rules=["tile > 1 or kind == 'x'", "on or tile < 16"])


def _drain(strategy: Strategy, space: Space) -> list[Config]:
    asked: list[Config] = []
    for turn in range(1000):
        batch = strategy.ask(1 + turn % 7)
        if not batch:
            break
        asked += batch
        strategy.tell(_told(batch, space))
    return asked


def _told(batch: Sequence[Config], space: Space) -> list[Trial]:
    def outcome(config: Config) -> Outcome:
        number = sum(space.places(config))
        return Failure("runtime", "odd") if number % 5 == 4 else Timing((1.0 + number,))

    return [Trial(config, outcome(config)) for config in batch]
