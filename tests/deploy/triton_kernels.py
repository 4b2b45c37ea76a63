"""Kernels for the tests of the Triton adapter: real ones, compiled for a GPU that is not there."""

from typing import Any

import triton
import triton.language as tl
from triton_stage import Tensor

FACTOR = tl.constexpr(2.0)


def scale(x, y, n, BLOCK: tl.constexpr):  # noqa: N803
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + at, tl.load(x + at, mask=at < n) * FACTOR, mask=at < n)


@triton.jit
def total(x, y, n, BLOCK: tl.constexpr):  # noqa: N803
    at = tl.arange(0, BLOCK)
    tl.store(y, tl.sum(tl.load(x + at, mask=at < n, other=0.0)))


@triton.jit
def multiply(a, b, c, k, a_row, b_row, c_row, BLOCK: tl.constexpr, DEPTH: tl.constexpr):  # noqa: N803
    across, down = tl.arange(0, BLOCK), tl.arange(0, DEPTH)
    left = a + across[:, None] * a_row + down[None, :]
    right = b + down[:, None] * b_row + across[None, :]
    sums = tl.zeros((BLOCK, BLOCK), dtype=tl.float32)
    for _ in range(0, k, DEPTH):
        sums += tl.dot(tl.load(left), tl.load(right))
        left += DEPTH
        right += DEPTH * b_row
    tl.store(c + across[:, None] * c_row + across[None, :], sums.to(tl.float16))


FORTY = [
    triton.Config({"BLOCK": block}, num_warps=warps, num_stages=stages)
    for block in (64, 128, 256, 512, 1024)
    for warps in (1, 2, 4, 8)
    for stages in (2, 3)
]


def scaling(configs: list[Any] | None = None, **options: Any) -> Any:
    """Return a new autotuner, as a new process would have it."""
    return triton.autotune(configs=configs or FORTY, key=["n"], **options)(triton.jit(scale))


def launch(kernel: Any, n: int) -> None:
    """Launch a kernel that takes two vectors and their length."""
    kernel[(1,)](Tensor(tl.float32), Tensor(tl.float32), n)
