"""The plain reference: every query with every key, and a dense mask. Slow, and easy to believe."""

import functools

import torch
from torch import Tensor

from .window import Axes, axes_of


def seen(axes: Axes) -> Tensor:
    """Return which keys every query sees, as (tokens, tokens)."""

    def along(axis):
        matrix = torch.zeros(axis.size, axis.size, dtype=torch.bool)
        for position in range(axis.size):
            matrix[position, list(axis.window(position))] = True
        return matrix

    return functools.reduce(lambda left, right: torch.kron(left.int(), right.int()).bool(), map(along, axes))


def reference(q, k, v, kernel_size, dilation=1, is_causal=False, *, scale=None):
    """Return neighborhood attention of (batch, *grid, heads, width) tensors, computed in their own precision."""
    axes = axes_of(q.shape[1:-2], kernel_size, dilation, is_causal)
    heads = [one.flatten(1, -3).transpose(1, 2) for one in (q, k, v)]
    scores = heads[0] @ heads[1].transpose(-1, -2) * (q.shape[-1] ** -0.5 if scale is None else scale)
    weights = torch.softmax(scores.masked_fill(~seen(axes), -torch.inf), -1)
    return (weights @ heads[2]).transpose(1, 2).reshape(*q.shape[:-1], v.shape[-1])
