"""Matching: which devices a rule is for, and how large a block may be."""

from collections.abc import Sequence
from dataclasses import dataclass

from tunewise.decision import Hardware
from tunewise.errors import InvalidSetting


@dataclass(frozen=True, slots=True)
class On:
    """The devices a heuristic is for: what is given must hold, what is left out may be anything."""

    kinds: tuple[str, ...] = ()  # such as "cpu", "cuda"
    names: tuple[str, ...] = ()  # parts of the device's name, such as "H100"
    capabilities: tuple[str, ...] = ()  # such as "9.0"; a newer device that is compatible with one of them will do

    def __post_init__(self) -> None:
        for name, such_as in (("kinds", "cpu"), ("names", "H100"), ("capabilities", "9.0")):
            words = getattr(self, name)
            if not isinstance(words, tuple | list) or not all(isinstance(word, str) for word in words):
                raise InvalidSetting(f"On: {name}={words!r} is not several words, such as {name}=({such_as!r},)")

    def why_not(self, hardware: Hardware) -> str | None:
        """Return why a device is not among these, or None if it is."""
        if self.kinds and hardware.kind not in self.kinds:
            return f"is for {' or '.join(self.kinds)}, not {hardware.kind}"
        if self.names and not any(name.lower() in hardware.name.lower() for name in self.names):
            return f"is for {' or '.join(self.names)}, not {hardware.name}"
        if self.capabilities and not set(self.capabilities) & {hardware.capability, *hardware.compatible}:
            return f"is for {' or '.join(self.capabilities)}, not {hardware.capability}"
        return None


ANYWHERE = On()


def ceil_div(size: int, step: int) -> int:
    """Return how many steps it takes to cover a size."""
    return -(-size // step)


def round_up(size: int, step: int) -> int:
    """Return the least multiple of `step` that covers a size."""
    return ceil_div(size, step) * step


def pow2_at_least(size: int) -> int:
    """Return the smallest power of two that covers a size."""
    return 1 << max(0, size - 1).bit_length()


def pow2_at_most(size: int) -> int:
    """Return the largest power of two that is not above a size of at least 1."""
    return 1 << (max(1, size).bit_length() - 1)


def clamped(block: int, dimension: int, least: int = 1) -> int:
    """Return a block no larger than the power of two that covers the dimension, and at least `least`.

    A larger block only computes padding; a tile that matrix instructions work on must not be below their own size.
    """
    return max(least, min(block, pow2_at_least(dimension)))


def at_most(numbers: Sequence[int], limit: float) -> int:
    """Return the largest of some numbers that is not above `limit`; the smallest where all are."""
    return max((number for number in numbers if number <= limit), default=min(numbers))
