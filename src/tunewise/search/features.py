"""What a model sees of a config: each parameter's scale, and how its numbers sit on the powers of two."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tunewise.decision import Param

Array = NDArray[np.float64]
Rows = NDArray[np.int64]

_ONE_HOT = 64  # words beyond this many are not told apart one by one
_USUAL, _RARE = -1.0, -3.0  # logarithms of weights
_TABLE = 1 << 16  # values of a parameter up to which its columns are computed once
_LONG = 256  # values from which on a parameter is a mere scale
_EXACT = 2**53  # larger numbers are not whole numbers for a model


class Features:
    """Turns rows of places into columns of numbers in [0, 1]; columns of one group share one weight in a model.

    A parameter with one value has no columns. Numbers stand on their scale by their places: whoever lists 1, 2, 4, 8
    means equal steps. Hardware likes powers of two, and whole numbers that are close on a
    scale may behave very differently for that: so whole numbers also show how often two divides them, and whether
    they are powers of two at all. With `singly`, each value of a number also has a column of its own, as words have:
    then a value can be better or worse than those on both sides of it.
    """

    def __init__(self, params: Sequence[Param], *, powers: bool = True, singly: bool = False) -> None:
        self._views = [_View(which, param, powers, singly) for which, param in enumerate(params) if len(param) > 1]
        widths = [width for view in self._views for width in view.widths]
        self.beliefs = np.array([belief for view in self._views for belief in view.beliefs])
        self.groups: NDArray[np.intp] = np.repeat(np.arange(len(widths)), widths)
        self.owners = [view.which for view in self._views for _ in view.widths]  # the parameter of each group

    def columns(self, rows: Rows) -> Array:
        """Return one line of numbers for each row of places."""
        parts = [view.columns(rows[:, view.which]) for view in self._views]
        return np.hstack(parts) if parts else np.zeros((len(rows), 0))

    def oddities(self, rows: Rows) -> Array:
        """Return for each row how many of its whole numbers are not powers of two."""
        odd = np.zeros(len(rows))
        for view in self._views:
            if view.is_whole:
                odd += ~_is_power(_numbers(view.param, rows[:, view.which]))
        return odd


class _View:
    """One parameter's columns: computed once where it has few values."""

    def __init__(self, which: int, param: Param, powers: bool, singly: bool) -> None:
        self.which, self.param = which, param
        self.is_number = _is_number(param)
        self.is_whole = self.is_number and len(param) <= _LONG and _is_whole(param)
        self._shows_powers = powers and self.is_whole and len(param) > 2 and not _is_doubling(param)
        self._shows_singly = singly and self.is_number and 2 < len(param) <= _ONE_HOT
        self.widths = [part.shape[1] for part in self._parts(np.zeros(1, np.int64))]
        self._table = np.hstack(self._parts(np.arange(len(param)))) if len(param) <= _TABLE else None

    @property
    def beliefs(self) -> list[float]:
        """What to expect of the logarithm of each group's weight: single values rarely stand out."""
        return [_USUAL] * (len(self.widths) - self._shows_singly) + [_RARE] * self._shows_singly

    def columns(self, places: Rows) -> Array:
        """Return the columns of some places."""
        return np.hstack(self._parts(places)) if self._table is None else self._table[places]

    def _parts(self, places: Rows) -> list[Array]:
        if not self.is_number:
            return [_words(self.param, places)]
        parts = [_ranks(self.param, places) / (len(self.param) - 1)]
        if self._shows_powers:
            numbers, twos = _numbers(self.param, places), _twos(_numbers(self.param, np.arange(len(self.param))))
            parts += [_twos(numbers) / max(1.0, twos.max()), (~_is_power(numbers)).astype(np.float64)]
        columns = [part[:, None] for part in parts]
        return [*columns, _told_apart(np.eye(len(self.param))[places])] if self._shows_singly else columns


def _is_number(param: Param) -> bool:
    values: Any = param.values
    if isinstance(values, range) or param.kind == "boolean":
        return True
    return isinstance(values, tuple) and all(type(value) in (int, float) for value in values)


def _is_whole(param: Param) -> bool:
    return param.kind != "boolean" and all(type(value) is int and abs(value) < _EXACT for value in param.values)


def _is_doubling(param: Param) -> bool:
    """Return whether every value is a power of two, or nought: the scale then says it all."""
    return bool(_is_power(_numbers(param, np.arange(len(param)))).all())


def _numbers(param: Param, places: Rows) -> Array:
    if isinstance(param.values, range):
        return param.values.start + param.values.step * places.astype(np.float64)
    return np.array(param.values, np.float64)[places]


def _ranks(param: Param, places: Rows) -> Array:
    """Return where numbers stand by size, whatever order they are listed in."""
    if param.is_ordered or param.kind == "boolean":
        return places.astype(np.float64)
    order = np.argsort(np.array(param.values, np.float64), kind="stable")
    return np.argsort(order, kind="stable")[places].astype(np.float64)


def _words(param: Param, places: Rows) -> Array:
    if param.kind != "permutation" and len(param) > _ONE_HOT:
        return places.astype(np.float64)[:, None] / (len(param) - 1)
    distinct, which = np.unique(places, return_inverse=True)
    coded = np.array([param.encode(int(place)) for place in distinct], np.float64)
    return _told_apart(coded[which.reshape(-1)])


def _told_apart(coded: Array) -> Array:
    return np.asarray(coded / np.sqrt(2.0), np.float64)  # two words differ in two columns: together they are one step


def _twos(numbers: Array) -> Array:
    whole = np.abs(numbers).astype(np.int64)
    return np.asarray(np.log2(np.maximum(whole & -whole, 1)))


def _is_power(numbers: Array) -> NDArray[np.bool_]:
    whole = np.abs(numbers).astype(np.int64)
    return np.asarray((whole & (whole - 1)) == 0)
