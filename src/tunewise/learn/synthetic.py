"""Problems that were never measured, drawn between those that were, for a teacher to answer."""

from collections.abc import Sequence

import numpy as np

from tunewise.formats.dataset import Floats, Numbers
from tunewise.learn.columns import Frame, is_size, short
from tunewise.models import Word

_NEIGHBORS = 20
_BEYOND, _BEYOND_BY_LAW = 0.25, 1.0  # of the way between two problems: how far past them a drawn one may be
_KEPT = 0.3  # how often a drawn problem keeps a feature of the first as it is: multiples of 64 are no accident
_ROUND = 0.3  # how often a size is made a multiple of some tile, for people choose sizes that fit
_MOST_MOVED = 1.5  # times: a size that would change by more than this to fit a tile stays as it is


def around(
    known: Frame, count: int, seed: int, tiles: Sequence[float] = (), *, by_law: bool = False
) -> tuple[Frame, Numbers]:
    """Return `count` problems, each drawn between a known one and a neighbour of it, and the number of that known one.

    Words come from the known problem, whole numbers stay whole, and nothing lies outside what is known. Where a law
    answers, which holds farther out, sizes lie as far out as a model will be asked: of a few dozen problems, many that
    come later are the largest or smallest of all in something. Where tiles are given, some sizes are multiples of one.
    """
    chance = np.random.default_rng(seed)
    origin = chance.integers(len(known), size=count)
    near = _neighbors(known)
    other = near[origin, chance.integers(near.shape[1], size=count)]
    values = known.values[origin].copy()
    beyond = _BEYOND_BY_LAW if by_law else _BEYOND
    for number, column in enumerate(known.inputs):
        step = chance.uniform(-beyond, 1 + beyond, size=count)
        moved = chance.random(count) >= _KEPT
        if isinstance(column, Word):
            continue
        seen = known.values[:, number]
        is_log = is_size(column) and bool(seen.min() > 0)
        low, high = (column.low, column.high) if by_law and is_log else (float(seen.min()), float(seen.max()))
        if known.whole[number]:
            low, high = float(np.ceil(low)), float(np.floor(high))
        drawn = _between(seen[origin], seen[other], step, is_log).clip(low, high)
        values[:, number] = np.where(moved, np.round(drawn) if known.whole[number] else drawn, seen[origin])
        if tiles and known.whole[number]:
            values[:, number] = _fitted(values[:, number], np.array(tiles), high, chance)
    return Frame(known.inputs, values, known.whole), origin


def _fitted(sizes: Floats, tiles: Floats, most: float, chance: np.random.Generator) -> Floats:
    """Return sizes of which some were moved to the nearest multiple of a tile, each of its own, if that is near."""
    tile = chance.choice(tiles, size=len(sizes))
    whole = np.maximum(np.round(sizes / tile), 1) * tile
    is_near = (whole <= np.minimum(sizes * _MOST_MOVED, most)) & (sizes <= whole * _MOST_MOVED)
    fitted: Floats = np.where(is_near & (chance.random(len(sizes)) < _ROUND), whole, sizes)
    return fitted


def _between(one: Floats, other: Floats, step: Floats, is_log: bool) -> Floats:
    with np.errstate(over="ignore"):  # what lies beyond all that is known is brought back to its edge
        if not is_log:
            return one + step * (other - one)
        drawn: Floats = np.exp(np.log(one) + step * (np.log(other) - np.log(one)))
    return drawn


def _neighbors(known: Frame) -> Numbers:
    """Return for every problem the numbers of those nearest to it; of itself where it is alone."""
    from sklearn.neighbors import NearestNeighbors

    count = min(_NEIGHBORS, len(known) - 1)
    if count < 1:
        return np.zeros((len(known), 1), dtype=np.int64)
    places = _standard(known)
    found: Numbers = NearestNeighbors(n_neighbors=count).fit(places).kneighbors(return_distance=False)
    return found


def _standard(known: Frame) -> Floats:
    columns = []
    for column, values in zip(known.inputs, known.values.T, strict=True):
        if isinstance(column, Word):
            columns += [(values == word).astype(np.float64) for word in range(len(column.words))]
        else:
            seen = np.log(values) if is_size(column) and values.min() > 0 else short(column, values)
            columns.append((seen - seen.mean()) / (seen.std() or 1.0))
    return np.stack(columns, axis=1)
