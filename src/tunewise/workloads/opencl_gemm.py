"""Matrix product in OpenCL: work-group, work per item, vector width and local memory as one decision."""

from pathlib import Path
from typing import Any

import numpy as np

from tunewise.decision import Check, Config, MatmulFact, Problem, Space, boolean, pow2
from tunewise.errors import InvalidProblem
from tunewise.measure.clkernel import POLICY, OpenCLKernel
from tunewise.session import Decision
from tunewise.workloads.compiled import defines

Array = np.ndarray[Any, np.dtype[np.float32]]

KERNEL = OpenCLKernel(Path(__file__).parent / "kernels" / "gemm.cl", "gemm", writes=(2,))


def _features(a: Array, b: Array) -> dict[str, int]:
    return {"m": a.shape[0], "n": b.shape[1], "k": a.shape[1]}


def _inputs(problem: Problem, seed: int) -> tuple[Array, Array]:
    m, n, k = (int(problem[name]) for name in "mnk")
    return _matrices(m, n, k, seed)


def _ragged(problem: Problem) -> list[tuple[Array, Array]]:
    """Sizes of one, sizes around every tile's edge, more than one tile of the largest kind, and large values."""
    sizes = [(1, 1, 1), (1, 33, 7), (37, 1, 5), (5, 7, 1), (29, 70, 65), (70, 300, 19)]
    large_a, large_b = _matrices(23, 41, 31, seed=9)
    return [*(_matrices(*size, seed=3) for size in sizes), (large_a * np.float32(1e6), large_b * np.float32(1e6))]


def _matrices(m: int, n: int, k: int, seed: int) -> tuple[Array, Array]:
    random = np.random.default_rng(seed)
    return random.standard_normal((m, k), np.float32), random.standard_normal((k, n), np.float32)


def _fact(problem: Problem) -> MatmulFact:
    m, n, k = (max(1, int(problem[name])) for name in "mnk")
    return MatmulFact(m, n, k)


def _useful_share(problem: Problem, config: Config) -> float:
    """How much of what the work-groups compute is part of the result; the rest is padding."""
    m, n = int(problem["m"]), int(problem["n"])
    rows, columns = _tile(config)
    return (m * n) / (-(-m // rows) * rows * -(-n // columns) * columns)


def _tile(config: Config) -> tuple[int, int]:
    """Return the rows and columns that a work-group computes."""
    wg_m, wg_n, tm, tn, vec = (int(config[name]) for name in ("wg_m", "wg_n", "tm", "tn", "vec"))  # type: ignore[arg-type]
    return wg_m * tm, wg_n * tn * vec


GEMM = Decision(
    "opencl-gemm",
    space=Space(
        {
            "wg_m": pow2(1, 32),
            "wg_n": pow2(1, 256),
            "tm": [1, 2, 4, 6, 8],
            "tn": [1, 2, 3, 4],
            "vec": pow2(1, 16),
            "local": boolean(),
            "tk": [8, 16, 32],
        },
        rules=[
            "tm * tn * vec <= 128",  # the sums of a work-item; more do not stay in registers anywhere
            "local or tk == 8",  # without local memory there is no depth of it
            "wg_m * tm <= 128 and wg_n * tn * vec <= 1024",  # larger tiles leave most of a device without work
        ],
    ),
    default={"wg_m": 8, "wg_n": 8, "tm": 4, "tn": 1, "vec": 4, "local": False, "tk": 8},
    features=_features,
    derived={
        "flops": lambda problem: 2 * problem["m"] * problem["n"] * problem["k"],
        "useful_share": _useful_share,
        "items": lambda problem, config: config["wg_m"] * config["wg_n"],
    },
    facts=_fact,
    inputs=_inputs,
    check=Check(reference=np.matmul, inputs=_ragged),
    policy=POLICY,
    backend="opencl",
    device="opencl",
    libraries=("pyopencl",),
)


@GEMM.implementation(facts=KERNEL.facts)
def matmul(a: Array, b: Array, **config: Any) -> Array:
    """Return the product of two contiguous float32 matrices, computed by an OpenCL device."""
    if a.ndim != 2 or b.ndim != 2 or a.shape[1] != b.shape[0]:
        raise InvalidProblem(f"matrices of shape {a.shape} and {b.shape} cannot be multiplied: need (m, k) and (k, n)")
    (m, k), n = a.shape, b.shape[1]
    if 0 in (m, n, k):
        return np.zeros((m, n), np.float32)
    c: Array = np.empty((m, n), np.float32)
    rows, columns = config["tm"], config["tn"] * config["vec"]
    KERNEL.run(
        *(a, b, c, m, n, k),
        defines=defines(config, config),
        global_size=(-(-n // columns), -(-m // rows)),
        local_size=(config["wg_n"], config["wg_m"]),
    )
    return c


DECISIONS = {"opencl-gemm": GEMM}
