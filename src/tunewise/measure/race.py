"""The race: shuffled, interleaved rounds that spend their samples on the configs that can still win."""

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import inf

from tunewise.decision import Config, Failure, Outcome, Timing, canonical, merged
from tunewise.measure.work import Measurer

HOPELESS = 1.6  # a first launch this much slower than the best so far is not repeated
ENTRY = 1.35  # after a single warm sample, anything within this of the best may still be the best


@dataclass(frozen=True, slots=True)
class Round:
    """Add `samples` to everybody still in, then keep those within `keep` times the best."""

    samples: int
    keep: float


# Early rounds sort out the field; late ones tell the finalists apart. `bench/racing.py` shows what they cost.
HEATS = (Round(1, 1.15), Round(2, 1.08), Round(4, 1.04))
FINALS = (Round(8, 1.02),)


def race(
    measurer: Measurer,
    entrants: Sequence[tuple[Config, Outcome]],
    rounds: Sequence[Round],
    rng: random.Random,
    *,
    best_s: float = inf,
    entry: float = ENTRY,
) -> Iterator[list[tuple[Config, Outcome]]]:
    """Race configs that were timed once and yield, after every round, the new samples (or the failure) of each runner.

    `entrants` come with what is known of them; failures do not start. `best_s` is the time of a rival outside the race,
    which sets the pace too; `entry` keeps out what was this much slower at first sight. The race ends early when one
    is left.
    """
    known: dict[str, Outcome] = {canonical.encode(config): outcome for config, outcome in entrants}
    running = [config for config, outcome in entrants if isinstance(outcome, Timing)]
    running = _within(running, known, entry, best_s)
    for heat in rounds:
        if len(running) < 2 and best_s == inf:
            return
        fresh = _run(measurer, running, heat.samples, rng)
        for config, outcome in fresh:
            key = canonical.encode(config)
            known[key] = merged([known[key], outcome])
        yield fresh
        running = _within(running, known, heat.keep, best_s)


def _run(
    measurer: Measurer, running: Sequence[Config], samples: int, rng: random.Random
) -> list[tuple[Config, Outcome]]:
    taken: dict[str, list[Outcome]] = {canonical.encode(config): [] for config in running}
    order = list(running)
    for _ in range(samples):
        rng.shuffle(order)
        for config in order:
            parts = taken[canonical.encode(config)]
            if not any(isinstance(part, Failure) for part in parts):
                parts.append(measurer.sample(config, 1))
    return [(config, merged(taken[canonical.encode(config)])) for config in running]


def _within(running: Sequence[Config], known: Mapping[str, Outcome], factor: float, best_s: float) -> list[Config]:
    times = {}
    for config in running:
        outcome = known[canonical.encode(config)]
        if isinstance(outcome, Timing):
            times[canonical.encode(config)] = outcome.time_s
    best = min([best_s, *times.values()], default=inf)
    return [c for c in running if times.get(canonical.encode(c), inf) <= factor * best]
