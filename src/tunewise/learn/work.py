"""What there is to do on a problem, counted: work in whole, edges that tiles leave over, passes over data, tiles."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from math import prod
from typing import Literal

import numpy as np

from tunewise.formats.dataset import Flags, Floats
from tunewise.learn.columns import worked_out
from tunewise.learn.derived import Cut, Formulas, Size
from tunewise.models import Derived, Input, apply

Amount = tuple[int, ...]  # the columns that it is the product of; the empty product is what is done once
Operand = int | float  # a column, or a number

_SPLIT_FACES = 3  # sizes, at most, where data that are passed over are told apart into whole tiles and edges


@dataclass(frozen=True)
class Pieces:
    """What a size is cut into: tiles, by blocks where there are any; both are columns, or both numbers."""

    tile: Operand
    block: Operand | None = None


def amounts(formulas: Formulas, given: Sequence[Size], cutting: Mapping[Size, Pieces]) -> list[Amount]:
    """Return what may have to be done: everything, what is left over by tiles, all but one size, and the tiles.

    Work grows with the square of a size that is given twice. `cutting` says what sizes are cut into. A loop nest
    does a part of its work in whole tiles and another, slower one at their edges; it passes over data that lack one
    size, once or once for every tile of that size; and it begins every tile. No kernel does all of that, and what one
    does not do costs nothing there.
    """
    sizes = [formulas.size(size) for size in given]
    pieces = {formulas.size(size): pieces for size, pieces in cutting.items()}
    rest = {size: _in_all(formulas, "remainder", size, pieces) for size, pieces in pieces.items()}
    count = {size: _in_all(formulas, "tiles", size, pieces) for size, pieces in pieces.items()}

    def parts(some: Sequence[int]) -> list[Amount]:
        is_cut = [size in count and size not in some[:place] for place, size in enumerate(some)]
        return list(product(*((size, rest[size]) if cut else (size,) for size, cut in zip(some, is_cut, strict=True))))

    found: list[Amount] = [(), *parts(sizes)]
    for size in dict.fromkeys(sizes) if len(sizes) > 1 else ():
        without = [other for other in sizes if other != size]
        less = [*without, *[size] * (sizes.count(size) - 1)]
        for others in (less, without):
            found += parts(others) if len(set(sizes)) <= _SPLIT_FACES else [tuple(others)]
        if size in count:
            found.append((*less, count[size]))
    if count:
        found.append(tuple(count.values()))
    return list(dict.fromkeys(found))


def _in_all(formulas: Formulas, op: Literal["remainder", "tiles"], size: int, pieces: Pieces) -> int:
    """Return the number of the column that has what is left over by tiles, or how many they are, in all blocks."""
    tile, block = pieces.tile, pieces.block
    if block is None or (isinstance(block, float) and block % tile == 0):  # tiles that fill a block know of no blocks
        return formulas.fold(op, size, tile)
    each = formulas.fold(op, block, tile) if isinstance(block, int) else apply(op, block, tile)
    in_whole = formulas.fold("product", formulas.fold("whole", size, block), each)
    return formulas.fold("sum", in_whole, formulas.fold(op, formulas.fold("remainder", size, block), tile))


@dataclass(frozen=True)
class Ledger:
    """How to count the work of every row of some inputs."""

    inputs: int
    derived: tuple[Derived, ...]
    amounts: tuple[Amount, ...]

    def counted(self, values: Floats) -> Floats:
        """Return all amounts, a row each for the rows of the inputs."""
        columns = worked_out(values, self.derived)
        one = np.ones(len(values))
        return np.stack([prod((columns[number] for number in amount), start=one) for amount in self.amounts], axis=1)

    def columns(self, formulas: Formulas) -> list[int]:
        """Return the numbers of the columns that hold the amounts, added to formulas of the same inputs.

        What is done once needs no column, and has the number -1.
        """
        places = list(range(self.inputs))
        for one in self.derived:
            moved = Derived(one.op, tuple(places[number] for number in one.of), one.by)
            places.append(formulas.keep(moved, is_offered=False))

        def column(amount: Amount) -> int:
            if len(amount) < 2:
                return places[amount[0]] if amount else -1
            return formulas.keep(Derived("product", tuple(places[number] for number in amount)), is_offered=False)

        return [column(amount) for amount in self.amounts]

    def of(self, kept: Flags) -> "Ledger":
        """Return how to count the amounts that are flagged."""
        flagged = zip(self.amounts, kept, strict=True)
        return replace(self, amounts=tuple(amount for amount, is_kept in flagged if is_kept))


def ledger(inputs: Sequence[Input], sizes: Sequence[Size], cuts: Sequence[Cut]) -> Ledger:
    """Return how to count the work of problems and configs whose inputs stand side by side."""
    formulas = Formulas(tuple(inputs))
    found = amounts(formulas, sizes, {cut.size: Pieces(_tile(formulas, cut), cut.block) for cut in cuts})
    return Ledger(len(formulas.inputs), tuple(formulas.derived), tuple(found))


def _tile(formulas: Formulas, cut: Cut) -> int:
    first, *others = cut.parameters
    return formulas.add("product", first, *others) if others else first
