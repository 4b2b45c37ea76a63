"""The race: shuffled, interleaved laps that spend their samples on the configs that can still win.

A machine changes its speed from one tenth of a second to the next, sometimes twofold. What was timed in one lap was
timed at about one speed, so configs are compared lap by lap, and each lap's common speed drops out.
"""

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import exp, inf, log, sqrt
from statistics import fmean, median

from tunewise.decision import Config, Failure, Outcome, Timing, canonical, merged
from tunewise.measure.work import Measurer

HOPELESS = 1.45  # a first launch this much slower than the best so far is not repeated
ENTRY = 1.35  # after a single warm sample, anything within this of the best may still be the best
SETTLED = 0.0075  # a difference known to this costs little, whichever way it falls
SURE = 2.5  # a difference of so many errors is one
_TIE = 0.005  # a difference that is none
_PODIUM = 3  # so many run all regular rounds
_DUEL = 2  # whom extra laps are for: the third is no worse than these by more than the noise, and no better


@dataclass(frozen=True, slots=True)
class Round:
    """Run so many laps, then keep those within `keep` times the best, and more where the laps disagree.

    An extra round is a duel of the first two, run only while the order is not settled.
    """

    laps: int
    keep: float
    is_extra: bool = False


# Early rounds sort out the field; late ones tell the finalists apart. `bench/racing.py` shows what they cost.
ROUNDS = (
    *(Round(1, 1.25), Round(2, 1.1), Round(4, 1.05)),
    *(Round(8, 1.03, is_extra=True), Round(16, 1.02, is_extra=True), Round(48, 1.02, is_extra=True)),
)


@dataclass(frozen=True, slots=True)
class Gap:
    """How far a runner is behind the leader, as a logarithm, and how far off that may be."""

    config: Config
    behind: float
    error: float

    @property
    def ratio(self) -> float:
        """Its time over the leader's."""
        return exp(self.behind)

    @property
    def is_tied(self) -> bool:
        """Whether it may be as fast as the leader, for all the laps say; a whole percent behind is behind."""
        return self.behind <= min(max(_TIE, self.error), 1.5 * _TIE)


@dataclass(frozen=True, slots=True)
class Standing:
    """After a round: the new samples (or the failure) of everybody who ran, and who may still win, best first."""

    fresh: Sequence[tuple[Config, Outcome]]
    order: Sequence[Gap]


def race(
    measurer: Measurer, runners: Sequence[Config], rounds: Sequence[Round], rng: random.Random
) -> Iterator[Standing]:
    """Race configs and yield the standing after every round; ends early when one is left or the order is settled."""
    laps: dict[str, list[float]] = {canonical.encode(config): [] for config in runners}
    gaps, beside = [Gap(config, 0.0, inf) for config in runners], list[Gap]()
    for this in rounds:
        running = [gap.config for gap in gaps]
        if len(running) < 2 or (this.is_extra and _is_settled(gaps[1])):
            return
        if this.is_extra:  # who is tied stays so; only the first two go on
            beside = beside or [gap for gap in gaps[_DUEL:] if gap.is_tied]
            running = running[:_DUEL]
        fresh = _run(measurer, running, this.laps, rng)
        for config, outcome in fresh:
            if isinstance(outcome, Timing):
                laps[canonical.encode(config)] += outcome.samples_s
        unhurt = [config for config, outcome in fresh if isinstance(outcome, Timing)]
        gaps = _kept(_gaps(unhurt, laps), this)
        yield Standing(fresh, [*gaps, *beside])


def _kept(gaps: Sequence[Gap], this: Round) -> list[Gap]:
    """Return who stays in: dropping one of a few on the word of a few laps saves little and may cost the best."""
    within = [gap for gap in gaps if gap.behind <= log(this.keep) + gap.error]
    return within if this.is_extra else list(gaps[: max(len(within), _PODIUM)])


def _is_settled(second: Gap) -> bool:
    """Return whether more laps would hardly change who leads, or hardly matter."""
    return second.error <= SETTLED or second.behind > SURE * second.error


def _run(measurer: Measurer, running: Sequence[Config], laps: int, rng: random.Random) -> list[tuple[Config, Outcome]]:
    taken: dict[str, list[Outcome]] = {canonical.encode(config): [] for config in running}
    order = list(running)
    for _ in range(laps):
        rng.shuffle(order)
        for config in order:
            parts = taken[canonical.encode(config)]
            if not any(isinstance(part, Failure) for part in parts):
                parts.append(measurer.sample(config, 1))
    return [(config, merged(taken[canonical.encode(config)])) for config in running]


def _gaps(runners: Sequence[Config], laps: Mapping[str, Sequence[float]]) -> list[Gap]:
    """Return the runners best first. Every comparison is made within laps, where both ran at about one speed."""
    if not runners:
        return []
    logs = [[log(sample) for sample in laps[canonical.encode(config)]] for config in runners]
    common = [fmean(lap) for lap in zip(*logs, strict=True)]
    scores = [median(value - shared for value, shared in zip(row, common, strict=True)) for row in logs]
    leader = logs[scores.index(min(scores))]
    gaps = [_gap(config, row, leader) for config, row in zip(runners, logs, strict=True)]
    return sorted(gaps, key=lambda gap: gap.behind)


def _gap(config: Config, row: Sequence[float], leader: Sequence[float]) -> Gap:
    differences = [mine - best for mine, best in zip(row, leader, strict=True)]
    behind, count = median(differences), len(differences)
    scatter = median(abs(difference - behind) for difference in differences)
    # 1.4826 makes a median deviation a standard one; a median is 1.25 times less certain than a mean; and a scatter
    # known from a few laps is itself uncertain.
    return Gap(config, behind, 1.25 * 1.4826 * scatter / sqrt(count) * (1 + 3 / count))
