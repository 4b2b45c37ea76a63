"""Where a library's switch stands: which passes are tuned and with how much effort, as plain values."""

import re
import warnings
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any, Literal, get_args

from tunewise.decision.policy import ADVISED_STEPS
from tunewise.errors import InvalidSetting, MeasureWarning
from tunewise.session import context

Pass = Literal["forward", "backward"]
PASSES: tuple[Pass, ...] = get_args(Pass)
STANDARD_BUDGET = 40  # configs: on small spaces all of them, on large ones what a first call can bear

_EFFORT = ("is_on", "thorough", "warmup_steps", "steps")
_COMMON = ("accept", "background", "budget", "seconds", "total_seconds")
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_.-]*")
_WORDS = ("forward", "backward", "both", "thorough", "background")
_OFF, _ON = ("0", "off"), ("1", "on")


@dataclass(frozen=True, slots=True)
class Effort:
    """How one pass is tuned; steps that are None are left to the race."""

    is_on: bool = False
    thorough: bool = False
    warmup_steps: int | None = None
    steps: int | None = None


@dataclass(frozen=True, slots=True)
class Position:
    """Where the switch stands. A time that is None is not bounded."""

    forward: Effort = field(default_factory=Effort)
    backward: Effort = field(default_factory=Effort)
    accept: frozenset[str] = frozenset()
    background: bool = False
    budget: int = STANDARD_BUDGET
    seconds: float | None = None
    total_seconds: float | None = None

    def __post_init__(self) -> None:
        for name in PASSES:
            _check_effort(name, self.effort(name))
        _check_flag("background", self.background)
        context.check_bounds(self.accept, self.bounds)

    @property
    def bounds(self) -> dict[str, Any]:
        """What a tuning run may spend, as keywords of `Frame`."""
        return {"budget": self.budget, "seconds": self.seconds, "total_seconds": self.total_seconds}

    def effort(self, which: Pass) -> Effort:
        """Return how a pass is tuned."""
        return self.forward if which == "forward" else self.backward

    @property
    def is_on(self) -> bool:
        """Whether any pass is tuned."""
        return self.forward.is_on or self.backward.is_on

    def turned(
        self,
        forward_pass: bool | None = None,
        backward_pass: bool | None = None,
        thorough_mode_forward: bool | None = None,
        thorough_mode_backward: bool | None = None,
        warmup_steps_forward: int | None = None,
        warmup_steps_backward: int | None = None,
        steps_forward: int | None = None,
        steps_backward: int | None = None,
        *,
        accept: Iterable[str] | str | None = None,
        background: bool | None = None,
        budget: int | None = None,
        seconds: float | None = None,
        total_seconds: float | None = None,
    ) -> "Position":
        """Return the position after a turn; None leaves a setting as it is. Raises InvalidSetting for nonsense."""
        forward = _given(_EFFORT, forward_pass, thorough_mode_forward, warmup_steps_forward, steps_forward)
        backward = _given(_EFFORT, backward_pass, thorough_mode_backward, warmup_steps_backward, steps_backward)
        rungs = None if accept is None else _rungs(accept)
        changes = _given(_COMMON, rungs, background, budget, seconds, total_seconds)
        turned = replace(
            self, forward=replace(self.forward, **forward), backward=replace(self.backward, **backward), **changes
        )
        for name, steps in (("steps_forward", steps_forward), ("steps_backward", steps_backward)):
            _warn_of_few(name, steps)
        return turned


def prefix_of(library: str) -> str:
    """Return the prefix of a library's environment variables: `my-lib.x` reads MY_LIB_X_AUTOTUNE.

    Raises InvalidSetting unless the name is of letters, digits, `_`, `-` and `.`, and begins with a letter.
    """
    if not isinstance(library, str) or not _NAME.fullmatch(library):
        raise InvalidSetting(
            f"{library!r} is no name of a library: letters, digits, '_', '-' and '.' may follow a first letter"
        )
    return re.sub(r"[^A-Za-z0-9]", "_", library).upper()


def read_position(variable: str, text: str, standard: Position) -> Position:
    """Return the position that an environment variable asks for, where `standard` is the library's own and off.

    Raises InvalidSetting for other words.
    """
    words = [word.strip().lower() for word in text.split(",") if word.strip()]
    if words in ([word] for word in _OFF):
        return standard
    words = ["both" if word in _ON else word for word in words]
    if not words or not set(words) <= set(_WORDS):
        raise InvalidSetting(
            f"{variable}={text!r} is neither 0 nor 1 nor words of {', '.join(_WORDS)}, such as forward,thorough"
        )
    are_all = "both" in words or not set(PASSES) & set(words)
    forward, backward = (Effort(are_all or name in words, thorough="thorough" in words) for name in PASSES)
    return replace(
        standard, forward=forward, backward=backward, background=standard.background or "background" in words
    )


def parse_pass(name: str) -> Pass:
    """Return the pass of a name; raises InvalidSetting for any other word."""
    for known in PASSES:
        if name == known:
            return known
    raise InvalidSetting(f"pass {name!r} is not one of {', '.join(PASSES)}")


def _given(names: Iterable[str], *values: Any) -> dict[str, Any]:
    return {name: value for name, value in zip(names, values, strict=True) if value is not None}


def _rungs(accept: Iterable[str] | str) -> frozenset[str]:
    try:
        return frozenset({accept} if isinstance(accept, str) else accept)
    except TypeError:
        raise InvalidSetting(f"accept={accept!r} is not a list of rungs, such as ['learned', 'near']") from None


def _check_effort(name: Pass, effort: Effort) -> None:
    _check_flag(f"{name}_pass", effort.is_on)
    _check_flag(f"thorough_mode_{name}", effort.thorough)
    for count, least in (("warmup_steps", 0), ("steps", 1)):
        value = getattr(effort, count)
        if value is not None and (type(value) is not int or value < least):
            raise InvalidSetting(f"{count}_{name}={value!r} is not a whole number of at least {least}")


def _check_flag(name: str, value: object) -> None:
    if not isinstance(value, bool):
        raise InvalidSetting(f"{name}={value!r} is neither True nor False")


def _warn_of_few(name: str, steps: int | None) -> None:
    if steps is not None and steps < ADVISED_STEPS:
        said = f"{name}={steps} is too few to tell close configs apart; at least {ADVISED_STEPS} are advised"
        warnings.warn(said, MeasureWarning, stacklevel=4)
