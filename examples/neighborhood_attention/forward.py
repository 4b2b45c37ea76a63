"""The forward pass: compiled flex_attention on tokens in tile order, with the block mask of the windows."""

import functools
import signal
import types
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.attention.flex_attention import BlockMask, flex_attention

from . import tiles
from .tiles import Tile
from .window import Axes

_compiled: dict[tuple[object, ...], Callable[..., Tensor]] = {}


class Layout(NamedTuple):
    """Everything that a tile shape decides, as tensors: compiled code sees only how large they are."""

    q_order: Tensor  # the token of every slot
    kv_order: Tensor
    back: Tensor  # the slot of every token
    first: Tensor  # (axes, slots): the keys that a query sees, as an interval of coordinates along each axis
    stop: Tensor
    coordinates: Tensor  # (axes, slots) of the keys
    partial_count: Tensor  # block lists, as flex_attention wants them
    partial_blocks: Tensor
    whole_count: Tensor
    whole_blocks: Tensor


@functools.lru_cache(maxsize=64)
def layout(axes: Axes, q_tile: Tile, kv_tile: Tile) -> Layout:
    """Return how tokens are ordered, and which blocks there are to compute."""
    q_along = [tiles.queries(axis, tile) for axis, tile in zip(axes, q_tile, strict=True)]
    kv_along = [tiles.keys(axis, tile) for axis, tile in zip(axes, kv_tile, strict=True)]
    q_order = tiles.token_order(axes, [one.positions for one in q_along])
    some, whole = tiles.blocks(axes, q_tile, kv_tile)
    back = torch.empty(q_order.max() + 1, dtype=torch.int64)
    back[q_order] = torch.arange(len(q_order))  # a slot that stands in for a token has the same result
    return Layout(
        q_order,
        tiles.token_order(axes, [one.positions for one in kv_along]),
        back,
        torch.stack(tiles.spread([one.first for one in q_along])),
        torch.stack(tiles.spread([one.stop for one in q_along])),
        torch.stack(tiles.spread([one.coordinates for one in kv_along])),
        *_listed(some & ~whole),
        *_listed(whole),
    )


def flex(q: Tensor, k: Tensor, v: Tensor, axes: Axes, scale: float, q_tile: Tile, kv_tile: Tile) -> Tensor:
    """Return the attention of (batch, tokens, heads, width) tensors; the first call for its sizes compiles it."""
    made = layout(axes, q_tile, kv_tile)
    q_block, kv_block = torch.Size(q_tile).numel(), torch.Size(kv_tile).numel()
    sizes = (q.shape, v.shape, q.dtype, len(made.first), len(made.q_order), len(made.kv_order))
    key = (*sizes, scale, q_block, kv_block, torch.get_num_threads())  # tiles and windows that agree in it share code
    with torch.no_grad():
        if key in _compiled:
            return _compiled[key](q, k, v, *made)
        code = _fresh(len(made.first), scale, q_block, kv_block)
        with _undisturbed():
            out = code(q, k, v, *made)
        _compiled[key] = code
        return out


def compiles_for(q: Tensor) -> bool:
    """Return whether torch compiles flex_attention for such tensors here."""
    is_known = q.device.type == "cpu" and q.dtype in (torch.float32, torch.bfloat16, torch.float16)
    return is_known and torch.cpu._is_avx2_supported()


@contextmanager
def _undisturbed() -> Iterator[None]:
    """Run a block that Ctrl-C waits for, also in the processes it starts.

    A C++ compiler that dies of it leaves torch with half a file in its cache, or with the belief that this processor
    has no vector instructions, and nothing compiles any more.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _fresh(dims: int, scale: float, q_block: int, kv_block: int) -> Callable[..., Tensor]:
    def attend(q: Tensor, k: Tensor, v: Tensor, *made: Tensor) -> Tensor:
        q_order, kv_order, back, first, stop, coordinates, *listed = made

        def mask(batch: Tensor, head: Tensor, query: Tensor, key: Tensor) -> Tensor:
            seen = [
                (coordinates[axis, key] >= first[axis, query]) & (coordinates[axis, key] < stop[axis, query])
                for axis in range(dims)
            ]
            return functools.reduce(torch.logical_and, seen)

        lengths, block = (len(q_order), len(kv_order)), (q_block, kv_block)
        block_mask = BlockMask.from_kv_blocks(
            *listed, BLOCK_SIZE=block, mask_mod=mask, seq_lengths=lengths, compute_q_blocks=False
        )
        tiled = (q[:, q_order], k[:, kv_order], v[:, kv_order])
        out = flex_attention(*(one.transpose(1, 2) for one in tiled), block_mask=block_mask, scale=scale)
        return out.transpose(1, 2)[:, back]

    # Code of its own: Dynamo compiles one piece of code so often, and then gives up.
    name = f"attend_{q_block}_{kv_block}"
    alone = types.FunctionType(
        attend.__code__.replace(co_name=name), attend.__globals__, name, attend.__defaults__, attend.__closure__
    )
    return torch.compile(alone, dynamic=False, fullgraph=True)


def _listed(matrix: Tensor) -> tuple[Tensor, Tensor]:
    """Return how many blocks each row has, and its blocks first in a list of all."""
    order = torch.argsort(matrix.int(), dim=1, descending=True, stable=True)
    return matrix.sum(1).int()[None, None], order.int()[None, None]
