"""The race spends samples where they matter and tells the truth about everybody."""

import random
from math import inf

from tunewise.decision import Config, Failure, Outcome, Timing
from tunewise.measure.race import ENTRY, Round, race

ROUNDS = (Round(1, 1.5), Round(2, 1.25), Round(4, 1.12), Round(8, 1.06), Round(16, 1.03))


class Scripted:
    """A measurer with known times that counts what it is asked for."""

    def __init__(self, times: dict[int, float], breaks_after: dict[int, int] | None = None) -> None:
        self.times, self.asked = times, dict.fromkeys(times, 0)
        self.order: list[int] = []
        self._breaks_after = breaks_after or {}

    def first(self, config: Config, hopeless_s: float = inf) -> Outcome:
        return self.sample(config, 1)

    def sample(self, config: Config, n: int) -> Outcome:
        which = int(config["id"])  # type: ignore[arg-type]
        self.asked[which] += n
        self.order.append(which)
        if self.asked[which] > self._breaks_after.get(which, 10**9):
            return Failure("crash", "signal SIGSEGV")
        return Timing((self.times[which],) * n)

    def pair(self, incumbent: Config, challenger: Config, turns: int | None = None) -> tuple[float, float] | Failure:
        raise AssertionError("a race has no pairs")

    def verify(self, config: Config, repeats: int = 1) -> Failure | None:
        return None

    def close(self) -> None:
        pass


def entrants(times: dict[int, float]) -> list[tuple[Config, Outcome]]:
    return [({"id": which}, Timing((time,))) for which, time in times.items()]


def run(measurer: Scripted, rounds: tuple[Round, ...] = ROUNDS, **options: float) -> dict[int, list[Outcome]]:
    seen: dict[int, list[Outcome]] = {which: [] for which in measurer.times}
    options = {"entry": 2.0, **options}
    for fresh in race(measurer, entrants(measurer.times), rounds, random.Random(0), **options):
        for config, outcome in fresh:
            seen[int(config["id"])].append(outcome)  # type: ignore[arg-type]
    return seen


def test_hopeless_configs_are_not_sampled_again() -> None:
    measurer = Scripted({0: 1.0, 1: 1.01, 2: 5.0})
    run(measurer)
    assert measurer.asked[2] == 0


def test_what_was_too_slow_at_first_sight_does_not_start() -> None:
    measurer = Scripted({0: 1.0, 1: 1.01, 2: ENTRY + 0.01})
    run(measurer, entry=ENTRY)
    assert measurer.asked[2] == 0
    assert measurer.asked[1] > 0


def test_close_configs_get_every_round() -> None:
    measurer = Scripted({0: 1.0, 1: 1.01})
    run(measurer)
    assert measurer.asked == {0: 31, 1: 31}


def test_each_round_drops_what_is_too_slow_for_it() -> None:
    measurer = Scripted({0: 1.0, 1: 1.04, 2: 1.1, 3: 1.2, 4: 1.4})
    run(measurer)
    assert [measurer.asked[which] for which in range(5)] == [31, 31, 15, 7, 3]


def test_the_race_ends_when_one_is_left() -> None:
    measurer = Scripted({0: 1.0, 1: 1.9})
    run(measurer)
    assert measurer.asked == {0: 1, 1: 1}


def test_samples_of_rivals_are_interleaved() -> None:
    measurer = Scripted({0: 1.0, 1: 1.0, 2: 1.0})
    run(measurer, rounds=(Round(8, 1.5),))
    passes = [measurer.order[i : i + 3] for i in range(0, 24, 3)]
    assert all(sorted(turn) == [0, 1, 2] for turn in passes)
    assert len({tuple(turn) for turn in passes}) > 1


def test_a_runner_that_breaks_is_reported_and_leaves() -> None:
    measurer = Scripted({0: 1.0, 1: 1.0}, breaks_after={1: 2})
    seen = run(measurer)
    assert Failure("crash", "signal SIGSEGV") in seen[1]
    assert measurer.asked[1] == 3


def test_a_rival_outside_the_race_sets_the_pace() -> None:
    measurer = Scripted({0: 1.0, 1: 1.05})
    run(measurer, best_s=0.3)
    assert measurer.asked == {0: 0, 1: 0}


def test_the_same_seed_gives_the_same_order() -> None:
    first, second = Scripted(dict.fromkeys(range(6), 1.0)), Scripted(dict.fromkeys(range(6), 1.0))
    run(first)
    run(second)
    assert first.order == second.order
