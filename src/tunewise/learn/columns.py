"""The columns a tree may ask about: a problem's features and what can be derived from them, as arrays."""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Context
from itertools import combinations
from math import exp, log
from sys import float_info
from typing import Any, Literal

import msgspec
import numpy as np

from tunewise.formats.dataset import Column, DataSet, Flags, Floats
from tunewise.models import Columns, Derived, Input, Number, Word

Kind = Literal["sizes", "remainders"]

_MOST_NUMBERS = 8  # products and ratios of more features than this would be hundreds of columns
_POWERS = (4.0, 8.0, 16.0, 32.0)
_WIDE = 8.0  # a feature whose largest value is so many times its smallest is a size: its logarithm is what counts
_WORTH_OF_DERIVED = 0.8  # of what a question saves
_LARGEST = 1e30  # products of a few numbers up to here stay finite
_FARTHEST, _MOST_REACH = float_info.max, log(1000)  # bounds stay finite, whatever a feature holds
_LONGEST_SHORT = 1e38
_DIGITS = 3  # of a bound
_REACH = 0.25  # of the orders of magnitude seen: so far beyond them a size is still taken for known
_TINY = 1e-3  # keeps the logarithm of zero finite


@dataclass(frozen=True)
class Frame:
    """The inputs of many problems as an array, with what is known of each column."""

    inputs: tuple[Input, ...]
    values: Floats
    whole: tuple[bool, ...]  # which columns hold whole numbers only

    def __len__(self) -> int:
        return len(self.values)

    @property
    def words(self) -> Flags:
        """Which columns hold words."""
        return np.array([isinstance(column, Word) for column in self.inputs], dtype=np.bool_)


def frame(data: DataSet, margin: float) -> Frame:
    """Return the inputs of all problems of a data set; numbers may lie somewhat beyond what was seen.

    That is `margin` times, or a quarter of the orders of magnitude that were seen if this is more.
    """
    values = np.stack([column.values for column in data.features], axis=1)
    whole = tuple(bool((column == np.round(column)).all()) for column in values.T)
    inputs = (_input(column, margin, is_whole) for column, is_whole in zip(data.features, whole, strict=True))
    return Frame(tuple(inputs), values, whole)


def derivations(known: Frame, kind: Kind, tiles: Sequence[float] = ()) -> tuple[Derived, ...]:
    """Return the columns that may be derived: products and ratios of sizes, and what is left over of these.

    That is by `tiles`, where it is known what sizes are cut into, and else by powers of two.
    """
    numbers = [n for n, column in enumerate(known.inputs) if _may_be_multiplied(column)]
    sizes = _sizes(known, numbers) if len(numbers) <= _MOST_NUMBERS else []
    if kind == "sizes":
        return tuple(sizes)
    return (*sizes, *(_leftovers(known, numbers, tiles, len(sizes)) if tiles else _remainders(known, numbers)))


def worth(known: Frame, derived: Sequence[Derived]) -> Floats:
    """Return how much of what a question saves counts, for every column: a plainer one wins unless it saves less."""
    return np.array([1.0] * len(known.inputs) + [_WORTH_OF_DERIVED] * len(derived))


def expand(known: Frame, derived: Sequence[Derived]) -> Floats:
    """Return all columns as an array, the derived ones after the inputs: the doubles a model would work out."""
    return np.stack(worked_out(known.values, derived), axis=1)


def worked_out(values: Floats, derived: Sequence[Derived]) -> list[Floats]:
    """Return all columns, the derived ones after the inputs: the doubles a model would work out."""
    columns: list[Any] = list(values.T)
    with np.errstate(all="ignore"):  # of problems held out, some lie where a model divides by zero and so abstains
        for one in derived:
            columns.append(one.value(columns))
    return columns


def smooth(known: Frame, derived: Sequence[Derived]) -> Floats:
    """Return columns for regressions: logarithms of sizes and of their products and ratios, a flag for every word."""
    columns = []
    for column, values in zip([*known.inputs, *derived], expand(known, derived).T, strict=True):
        if isinstance(column, Word):
            columns += [(values == word).astype(np.float64) for word in range(len(column.words))]
        else:
            columns.append(np.log2(values + _TINY) if is_size(column) else short(column, values))
    return np.stack(columns, axis=1)


def is_size(column: Input | Derived) -> bool:
    """Return whether a column is better seen as a logarithm: it has no sign, and a wide range."""
    if isinstance(column, Number):
        return column.low >= 0 and column.high > _WIDE * max(column.low, _TINY)
    return isinstance(column, Derived) and column.op in ("product", "ratio")


def short(column: Input | Derived, values: Floats) -> Floats:
    """Return the numbers of a column, scaled where they would be too much for the floats of scikit-learn."""
    farthest = max(abs(column.low), abs(column.high)) if isinstance(column, Number) else 0.0
    return values if farthest < _LONGEST_SHORT else values / farthest


def needed(
    problem: Sequence[Input], config: Sequence[Input], derived: Sequence[Derived], used: Sequence[int]
) -> tuple[Columns, dict[int, int]]:
    """Return the columns of a model that asks for `used`, all inputs among them, and the new number of each of those.

    What a used column is made of comes along.
    """
    first = len(problem) + len(config)
    wanted = set(used)
    for number in range(first + len(derived) - 1, first - 1, -1):
        if number in wanted:
            wanted.update(derived[number - first].of)
    kept = [number for number in range(first, first + len(derived)) if number in wanted]
    numbers = {**{n: n for n in range(first)}, **{number: first + place for place, number in enumerate(kept)}}
    renumbered = tuple(
        msgspec.structs.replace(one, of=tuple(numbers[n] for n in one.of)) for one in (derived[n - first] for n in kept)
    )
    return Columns(problem=tuple(problem), config=tuple(config), derived=renumbered), numbers


def _input(column: Column, margin: float, is_whole: bool) -> Input:
    if column.words is not None:
        return Word(column.name, column.words)
    low, high = float(column.values.min()), float(column.values.max())
    if low < 0:
        beyond = (high - low) * (margin - 1)
        low, high = low - beyond, high + beyond
    else:
        reach = margin if low == 0 else max(margin, exp(min((log(high) - log(low)) * _REACH, _MOST_REACH)))
        low, high = low / reach, high * reach
    low, high = _bound(low, ROUND_FLOOR), _bound(high, ROUND_CEILING)
    if is_whole:
        low, high = float(np.ceil(low)), float(np.floor(high))
    return Number(column.name, low, high)


def _bound(value: float, rounding: str) -> float:
    """Return a bound in few digits, no narrower: people read it in generated code, and where it lies is a guess."""
    few = Context(prec=_DIGITS, rounding=rounding).create_decimal(max(-_FARTHEST, min(value, _FARTHEST)))
    return max(-_FARTHEST, min(float(few), _FARTHEST))


def _sizes(known: Frame, numbers: Sequence[int]) -> list[Derived]:
    found: list[Derived] = []
    for one, other in combinations(numbers, 2):
        found.append(Derived("product", (one, other)))
        pair = (one, other) if _low(known.inputs[other]) > 0 else (other, one)
        if _low(known.inputs[pair[1]]) > 0:
            found.append(Derived("ratio", pair))
    for count in sorted({3, len(numbers)}):
        found += [Derived("product", group) for group in combinations(numbers, count) if count > 2]
    return found


def _remainders(known: Frame, numbers: Sequence[int]) -> list[Derived]:
    counted = [n for n in numbers if known.whole[n] and known.values[:, n].max() > 2 * _POWERS[0]]
    return [Derived("remainder", (number,), by=power) for number in counted for power in _POWERS]


def _leftovers(known: Frame, numbers: Sequence[int], tiles: Sequence[float], before: int) -> list[Derived]:
    """Return what is left over of each size by each tile, and which part of the size that is."""
    found: list[Derived] = []
    for number in numbers:
        if known.whole[number] and _low(known.inputs[number]) > 0:
            for tile in (tile for tile in tiles if tile <= known.values[:, number].max()):
                rest = len(known.inputs) + before + len(found)
                found += [Derived("remainder", (number,), by=tile), Derived("ratio", (rest, number))]
    return found


def _may_be_multiplied(column: Input) -> bool:
    """Return whether products and ratios of a column stay finite, whatever within its bounds is asked."""
    return (
        isinstance(column, Number) and column.low >= 0 and column.high < _LARGEST and not 0 < column.low < 1 / _LARGEST
    )


def _low(column: Input) -> float:
    return column.low if isinstance(column, Number) else 0.0
