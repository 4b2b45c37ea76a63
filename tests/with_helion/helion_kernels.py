"""A matrix product in Helion, bound the way its users bind it, on a CPU: Pallas in interpreter mode."""

import os

os.environ.update(
    HELION_BACKEND="pallas",
    HELION_PALLAS_INTERPRET="1",
    JAX_PLATFORMS="cpu",
    HELION_AUTOTUNE_PROGRESS_BAR="0",
    HELION_AUTOTUNE_LOG_LEVEL="0",
)

import helion
import helion.language as hl
import torch

Args = tuple[torch.Tensor, torch.Tensor]


def matmul(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    m, k = x.size()
    _, n = y.size()
    out = torch.empty([m, n], dtype=x.dtype, device=x.device)
    for tile_m, tile_n in hl.tile([m, n]):
        acc = hl.zeros([tile_m, tile_n], dtype=torch.float32)
        for tile_k in hl.tile(k):
            acc = torch.addmm(acc, x[tile_m, tile_k], y[tile_k, tile_n])
        out[tile_m, tile_n] = acc
    return out


@helion.aot_kernel()
def ahead(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    m, k = x.size()
    _, n = y.size()
    out = torch.empty([m, n], dtype=x.dtype, device=x.device)
    for tile_m, tile_n in hl.tile([m, n]):
        acc = hl.zeros([tile_m, tile_n], dtype=torch.float32)
        for tile_k in hl.tile(k):
            acc = torch.addmm(acc, x[tile_m, tile_k], y[tile_k, tile_n])
        out[tile_m, tile_n] = acc
    return out


def kernel(**settings: object) -> helion.Kernel:
    """Return the matrix product as a kernel of its own: Helion keeps what it chose in the kernel."""
    return helion.kernel(static_shapes=True, **settings)(matmul)


def squares(size: int) -> Args:
    """Return two square matrices."""
    torch.manual_seed(size)
    return torch.randn(size, size), torch.randn(size, size)


def is_right(result: torch.Tensor, args: Args) -> bool:
    return torch.allclose(result, args[0] @ args[1], atol=1e-3)
