"""What counts as a right result."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

Args = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Check:
    """How candidates are checked before they may win: against the default, or against `reference` if given.

    Besides the arguments that are tuned, a candidate must be right on variants of them (array values shuffled; large
    values) and on `inputs`, such as ragged sizes. Turn `variants` off where the values of an array carry a promise,
    such as being sorted.
    """

    reference: Callable[..., Any] | None = None
    rtol: float = 1e-3
    atol: float = 1e-5  # scaled by the largest magnitude of the expected result
    inputs: Callable[..., Sequence[Args]] | None = None  # problem -> further argument tuples
    variants: bool = True
    compare: Callable[[Any, Any], str | None] | None = None  # (expected, result) -> reason, or None if right
    repeats: int = 64  # times the winner is checked again before it is believed
    is_on: bool = True


NO_CHECK = Check(is_on=False)
