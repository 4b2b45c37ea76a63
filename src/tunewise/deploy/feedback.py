"""Feedback: how long a choice takes, in milliseconds, told by a function or timed by us."""

from collections.abc import Callable
from typing import Any

from tunewise.decision import Policy, lower_half_mean
from tunewise.decision.policy import Clock
from tunewise.measure.clocks import CLOCKS, calls_for, cost_of, time_calls

_SAMPLES = 5
_MIN_SAMPLE_S = 1e-3


class LocalFeedback:
    """Feedback that is there when it is asked for: `feedback_fn(choice)` returns the milliseconds of a choice."""

    def __init__(self, feedback_fn: Callable[[str], float]) -> None:
        self.feedback_fn = feedback_fn

    def __call__(self, choice: str) -> float:
        """Return the milliseconds of a choice."""
        return self.feedback_fn(choice)

    @classmethod
    def timed(cls, run: Callable[[str], Any], clock: Clock = "cpu") -> "LocalFeedback":
        """Return feedback that times `run(choice)` itself: a warm-up, then samples of at least a millisecond each."""
        _ticks(clock)  # one that there is not would be logged as the failure of every choice
        return cls(lambda choice: time_ms(run, choice, clock=clock))


def time_ms(function: Callable[..., Any], *args: Any, clock: Clock = "cpu") -> float:
    """Return the milliseconds of one call: the mean of the lower half of some samples, the first call not counted."""
    ticks = _ticks(clock)
    function(*args)
    calls = calls_for(time_calls(ticks, function, args, 1), _MIN_SAMPLE_S)
    cost_s = cost_of(ticks)
    samples = [time_calls(ticks, function, args, calls, cost_s) for _ in range(_SAMPLES)]
    return lower_half_mean(samples) * 1e3


def _ticks(clock: Clock) -> Callable[[], float]:
    return CLOCKS[Policy(clock=clock).clock]
