"""Parameters of a space: named, typed, ordered lists of values, some far too long to write out."""

import reprlib
import sys
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, pairwise
from math import factorial
from typing import Any, Literal, overload

from tunewise.decision import canonical
from tunewise.errors import InvalidSpace

Scalar = int | float | str | bool | None
Value = Scalar | tuple[Scalar, ...]
Kind = Literal["list", "pow2", "integer", "boolean", "permutation"]

MAX_VALUES = 1_000_000  # of a list that is written out
MAX_ITEMS = 20  # 20! orders still have a length that Python can say
_EXACT = (int, str, float, bool, type(None))


@dataclass(frozen=True)
class Permutations(Sequence[Value]):
    """All orders of some items, counted in lexicographic order and never listed."""

    items: tuple[Scalar, ...]

    def __len__(self) -> int:
        return factorial(len(self.items))

    @overload
    def __getitem__(self, index: int) -> Value: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Value]: ...
    def __getitem__(self, index: int | slice) -> Value | Sequence[Value]:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        if not -len(self) <= index < len(self):
            raise IndexError(index)
        rest, left, picked = index % len(self), list(self.items), []
        for place in range(len(left) - 1, -1, -1):
            which, rest = divmod(rest, factorial(place))
            picked.append(left.pop(which))
        return tuple(picked)

    def __contains__(self, value: object) -> bool:
        return isinstance(value, tuple) and self.rank(value) is not None

    def rank(self, value: tuple[object, ...]) -> int | None:
        """Return the place of an order among all orders, or None if it is not one of them."""
        left, rank = [(type(item), item) for item in self.items], 0
        if len(value) != len(left):
            return None
        for item in value:
            typed = (type(item), item)  # True is not 1
            if typed not in left:
                return None
            rank += left.index(typed) * factorial(len(left) - 1)
            left.remove(typed)
        return rank


@dataclass(frozen=True)
class Param:
    """One dimension of a space. `tw.pow2(8, 64)` and a plain list become one when the space gives it a name."""

    name: str
    values: Sequence[Value]
    kind: Kind = "list"

    def __len__(self) -> int:
        return len(self.values)

    def __iter__(self) -> Iterator[Value]:
        return iter(self.values)

    @cached_property
    def is_ordered(self) -> bool:
        """Whether the values are numbers on a scale, so that neighbours and nearest values mean something."""
        return isinstance(self.values, range) or (isinstance(self.values, tuple) and _is_increasing(self.values))

    def index(self, value: object) -> int | None:
        """Return the place of a value, or None if the parameter does not have it. True is not 1, and 1.0 is not 1."""
        if isinstance(self.values, tuple) and type(value) in _EXACT:  # a value as it stands in a list: the usual case
            return self._places.get((type(value), value))  # type: ignore[arg-type]
        if isinstance(value, list | tuple):  # JSON knows no tuples
            orders = self.values
            return orders.rank(tuple(map(_plain, value))) if isinstance(orders, Permutations) else None
        value = _plain(value)
        if isinstance(self.values, range):
            return self.values.index(value) if type(value) is int and value in self.values else None
        return self._places.get((type(value), value)) if isinstance(value, int | float | str | None) else None

    def nearest(self, value: object) -> Value | None:
        """Return the legal value closest to `value` on a scale, or None where there is no scale to measure on."""
        place = self.nearest_place(value)
        return None if place is None else self.values[place]

    def nearest_place(self, value: object) -> int | None:
        """Return the place of the nearest value (of two as near, the earlier), or None where there is no scale."""
        place = self.index(value)
        if place is not None:
            return place
        value = _plain(value)
        if not self.is_ordered or isinstance(value, bool) or not isinstance(value, int | float) or value != value:
            return None
        numbers: Sequence[Any] = self.values
        above = _first_at_or_above(numbers, value)
        if above in (0, len(numbers)):
            return min(above, len(numbers) - 1)
        return above if numbers[above] - value < value - numbers[above - 1] else above - 1

    def neighbors(self, place: int) -> list[int]:
        """Return the places one move away: next door on a scale, one swap in an order, anything else otherwise."""
        if isinstance(self.values, Permutations):
            return _swaps(self.values, place)
        if self.is_ordered:
            return [near for near in (place - 1, place + 1) if 0 <= near < len(self.values)]
        return [other for other in range(len(self.values)) if other != place]

    def encode(self, place: int) -> list[float]:
        """Return numbers in [0, 1] for a model: a scale as one number, a set as one-hot, an order as positions."""
        count = len(self.values)
        if isinstance(self.values, Permutations):
            order = self.values[place]
            assert isinstance(order, tuple)
            positions = {(type(item), item): position for position, item in enumerate(order)}
            return [positions[type(item), item] / max(1, len(order) - 1) for item in self.values.items]
        if self.is_ordered or self.kind == "boolean":
            return [place / max(1, count - 1)]
        return [1.0 if place == other else 0.0 for other in range(count)]

    @cached_property
    def _places(self) -> dict[tuple[type, Value], int]:
        return {(type(value), value): place for place, value in enumerate(self.values)}


def pow2(low: int, high: int) -> Param:
    """Return the powers of two from `low` to `high`, both included."""
    for end in (low, high):
        if type(end) is not int or not 1 <= end <= canonical.INT_MAX or end & (end - 1):
            raise InvalidSpace(f"pow2({low!r}, {high!r}): {end!r} is not a power of two below 2**64")
    if low > high:
        raise InvalidSpace(f"pow2({low}, {high}) is empty: the first bound must not exceed the second")
    return Param("", tuple(1 << e for e in range(low.bit_length() - 1, high.bit_length())), "pow2")


def integer(low: int, high: int, step: int = 1) -> Param:
    """Return the whole numbers from `low` to `high`, both included, in steps."""
    if any(type(n) is not int for n in (low, high, step)) or step < 1 or low > high:
        raise InvalidSpace(f"integer({low!r}, {high!r}, {step!r}) needs whole numbers with low <= high and step >= 1")
    if low < canonical.INT_MIN or high > canonical.INT_MAX or (high - low) // step >= sys.maxsize:
        raise InvalidSpace(f"integer({low!r}, {high!r}, {step!r}) goes beyond 64 bits")
    return Param("", range(low, high + 1, step), "integer")


def boolean() -> Param:
    """Return the switch (False, True)."""
    return Param("", (False, True), "boolean")


def permutation(items: Sequence[Scalar]) -> Param:
    """Return all orders of `items`, such as the order of three loops."""
    plain = _scalars("permutation", tuple(items) if isinstance(items, str) else items)
    if len(plain) > MAX_ITEMS:
        raise InvalidSpace(f"permutation of {len(plain)} items has too many orders; at most {MAX_ITEMS} items")
    return Param("", Permutations(plain), "permutation")


def named(name: str, values: Param | Sequence[Scalar]) -> Param:
    """Return the parameter `name`, from a typed parameter or a plain list; raises InvalidSpace if it cannot be one."""
    if not isinstance(name, str) or not name.isidentifier():
        raise InvalidSpace(f"parameter name {name!r} is not an identifier such as 'tile_m'")
    kind: Kind = values.kind if isinstance(values, Param) else "list"
    held: Any = values.values if isinstance(values, Param) else values
    if isinstance(held, Permutations):
        return Param(str(name), held, kind)
    if isinstance(held, range) and held.step > 0 and held:
        return Param(str(name), integer(held[0], held[-1], held.step).values, "integer")
    return Param(str(name), _scalars(name, held), kind)


def _scalars(name: str, values: Any) -> tuple[Scalar, ...]:
    if isinstance(values, str | bytes) or not isinstance(values, Sequence):
        raise InvalidSpace(f"{name}={reprlib.repr(values)} is not a list of values such as [8, 16]")
    if not values:
        raise InvalidSpace(f"{name} has no values: give it at least one")
    if len(values) > MAX_VALUES:
        raise InvalidSpace(f"{name} has {len(values)} values, more than the {MAX_VALUES} of a list; use integer(...)")
    seen: set[tuple[bool, Scalar]] = set()
    plain = []
    for given in values:
        try:
            value = canonical.scalar(given)
        except ValueError as error:
            raise InvalidSpace(f"{name} has the value {reprlib.repr(given)}, which {error}") from None
        if (isinstance(value, bool), value) in seen:  # 1 and 1.0 look alike in every rule: one of them is a slip
            raise InvalidSpace(f"{name} has the value {value!r} twice")
        seen.add((isinstance(value, bool), value))
        plain.append(value)
    return tuple(plain)


def _plain(value: object) -> object:
    try:
        return canonical.scalar(value)
    except ValueError:
        return value


def _first_at_or_above(numbers: Sequence[Any], value: float) -> int:
    if not isinstance(numbers, range):
        return bisect_left(numbers, value)
    if value > numbers[-1]:
        return len(numbers)
    return 0 if value <= numbers[0] else -int((numbers[0] - value) // numbers.step)


def _swaps(orders: Permutations, place: int) -> list[int]:
    order = orders[place]
    assert isinstance(order, tuple)
    places = []
    for left, right in combinations(range(len(order)), 2):
        swapped = list(order)
        swapped[left], swapped[right] = swapped[right], swapped[left]
        rank = orders.rank(tuple(swapped))
        assert rank is not None
        places.append(rank)
    return sorted(places)


def _is_increasing(values: Sequence[Value]) -> bool:
    numbers = [v for v in values if isinstance(v, int | float) and not isinstance(v, bool)]
    return len(numbers) == len(values) and all(a < b for a, b in pairwise(numbers))
