"""What counts as a right result."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from tunewise.errors import InvalidDecision

Args = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Check:
    """How candidates are checked before they may win: against the default, or against `reference` if given.

    Besides the arguments that are tuned, a candidate must be right on variants of them (array values shuffled; large
    values) and on `inputs`, such as ragged sizes. Turn `variants` off where the values of an array carry a promise,
    such as being sorted.
    """

    reference: Callable[..., Any] | None = None
    rtol: float | None = None  # None: as the precision of the result allows (1e-4 for float32)
    atol: float | None = None  # as a share of the largest magnitude of the expected result
    inputs: Callable[..., Sequence[Args]] | None = None  # problem -> further argument tuples
    variants: bool = True
    compare: Callable[[Any, Any], str | None] | None = None  # (expected, result) -> reason, or None if right
    repeats: int = 64  # times the winner is checked again before it is believed
    is_on: bool = True

    def __post_init__(self) -> None:
        for name in ("rtol", "atol"):
            value = getattr(self, name)
            if value is not None and (not isinstance(value, int | float) or not 0 <= value < float("inf")):
                raise InvalidDecision(f"check: {name}={value!r} is not a tolerance such as 1e-4")
        if type(self.repeats) is not int or self.repeats < 0:
            raise InvalidDecision(f"check: repeats={self.repeats!r} is not a whole number of at least 0")
        for name in ("reference", "inputs", "compare"):
            value = getattr(self, name)
            if value is not None and not callable(value):
                raise InvalidDecision(f"check: {name}={value!r} is not a function")


NO_CHECK = Check(is_on=False)
