"""The backward pass, and a forward pass for what flex_attention does not compile: tiles of queries by plain products.

For each tile of queries the keys of all its windows are gathered and a few tiles are computed at once. The keys may be
split: then each part is computed by itself, with less in the cache, and the weights are worked out in a pass before.
"""

import functools
from collections.abc import Iterator
from math import prod
from typing import NamedTuple

import torch
from torch import Tensor

from . import tiles
from .tiles import Tile
from .window import Axes, Axis

_SCORES = 1 << 18  # computed at once: about what a cache holds


class Gathering(NamedTuple):
    """The tiles of queries and the keys around each of them."""

    tokens: Tensor  # (tiles, tile): the token of each query; a slot without one stands in for another
    is_token: Tensor  # (tiles, tile)
    around: Tensor  # (tiles, window): the tokens of the keys
    seen: Tensor  # (tiles, tile, window): which of them a query sees


class Part(NamedTuple):
    """Some tiles with some of the keys around them."""

    tokens: Tensor
    is_token: Tensor
    around: tuple[Tensor, ...]  # one for each split of the keys
    seen: tuple[Tensor, ...]


@functools.lru_cache(maxsize=32)
def gathering(axes: Axes, tile: Tile) -> Gathering:
    """Return the tiles of queries and their keys."""
    along = [tiles.queries(axis, width) for axis, width in zip(axes, tile, strict=True)]
    tokens = tiles.token_order(axes, [one.positions for one in along]).view(-1, prod(tile))
    windows = [_around(axis, one) for axis, one in zip(axes, along, strict=True)]
    around = tiles.token_order(axes, [positions for positions, _ in windows]).view(len(tokens), -1)
    seen = functools.reduce(_outer, [one for _, one in windows])
    return Gathering(tokens, _first_of_its_token(tokens), around, seen)


def attend(q: Tensor, k: Tensor, v: Tensor, axes: Axes, scale: float, tile: Tile) -> Tensor:
    """Return the attention of (batch, tokens, heads, width) tensors."""
    heads = [one.transpose(1, 2) for one in (q, k, v)]
    out = torch.empty_like(v.expand(*q.shape[:3], v.shape[3])).transpose(1, 2)
    for part in _parts(axes, tile, 1, q.shape[0] * q.shape[2]):
        (around,), (seen,) = part.around, part.seen
        weights = _weights(heads[0][:, :, part.tokens], heads[1][:, :, around], seen, scale)
        out[:, :, part.tokens] = weights @ heads[2][:, :, around]
    return out.transpose(1, 2)


def gradients(
    grad: Tensor, q: Tensor, k: Tensor, v: Tensor, out: Tensor, axes: Axes, scale: float, tile: Tile, kv_split: int
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the gradients of q, k and v, all (batch, tokens, heads, width), from that of the result."""
    with torch.no_grad():
        given = [one.to(_precise(q)).transpose(1, 2).contiguous() for one in (q, k, v, grad, out)]
        queries, keys, values, up, result = given
        towards = (up * result).sum(-1, keepdim=True)
        found = [torch.zeros_like(one) for one in (queries, keys, values)]
        for part in _parts(axes, tile, kv_split, q.shape[0] * q.shape[2]):
            _add(part, (queries, keys, values, up, towards), found, scale)
        dq, dk, dv = (one.transpose(1, 2).to(q.dtype).contiguous() for one in found)
        return dq, dk, dv


def window_size(axes: Axes, tile: Tile) -> int:
    """Return how many keys are gathered for each tile of queries."""
    return prod(_width(tiles.queries(axis, width)) for axis, width in zip(axes, tile, strict=True))


def _add(part: Part, given: tuple[Tensor, ...], found: list[Tensor], scale: float) -> None:
    """Add the gradients of some tiles to all."""
    queries, keys, values, up, towards = given
    q, grad, towards = (one[:, :, part.tokens] for one in (queries, up, towards))
    grad = grad * part.is_token[..., None]  # what stands in for another query adds nothing of its own
    total = _total(q, keys, part, scale) if len(part.around) > 1 else None
    dq = torch.zeros_like(q)
    for around, seen in zip(part.around, part.seen, strict=True):
        k, v = keys[:, :, around], values[:, :, around]
        weights = _weights(q, k, seen, scale, total)
        by_score = grad @ v.transpose(-1, -2)
        by_score.sub_(towards * part.is_token[..., None]).mul_(weights).mul_(scale)
        dq += by_score @ k
        _scatter(found[1], around, by_score.transpose(-1, -2) @ q)
        _scatter(found[2], around, weights.transpose(-1, -2) @ grad)
    _scatter(found[0], part.tokens, dq)


def _weights(q: Tensor, k: Tensor, seen: Tensor, scale: float, total: Tensor | None = None) -> Tensor:
    scores = (q @ k.transpose(-1, -2)).mul_(scale).masked_fill_(~seen, -torch.inf)
    return torch.softmax(scores, -1) if total is None else scores.sub_(total).exp_()


def _total(q: Tensor, keys: Tensor, part: Part, scale: float) -> Tensor:
    """Return the logarithm of the sum of all weights of a query, over all splits of its keys."""
    sums = []
    for around, seen in zip(part.around, part.seen, strict=True):
        scores = (q @ keys[:, :, around].transpose(-1, -2)).mul_(scale).masked_fill_(~seen, -torch.inf)
        sums.append(torch.logsumexp(scores, -1, keepdim=True))
    return torch.logsumexp(torch.cat(sums, -1), -1, keepdim=True)


def _scatter(whole: Tensor, places: Tensor, values: Tensor) -> None:
    whole.index_add_(2, places.flatten(), values.flatten(2, 3))


def _parts(axes: Axes, tile: Tile, kv_split: int, copies: int) -> Iterator[Part]:
    """Yield all tiles, some at a time, with their keys in so many splits; `copies` is batch times heads."""
    made = gathering(axes, tile)
    window = made.around.shape[1]
    width = -(-window // kv_split)
    at_once = max(1, _SCORES // (copies * prod(tile) * width))
    for some in zip(*(one.split(at_once) for one in made), strict=True):
        tokens, is_token, around, seen = some
        yield Part(tokens, is_token, around.split(width, -1), seen.split(width, -1))


def _around(axis: Axis, along: tiles.Queries) -> tuple[Tensor, Tensor]:
    """Return the positions of the keys around each tile, and which of them each of its queries sees."""
    coordinates = along.first.amin(1, keepdim=True) + torch.arange(_width(along))
    group, index = coordinates // axis.longest, coordinates % axis.longest
    positions = (index * axis.dilation + group).clamp_(max=axis.size - 1)  # what lies outside is seen by nobody
    at = coordinates[:, None, :]
    return positions, (at >= along.first[..., None]) & (at < along.stop[..., None])


def _width(along: tiles.Queries) -> int:
    return int((along.stop.amax(1) - along.first.amin(1)).max())


def _first_of_its_token(tokens: Tensor) -> Tensor:
    """Return which slots hold a token themselves: the first of all slots with it does."""
    flat = tokens.flatten()
    first = torch.full((int(flat.max()) + 1,), len(flat)).scatter_reduce_(0, flat, torch.arange(len(flat)), "amin")
    return (first[flat] == torch.arange(len(flat))).view_as(tokens)


def _outer(left: Tensor, right: Tensor) -> Tensor:
    """Return what both say, for all (tiles, tile, window) of two axes."""
    both = left[:, None, :, None, :, None] & right[None, :, None, :, None, :]
    return both.flatten(4).flatten(2, 3).flatten(0, 1)


def _precise(q: Tensor) -> torch.dtype:
    return torch.float64 if q.dtype == torch.float64 else torch.float32
