"""Values of expressions for many configs at once: what numpy computes exactly as Python does, and what it does not."""

import ast
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

SAFE = 1 << 62  # whole numbers below this cannot overflow unseen in one more addition
EXACT = 1 << 53  # whole numbers up to this are floats too


class Unvectorised(Exception):
    """Numpy would not compute this as Python does."""


@dataclass(frozen=True)
class Vector:
    """The values of an expression: bool, int64 (within its bounds) or float64; `bad` where Python gives none."""

    array: Array
    bad: Array | None = None
    low: int = 0
    high: int = 0

    @property
    def is_float(self) -> bool:
        """Whether the values are floats."""
        return self.array.dtype.kind == "f"

    @property
    def truth(self) -> Array:
        """The truth value of every value."""
        return self.array if self.array.dtype.kind == "b" else self.array != 0


def fits(low: int, high: int, limit: int = SAFE) -> bool:
    """Return whether both bounds are within a limit, of 64 bits unless told."""
    return -limit <= low and high <= limit


def either(one: Array | None, other: Array | None) -> Array | None:
    """Return the rows that are in one of two sets; None is an empty one."""
    if one is None:
        return other
    return one if other is None else one | other


def number(vector: Vector) -> Vector:
    """Return booleans as 0 and 1: in Python, they are."""
    if vector.array.dtype.kind != "b":
        return vector
    return Vector(vector.array.astype(np.int64), vector.bad, 0, 1)


def _floats(vector: Vector) -> Array:
    """Return the values as floats; refused where that would round a whole number."""
    if not vector.is_float and not fits(vector.low, vector.high, EXACT):
        raise Unvectorised
    return _as_float(vector.array)


def _as_float(array: Array) -> Array:
    return array.astype(np.float64, copy=False)


def _bounded(array: Array, bad: Array | None, low: int, high: int) -> Vector:
    if not fits(low, high):
        raise Unvectorised
    return Vector(array, bad, low, high)


def _narrowed(vector: Vector) -> Vector:
    """Return the vector with the bounds of the values it really has."""
    if not vector.array.size:
        return Vector(vector.array, vector.bad)
    return Vector(vector.array, vector.bad, int(vector.array.min()), int(vector.array.max()))


def _arithmetic(
    apply: Callable[[Array, Array], Array], bounds: Callable[[Vector, Vector], tuple[int, int]]
) -> Callable[[Vector, Vector], Vector]:
    def compute(left: Vector, right: Vector) -> Vector:
        left, right = number(left), number(right)
        bad = either(left.bad, right.bad)
        if left.is_float or right.is_float:
            return Vector(apply(_as_float(left.array), _as_float(right.array)), bad)
        if not fits(*bounds(left, right)):
            left, right = _narrowed(left), _narrowed(right)
        low, high = bounds(left, right)
        if not fits(low, high):
            raise Unvectorised
        return Vector(apply(left.array, right.array), bad, low, high)

    return compute


def _product_bounds(left: Vector, right: Vector) -> tuple[int, int]:
    ends = [x * y for x in (left.low, left.high) for y in (right.low, right.high)]
    return min(ends), max(ends)


_plus = _arithmetic(np.add, lambda x, y: (x.low + y.low, x.high + y.high))
minus = _arithmetic(np.subtract, lambda x, y: (x.low - y.high, x.high - y.low))
_times = _arithmetic(np.multiply, _product_bounds)


def negative(value: Vector) -> Vector:
    """Return a float with its sign turned: 0 - x would lose the sign of zero."""
    return Vector(-value.array, value.bad)


def _not_by_zero(left: Vector, right: Vector) -> tuple[Array, Array | None]:
    """Return the divisor with ones for zeros, and the rows that have no quotient."""
    zero = right.array == 0
    bad = either(left.bad, right.bad)
    if not zero.any():
        return right.array, bad
    return np.where(zero, np.ones((), right.array.dtype), right.array), either(bad, zero)


def _over(left: Vector, right: Vector) -> Vector:
    left, right = number(left), number(right)
    divisor, bad = _not_by_zero(left, Vector(_floats(right), right.bad))
    return Vector(_floats(left) / divisor, bad)


def _floor_over(left: Vector, right: Vector) -> Vector:
    left, right = number(left), number(right)
    divisor, bad = _not_by_zero(left, right)
    if left.is_float or right.is_float:
        return Vector(_as_float(left.array) // _as_float(divisor), bad)
    most = max(abs(left.low), abs(left.high))
    return _bounded(left.array // divisor, bad, min(left.low, -most if right.low < 0 else 0, -1), most)


def _modulo(left: Vector, right: Vector) -> Vector:
    left, right = number(left), number(right)
    divisor, bad = _not_by_zero(left, right)
    if left.is_float or right.is_float:
        return Vector(_as_float(left.array) % _as_float(divisor), bad)
    return Vector(left.array % divisor, bad, min(0, right.low), max(0, right.high, 1))


def _bitwise(apply: Callable[[Array, Array], Array]) -> Callable[[Vector, Vector], Vector]:
    def compute(left: Vector, right: Vector) -> Vector:
        left, right = number(left), number(right)
        if left.is_float or right.is_float:
            raise Unvectorised
        ends = (left.low, left.high, right.low, right.high)
        most = 1 << max(end.bit_length() for end in ends)
        low = -most if min(ends) < 0 else 0
        return _bounded(apply(left.array, right.array), either(left.bad, right.bad), low, most)

    return compute


BINARY: dict[type[ast.operator], Callable[[Vector, Vector], Vector]] = {
    ast.Add: _plus,
    ast.Sub: minus,
    ast.Mult: _times,
    ast.Div: _over,
    ast.FloorDiv: _floor_over,
    ast.Mod: _modulo,
    ast.BitAnd: _bitwise(np.bitwise_and),
    ast.BitOr: _bitwise(np.bitwise_or),
    ast.BitXor: _bitwise(np.bitwise_xor),
}
_COMPARE: dict[type[ast.cmpop], Callable[[Array, Array], Array]] = {
    ast.Lt: np.less,
    ast.LtE: np.less_equal,
    ast.Gt: np.greater,
    ast.GtE: np.greater_equal,
    ast.Eq: np.equal,
    ast.NotEq: np.not_equal,
}


def compared(op: type[ast.cmpop], left: Vector, right: Vector) -> Vector:
    """Return where a comparison holds; a whole number and a float are compared exactly, as in Python."""
    left, right = number(left), number(right)
    mixed = left.is_float or right.is_float
    one, other = (_floats(left), _floats(right)) if mixed else (left.array, right.array)
    return Vector(np.asarray(_COMPARE[op](one, other)), either(left.bad, right.bad), 0, 1)


def choose(where: Array, then: Vector, other: Vector) -> Vector:
    """Return `then` where it is asked for, and `other` elsewhere; what is not asked for cannot be bad."""
    if then.array.dtype != other.array.dtype:
        then, other = number(then), number(other)
    if then.is_float != other.is_float:
        then, other = Vector(_floats(then), then.bad), Vector(_floats(other), other.bad)
    bad = None
    if then.bad is not None or other.bad is not None:
        bad = np.where(where, _or_none(then.bad), _or_none(other.bad))
    array = np.where(where, then.array, other.array)
    return Vector(array, bad, min(then.low, other.low), max(then.high, other.high))


def following(where: Array, then: Vector, result: Vector) -> Vector:
    """Return the result with `then` where Python goes on to it; what was bad before stays bad."""
    chosen = choose(where, then, result)
    return Vector(chosen.array, either(result.bad, chosen.bad), chosen.low, chosen.high)


def _or_none(bad: Array | None) -> Array:
    return np.zeros((), bool) if bad is None else bad


def _least(parts: Sequence[Vector]) -> Vector:
    return reduce(lambda one, other: _extreme(ast.Lt, one, other), map(number, parts))


def _greatest(parts: Sequence[Vector]) -> Vector:
    return reduce(lambda one, other: _extreme(ast.Gt, one, other), map(number, parts))


def _extreme(op: type[ast.cmpop], one: Vector, other: Vector) -> Vector:
    chosen = choose(compared(op, other, one).array, other, one)
    return Vector(chosen.array, either(one.bad, other.bad), chosen.low, chosen.high)


def _absolute(parts: Sequence[Vector]) -> Vector:
    value = number(_only(parts))
    return Vector(np.abs(value.array), value.bad, 0, max(abs(value.low), abs(value.high)))


def _rounded(apply: Callable[[Array], Array]) -> Callable[[Sequence[Vector]], Vector]:
    def compute(parts: Sequence[Vector]) -> Vector:
        value = number(_only(parts))
        if not value.is_float:
            return value
        endless = ~np.isfinite(value.array)
        finite = np.where(endless, 0.0, apply(value.array))
        if finite.size and np.abs(finite).max() >= SAFE:
            raise Unvectorised
        bad = either(value.bad, endless if endless.any() else None)
        return _narrowed(Vector(finite.astype(np.int64), bad))

    return compute


def _log2(parts: Sequence[Vector]) -> Vector:
    value = number(_only(parts))
    given, inverse = np.unique(value.array, return_inverse=True)
    # One by one: numpy's vector instructions may differ from Python's in the last bit.
    logs = np.array([math.log2(x) if x > 0 else math.nan for x in given.tolist()], dtype=np.float64)
    result = logs[inverse].reshape(value.array.shape)
    bad = ~(value.array > 0)
    return Vector(result, either(value.bad, bad if bad.any() else None))


def _only(parts: Sequence[Vector]) -> Vector:
    if len(parts) != 1:
        raise Unvectorised
    return parts[0]


def _total(parts: Sequence[Vector]) -> Vector:
    return reduce(_plus, parts, Vector(np.zeros((), np.int64)))


FUNCTIONS: dict[str, Callable[[Sequence[Vector]], Vector]] = {
    "min": _least,
    "max": _greatest,
    "sum": _total,
    "abs": _absolute,
    "ceil": _rounded(np.ceil),
    "floor": _rounded(np.floor),
    "log2": _log2,
}
