"""Tile order: tokens of one tile lie side by side, so that a window is few blocks of a block mask.

Along an axis the slots run through the dilation groups, and through the tiles of each; the last tile of a group is
filled up where it is not whole. Tokens are ordered by the tiles of all axes first, and then by the places in a tile.
"""

import functools
from dataclasses import dataclass
from math import prod

import torch
from torch import Tensor

from .window import Axes, Axis

Tile = tuple[int, ...]
_FILL = -1  # the coordinate of a slot without a token: no window contains it


@dataclass(frozen=True)
class Queries:
    """The queries of one axis by tile (tiles, tile): where they stand, and the keys that they see, as coordinates.

    The coordinate of a token counts through the dilation groups, so a window is an interval of coordinates. A slot
    without a token stands in for the last token of its group: it sees something, and nobody reads the result.
    """

    positions: Tensor
    first: Tensor
    stop: Tensor


@dataclass(frozen=True)
class Keys:
    """The keys of one axis by tile (tiles, tile): where they stand, and their coordinates."""

    positions: Tensor
    coordinates: Tensor


@functools.lru_cache(maxsize=256)
def queries(axis: Axis, tile: int) -> Queries:
    """Return the queries of an axis in tile order."""
    rows = []
    for group, index in _slots(axis, tile):
        index = min(index, axis.length(group) - 1)
        offset = group * axis.longest
        rows.append((index * axis.dilation + group, *(offset + end for end in axis.span(group, index))))
    return Queries(*torch.tensor(rows, dtype=torch.int32).view(-1, tile, 3).unbind(-1))


@functools.lru_cache(maxsize=256)
def keys(axis: Axis, tile: int) -> Keys:
    """Return the keys of an axis in tile order."""
    rows = []
    for group, index in _slots(axis, tile):
        is_token = index < axis.length(group)
        rows.append((index * axis.dilation + group, group * axis.longest + index) if is_token else (0, _FILL))
    return Keys(*torch.tensor(rows, dtype=torch.int32).view(-1, tile, 2).unbind(-1))


@functools.lru_cache(maxsize=256)
def relation(axis: Axis, q_tile: int, kv_tile: int) -> tuple[Tensor, Tensor]:
    """Return which tiles of queries see anything of which tiles of keys, and which see all of it, along one axis."""
    seeing, seen = queries(axis, q_tile), keys(axis, kv_tile).coordinates
    is_token = seen != _FILL
    low = torch.where(is_token, seen, torch.iinfo(torch.int32).max).amin(1)
    high = seen.amax(1) + 1
    # Windows of neighbours overlap or touch: together they are one interval.
    some = (seeing.first.amin(1)[:, None] < high) & (seeing.stop.amax(1)[:, None] > low)
    whole = (seeing.first.amax(1)[:, None] <= low) & (seeing.stop.amin(1)[:, None] >= high) & is_token.all(1)
    return some, whole


def count_blocks(axes: Axes, q_tile: Tile, kv_tile: Tile) -> tuple[int, int]:
    """Return how many blocks of tiles have anything to compute, and how many of them need no mask."""
    relations = [relation(*along) for along in zip(axes, q_tile, kv_tile, strict=True)]
    some, whole = (prod(int(matrix.sum()) for matrix in matrices) for matrices in zip(*relations, strict=True))
    return some, whole


def blocks(axes: Axes, q_tile: Tile, kv_tile: Tile) -> tuple[Tensor, Tensor]:
    """Return which blocks have something to compute, and which need no mask, as (query tiles, key tiles)."""
    relations = [relation(*along) for along in zip(axes, q_tile, kv_tile, strict=True)]
    some, whole = (functools.reduce(_outer, matrices) for matrices in zip(*relations, strict=True))
    return some, whole


def token_order(axes: Axes, positions: list[Tensor]) -> Tensor:
    """Return the flat index of the token of every slot, where `positions` are those of each axis by tile."""
    order = torch.zeros((), dtype=torch.int64)
    for axis, along in zip(axes, spread(positions), strict=True):
        order = order * axis.size + along
    return order


def spread(along: list[Tensor]) -> list[Tensor]:
    """Return what is known along each axis (tiles, tile) for every slot of the whole, in tile order."""
    dims = len(along)
    shape = [len(one) for one in along] + [one.shape[1] for one in along]
    whole = []
    for axis, one in enumerate(along):
        view = [1] * 2 * dims
        view[axis], view[dims + axis] = one.shape
        whole.append(one.reshape(view).expand(shape).flatten())
    return whole


def _slots(axis: Axis, tile: int) -> list[tuple[int, int]]:
    longest = -(-axis.longest // tile) * tile
    return [(group, index) for group in range(axis.dilation) for index in range(longest)]


def _outer(left: Tensor, right: Tensor) -> Tensor:
    return (left[:, None, :, None] & right[None, :, None, :]).flatten(2).flatten(0, 1)
