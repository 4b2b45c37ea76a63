"""The race: shuffled, interleaved laps that spend their samples on the configs that can still win.

A machine changes its speed from one tenth of a second to the next, sometimes twofold, so nothing is compared that ran
at different times. All runners have run the same laps: of many, the faster half of each one's samples counts. The laps
of a few are so short that all run at one speed: they are compared lap by lap, in the faster half of the laps.
"""

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import exp, inf, log, sqrt
from statistics import fmean, median, pvariance

from tunewise.decision import Config, Failure, Outcome, Timing, canonical, half_of, lower_half_mean, merged
from tunewise.measure.work import Measurer

ENTRY = 1.6  # after a single sample, anything within this of the best may still be the best
SETTLED = 0.01  # a difference known to this costs little, whichever way it falls
SURE = 2.5  # a difference of so many errors is one
_AGREED, _MOSTLY = 0.75, 0.6  # of the laps must say so too, to end it or to drop one: errors of few laps are off too
_TIE = 0.005  # a difference that is none
_PODIUM = 3  # so many run all regular rounds
_FEW = 6  # runners whose lap is short
_SEVERAL = 4  # laps that have a faster half
_SCOUTS = 12  # run before many others, to see how far samples are off here
_WIDE = 3.0  # errors of a typical runner that a gate leaves room for
_NARROWEST = 0.02  # near-equals change places by this much from minute to minute
_MOST, _MOST_ERRORS = 0.8, 1.28  # so many are within so many errors: a fifth of all samples spoiled widens all gates


Logs = Mapping[str, Sequence[float]]  # the logarithms of each runner's samples, by its config
Rows = Sequence[Sequence[float]]


@dataclass(frozen=True, slots=True)
class Round:
    """Run so many laps, then keep those within `keep` times the best: more where laps disagree, fewer where they agree.

    A round for a few is extra: the first `most` go on alone, and only while it is not settled who leads, and a lap of
    theirs takes at most `lap_s`.
    """

    laps: int
    keep: float
    most: int | None = None
    lap_s: float = inf


# Early rounds sort out the field; late ones tell the finalists apart. `bench/racing.py` shows what they cost.
ROUNDS = (
    *(Round(1, 1.3), Round(2, 1.12), Round(4, 1.06)),
    *(Round(4, 1.04, most=6), Round(8, 1.03, most=4)),
    *(Round(16, 1.02, most=2), Round(32, 1.02, most=2), Round(64, 1.02, most=2, lap_s=5e-4)),
)


@dataclass(frozen=True, slots=True)
class Gap:
    """How far a runner is behind the leader, as a logarithm, and how far off that may be."""

    config: Config
    behind: float
    error: float
    ahead: float = 0.0  # the share of the laps in which the leader was

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
    measurer: Measurer,
    runners: Sequence[Config],
    rounds: Sequence[Round],
    rng: random.Random,
    qualifying_s: Sequence[float] = (),
    seeded: int = 0,
) -> Iterator[Standing]:
    """Race configs and yield the standing after every round; ends early when one is left or the order is settled.

    `qualifying_s` has a sample of each runner from an earlier time: who was slow in one of two is not yet slow. But
    where many run, best first, those stay out that were farther behind than samples are off here; the first `seeded`
    run in any case.
    """
    laps: dict[str, list[float]] = {canonical.encode(config): [] for config in runners}
    before = {canonical.encode(config): [log(s)] for config, s in zip(runners, qualifying_s, strict=False)}
    gaps, beside = [Gap(config, 0.0, inf) for config in runners], list[Gap]()
    for this in rounds:
        running = [gap.config for gap in gaps]
        is_alone = len(running) < 2 and this.keep < inf  # a round that drops nobody is run for its samples
        if not running or is_alone or (this.most and _is_settled(gaps[1])):
            return
        if this.most:  # who is tied stays so, even where it runs no more
            beside += [gap for gap in gaps[this.most :] if gap.is_tied]
            running = running[: this.most]
            if _lap_s(running, laps) > this.lap_s:
                return
        scouts = _scouts(running, seeded, this) if this is rounds[0] and before else len(running)
        fresh = _run(measurer, running[:scouts], this.laps, rng)
        if scouts < len(running):
            fresh += _run(measurer, _worth_a_lap(running[scouts:], fresh, before), this.laps, rng)
        for config, outcome in fresh:
            if isinstance(outcome, Timing):
                laps[canonical.encode(config)] += map(log, outcome.samples_s)
        unhurt = [config for config, outcome in fresh if isinstance(outcome, Timing)]
        gaps = _kept(_gaps(unhurt, laps, before), this, _room(unhurt, laps, before))
        yield Standing(fresh, [*gaps, *beside])


def _scouts(running: Sequence[Config], seeded: int, this: Round) -> int:
    """Return how many run first; all, where they are not many or nobody is to be dropped."""
    scouts = seeded + _SCOUTS
    return scouts if this.keep < inf and len(running) > 2 * scouts else len(running)


def _worth_a_lap(others: Sequence[Config], scouted: Sequence[tuple[Config, Outcome]], before: Logs) -> list[Config]:
    """Return who was no farther behind the best in qualifying than the scouts' samples are apart from their laps."""
    timed = [(canonical.encode(config), outcome.time_s) for config, outcome in scouted if isinstance(outcome, Timing)]
    rows = [[*before[key], log(time_s)] for key, time_s in timed]
    if len(rows) <= _FEW:
        return list(others)
    limit = min(row[0] for row in rows) + max(_WIDE * _off(rows), _NARROWEST)
    return [config for config in others if before[canonical.encode(config)][0] <= limit]


def _off(rows: Rows) -> float:
    """Return by how much a sample's gap to another is off, as a logarithm: what laps disagree about, one by one."""
    found = []
    for earlier, later in pairwise(zip(*rows, strict=True)):
        changes = [after - before for before, after in zip(earlier, later, strict=True)]
        usual = median(changes)
        found.append(sorted(abs(change - usual) for change in changes)[int(_MOST * len(changes))] / _MOST_ERRORS)
    return fmean(found) if found else inf


def _kept(gaps: Sequence[Gap], this: Round, off: float) -> list[Gap]:
    """Return who stays in: dropping one of a few on the word of a few laps saves little and may cost the best."""
    if this.keep == inf:
        return list(gaps)
    within = [gap for gap in gaps if gap.behind <= log(this.keep) + gap.error or (this.most and gap.ahead < _MOSTLY)]
    if this.most:
        return within
    near = sum(gap.behind <= max(off, _NARROWEST) for gap in within)
    return list(gaps[: max(near, min(len(within), _FEW), _PODIUM)])


def _is_settled(second: Gap) -> bool:
    """Return whether more laps would hardly change who leads, or hardly matter."""
    if second.behind > max(SURE * second.error, 2 * SETTLED):
        return second.ahead >= _AGREED
    return second.error <= SETTLED


def _lap_s(running: Sequence[Config], laps: Logs) -> float:
    return sum(exp(min(laps[canonical.encode(config)])) for config in running)


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


def _gaps(runners: Sequence[Config], laps: Logs, before: Logs) -> list[Gap]:
    """Return the runners best first."""
    keys = [canonical.encode(config) for config in runners]
    rows = [laps[key] for key in keys]
    if len(rows) <= _FEW and min(map(len, rows), default=0) >= _SEVERAL:
        found = _lap_by_lap(rows)
    else:
        found = _all_in_all([[*before.get(key, ()), *laps[key]] for key in keys])
    gaps = [Gap(config, *gap) for config, gap in zip(runners, found, strict=True)]
    return sorted(gaps, key=lambda gap: gap.behind)


def _room(runners: Sequence[Config], laps: Logs, before: Logs) -> float:
    """Return how far behind one of many may be and still be the best, by what all their laps disagree about."""
    rows = [[*before.get(key, ()), *laps[key]] for key in map(canonical.encode, runners)]
    return _WIDE * _off(rows) / sqrt(half_of(len(rows[0]))) if len(rows) > _FEW else inf


def _all_in_all(rows: Rows) -> list[tuple[float, float, float]]:
    """Return each runner's gap by the faster half of its samples, and its error by leaving out one lap at a time."""
    leader = min(rows, key=lower_half_mean, default=())
    return [(_apart(row, leader), _unsure(row, leader), _ahead(row, leader)) for row in rows]


def _ahead(row: Sequence[float], leader: Sequence[float]) -> float:
    return fmean(first < other for first, other in zip(leader, row, strict=True))


def _unsure(row: Sequence[float], leader: Sequence[float]) -> float:
    count = len(row)
    if count <= 2:
        return 0.0
    without = [_apart([*row[:i], *row[i + 1 :]], [*leader[:i], *leader[i + 1 :]]) for i in range(count)]
    return sqrt((count - 1) * pvariance(without)) * _inflation(count)


def _apart(row: Sequence[float], leader: Sequence[float]) -> float:
    return lower_half_mean(row) - lower_half_mean(leader)


def _lap_by_lap(rows: Rows) -> list[tuple[float, float, float]]:
    """Return each runner's gap by the median of its differences in the faster half of the laps, and their scatter."""
    paces = [fmean(lap) for lap in zip(*rows, strict=True)]
    # The middle lap is among the faster half: what is compared are differences within a lap, and few of them.
    quiet = sorted(range(len(paces)), key=lambda lap: paces[lap])[: (len(paces) + 1) // 2]
    scores = [median(row[lap] - paces[lap] for lap in quiet) for row in rows]
    leader = rows[scores.index(min(scores))]
    return [(*_behind([row[lap] - leader[lap] for lap in quiet]), _ahead(row, leader)) for row in rows]


def _behind(differences: Sequence[float]) -> tuple[float, float]:
    middle, count = median(differences), len(differences)
    scatter = median(abs(difference - middle) for difference in differences)
    # 1.4826 makes a median deviation a standard one, and a median is 1.25 times less certain than a mean.
    return middle, 1.25 * 1.4826 * scatter / sqrt(count) * _inflation(count)


def _inflation(count: int) -> float:
    return 1 + 3 / count  # an error known from a few laps is itself uncertain
