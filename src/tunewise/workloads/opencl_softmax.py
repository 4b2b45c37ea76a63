"""Softmax over rows in OpenCL: work-items a row, vector width, passes and exponential as one decision."""

from pathlib import Path
from typing import Any

import numpy as np

from tunewise.decision import Check, Problem, ReductionFact, Space, boolean, pow2
from tunewise.errors import InvalidProblem
from tunewise.measure.clkernel import POLICY, OpenCLKernel
from tunewise.session import Decision
from tunewise.workloads.compiled import defines

Array = np.ndarray[Any, np.dtype[np.float32]]

KERNEL = OpenCLKernel(Path(__file__).parent / "kernels" / "softmax.cl", "softmax", writes=(1,))


def _features(x: Array) -> dict[str, int]:
    return {"rows": x.shape[0], "columns": x.shape[1]}


def _inputs(problem: Problem, seed: int) -> tuple[Array]:
    return (_matrix(int(problem["rows"]), int(problem["columns"]), seed),)


def _ragged(problem: Problem) -> list[tuple[Array]]:
    """Rows shorter than a vector, around every step, longer than a work-group; masked and large values."""
    sizes = [(1, 1), (9, 1), (1, 9), (7, 3), (5, 15), (3, 67), (4, 129), (2, 2100)]
    masked = _matrix(6, 83, seed=5)
    masked[:, ::3] = -np.inf
    return [*((_matrix(*size, seed=3),) for size in sizes), (masked,), (_matrix(5, 75, seed=9) * np.float32(1e4),)]


def _matrix(rows: int, columns: int, seed: int) -> Array:
    return np.random.default_rng(seed).standard_normal((rows, columns), np.float32) * np.float32(3)


def _softmax(x: Array) -> Array:
    """The reference, in double precision."""
    exponentials = np.exp(x.astype(np.float64) - x.max(axis=1, keepdims=True))
    result: Array = (exponentials / exponentials.sum(axis=1, keepdims=True)).astype(np.float32)
    return result


SOFTMAX = Decision(
    "opencl-softmax",
    space=Space({"wg": pow2(1, 1024), "vec": pow2(1, 16), "passes": [2, 3], "native": boolean()}),
    default={"wg": 64, "vec": 4, "passes": 3, "native": False},
    features=_features,
    derived={
        "elements": lambda problem: problem["rows"] * problem["columns"],
        "steps": lambda problem, config: -(-problem["columns"] // (config["wg"] * config["vec"])),
    },
    facts=lambda problem: ReductionFact(max(1, int(problem["rows"])), max(1, int(problem["columns"])), passes=3),
    inputs=_inputs,
    check=Check(reference=_softmax, inputs=_ragged),
    policy=POLICY,
    backend="opencl",
    device="opencl",
    libraries=("pyopencl",),
)


@SOFTMAX.implementation(facts=KERNEL.facts)
def softmax(x: Array, **config: Any) -> Array:
    """Return the softmax of every row of a contiguous float32 matrix, computed by an OpenCL device."""
    if x.ndim != 2:
        raise InvalidProblem(f"x of shape {x.shape} is not a matrix; use x.reshape(-1, x.shape[-1])")
    out: Array = np.empty(x.shape, np.float32)
    if x.size:
        rows, columns = x.shape
        KERNEL.run(
            *(x, out, rows, columns),
            defines=defines(config, config),
            global_size=(rows * config["wg"],),
            local_size=(config["wg"],),
        )
    return out


DECISIONS = {"opencl-softmax": SOFTMAX}
