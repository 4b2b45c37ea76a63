"""Whether two results are the same, and copies of arguments that give a wrong kernel away."""

import sys
from collections.abc import Mapping, Sequence
from typing import Any

from tunewise.decision import Args, Check

_PLAIN = frozenset({int, float, complex, bool, str, bytes, type(None)})  # values that nobody can change
_GUARD_BYTES = 256
_GUARD = 0xA5
# (relative, share of the largest magnitude) by bytes of a real number: what reordered sums lose, and no more.
_TOLERANCES = {2: (2e-2, 2e-2), 4: (1e-4, 1e-5), 8: (1e-6, 1e-8), 16: (1e-6, 1e-8)}


def difference(expected: Any, result: Any, check: Check) -> str | None:
    """Return in words how `result` differs from `expected` beyond the tolerance, or None if it does not."""
    if check.compare is not None:
        reason = check.compare(expected, result)
        if reason is not None and not isinstance(reason, str):
            raise TypeError(
                f"check.compare returned {reason!r}; it returns what is wrong as text, or None if all is right"
            )
        return reason
    left, right = _as_numbers(expected), _as_numbers(result)
    if left is not None:
        return "is no array" if right is None else _array_difference(left, right, check, _real_bytes(expected, left))
    if isinstance(expected, Mapping):
        return _mapping_difference(expected, result, check)
    if isinstance(expected, list | tuple):
        return _sequence_difference(expected, result, check)
    if (
        isinstance(expected, float | complex)
        and not isinstance(result, bool)
        and isinstance(result, int | float | complex)
    ):
        rtol, atol = _tolerance(8, check)
        is_close = abs(expected - result) <= (rtol + atol) * abs(expected) or (
            expected != expected and result != result
        )
        return None if is_close or expected == result else f"is {result!r} instead of {expected!r}"
    if type(expected) is not type(result):
        return f"is a {type(result).__name__} instead of a {type(expected).__name__}"
    return None if bool(expected == result) else f"is {_short(result)} instead of {_short(expected)}"


def as_array(value: Any) -> Any:
    """Return a numpy view of an array, tensor or sparse matrix, or None if it is none. Imports nothing."""
    numpy = sys.modules.get("numpy")
    if numpy is None:
        return None
    if isinstance(value, numpy.ndarray):
        return value
    if hasattr(value, "detach") and hasattr(value, "cpu"):
        tensor = value.detach().cpu()
        return (tensor.float() if "bfloat16" in str(tensor.dtype) else tensor).numpy()
    return value.toarray() if hasattr(value, "toarray") else None


def same(left: Any, right: Any) -> bool:
    """Return whether two values are equal to the last bit, as far as anybody could have changed one of them.

    Arrays, lists, dicts and tuples are looked into; all other objects are taken for equal.
    """
    one, other = as_array(left), as_array(right)
    if one is not None:
        return other is not None and one.tobytes() == other.tobytes()
    if type(left) in _PLAIN:
        return type(left) is type(right) and (left == right or left != left)
    if isinstance(left, dict):
        return isinstance(right, dict) and list(left) == list(right) and all(same(left[k], right[k]) for k in left)
    if isinstance(left, list | tuple):
        if _is_plain(left):
            return _is_plain(right) and left == right
        return len(left) == len(right) and all(map(same, left, right))
    return True


def guarded(args: Args) -> tuple[Args, list[Any]]:
    """Return a copy of the arguments whose arrays lie between guard bands, and the bands to look at afterwards."""
    copies, bands = [], []
    for arg in args:
        copy, band = _guarded_copy(arg)
        copies.append(copy)
        bands.extend(band)
    return tuple(copies), bands


def broken(bands: Sequence[Any]) -> bool:
    """Return whether something was written outside an array."""
    return any(bool((band != _GUARD).any()) for band in bands)


def copied(args: Args) -> Args:
    """Return the arguments with every array and tensor copied, in lists, dicts and tuples too; others stay as is."""
    return tuple(_copy(arg) for arg in args)


def poison(args: Args, places: Sequence[int]) -> None:
    """Fill the arguments that a kernel must write with values no result has, so that what it forgets shows."""
    for place in places:
        array = as_array(args[place])
        if array is not None:
            array[...] = (
                float("nan") if array.dtype.kind in "fc" else array.dtype.type(-77 if array.dtype.kind == "i" else 77)
            )


def poison_memory(like: Any) -> None:
    """Leave junk in freshly freed memory of a result's size, so that forgotten elements are not right by chance."""
    array = as_array(like)
    if array is not None and array.dtype.kind in "fc":
        numpy = sys.modules["numpy"]
        junk = [numpy.full(array.shape, float("nan"), array.dtype) for _ in range(4)]
        del junk


def variants(args: Args) -> list[Args]:
    """Return the arguments with the values of float arrays shuffled, and with large ones; empty if there are none."""
    arrays = [as_array(arg) for arg in args]
    if not any(a is not None and a.dtype.kind == "f" and a.size for a in arrays):
        return []
    return [tuple(_changed(arg, change) for arg in args) for change in (_shuffle, _enlarge)]


def _array_difference(expected: Any, result: Any, check: Check, real_bytes: int) -> str | None:
    numpy = sys.modules["numpy"]
    if expected.dtype != result.dtype:
        return f"has dtype {result.dtype} instead of {expected.dtype}"
    if expected.shape != result.shape:
        return f"has shape {result.shape} instead of {expected.shape}"
    if expected.dtype.kind not in "fc":
        wrong = expected != result
    else:
        rtol, atol = _tolerance(real_bytes, check)
        finite = numpy.abs(expected[numpy.isfinite(expected)])
        scale = float(finite.max()) if finite.size else 0.0
        with numpy.errstate(all="ignore"):
            is_close = numpy.abs(result - expected) <= atol * scale + rtol * numpy.abs(expected)
        wrong = ~(is_close | (result == expected) | (numpy.isnan(result) & numpy.isnan(expected)))
        wrong |= numpy.isfinite(expected) != numpy.isfinite(result)
    count = int(numpy.count_nonzero(wrong))
    if not count:
        return None
    place = tuple(int(i) for i in numpy.argwhere(wrong)[0]) if wrong.ndim else ()
    first = f"first at {place}: {result[place]!r} instead of {expected[place]!r}"
    return f"is wrong in {count} of {expected.size} elements, {first}"


def _mapping_difference(expected: Mapping[Any, Any], result: Any, check: Check) -> str | None:
    if not isinstance(result, Mapping) or list(expected) != list(result):
        return f"has other keys than {list(expected)}"
    reasons = ((key, difference(expected[key], result[key], check)) for key in expected)
    return next((f"[{key!r}] {reason}" for key, reason in reasons if reason), None)


def _sequence_difference(expected: Sequence[Any], result: Any, check: Check) -> str | None:
    if type(expected) is not type(result) or len(expected) != len(result):
        return f"is not a {type(expected).__name__} of {len(expected)}"
    reasons = ((i, difference(a, b, check)) for i, (a, b) in enumerate(zip(expected, result, strict=True)))
    return next((f"[{i}] {reason}" for i, reason in reasons if reason), None)


def _real_bytes(value: Any, array: Any) -> int:
    """Return the bytes of one real number of a result, before numpy, which has no bfloat16, made it wider."""
    if "bfloat16" in str(getattr(value, "dtype", "")):
        return 2
    return int(array.dtype.itemsize) // (2 if array.dtype.kind == "c" else 1)


def _tolerance(real_bytes: int, check: Check) -> tuple[float, float]:
    rtol, atol = _TOLERANCES.get(real_bytes, _TOLERANCES[8])
    return (rtol if check.rtol is None else check.rtol, atol if check.atol is None else check.atol)


def _as_numbers(value: Any) -> Any:
    """Return what `as_array` does, and numbers of numpy that are no Python numbers too, such as a float32 sum."""
    numpy = sys.modules.get("numpy")
    if numpy is not None and isinstance(value, numpy.inexact) and not isinstance(value, float | complex):
        return numpy.asarray(value)
    return as_array(value)


def _guarded_copy(arg: Any) -> tuple[Any, list[Any]]:
    numpy = sys.modules.get("numpy")
    # A matrix or a masked array would lose what makes it one.
    if numpy is None or type(arg) is not numpy.ndarray or not arg.flags.c_contiguous or arg.dtype.hasobject:
        return _copy(arg), []
    size = arg.nbytes
    raw = numpy.full(size + 3 * _GUARD_BYTES, _GUARD, numpy.uint8)
    start = _GUARD_BYTES + (-(raw.ctypes.data + _GUARD_BYTES)) % 64  # aligned as numpy's own large arrays are
    inner = raw[start : start + size].view(arg.dtype).reshape(arg.shape)
    inner[...] = arg
    return inner, [raw[:start], raw[start + size :]]


def _copy(arg: Any) -> Any:
    numpy = sys.modules.get("numpy")
    if numpy is not None and isinstance(arg, numpy.ndarray):
        return arg.copy(order="K")
    if hasattr(arg, "detach") and hasattr(arg, "clone"):
        return arg.detach().clone()
    if type(arg) is dict:
        return {key: _copy(value) for key, value in arg.items()}
    if isinstance(arg, list):
        return list(arg) if _is_plain(arg) else list(map(_copy, arg))
    if isinstance(arg, tuple) and not _is_plain(arg):
        make = getattr(type(arg), "_make", type(arg))  # a named tuple is made another way
        return make(map(_copy, arg))
    return arg


def _is_plain(items: Sequence[Any]) -> bool:
    """Return whether there are only numbers and words in there: a million of them are best handled as one."""
    return _PLAIN.issuperset(map(type, items))


def _changed(arg: Any, change: Any) -> Any:
    copy = _copy(arg)
    array = as_array(copy)
    if array is None or array.dtype.kind != "f" or not array.size or hasattr(copy, "toarray"):
        return copy
    if array is copy or hasattr(copy, "detach"):
        array[...] = change(array).astype(array.dtype)
    return copy


def _shuffle(array: Any) -> Any:
    numpy = sys.modules["numpy"]
    return numpy.random.default_rng(array.size).permutation(array.ravel()).reshape(array.shape)


def _enlarge(array: Any) -> Any:
    numpy = sys.modules["numpy"]
    largest = float(numpy.abs(numpy.nan_to_num(array)).max())
    with numpy.errstate(all="ignore"):  # an array that is only written into holds anything
        return array * ((1e2 if array.dtype.itemsize == 2 else 1e4) / largest) if largest > 0 else array


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
