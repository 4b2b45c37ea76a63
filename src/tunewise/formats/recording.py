"""A recording: every config of a space with what was measured of it, so that searching it needs no device."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import inf
from typing import Any

from tunewise.decision import Config, Failure, Outcome, Places, Scalar, Space, Timing, Trial, canonical
from tunewise.errors import TunewiseError


@dataclass(frozen=True)
class Row:
    """One recorded config: what became of it, and the single samples behind its time, if they are known."""

    config: Config
    outcome: Outcome
    samples_s: tuple[float, ...] = ()


@dataclass(frozen=True)
class Recording:
    """What was recorded of one kernel on one device; the space holds exactly the recorded configs.

    A trial carries the recorded time as its one sample, so that nothing about it is worked out anew; `samples_s` has
    the single samples behind it, in the order of the trials, empty where the file tells none or the config failed.
    """

    name: str
    space: Space
    trials: tuple[Trial, ...]
    kernel: str = ""
    device: str = ""
    samples_s: tuple[tuple[float, ...], ...] = ()
    remark: str = ""  # what the reader had to leave out, for people

    @cached_property
    def rows(self) -> Mapping[Places, int]:
        """The number of each config's trial, by the config's places in the space."""
        return {self.space.places(trial.config): row for row, trial in enumerate(self.trials)}

    @cached_property
    def times_s(self) -> tuple[float | None, ...]:
        """The time of every trial; None where it failed."""
        return tuple(t.outcome.time_s if isinstance(t.outcome, Timing) else None for t in self.trials)

    @cached_property
    def optimum_s(self) -> float:
        """The shortest recorded time."""
        return min(time_s for time_s in self.times_s if time_s is not None)

    @cached_property
    def worst_s(self) -> float:
        """The longest recorded time."""
        return max(time_s for time_s in self.times_s if time_s is not None)


def recording(
    name: str,
    rows: Iterable[Row],
    *,
    order: Mapping[str, Sequence[Scalar]] | None = None,
    kernel: str = "",
    device: str = "",
    remark: str = "",
) -> Recording:
    """Return rows as a recording; of two rows with one config the later one stands.

    `order` gives the values of parameters in their proper order. Raises ValueError where nothing was timed or the
    configs have no space in common.
    """
    latest = {canonical.encode(row.config): row for row in rows}
    kept = list(latest.values())
    if not any(isinstance(row.outcome, Timing) for row in kept):
        raise ValueError(f"not one of its {len(kept)} configs has a time")
    try:
        space = Space.of([row.config for row in kept], order)
    except TunewiseError as error:
        raise ValueError(str(error)) from None
    trials = tuple(Trial(row.config, row.outcome, source=name) for row in kept)
    return Recording(name, space, trials, kernel, device, tuple(row.samples_s for row in kept), remark)


class Spelling:
    """The values of one parameter as numbers and words, each the same object every time it comes.

    A file may list 1 and record 1.0: what is `listed` counts.
    """

    def __init__(self, listed: Sequence[Any] = ()) -> None:
        self.listed = [plain(value) for value in listed]
        self._equal = {(isinstance(value, bool), value): value for value in self.listed}
        self._known: dict[tuple[type, Any], Scalar] = {}

    def __call__(self, value: Any) -> Scalar:
        """Return a value as a number or a word."""
        key = (type(value), canonical.encode(value) if isinstance(value, list | dict) else value)
        if key not in self._known:
            spelled = plain(value)
            self._known[key] = self._equal.get((isinstance(spelled, bool), spelled), spelled)
        return self._known[key]


def plain(value: Any) -> Scalar:
    """Return a value of a config as a number or a word; lists and objects become their JSON."""
    if isinstance(value, list | tuple | dict):
        return canonical.encode(value)
    return canonical.scalar(value)


def number(value: object) -> float | None:
    """Return a number as it is, and None for anything else; a switch is no number."""
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def times(samples: Any, unit_s: float) -> tuple[float, ...]:
    """Return those of some samples that are times, in seconds; none where there is no list of them."""
    listed = samples if isinstance(samples, list) else ()
    return tuple([sample * unit_s for sample in listed if type(sample) in (float, int) and 0 < sample < inf])


def timed(time_s: float, compile_s: float | None) -> Outcome:
    """Return the outcome that says exactly `time_s`; a time that no clock shows is a failure."""
    if not 0 < time_s < inf:
        return Failure("runtime", f"recorded with the time {time_s!r}")
    return Timing((time_s,), compile_s if compile_s is not None and 0 < compile_s < inf else None)
