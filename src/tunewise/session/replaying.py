"""Replay: one run of a strategy on a recording, without any device, scored against the best that was recorded."""

import random
import time
from collections.abc import Sequence
from dataclasses import dataclass
from math import inf

from tunewise.decision import Config, Outcome, Timing, Trial
from tunewise.errors import InvalidSetting
from tunewise.formats.recorded import Recording
from tunewise.search import Seed, Seeded, Strategy, make

_STUCK = 1_000  # asks in a row that bring nothing new: the strategy goes in circles


@dataclass(frozen=True, slots=True)
class Replayed:
    """How one run went: its place after every unique evaluation, and what the strategy itself cost.

    `curve` has the best time found so far over the recorded optimum, 1.0 being perfect; as long as every config has
    failed, it stands at the worst recorded time. It is shorter than the budget where the space was used up.
    """

    curve: tuple[float, ...]
    rows: tuple[int, ...]  # which trials of the recording were evaluated, in order
    overhead_s: float  # CPU seconds in the strategy: making it, telling it what is known, asking and telling

    def after(self, evaluations: int) -> float:
        """Return best / optimum after so many evaluations; a run that ended earlier stays where it was."""
        return self.curve[min(evaluations, len(self.curve)) - 1]

    def needed(self, factor: float) -> float:
        """Return the evaluations it took to get within `factor` of the optimum; infinite if it never did."""
        return next((n for n, value in enumerate(self.curve, 1) if value <= factor), inf)


def replay(
    recording: Recording,
    strategy_name: str,
    *,
    budget: int,
    seed: int = 0,
    priors: Sequence[Recording] = (),
    seeds: Sequence[Config] = (),
    noise: bool = False,
) -> Replayed:
    """Run a strategy on a recording, one config at a time, and return how it went; it depends on its seed only.

    Failed configs count as evaluations, and configs asked again do not. Each prior is told first, as trials of another
    origin. `seeds` are asked first, as those of one heuristic: the second only if the first one was not poor. With
    `noise` a config's told time is one of its recorded samples, and what is scored is the recorded time of the config
    that looks best. Raises InvalidSetting if a prior is the recording itself.
    """
    if budget < 1:
        raise InvalidSetting(f"budget={budget} leaves nothing to try; give at least 1")
    for prior in priors:
        if prior.times_s == recording.times_s:
            raise InvalidSetting(f"the prior {prior.name} is the recording {recording.name} itself; leave it out")
    watch = _Watch()
    with watch:
        strategy = make(strategy_name, recording.space, seed=seed, budget=budget)
        if seeds:
            strategy = Seeded(recording.space, [Seed(config, "seeds", False) for config in seeds], strategy, seed=seed)
        for prior in priors:
            strategy.tell(prior.trials, origin=prior.name)
    told = _noisy(recording, seed) if noise else recording.trials
    rows = _run(recording, strategy, told, budget, watch)
    return Replayed(_curve(recording, rows, told), tuple(rows), watch.spent_s)


class _Watch:
    """Adds up the CPU time of this process inside its blocks."""

    def __init__(self) -> None:
        self.spent_s = 0.0

    def __enter__(self) -> None:
        self._start_s = time.process_time()

    def __exit__(self, *_: object) -> None:
        self.spent_s += time.process_time() - self._start_s


def _run(recording: Recording, strategy: Strategy, told: Sequence[Trial], budget: int, watch: _Watch) -> list[int]:
    evaluated: dict[int, None] = {}
    in_vain = 0
    while len(evaluated) < budget and in_vain < _STUCK:
        with watch:
            asked = strategy.ask(1)
        if not asked:
            break
        row = recording.rows[recording.space.places(asked[0])]
        in_vain = in_vain + 1 if row in evaluated else 0
        evaluated[row] = None
        with watch:
            strategy.tell([told[row]])
    return list(evaluated)


def _noisy(recording: Recording, seed: int) -> list[Trial]:
    """Return the trials with one recorded sample each for a time; which one depends on the seed and the config."""
    rng = random.Random(f"samples of {seed}")
    pairs = zip(recording.trials, recording.samples_s, strict=True)
    return [_with_sample(trial, samples_s, rng.random()) for trial, samples_s in pairs]


def _with_sample(trial: Trial, samples_s: Sequence[float], chance: float) -> Trial:
    if not samples_s or not isinstance(trial.outcome, Timing):
        return trial
    sample_s = samples_s[int(chance * len(samples_s))]
    return Trial(trial.config, Timing((sample_s,), trial.outcome.compile_s), trial.source)


def _curve(recording: Recording, rows: Sequence[int], told: Sequence[Trial]) -> tuple[float, ...]:
    curve, seen_s, true_s = [], inf, recording.worst_s
    for row in rows:
        time_s = recording.times_s[row]
        if time_s is not None and _told_s(told[row].outcome) < seen_s:
            seen_s, true_s = _told_s(told[row].outcome), time_s
        curve.append(true_s / recording.optimum_s)
    return tuple(curve)


def _told_s(outcome: Outcome) -> float:
    return outcome.time_s if isinstance(outcome, Timing) else inf
