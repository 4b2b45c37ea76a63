"""Scores: many replays of one strategy added up, over seeds and over spaces."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import exp, inf, log
from statistics import median_low

from tunewise.session.replaying import Replayed

MARKS = (10, 25, 50, 100, 200, 400, 800, 2000)


@dataclass(frozen=True, slots=True)
class SpaceScore:
    """How a strategy did on one recording, over all seeds.

    `best_over_optimum` is the geometric mean after so many evaluations. The evaluations `needed` to get within 5 and
    1 % are medians over the seeds, None where more than half of them never get there.
    """

    name: str
    optimum_s: float
    best_over_optimum: Mapping[int, float]
    to_5_percent: int | None
    to_1_percent: int | None
    overhead_ms: float  # own CPU time an evaluation
    curve: tuple[float, ...]  # geometric mean after every evaluation


@dataclass(frozen=True, slots=True)
class Score:
    """How a strategy did on all recordings: one score a space, and their geometric mean."""

    strategy: str
    budget: int
    seeds: int
    spaces: tuple[SpaceScore, ...]

    @property
    def geomean(self) -> dict[int, float]:
        """Best / optimum after so many evaluations, the geometric mean over spaces."""
        return {n: geomean(space.best_over_optimum[n] for space in self.spaces) for n in marks(self.budget)}

    @property
    def curve(self) -> list[float]:
        """Best / optimum after every evaluation, the geometric mean over spaces."""
        return [geomean(values) for values in zip(*(space.curve for space in self.spaces), strict=True)]

    @property
    def overhead_ms(self) -> float:
        """Own CPU time an evaluation, the mean over spaces."""
        return sum(space.overhead_ms for space in self.spaces) / len(self.spaces)


def marks(budget: int) -> tuple[int, ...]:
    """Return after how many evaluations a score is told; a budget too small for any of them is told at its end."""
    return tuple(n for n in MARKS if n <= budget) or (budget,)


def score_space(name: str, optimum_s: float, runs: Sequence[Replayed], budget: int) -> SpaceScore:
    """Return the score of a strategy's runs on one recording."""
    curve = tuple(geomean(run.after(n) for run in runs) for n in range(1, budget + 1))
    return SpaceScore(
        name,
        optimum_s,
        {n: curve[n - 1] for n in marks(budget)},
        _needed(runs, 1.05),
        _needed(runs, 1.01),
        1e3 * sum(run.overhead_s for run in runs) / sum(len(run.curve) for run in runs),
        curve,
    )


def geomean(values: Iterable[float]) -> float:
    """Return the geometric mean."""
    logs = [log(value) for value in values]
    return exp(sum(logs) / len(logs))


def _needed(runs: Sequence[Replayed], factor: float) -> int | None:
    needed = median_low(run.needed(factor) for run in runs)
    return None if needed == inf else int(needed)
