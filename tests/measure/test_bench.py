"""The bench where it stands: samples, pairs and what the clock itself costs."""

from collections import Counter
from collections.abc import Callable

from tunewise.decision import NO_CHECK, Config, Policy, canonical
from tunewise.measure.bench import Bench
from tunewise.measure.clocks import CLOCKS, cost_of, time_calls
from tunewise.measure.work import Work


class Counted:
    """Work that counts the calls of each config."""

    def __init__(self) -> None:
        self.calls: Counter[int] = Counter()
        self.bench = Bench(Work(self._prepare, (), {"id": 0}, NO_CHECK, policy=Policy(min_sample_s=1e-6)))

    def _prepare(self, config: Config) -> Callable[[], None]:
        return lambda: self.calls.update([int(config["id"])])  # type: ignore[arg-type]

    def calls_in_a_pair(self, per_sample: dict[int, int]) -> dict[int, int]:
        for which in per_sample:
            self.bench.sample({"id": which}, 1)
            self.bench._calls[canonical.encode({"id": which})] = per_sample[which]
        self.calls.clear()
        self.bench.pair({"id": 0}, {"id": 1}, turns=10)
        return dict(self.calls)


def test_both_sides_of_a_pair_share_the_clock_s_cost_alike() -> None:
    assert Counted().calls_in_a_pair({0: 1, 1: 2}) == {0: 20, 1: 20}


def test_sides_that_are_far_apart_keep_their_own_number_of_calls() -> None:
    assert Counted().calls_in_a_pair({0: 1, 1: 100}) == {0: 10, 1: 1000}


def test_the_cost_of_the_clock_is_no_part_of_a_sample() -> None:
    now = iter([10.0, 10.5])
    assert time_calls(lambda: next(now), lambda: None, (), 2, cost_s=0.1) == 0.2
    assert all(0 <= cost_of(clock) < 1e-3 for clock in CLOCKS.values())
