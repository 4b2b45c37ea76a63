"""What tests of neighborhood attention share: the example on the path, tensors, and attention without a compiler."""

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

sys.path.insert(0, str(Path(__file__).parents[2] / "examples"))
import neighborhood_attention as na
from neighborhood_attention import forward, tiles, tuning
from neighborhood_attention.forward import Layout
from neighborhood_attention.reference import seen
from neighborhood_attention.window import Axis, axes_of

__all__ = ["Axis", "axes_of", "distances", "forward", "na", "seen", "tensors", "tiles", "tuning", "uncompiled"]

EXAMPLES = Path(__file__).parents[2] / "examples"
OPS = {1: na.na1d, 2: na.na2d, 3: na.na3d}


def tensors(grid: tuple[int, ...], dtype: torch.dtype = torch.float32, heads: int = 2, width: int = 8) -> list[Any]:
    """Return queries, keys and values of a grid, to be differentiated by."""
    generator = torch.Generator().manual_seed(5)
    shape = (1, *grid, heads, width)
    return [torch.randn(shape, generator=generator, dtype=dtype).requires_grad_() for _ in range(3)]


def distances(given: list[Any], window: tuple[Any, ...], **tiles: Any) -> list[float]:
    """Return how far the result and the gradients of q, k and v are from those of the reference."""
    dims = given[0].dim() - 3
    found = []
    for attention, more in ((OPS[dims], tiles), (na.reference, {})):
        out = attention(*given, *window, **more)
        up = torch.linspace(-1, 1, out.numel(), dtype=out.dtype).view_as(out)
        found.append([out.detach(), *torch.autograd.grad(out, given, up)])
    return [float((ours - theirs).abs().max()) for ours, theirs in zip(*found, strict=True)]


@pytest.fixture
def uncompiled() -> Iterator[None]:
    """Let a test run without a compiler."""
    with pytest.MonkeyPatch.context() as patch:
        do_without_compiler(patch)
        yield
    do_without_compiler(None)


def do_without_compiler(patch: pytest.MonkeyPatch | None) -> None:
    """Put the stand-in for compiled code in, or forget it; what is declared anew sees the other source."""
    if patch is not None:
        patch.setattr(forward, "_fresh", interpreted)
    forward._compiled.clear()
    tuning._forward_pass.cache_clear()
    tuning._backward_pass.cache_clear()  # its source reaches the other's


def interpreted(dims: int, scale: float, q_block: int, kv_block: int) -> Callable[..., Any]:
    """Stand in for compiled code: what the block lists and the tables say, taken at their word."""

    def attend(q: Any, k: Any, v: Any, *made: Any) -> Any:
        laid = Layout(*made)
        at = laid.coordinates[:, None, :]
        seen = ((at >= laid.first[..., None]) & (at < laid.stop[..., None])).all(0)
        partial, whole = (_dense(*lists) for lists in (made[6:8], made[8:10]))
        partial, whole = (one.repeat_interleave(q_block, 0).repeat_interleave(kv_block, 1) for one in (partial, whole))
        heads = [one.transpose(1, 2) for one in (q[:, laid.q_order], k[:, laid.kv_order], v[:, laid.kv_order])]
        out = torch.nn.functional.scaled_dot_product_attention(*heads, attn_mask=whole | partial & seen, scale=scale)
        return out.transpose(1, 2)[:, laid.back]

    return attend


def _dense(count: Any, blocks: Any) -> Any:
    rows = torch.zeros(blocks.shape[2:], dtype=torch.bool)
    for row, (many, listed) in enumerate(zip(count[0, 0], blocks[0, 0], strict=True)):
        rows[row, listed[:many].long()] = True
    return rows
