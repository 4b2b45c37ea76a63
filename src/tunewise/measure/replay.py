"""Replay: a measurer that answers from recorded trials, so that a whole tuning run takes milliseconds and no device."""

from collections.abc import Iterable
from math import inf

from tunewise.decision import Config, Failure, Outcome, Timing, Trial, canonical, merged


class Replay:
    """Answers from recorded trials, the same every time; a config that was never recorded is a constraints failure."""

    def __init__(self, trials: Iterable[Trial]) -> None:
        outcomes: dict[str, list[Outcome]] = {}
        for trial in trials:
            outcomes.setdefault(canonical.encode(trial.config), []).append(trial.outcome)
        self._outcomes = {key: merged(parts) for key, parts in outcomes.items()}

    def first(self, config: Config, best_s: float = inf) -> Outcome:
        """Return the recorded outcome as one sample."""
        outcome = self._recorded(config)
        return outcome if isinstance(outcome, Failure) else Timing((outcome.time_s,), outcome.compile_s)

    def sample(self, config: Config, n: int) -> Outcome:
        """Return the recorded time `n` times."""
        outcome = self._recorded(config)
        return outcome if isinstance(outcome, Failure) else Timing((outcome.time_s,) * n)

    def pair(self, incumbent: Config, challenger: Config, turns: int | None = None) -> tuple[float, float] | Failure:
        """Return the two recorded times, or the challenger's failure."""
        old, new = self._recorded(incumbent), self._recorded(challenger)
        if isinstance(new, Failure):
            return new
        return old if isinstance(old, Failure) else (old.time_s, new.time_s)

    def verify(self, config: Config, repeats: int = 1) -> Failure | None:
        """Return the recorded failure, or None."""
        outcome = self._recorded(config)
        return outcome if isinstance(outcome, Failure) else None

    def close(self) -> None:
        """Do nothing: there is nothing to stop."""

    def _recorded(self, config: Config) -> Outcome:
        return self._outcomes.get(canonical.encode(config), Failure("constraints", "not among the recorded configs"))
