"""The bench where it stands: samples, pairs and what the clock itself costs."""

from collections import Counter
from collections.abc import Callable

import pytest

from tunewise.decision import NO_CHECK, Config, Policy, Timing, canonical
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


class Paced:
    """Work on a clock of its own: a config's first call and its later ones take as long as they say."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, first_s: float, later_s: float) -> None:
        self.now_s, self.calls, self.first_s, self.later_s = 0.0, 0, first_s, later_s
        monkeypatch.setitem(CLOCKS, "cpu", lambda: self.now_s)
        self.bench = Bench(Work(lambda config: self._call, (), {"id": 0}, NO_CHECK, is_prebuilt=True))

    def _call(self) -> None:
        self.now_s += self.later_s if self.calls else self.first_s
        self.calls += 1


def test_a_config_that_is_slow_at_its_first_launch_only_has_hope(monkeypatch: pytest.MonkeyPatch) -> None:
    paced = Paced(monkeypatch, first_s=150e-6, later_s=50e-6)
    outcome = paced.bench.first({"id": 0}, best_s=60e-6)
    assert isinstance(outcome, Timing)
    assert outcome.time_s == pytest.approx(50e-6)


def test_a_config_far_too_slow_is_called_once(monkeypatch: pytest.MonkeyPatch) -> None:
    paced = Paced(monkeypatch, first_s=1e-3, later_s=1e-3)
    outcome = paced.bench.first({"id": 0}, best_s=60e-6)
    assert isinstance(outcome, Timing)
    assert outcome.time_s == pytest.approx(1e-3)
    assert paced.calls == 1


def launched(monkeypatch: pytest.MonkeyPatch, longer_s: float) -> int:
    """Return how often a config is called that takes 1.3 times the best, where launches take so much longer."""
    paced = Paced(monkeypatch, first_s=1e-3 + longer_s, later_s=1e-3)
    for number in range(8):
        paced.calls = 0
        paced.bench.first({"id": number}, best_s=1e-3)
    paced.calls, paced.first_s, paced.later_s = 0, 1.3e-3, 1.3e-3
    paced.bench.first({"id": 8}, best_s=1e-3)
    return paced.calls


def test_where_launches_are_like_later_calls_a_slow_one_says_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    assert launched(monkeypatch, longer_s=0.0) == 1
    assert launched(monkeypatch, longer_s=0.3e-3) == 2


class Disturbed:
    """Work on a clock of its own: every call takes a microsecond, but for one that something else delays."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *, is_fickle: bool = False) -> None:
        self.now_s, self._is_fickle = 0.0, is_fickle
        self.calls: Counter[int] = Counter()
        monkeypatch.setitem(CLOCKS, "cpu", lambda: self.now_s)
        self.bench = Bench(Work(lambda config: lambda: self._call(int(config["id"])), (), {"id": 0}, NO_CHECK))  # type: ignore[arg-type]

    def _call(self, which: int) -> None:
        self.calls[which] += 1
        is_delayed = self.calls[which] % 2 == 0 if self._is_fickle else self.calls[which] == 2
        self.now_s += 1e-3 if which == 0 and is_delayed else 1e-6

    def calls_a_sample(self, which: int) -> int:
        return self.bench._calls[canonical.encode({"id": which})]


def test_a_config_disturbed_when_its_samples_were_set_is_sampled_as_long_as_any(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    work = Disturbed(monkeypatch)
    for which in (0, 1):
        work.bench.first({"id": which})
    assert work.calls_a_sample(0) == 1 < work.calls_a_sample(1)
    assert work.bench.pair({"id": 0}, {"id": 1}, turns=3) == pytest.approx((1e-6, 1e-6))
    assert min(map(work.calls_a_sample, (0, 1))) >= 100


def test_samples_that_turn_out_too_short_are_taken_again(monkeypatch: pytest.MonkeyPatch) -> None:
    work = Disturbed(monkeypatch)
    work.bench.first({"id": 0})
    before = work.calls[0]
    assert work.bench.sample({"id": 0}, 3) == Timing(pytest.approx((1e-6,) * 3))
    assert work.calls[0] - before >= 3 * 1 + 3 * 100


def test_a_config_that_is_now_slow_and_now_fast_is_sampled_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    work = Disturbed(monkeypatch, is_fickle=True)
    work.bench.first({"id": 0})
    assert isinstance(work.bench.sample({"id": 0}, 5), Timing)
