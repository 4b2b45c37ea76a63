"""What a measurer is given, and what it gives back."""

from collections.abc import Callable
from dataclasses import dataclass, field
from math import inf
from typing import Any, Protocol

from tunewise.decision import Args, Check, Config, Failure, Outcome, Policy


@dataclass(frozen=True)
class Work:
    """One decision on one problem, ready to run: all a measurer needs to know, and nothing of where it came from."""

    prepare: Callable[[Config], Callable[..., Any]]  # config -> the function to call on `args`; building happens here
    args: Args
    default: Config
    check: Check = field(default_factory=Check)
    inputs: tuple[Args, ...] = ()  # further arguments that results are checked on
    writes: tuple[int, ...] = ()  # places of arguments that the function writes its result into
    policy: Policy = field(default_factory=Policy)
    is_prebuilt: bool = False  # nothing is compiled during a launch, so even the first one can be believed


class Measurer(Protocol):
    """Runs configs and times them. A misbehaving config becomes a Failure; only tunewise's own mistakes raise."""

    def first(self, config: Config, best_s: float = inf) -> Outcome:
        """Prepare and launch a config for the first time and return one sample of a second, warm call.

        The launch is timed apart, as `compile_s`, and its result is checked on the arguments that are tuned. A launch
        that is hopeless beside `best_s` is not repeated where nothing is compiled during a launch: it is the sample.
        """

    def sample(self, config: Config, n: int) -> Outcome:
        """Return `n` samples, each the seconds of one call, averaged over enough calls to be timed well."""

    def pair(self, incumbent: Config, challenger: Config, turns: int | None = None) -> tuple[float, float] | Failure:
        """Time two configs by turns and return one number of seconds each; a Failure is the challenger's.

        With `turns` left open there are as many as it takes to be steady: short ones, so that whatever disturbs the
        machine disturbs both.
        """

    def verify(self, config: Config, repeats: int = 1) -> Failure | None:
        """Check the results on all inputs, `repeats` times; return what is wrong, or None."""

    def close(self) -> None:
        """Stop whatever was started; harmless to call twice."""
