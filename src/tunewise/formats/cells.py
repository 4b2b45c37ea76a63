"""What stands in the cells of a table: numbers, switches and words, looked at once for every distinct spelling."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from tunewise.decision import Scalar, canonical
from tunewise.formats.dataset import Flags, Floats, Numbers

Codes = NDArray[np.int32]
_V = TypeVar("_V", covariant=True)
_W = TypeVar("_W")

_WHOLE = re.compile(r"[+-]?\d{1,18}", re.ASCII)
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
_SWITCHES = {"true": True, "false": False}
_MISSING = frozenset({"", "nan", "inf", "-inf", "+inf", "infinity"})
_NEARLY_ALL, _DOZEN = (
    0.9,
    12,
)  # of the rows, and different numbers: what makes a column one of numbers in spite of words
_EXACT = 1 << 53  # whole doubles below are exact


@dataclass(frozen=True, eq=False)
class Coded(Generic[_V]):
    """A column by its distinct values: row r holds `values[codes[r]]`; None is a cell without a value."""

    codes: Codes
    values: tuple[_V, ...]

    def __len__(self) -> int:
        return len(self.codes)

    def take(self, rows: Numbers | Flags) -> "Coded[_V]":
        """Return the column of some rows."""
        return Coded(self.codes[rows], self.values)

    def at(self, row: int) -> _V:
        """Return the value of one row."""
        value: _V = self.values[self.codes[row]]
        return value

    def where(self, flags: Sequence[bool]) -> Flags:
        """Return which rows have a value that is flagged."""
        chosen: Flags = np.array(flags, dtype=np.bool_)[self.codes]
        return chosen


def distinct(codes: Codes, values: Sequence[_W]) -> Coded[_W]:
    """Return a column whose values are all different: 1 and 1.0, spelled in two ways, are one; true is not 1."""
    known: dict[tuple[bool, Any], int] = {}
    places = [known.setdefault((isinstance(value, bool), value), len(known)) for value in values]
    if len(known) == len(values):
        return Coded(codes, tuple(values))
    return Coded(np.array(places, dtype=np.int32)[codes], tuple(value for _, value in known))


def number(word: str) -> int | float | None:
    """Return the number a word spells, whole ones as int; None where it spells none, or one beyond all bounds."""
    text = word.strip()
    if _WHOLE.fullmatch(text):
        return int(text)
    return whole_or_not(float(text)) if _NUMBER.fullmatch(text) else None


def whole_or_not(value: float) -> int | float | None:
    """Return a double as an int where it is whole, and None where it is not finite."""
    if not np.isfinite(value):
        return None
    return int(value) if value.is_integer() and abs(value) < _EXACT else value


def spelled(words: Sequence[str]) -> tuple[Scalar, ...]:
    """Return the values of a column's distinct words: all numbers, all switches, or all words as they stand.

    In a column of numbers a word such as `nan`, or none at all, is a missing value: None.
    """
    present = [word.strip().lower() for word in words if word.strip().lower() not in _MISSING]
    if present and all(word in _SWITCHES for word in present):
        return tuple(_SWITCHES.get(word.strip().lower()) for word in words)
    if present and all(number(word) is not None for word in present):
        return tuple(number(word) for word in words)
    return tuple(words)


def strays(column: Coded[Scalar]) -> list[bool]:
    """Return which values of a column are words in a column of numbers, such as `5O0`; in one of words none is.

    It is one of numbers where nine rows in ten hold one, and there are a dozen different ones.
    """
    words = [isinstance(value, str) and value.strip().lower() not in _MISSING for value in column.values]
    flags = [is_word and number(str(value)) is None for is_word, value in zip(words, column.values, strict=True)]
    if not any(flags) or not has_many_numbers(column.values):
        return [False] * len(flags)
    rows = int(column.where(words).sum())
    is_rare = rows - int(column.where(flags).sum()) >= _NEARLY_ALL * rows
    return flags if is_rare else [False] * len(flags)


def has_many_numbers(values: Sequence[Scalar]) -> bool:
    """Return whether the words among some values spell a dozen different numbers."""
    found = {number(value) for value in values if isinstance(value, str)} - {None}
    return len(found) >= _DOZEN


def is_unusable(value: Scalar) -> bool:
    """Return whether a feature has no value, or one with bytes that were no text."""
    return value is None or is_garbled(value)


def is_garbled(value: Scalar) -> bool:
    """Return whether a word holds bytes that were no text."""
    return isinstance(value, str) and "\ufffd" in value


def plain(values: Sequence[Any]) -> tuple[Scalar, ...]:
    """Return typed values as plain scalars, whole numbers as int; what no JSON can hold counts as missing."""
    return tuple(_plain(value) for value in values)


def _plain(value: Any) -> Scalar:
    try:
        scalar = canonical.scalar(value)
    except ValueError:
        return None
    return whole_or_not(scalar) if isinstance(scalar, float) else scalar


def feature(column: Coded[Scalar]) -> tuple[Floats, tuple[str, ...] | None]:
    """Return a column as doubles, and the words they number where it is categorical; NaN where a value is missing.

    Words are in alphabetical order. A column that mixes numbers and words is one of words, and a switch is 0 or 1, as
    everywhere in problems.
    """
    used = set(np.unique(column.codes).tolist())
    present = [value for place, value in enumerate(column.values) if value is not None and place in used]
    if not any(isinstance(value, str) for value in present):
        doubles = np.array([float(v) if isinstance(v, int | float) else np.nan for v in column.values], dtype=float)
        return doubles[column.codes], None
    words = tuple(sorted({str(value) for value in present}))
    place = {word: float(number) for number, word in enumerate(words)}
    numbers = np.array([place.get(str(value), np.nan) for value in column.values])
    return numbers[column.codes], words
