"""Parameters of a space: named, typed, ordered lists of values, some far too long to write out."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from math import factorial
from typing import Literal, overload

from tunewise.errors import InvalidSpace

Scalar = int | float | str | bool | None
Value = Scalar | tuple[Scalar, ...]
Kind = Literal["list", "pow2", "integer", "boolean", "permutation"]


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

    def rank(self, value: tuple[Scalar, ...]) -> int | None:
        """Return the place of an order among all orders, or None if it is not one of them."""
        left, rank = list(self.items), 0
        if len(value) != len(left):
            return None
        for item in value:
            if item not in left:
                return None
            rank += left.index(item) * factorial(len(left) - 1)
            left.remove(item)
        return rank


@dataclass(frozen=True)
class Param:
    """One dimension of a space. `tw.pow2(8, 64)` and a plain list become one when the space gives it a name."""

    name: str
    values: Sequence[Value]
    kind: Kind = "list"
    _places: dict[tuple[bool, Value], int] | None = field(default=None, compare=False, repr=False)

    def __len__(self) -> int:
        return len(self.values)

    def __iter__(self) -> Iterator[Value]:
        return iter(self.values)

    @property
    def is_ordered(self) -> bool:
        """Whether the values are numbers on a scale, so that neighbours and nearest values mean something."""
        return self.kind in ("pow2", "integer") or (self.kind == "list" and _is_increasing(self.values))

    def index(self, value: object) -> int | None:
        """Return the place of a value, or None if the parameter does not have it. True is not 1, and 1.0 is not 1."""
        if isinstance(value, list):  # JSON knows no tuples
            value = tuple(value)
        if isinstance(self.values, Permutations):
            return self.values.rank(value) if isinstance(value, tuple) else None
        if isinstance(self.values, range):
            return self.values.index(value) if type(value) is int and value in self.values else None
        assert self._places is not None
        try:
            place = self._places.get((isinstance(value, bool), value))  # type: ignore[arg-type]
        except TypeError:  # an unhashable value is no value of ours
            return None
        return place if place is not None and type(self.values[place]) is type(value) else None

    def nearest(self, value: object) -> Value | None:
        """Return the legal value closest to `value` on a scale, or None where there is no scale to measure on."""
        place = self.index(value)
        if place is not None:
            return self.values[place]
        if not self.is_ordered or isinstance(value, bool) or not isinstance(value, int | float):
            return None
        if value != value:
            return None
        if isinstance(self.values, range):
            span = self.values
            return span[min(len(span) - 1, max(0, round((min(max(value, span[0]), span[-1]) - span[0]) / span.step)))]
        return min(self.values, key=lambda known: abs(known - value))  # type: ignore[operator]

    def neighbors(self, place: int) -> list[int]:
        """Return the places one move away: next door on a scale, one swap in an order, anything else otherwise."""
        if isinstance(self.values, Permutations):
            return self._swaps(place)
        if self.is_ordered:
            return [near for near in (place - 1, place + 1) if 0 <= near < len(self.values)]
        return [other for other in range(len(self.values)) if other != place]

    def encode(self, place: int) -> list[float]:
        """Return numbers in [0, 1] for a model: a scale as one number, a set as one-hot, an order as positions."""
        count = len(self.values)
        if isinstance(self.values, Permutations):
            order = self.values[place]
            assert isinstance(order, tuple)
            return [order.index(item) / max(1, len(order) - 1) for item in self.values.items]
        if self.is_ordered or self.kind == "boolean":
            return [place / max(1, count - 1)]
        return [1.0 if place == other else 0.0 for other in range(count)]

    def _swaps(self, place: int) -> list[int]:
        orders = self.values
        assert isinstance(orders, Permutations)
        order = orders[place]
        assert isinstance(order, tuple)
        places = []
        for left in range(len(order)):
            for right in range(left + 1, len(order)):
                swapped = list(order)
                swapped[left], swapped[right] = swapped[right], swapped[left]
                rank = orders.rank(tuple(swapped))
                assert rank is not None
                places.append(rank)
        return sorted(places)


def pow2(low: int, high: int) -> Param:
    """Return the powers of two from `low` to `high`, both included."""
    for end in (low, high):
        if type(end) is not int or end < 1 or end & (end - 1):
            raise InvalidSpace(f"pow2({low!r}, {high!r}): {end!r} is not a power of two")
    if low > high:
        raise InvalidSpace(f"pow2({low}, {high}) is empty: the first bound must not exceed the second")
    return Param("", tuple(1 << e for e in range(low.bit_length() - 1, high.bit_length())), "pow2")


def integer(low: int, high: int, step: int = 1) -> Param:
    """Return the whole numbers from `low` to `high`, both included, in steps."""
    if any(type(n) is not int for n in (low, high, step)) or step < 1 or low > high:
        raise InvalidSpace(f"integer({low!r}, {high!r}, {step!r}) needs whole numbers with low <= high and step >= 1")
    return Param("", range(low, high + 1, step), "integer")


def boolean() -> Param:
    """Return the switch (False, True)."""
    return Param("", (False, True), "boolean")


def permutation(items: Sequence[Scalar]) -> Param:
    """Return all orders of `items`, such as the order of three loops."""
    if len(set(items)) != len(items) or not items:
        raise InvalidSpace(f"permutation({list(items)!r}) needs at least one item and no item twice")
    return Param("", Permutations(tuple(items)), "permutation")


def named(name: str, values: Param | Sequence[Scalar]) -> Param:
    """Return the parameter `name`, from a typed parameter or a plain list; raises InvalidSpace if it cannot be one."""
    if not isinstance(name, str) or not name.isidentifier():
        raise InvalidSpace(f"parameter name {name!r} is not an identifier such as 'tile_m'")
    if isinstance(values, Param):
        return _indexed(name, values.values, values.kind)
    if isinstance(values, str | bytes) or not isinstance(values, Sequence):
        raise InvalidSpace(f"{name}={values!r} is not a list of values; write [{values!r}] for a single one")
    return _indexed(name, tuple(values), "list")


def _indexed(name: str, values: Sequence[Value], kind: Kind) -> Param:
    if isinstance(values, range | Permutations):
        return Param(name, values, kind)
    if not values:
        raise InvalidSpace(f"{name} has no values: give it at least one")
    places: dict[tuple[bool, Value], int] = {}
    for place, value in enumerate(values):
        if not isinstance(value, int | float | str | None) or value != value or value in (float("inf"), -float("inf")):
            raise InvalidSpace(f"{name} has the value {value!r}, which is not a finite number, a word, a bool or None")
        if places.setdefault((isinstance(value, bool), value), place) != place:
            raise InvalidSpace(f"{name} has the value {value!r} twice")
    return Param(name, values, kind, places)


def _is_increasing(values: Sequence[Value]) -> bool:
    numbers = [v for v in values if isinstance(v, int | float) and not isinstance(v, bool)]
    return len(numbers) == len(values) and all(a < b for a, b in pairwise(numbers))
