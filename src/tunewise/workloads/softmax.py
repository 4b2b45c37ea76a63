"""Softmax over rows in C: algorithm, vector width, unrolling, exponential and column blocks as one decision."""

from pathlib import Path
from typing import Any

import numpy as np

from tunewise.decision import Check, Problem, ReductionFact, Space, detect, registers
from tunewise.errors import InvalidProblem
from tunewise.measure.ckernel import CKernel
from tunewise.session import Decision
from tunewise.workloads.compiled import Compiled

Array = np.ndarray[Any, np.dtype[np.float32]]

KERNEL = CKernel(
    Path(__file__).parent / "kernels" / "softmax.c",
    signature="const float *x, float *out, int64_t rows, int64_t columns, int64_t block",
)
COMPILED = Compiled(KERNEL, ("algorithm", "vector", "unroll", "exp"))


def _features(x: Array) -> dict[str, int]:
    return {"rows": x.shape[0], "columns": x.shape[1]}


def _inputs(problem: Problem, seed: int) -> tuple[Array]:
    return (_matrix(int(problem["rows"]), int(problem["columns"]), seed),)


def _ragged(problem: Problem) -> list[tuple[Array]]:
    """Rows shorter than a vector, around every unrolled step, longer than a block; masked and large values."""
    sizes = [(1, 1), (9, 1), (1, 9), (7, 3), (5, 15), (3, 67), (4, 129), (2, 2100), (1, 9001)]
    masked = _matrix(6, 83, seed=5)
    masked[:, ::3] = -np.inf
    return [*((_matrix(*size, seed=3),) for size in sizes), (masked,), (_matrix(5, 75, seed=9) * np.float32(1e4),)]


def _matrix(rows: int, columns: int, seed: int) -> Array:
    return np.random.default_rng(seed).standard_normal((rows, columns), np.float32) * np.float32(3)


def _space() -> Space:
    machine = detect()
    return Space(
        {
            "algorithm": ["store", "recompute", "online"],
            "vector": registers.vector_widths(machine),
            "unroll": [1, 2, 4, 8],
            "exp": ["libm", "poly5", "poly6"],
            "block": [0, 128, 512, 2048, 8192],
        },
        rules=[
            "(block > 0) == (algorithm == 'online')",  # only one algorithm goes by blocks
            "exp != 'libm' or unroll <= 4",  # calls of expf: a longer loop body only spills
        ],
    )


SOFTMAX = Decision(
    "softmax",
    space=_space(),
    default={
        "algorithm": "store",
        "vector": registers.native_width(detect()),
        "unroll": 2,
        "exp": "poly6",
        "block": 0,
    },
    features=_features,
    derived={"elements": lambda problem: problem["rows"] * problem["columns"]},
    facts=lambda problem: ReductionFact(max(1, int(problem["rows"])), max(1, int(problem["columns"])), passes=3),
    inputs=_inputs,
    check=Check(inputs=_ragged),
    backend="c",
    libraries=("numpy",),
)


@SOFTMAX.implementation(build=COMPILED.build, load=COMPILED.load, facts=KERNEL.facts)
def softmax(x: Array, **config: Any) -> Array:
    """Return the softmax of every row of a contiguous float32 matrix."""
    if x.ndim != 2:
        raise InvalidProblem(f"x of shape {x.shape} is not a matrix; use x.reshape(-1, x.shape[-1])")
    out: Array = np.empty(x.shape, np.float32)
    COMPILED.load(config)(x, out, *x.shape, config["block"])
    return out


DECISIONS = {"softmax": SOFTMAX}
