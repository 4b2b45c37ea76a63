"""Runs kernels on the CPU by Triton's interpreter, and prints for each file whether its result is right.

A file begins with the op and K of its one kernel; M is 40, N is 24, and a program computes 32 rows of 16 columns.
"""

import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import torch
import triton

M, N, BATCH = 40, 24, 4


def main(place: Path) -> None:
    torch.manual_seed(0)
    for path in sorted(place.glob("*.py")):
        op, k, *_ = path.stem.split("-")
        print(path.stem, "right" if is_right(kernel_of(path), op, int(k)) else "wrong")


def is_right(kernel: Any, op: str, k: int) -> bool:
    batch = (BATCH,) if op == "bmm" else ()
    a, b, bias, out = (padded(*shape) for shape in ((*batch, M, k), (*batch, k, N), (N,), (*batch, M, N)))
    given = {"arg_A": a, "arg_B": b, "out_ptr0": out}
    kernel[(triton.cdiv(M, 32) * triton.cdiv(N, 16), *batch)](*(given.get(name, bias) for name in kernel.arg_names))
    expected = a @ b + (bias if op == "addmm" else 0)
    return bool(torch.allclose(out, expected, rtol=1e-4, atol=1e-4))


def padded(*shape: int) -> torch.Tensor:
    """Return a random tensor with others' numbers after its end: who reads them gets a wrong result, and no fault."""
    size = 1
    for length in shape:
        size *= length
    return torch.randn(2 * size + 10_000)[:size].view(shape)


def kernel_of(path: Path) -> Any:
    spec = spec_from_file_location(path.stem.replace("-", "_"), path)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    (kernel,) = (held for name, held in vars(module).items() if name.startswith("triton_"))
    return kernel


main(Path(sys.argv[1]))
