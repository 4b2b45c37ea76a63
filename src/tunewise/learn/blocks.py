"""Which sizes are cut into blocks before tiles cut these: what a law that knows of the blocks explains better."""

from dataclasses import replace

import numpy as np

from tunewise.formats.dataset import Floats
from tunewise.learn.derived import Cut, tile_parameters
from tunewise.learn.law import law_of
from tunewise.learn.pairs import Pairs

_BETTER = 0.99  # of what a law is off without a block: with a wrong one it is off by as much, or by more
_HOLD_TILES = 0.9  # of all rows: a parameter that is often smaller than the tile is no block of tiles
_MOST_TRIED = 8  # laws are learned to compare, and each takes half a second


def blocked(table: Pairs, cuts: tuple[Cut, ...]) -> tuple[Cut, ...]:
    """Return the cuts, with blocks where these help a law to explain a table; a parameter is the block of one size.

    Tiles that do not fill a block leave something over in every block, not only at the end of a size.
    """
    tried = _candidates(table, cuts)[:_MOST_TRIED]
    least = _off(table, cuts) if tried else 0.0
    offs = {(place, block): _off(table, _with(cuts, place, block)) for place, block in tried}
    found = cuts
    for place, block in sorted(offs, key=lambda pair: offs[pair]):
        taken = {cut.block for cut in found}
        if offs[place, block] < _BETTER * least and block not in taken and found[place].block is None:
            found = _with(found, place, block)
    return found


def _candidates(table: Pairs, cuts: tuple[Cut, ...]) -> list[tuple[int, int]]:
    """Return the places of cuts, and parameters that may be blocks there: no tile themselves, and larger than it."""
    tiles = {number for cut in cuts for number in cut.parameters}
    others = [number for number in tile_parameters(table) if number not in tiles]
    return [(place, block) for block in others for place, cut in enumerate(cuts) if _may_hold(table.values, cut, block)]


def _may_hold(values: Floats, cut: Cut, block: int) -> bool:
    """Return whether tiles are in the blocks, and some are cut off at the end of one that is within its size."""
    tile, size = np.prod(values[:, list(cut.parameters)], axis=1), values[:, cut.size.of]
    ends = (values[:, block] < size) & (values[:, block] % tile > 0)
    return bool(np.mean(values[:, block] >= tile) > _HOLD_TILES and ends.any())


def _with(cuts: tuple[Cut, ...], place: int, block: int) -> tuple[Cut, ...]:
    return (*cuts[:place], replace(cuts[place], block=block), *cuts[place + 1 :])


def _off(table: Pairs, cuts: tuple[Cut, ...]) -> float:
    """Return how far off a law is that was learned from a table, in differences between configs; infinite without."""
    law = law_of(table, cuts)
    if law is None:
        return float("inf")
    wrong = replace(table, cost=law.log_seconds(table.values)).target - table.target
    return float(np.sqrt(np.average(wrong[table.ran] ** 2, weights=table.weight[table.ran])))
