"""Choices between library functions that need no compiler: numpy's own default loses some of these many times over."""

from typing import Any

import numpy as np

from tunewise.decision import Check, Problem
from tunewise.session import choice

Array = np.ndarray[Any, Any]

_TABLE_LIMIT = 1 << 27  # bytes that a look-up table may take
_PAIRS = 64  # neighbours looked at to tell whether an array is nearly sorted


def _direct(x: Array, y: Array) -> Array:
    return np.convolve(x, y)


def _fft(x: Array, y: Array) -> Array:
    n = x.size + y.size - 1
    size = _smooth(n)
    return np.fft.irfft(np.fft.rfft(x, size) * np.fft.rfft(y, size), size)[:n]


def _overlap_add(x: Array, y: Array) -> Array:
    """Convolve the longer one in pieces, so that transforms stay small and in the cache."""
    long, short = (x, y) if x.size >= y.size else (y, x)
    size = _smooth(8 * short.size)
    step = size - short.size + 1
    pieces = -(-long.size // step)
    padded = np.zeros((pieces, step), long.dtype)
    padded.reshape(-1)[: long.size] = long
    parts = np.fft.irfft(np.fft.rfft(padded, size, axis=1) * np.fft.rfft(short, size), size, axis=1)
    result = np.zeros(pieces * step + size, parts.dtype)
    for piece in range(pieces):
        result[piece * step : piece * step + size] += parts[piece]
    return result[: x.size + y.size - 1]


def _smooth(n: int) -> int:
    """Return the least number from n on that is a product of 2, 3 and 5: transforms of other sizes are slow."""
    best = 1 << (n - 1).bit_length()
    five = 1
    while five < best:
        three = five
        while three < best:
            size = three << max(0, (-(-n // three) - 1).bit_length())
            best = min(best, size) if size >= n else best
            three *= 3
        five *= 5
    return best


def _signals(n: int, k: int, seed: int) -> tuple[Array, Array]:
    random = np.random.default_rng(seed)
    return random.standard_normal(n), random.standard_normal(k)


convolve1d = choice(
    "convolve1d",
    {"direct": _direct, "fft": _fft, "overlap_add": _overlap_add},
    default="direct",
    features=lambda x, y: {"n": max(x.size, y.size), "k": min(x.size, y.size)},
    inputs=lambda problem, seed: _signals(int(problem["n"]), int(problem["k"]), seed),
    check=Check(rtol=1e-6, atol=1e-9, inputs=lambda problem: [_signals(*s, 3) for s in ((1, 1), (97, 1), (30, 29))]),
    libraries=("numpy",),
)


def _isin_auto(values: Array, members: Array) -> Array:
    return np.isin(values, members)


def _isin_sort(values: Array, members: Array) -> Array:
    return np.isin(values, members, kind="sort")


def _isin_table(values: Array, members: Array) -> Array:
    # A table over a huge range would not fit into memory; the answer must not depend on that.
    return np.isin(values, members, kind="table" if _span(members) <= _TABLE_LIMIT else None)


def _isin_search(values: Array, members: Array) -> Array:
    """Look every value up in the sorted members, by halves."""
    if not members.size:
        return np.zeros(values.shape, np.bool_)
    ordered = np.sort(members)
    places = np.searchsorted(ordered, values)
    places[places == ordered.size] = 0
    found: Array = ordered[places] == values
    return found


def _span(members: Array) -> int:
    return int(members.max()) - int(members.min()) + 1 if members.size else 1


def _isin_inputs(problem: Problem, seed: int) -> tuple[Array, Array]:
    return _values_and_members(int(problem["n"]), int(problem["m"]), int(problem["span"]), seed)


def _values_and_members(n: int, m: int, span: int, seed: int) -> tuple[Array, Array]:
    random = np.random.default_rng(seed)
    members = random.integers(0, span, m)
    members[0], members[-1] = 0, span - 1  # the span is a feature: make it exact
    return random.integers(0, span, n), members


isin = choice(
    "isin",
    {"auto": _isin_auto, "sort": _isin_sort, "table": _isin_table, "search": _isin_search},
    default="auto",
    features=lambda values, members: {"n": values.size, "m": members.size, "span": _span(members)},
    inputs=_isin_inputs,
    check=Check(
        inputs=lambda problem: [_values_and_members(*size, 3) for size in ((1, 1, 1), (7, 300, 40), (90, 2, 9))]
    ),
    libraries=("numpy",),
)


def _quick(x: Array) -> Array:
    return np.sort(x, kind="quicksort")


def _stable(x: Array) -> Array:
    return np.sort(x, kind="stable")


def _order(x: Array) -> str:
    """Return how sorted an array looks, from a fixed number of neighbours spread over it."""
    if x.size < 2:
        return "sorted"
    places = np.linspace(0, x.size - 2, _PAIRS).astype(np.intp)
    rising = int(np.count_nonzero(x[places] <= x[places + 1]))
    return "sorted" if rising == _PAIRS else "mixed" if rising >= _PAIRS * 3 // 4 else "random"


def _to_sort(problem: Problem, seed: int) -> tuple[Array]:
    n, order = int(problem["n"]), str(problem["order"])
    random = np.random.default_rng(seed)
    x = (random.standard_normal(n) * 1e3).astype(str(problem["dtype"]))
    if order != "random":
        x.sort()
    if order == "mixed":  # one pair in eight of those that are looked at falls
        places = np.linspace(0, n - 2, _PAIRS).astype(np.intp)[::8]
        x[places], x[places + 1] = x[-1], x[0]
    return (x,)


sort = choice(
    "sort",
    {"quick": _quick, "stable": _stable},
    default="quick",
    features=lambda x: {"n": x.size, "dtype": str(x.dtype), "order": _order(x)},
    inputs=_to_sort,
    check=Check(rtol=0, atol=0),
    libraries=("numpy",),
)


DECISIONS = {"convolve1d": convolve1d.decision, "isin": isin.decision, "sort": sort.decision}
