"""Policies: how something is measured. Times under different policies are never compared."""

import warnings
from dataclasses import dataclass
from typing import Any, Literal, get_args

from tunewise.errors import InvalidPolicy, MeasureWarning
from tunewise.settings import brief, is_time

Clock = Literal["cpu", "wall", "device"]
Cache = Literal["warm", "cold"]
Isolation = Literal["worker", "fresh", "none"]
ADVISED_STEPS = 5
_TOO_MUCH = 2**63  # for the system, as a limit


@dataclass(frozen=True, slots=True)
class Policy:
    """How candidates are run and timed.

    The first group is part of what a measurement *is*: it enters the key. The second only bounds and protects the run.
    `steps` fixes the number of samples of the finalists (and `warmup_steps` the calls before them); left at None, the
    race decides.
    """

    clock: Clock = "cpu"  # CPU time (single-threaded work), wall time (threads, waiting), or what the device reports
    cache: Cache = "warm"
    threads: int = 1
    warmup_steps: int | None = None
    steps: int | None = None

    isolation: Isolation = "worker"
    timeout_s: float = 10.0  # for one call
    compile_timeout_s: float = 60.0
    memory_limit_bytes: int | None = None  # None: half of what the machine has free
    min_sample_s: float = 1e-4  # shorter calls are repeated until a sample lasts this long

    def __post_init__(self) -> None:
        _one_of("clock", self.clock, get_args(Clock))
        _one_of("cache", self.cache, get_args(Cache))
        _one_of("isolation", self.isolation, get_args(Isolation))
        for name in ("timeout_s", "compile_timeout_s", "min_sample_s"):
            value = getattr(self, name)
            if not is_time(value):
                raise InvalidPolicy(f"{name}={brief(value)} is not a positive number of seconds")
        for name, least in (("threads", 1), ("steps", 1), ("warmup_steps", 0), ("memory_limit_bytes", 1 << 20)):
            value = getattr(self, name)
            is_open = value is None and name != "threads"
            if not is_open and (type(value) is not int or not least <= value < _TOO_MUCH):
                raise InvalidPolicy(f"{name}={brief(value)} is not a whole number of at least {least} and below 2**63")
        if self.steps is not None and self.steps < ADVISED_STEPS:
            warnings.warn(
                f"steps={self.steps} is too few to tell close configs apart; at least {ADVISED_STEPS} are advised",
                MeasureWarning,
                stacklevel=3,
            )

    @property
    def key(self) -> dict[str, Any]:
        """The fields that make two measurements comparable."""
        return {name: getattr(self, name) for name in ("clock", "cache", "threads", "warmup_steps", "steps")}


def _one_of(name: str, value: object, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        raise InvalidPolicy(f"{name}={value!r} is not one of {', '.join(allowed)}")
