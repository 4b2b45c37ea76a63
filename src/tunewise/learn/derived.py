"""Columns worked out from problem and config together: tiles and what is left over of them, made for all that fits."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import combinations, permutations

import numpy as np

from tunewise.formats.dataset import Floats
from tunewise.learn.columns import Frame, derivations, worked_out
from tunewise.learn.pairs import Pairs
from tunewise.models import Derived, Input, Number, Op

_LARGEST = 1e24  # products of a few numbers up to here stay finite
_MOST_CUTS, _CHANCE = 3, 0.1  # sizes that are known to be cut, and what less than that share of the best is
_MOST_WINDOWS = 6  # sizes of one thing that happen to be in order are no windows, and cost time
_CORES = "cores"  # the hardware's fact, whatever stands before it


@dataclass
class Formulas:
    """Derived columns as they are added, each once; `offered` are those that say something by themselves."""

    inputs: tuple[Input, ...]
    derived: list[Derived] = field(default_factory=list)
    offered: list[int] = field(default_factory=list)
    _numbers: dict[Derived, int] = field(default_factory=dict)

    def add(self, op: Op, *of: int, is_offered: bool = True) -> int:
        """Return the number of a derived column, which is made if it is new."""
        return self.keep(Derived(op, of), is_offered)

    def fold(self, op: Op, left: int, right: int | float) -> int:
        """Return the number of a derived column that is not offered; the right operand is a column, or a constant."""
        one = Derived(op, (left, right)) if isinstance(right, int) else Derived(op, (left,), by=right)
        return self.keep(one, is_offered=False)

    def parts(self, number: int) -> tuple[int, ...]:
        """Return the inputs that a column is made of: itself if it is one."""
        return (number,) if number < len(self.inputs) else self.derived[number - len(self.inputs)].of

    def size(self, size: "Size") -> int:
        """Return the number of the column that has a size."""
        return size.of if size.window is None else self.add("windows", size.of, size.window)

    def keep(self, one: Derived, is_offered: bool = True) -> int:
        """Return the number of a derived column, which is kept if it is new."""
        if one not in self._numbers:
            self._numbers[one] = len(self.inputs) + len(self.derived)
            self.derived.append(one)
        number = self._numbers[one]
        if is_offered and number not in self.offered:
            self.offered.append(number)
        return number


@dataclass(frozen=True)
class Size:
    """A feature of the problem that is a count, or how many places a window of another feature's size has in it."""

    of: int
    window: int | None = None


@dataclass(frozen=True)
class Fit:
    """A size of the problem against a tile of the config: the numbers of the columns that tell how they fit."""

    size: int
    tile: int
    tiles: int
    waste: int  # what the tiles cover / the size
    full: int  # what whole tiles cover / the size


@dataclass(frozen=True)
class Cut:
    """A size of the problem, and the parameters of the config whose product is the tile that cuts it.

    Where there is a `block`, a further parameter, the size is cut into such blocks first, and every block into tiles.
    """

    size: Size
    parameters: tuple[int, ...]
    block: int | None = None


def cuts(formulas: Formulas, fits: Sequence[Fit], gains: Sequence[float]) -> tuple[Cut, ...]:
    """Return what cuts which size: the fits that helped most, each size and each parameter in one of them at most.

    `gains` has a number for every column: how much it helped. Fits that help by a small part of the best are chance.
    """
    helped = [(gains[fit.tiles] + gains[fit.waste] + gains[fit.full], fit) for fit in fits]
    ranked = sorted(helped, key=lambda pair: -pair[0])
    found: list[Cut] = []
    for gain, fit in ranked:
        if len(found) == _MOST_CUTS or gain < _CHANCE * ranked[0][0]:
            break
        size, parameters = Size(*formulas.parts(fit.size)), formulas.parts(fit.tile)
        taken = {number for cut in found for number in (cut.size.of, *cut.parameters)}
        if taken.isdisjoint((size.of, *parameters)):
            found.append(Cut(size, parameters))
    return tuple(found)


def simple(table: Pairs) -> tuple[Formulas, list[Fit]]:
    """Return products and ratios of sizes, and how every size, windows among them, fits every parameter."""
    formulas = Formulas(table.inputs)
    problems = len(table.problem_inputs)
    known = Frame(table.problem_inputs, table.values[:, :problems], table.whole[:problems])
    for one in derivations(known, "sizes"):
        formulas.keep(one)
    sizes, tiles = [formulas.size(size) for size in _all_sizes(table)], tile_parameters(table)
    return formulas, [_fit(formulas, size, tile) for size in sizes for tile in tiles]


def combined(formulas: Formulas, fits: Sequence[Fit], gains: Sequence[float], most: int) -> list[Fit]:
    """Add how the sizes fit products of two parameters, for the `most` sizes and parameters that matter most.

    `gains` has a number for every column: how much it helped. Returns the new fits.
    """
    sizes = _foremost(formulas, {fit.size for fit in fits}, gains, most)
    tiles = _foremost(formulas, {fit.tile for fit in fits}, gains, most)
    products = [formulas.add("product", *sorted(pair)) for pair in combinations(tiles, 2)]
    return [_fit(formulas, size, product) for size in sizes for product in products]


def grids(formulas: Formulas, fits: Sequence[Fit], gains: Sequence[float], most: int) -> None:
    """Add how many tiles two sizes make together, how much these waste and how much is in whole ones.

    That is done for the `most` fits that matter most.
    """
    ranked = sorted(fits, key=lambda fit: -(gains[fit.tiles] + gains[fit.waste] + gains[fit.full]))[:most]
    cores = [n for n, column in enumerate(formulas.inputs) if _is_cores(column)]
    for one, other in combinations(sorted(ranked, key=lambda fit: (fit.size, fit.tile)), 2):
        if one.size != other.size and one.tile != other.tile:
            count = formulas.add("product", one.tiles, other.tiles)
            formulas.add("product", one.waste, other.waste)
            formulas.add("product", one.full, other.full)
            for core in cores:
                formulas.add("ratio", count, core)


def matrix(values: Floats, derived: Sequence[Derived], numbers: Sequence[int]) -> Floats:
    """Return some of the columns as an array, worked out from the inputs."""
    columns = worked_out(values, derived)
    return np.stack([columns[number] for number in numbers], axis=1)


def _fit(formulas: Formulas, size: int, tile: int) -> Fit:
    tiles = formulas.add("tiles", size, tile)
    rest = formulas.add("remainder", size, tile)
    covered = formulas.add("product", tiles, tile, is_offered=False)
    waste = formulas.add("ratio", covered, size)
    within = formulas.add("difference", size, rest, is_offered=False)
    return Fit(size, tile, tiles, waste, formulas.add("ratio", within, size))


def sizes_of(table: Pairs) -> list[int]:
    """Return the features of the problem that are counts of something: what tiles may cut."""
    problems = len(table.problem_inputs)
    return [n for n in range(problems) if _is_count(table, n) and not _is_cores(table.inputs[n])]


def _all_sizes(table: Pairs) -> list[Size]:
    """Return counts, and windows within them: the smallest of those that are never larger than another one."""
    counts, values = sizes_of(table), table.values
    found = [Size(of, window) for of, window in permutations(counts, 2) if (values[:, of] >= values[:, window]).all()]
    found.sort(key=lambda size: values[:, size.window].max())
    return [*map(Size, counts), *found[:_MOST_WINDOWS]]


def tile_parameters(table: Pairs) -> list[int]:
    """Return the parameters of the config that are counts of something: what may be a tile."""
    return [n for n in range(len(table.problem_inputs), len(table.inputs)) if _is_count(table, n)]


def _is_count(table: Pairs, number: int) -> bool:
    column = table.inputs[number]
    return isinstance(column, Number) and table.whole[number] and 0 < column.low < column.high < _LARGEST


def _is_cores(column: Input) -> bool:
    return isinstance(column, Number) and column.low > 0 and column.name.rpartition(".")[2] == _CORES


def _foremost(formulas: Formulas, numbers: set[int], gains: Sequence[float], most: int) -> list[int]:
    """Return those of the inputs that helped most, counting the columns they are part of."""
    total = {number: gains[number] for number in numbers}
    for place, one in enumerate(formulas.derived):
        for number in numbers.intersection(one.of):
            total[number] += gains[len(formulas.inputs) + place]
    return sorted(sorted(numbers), key=lambda number: -total[number])[:most]
