"""Matrix product in C: register tile, cache blocks, packing, unrolling and loop order as one decision."""

import threading
from pathlib import Path
from typing import Any

import numpy as np

from tunewise.decision import Check, Config, MatmulFact, Problem, Space, boolean, detect, pow2, registers
from tunewise.errors import InvalidProblem
from tunewise.measure.ckernel import CKernel
from tunewise.session import Decision
from tunewise.workloads.compiled import Compiled

Array = np.ndarray[Any, np.dtype[np.float32]]

KERNEL = CKernel(
    Path(__file__).parent / "kernels" / "gemm.c",
    signature="const float *a, const float *b, float *c, int64_t m, int64_t n, int64_t k, "
    "int64_t mc, int64_t nc, int64_t kc, float *panels",
)
COMPILED = Compiled(
    KERNEL, ("mr", "nv", "vector", "unroll", "order", "pack_a", "pack_b")
)  # the blocks are given at run time


def _features(a: Array, b: Array) -> dict[str, int]:
    return {"m": a.shape[0], "n": b.shape[1], "k": a.shape[1]}


def _fact(problem: Problem) -> MatmulFact:
    m, n, k = (max(1, int(problem[name])) for name in "mnk")
    return MatmulFact(m, n, k)


def _inputs(problem: Problem, seed: int) -> tuple[Array, Array]:
    m, n, k = (int(problem[name]) for name in "mnk")
    return _matrices(m, n, k, seed)


def _ragged(problem: Problem) -> list[tuple[Array, Array]]:
    """Sizes of one, sizes around every tile's edge, more than one block of the smallest kind, and large values."""
    sizes = [(1, 1, 1), (1, 33, 7), (37, 1, 5), (5, 7, 1), (13, 17, 300), (29, 70, 65), (50, 300, 19)]
    large_a, large_b = _matrices(23, 41, 31, seed=9)
    return [*(_matrices(*size, seed=3) for size in sizes), (large_a * np.float32(1e6), large_b * np.float32(1e6))]


def _matrices(m: int, n: int, k: int, seed: int) -> tuple[Array, Array]:
    random = np.random.default_rng(seed)
    return random.standard_normal((m, k), np.float32), random.standard_normal((k, n), np.float32)


def _useful_share(problem: Problem, config: Config) -> float:
    """How much of what the tiles compute is part of the result; the rest is padding."""
    m, n = int(problem["m"]), int(problem["n"])
    rows, columns = int(config["mr"]), int(config["nv"]) * int(config["vector"])  # type: ignore[arg-type]
    return (m * n) / (-(-m // rows) * rows * -(-n // columns) * columns)


def _space() -> Space:
    machine = detect()
    return Space(
        {
            "mr": [1, 2, 3, 4, 5, 6, 8, 10, 12],
            "nv": [1, 2, 3, 4],
            "vector": registers.vector_widths(machine),
            "unroll": [1, 2, 4],
            "order": ["down", "along"],
            "pack_a": boolean(),
            "pack_b": boolean(),
            "mc": [24, 48, 96, 192, 384],
            "nc": [256, 1024, 4096],
            "kc": pow2(64, 1024),
        },
        rules=[
            # the tile of C, one row of B's panel and one element of A
            f"mr * nv + nv + 1 <= {registers.register_count(machine)}",
            "mr * nv >= 4",  # fewer sums leave the multiply-add units waiting for each other
            "unroll == 1 or unroll * mr * nv <= 32",  # longer loop bodies only spill
            "mc * kc <= 131072",  # a block of A stays in the second cache
        ],
    )


GEMM = Decision(
    "gemm",
    space=_space(),
    default={
        "mr": 6,
        "nv": 2,
        "vector": registers.native_width(detect()),
        "unroll": 1,
        "order": "down",
        "pack_a": True,
        "pack_b": True,
        "mc": 96,
        "nc": 4096,
        "kc": 256,
    },
    features=_features,
    derived={
        "flops": lambda problem: 2 * problem["m"] * problem["n"] * problem["k"],
        "useful_share": _useful_share,
    },
    facts=_fact,
    inputs=_inputs,
    check=Check(inputs=_ragged),
    backend="c",
    libraries=("numpy",),
)


@GEMM.implementation(build=COMPILED.build, load=COMPILED.load, facts=KERNEL.facts)
def matmul(a: Array, b: Array, **config: Any) -> Array:
    """Return the product of two contiguous float32 matrices."""
    if a.ndim != 2 or b.ndim != 2 or a.shape[1] != b.shape[0]:
        raise InvalidProblem(f"matrices of shape {a.shape} and {b.shape} cannot be multiplied: need (m, k) and (k, n)")
    (m, k), n = a.shape, b.shape[1]
    if k == 0:
        return np.zeros((m, n), np.float32)
    c: Array = np.empty((m, n), np.float32)
    blocks = (config["mc"], config["nc"], config["kc"])
    COMPILED.load(config)(a, b, c, m, n, k, *blocks, _room(panel_floats(m, n, k, config)))
    return c


def panel_floats(m: int, n: int, k: int, config: dict[str, Any]) -> int:
    """Return how many floats of packed panels a call needs, as `run` in gemm.c lays them out."""
    rows, columns = config["mr"], config["nv"] * config["vector"]
    depth: int = min(config["kc"], k)
    packed_a: int = _up(min(config["mc"], m), rows) if config["pack_a"] else rows
    packed_b: int = _up(min(config["nc"], n), columns) if config["pack_b"] else columns
    return _up(packed_a * depth, 16) + packed_b * depth


def _up(size: int, step: int) -> int:
    return -(-size // step) * step


class _Rooms(threading.local):
    """Each thread's room for panels, aligned to a cache line; it only grows."""

    panels: Array = np.empty(0, np.float32)


_rooms = _Rooms()


def _room(floats: int) -> Array:
    if _rooms.panels.size < floats:
        raw = np.empty(floats + 16, np.float32)
        start = -raw.ctypes.data % 64 // 4
        _rooms.panels = raw[start : start + floats]
    return _rooms.panels


DECISIONS = {"gemm": GEMM}
