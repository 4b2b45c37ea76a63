"""The ops: neighborhood attention on grids of one, two and three dimensions, differentiable, opaque to the compiler.

They are custom ops of torch.library, so a model that calls them is compiled by torch.compile without a graph break: the
tiles are looked up, or tuned, when the compiled model runs.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from . import backward, forward, tuning
from .window import axes_of

Per = int | Sequence[int]
PerFlag = bool | Sequence[bool]


def na1d(
    q: Tensor, k: Tensor, v: Tensor, kernel_size: Per, dilation: Per = 1, is_causal: PerFlag = False, **options
) -> Tensor:
    """Return neighborhood attention of (batch, tokens, heads, width) tensors; takes what `na2d` takes."""
    return _attention(1, q, k, v, kernel_size, dilation, is_causal, **options)


def na2d(
    q: Tensor, k: Tensor, v: Tensor, kernel_size: Per, dilation: Per = 1, is_causal: PerFlag = False, **options
) -> Tensor:
    """Return neighborhood attention of (batch, height, width of the grid, heads, width) tensors.

    `kernel_size` (odd), `dilation` and `is_causal` are one value, or one for each dimension. `scale` multiplies the
    products (1 / sqrt(width) unless given). What a profiler found may be given for good: `q_tile_shape` with
    `kv_tile_shape`, and `backward_q_tile_shape` with `backward_kv_splits`; no decision is asked then.
    Raises ValueError for tensors and windows that do not fit together.
    """
    return _attention(2, q, k, v, kernel_size, dilation, is_causal, **options)


def na3d(
    q: Tensor, k: Tensor, v: Tensor, kernel_size: Per, dilation: Per = 1, is_causal: PerFlag = False, **options
) -> Tensor:
    """Return neighborhood attention of (batch, depth, height, width, heads, width) tensors; takes what `na2d` takes."""
    return _attention(3, q, k, v, kernel_size, dilation, is_causal, **options)


def _attention(
    dims: int,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    kernel_size: Per,
    dilation: Per,
    is_causal: PerFlag,
    *,
    scale: float | None = None,
    q_tile_shape: Sequence[int] = (),
    kv_tile_shape: Sequence[int] = (),
    backward_q_tile_shape: Sequence[int] = (),
    backward_kv_splits: int = 1,
) -> Tensor:
    _check(dims, q, k, v)
    axes = axes_of(q.shape[1:-2], kernel_size, dilation, is_causal)
    _check_tiles(
        dims, q_tile_shape=q_tile_shape, kv_tile_shape=kv_tile_shape, backward_q_tile_shape=backward_q_tile_shape
    )
    if bool(q_tile_shape) != bool(kv_tile_shape):
        raise ValueError("q_tile_shape and kv_tile_shape are given together, or neither is")
    if type(backward_kv_splits) is not int or backward_kv_splits < 1:
        raise ValueError(f"backward_kv_splits={backward_kv_splits!r} is not a whole number of at least 1")
    if backward_kv_splits > 1 and not backward_q_tile_shape:
        raise ValueError(f"backward_kv_splits={backward_kv_splits} is given without backward_q_tile_shape")
    out = attend(
        *(one.flatten(1, -3) for one in (q, k, v)),
        [axis.size for axis in axes],
        [axis.kernel for axis in axes],
        [axis.dilation for axis in axes],
        [axis.causal for axis in axes],
        q.shape[-1] ** -0.5 if scale is None else scale,
        [*q_tile_shape, *kv_tile_shape],
        [*backward_q_tile_shape, backward_kv_splits] if backward_q_tile_shape else [],
    )
    return out.unflatten(1, q.shape[1:-2])


@torch.library.custom_op("neighborhood_attention::attend", mutates_args=())
def attend(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    grid: Sequence[int],
    kernel: Sequence[int],
    dilation: Sequence[int],
    causal: Sequence[bool],
    scale: float,
    tiles: Sequence[int],
    backward_tiles: Sequence[int],
) -> Tensor:
    """Return the attention of (batch, tokens, heads, width) tensors."""
    axes, dims = axes_of(grid, list(kernel), list(dilation), list(causal)), len(grid)
    q, k, v = q.detach(), k.detach(), v.detach()
    if not forward.compiles_for(q):
        return backward.attend(q, k, v, axes, scale, tuple(tiles[:dims]) or tuning.DEFAULTS[dims])
    if tiles:
        return forward.flex(q, k, v, axes, scale, tuple(tiles[:dims]), tuple(tiles[dims:]))
    return tuning.attend(q, k, v, axes, scale)


@torch.library.custom_op("neighborhood_attention::gradients", mutates_args=())
def gradients(
    grad: Tensor,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    out: Tensor,
    grid: Sequence[int],
    kernel: Sequence[int],
    dilation: Sequence[int],
    causal: Sequence[bool],
    scale: float,
    tiles: Sequence[int],
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the gradients of q, k and v."""
    axes = axes_of(grid, list(kernel), list(dilation), list(causal))
    given = [one.detach() for one in (grad, q, k, v, out)]
    if tiles:
        return backward.gradients(*given, axes, scale, tuple(tiles[:-1]), tiles[-1])
    return tuning.gradients(*given, axes, scale)


@attend.register_fake
def _(q, k, v, *rest):
    return v.new_empty(*q.shape[:-1], v.shape[-1])


@gradients.register_fake
def _(grad, q, k, v, *rest):
    return q.new_empty(q.shape), k.new_empty(k.shape), v.new_empty(v.shape)


def _keep(ctx, inputs, output) -> None:
    *tensors, grid, kernel, dilation, causal, scale, _, backward_tiles = inputs
    ctx.save_for_backward(*tensors, output)
    ctx.facts = grid, kernel, dilation, causal, scale, backward_tiles


def _backward(ctx, grad):
    return *gradients(grad, *ctx.saved_tensors, *ctx.facts), *[None] * 7


attend.register_autograd(_backward, setup_context=_keep)


def _check(dims: int, q: Tensor, k: Tensor, v: Tensor) -> None:
    if q.dim() != dims + 3:
        names = ", ".join(["batch", *("depth", "height", "width")[-dims:], "heads", "dim"])
        raise ValueError(f"na{dims}d takes tensors of ({names}), not of shape {tuple(q.shape)}")
    if q.shape != k.shape or k.shape[:-1] != v.shape[:-1]:
        shapes = ", ".join(str(tuple(one.shape)) for one in (q, k, v))
        raise ValueError(f"q, k and v are of the shapes {shapes}; they must be alike but for the width of v")
    if len({q.dtype, k.dtype, v.dtype}) > 1 or len({q.device, k.device, v.device}) > 1:
        raise ValueError(f"q, k and v are {q.dtype}, {k.dtype}, {v.dtype}; they must be of one type and on one device")
    if not q.is_floating_point():
        raise ValueError(f"q, k and v are {q.dtype}; this op is for floating-point numbers")
    if q.numel() == 0 or v.numel() == 0:
        raise ValueError(f"q is of the shape {tuple(q.shape)} and v of {tuple(v.shape)}; there is nothing to attend to")
    if q.device.type != "cpu":
        raise ValueError(f"the tensors are on {q.device}; this op is for the CPU")


def _check_tiles(dims: int, **shapes: Sequence[int]) -> None:
    for name, shape in shapes.items():
        is_shape = isinstance(shape, tuple | list) and all(type(side) is int and side > 0 for side in shape)
        if not is_shape or len(shape) not in (0, dims):
            raise ValueError(f"{name}={shape!r} is not a tile of {dims} positive sides")
