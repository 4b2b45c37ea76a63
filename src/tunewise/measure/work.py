"""What a measurer is given, and what it gives back."""

from collections.abc import Callable
from dataclasses import dataclass, field
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


class Measurer(Protocol):
    """Runs configs and times them. A misbehaving config becomes a Failure; only tunewise's own mistakes raise."""

    def first(self, config: Config) -> Outcome:
        """Prepare and launch a config for the first time and return one sample of a second, warm call.

        The launch is timed apart, as `compile_s`, and its result is checked on the arguments that are tuned.
        """

    def sample(self, config: Config, n: int) -> Outcome:
        """Return `n` samples, each the seconds of one call, averaged over enough calls to be timed well."""

    def verify(self, config: Config, repeats: int = 1) -> Failure | None:
        """Check the results on all inputs, `repeats` times; return what is wrong, or None."""

    def close(self) -> None:
        """Stop whatever was started; harmless to call twice."""
