"""Two-dimensional correlation in C: algorithm, register tile, strips and compiled-in filter sizes as one decision."""

from pathlib import Path
from typing import Any

import numpy as np

from tunewise.decision import Check, Problem, Space, detect
from tunewise.errors import InvalidProblem
from tunewise.measure.ckernel import CKernel
from tunewise.session import Decision
from tunewise.workloads import registers
from tunewise.workloads.compiled import Compiled

Array = np.ndarray[Any, np.dtype[np.float32]]

KERNEL = CKernel(
    Path(__file__).parent / "kernels" / "conv2d.c",
    signature="const float *image, const float *filter, float *out, int64_t height, int64_t width, "
    "int64_t fh, int64_t fw, int64_t strip",
)
COMPILED = Compiled(KERNEL, ("algorithm", "rows", "nv", "vector", "fixed"))


def _features(image: Array, filter: Array) -> dict[str, int]:
    return {"h": image.shape[0], "w": image.shape[1], "fh": filter.shape[0], "fw": filter.shape[1]}


def _inputs(problem: Problem, seed: int) -> tuple[Array, Array]:
    h, w, fh, fw = (int(problem[name]) for name in ("h", "w", "fh", "fw"))
    return _image_and_filter(h, w, fh, fw, seed)


def _ragged(problem: Problem) -> list[tuple[Array, Array]]:
    """Outputs of one element, one row and one column, sizes around every tile's edge, all compiled-in filters."""
    sizes = [(1, 1, 1, 1), (3, 3, 3, 3), (1, 150, 1, 4), (45, 1, 2, 1), (9, 70, 3, 3), (21, 137, 5, 5), (17, 43, 7, 7)]
    image, filter = _image_and_filter(19, 83, 2, 6, seed=9)
    return [*(_image_and_filter(*size, seed=3) for size in sizes), (image * np.float32(1e6), filter)]


def _image_and_filter(h: int, w: int, fh: int, fw: int, seed: int) -> tuple[Array, Array]:
    random = np.random.default_rng(seed)
    return random.standard_normal((h, w), np.float32), random.standard_normal((fh, fw), np.float32)


def _space() -> Space:
    machine = detect()
    count = registers.register_count(machine)
    return Space(
        {
            "algorithm": ["gather", "share", "axpy"],
            "rows": [1, 2, 3, 4, 6, 8],
            "nv": [1, 2, 4, 8],
            "vector": registers.vector_widths(machine),
            "fixed": [0, 3, 5, 7],
            "strip": [0, 128, 512, 2048],  # 0: the whole width
        },
        rules=[
            f"algorithm != 'gather' or rows * nv + 2 <= {count}",  # sums, a weight and an input
            f"algorithm != 'share' or rows * nv + nv + 1 <= {count}",  # sums, the shared inputs and a weight
            "algorithm != 'share' or rows > 1",  # with one row there is nobody to share with
            # without a tile, its shape means nothing
            f"algorithm != 'axpy' or (rows == 1 and nv == 1 and vector == {registers.native_width(machine)})",
        ],
    )


CONV2D = Decision(
    "conv2d",
    space=_space(),
    default={
        "algorithm": "gather",
        "rows": 2,
        "nv": 4,
        "vector": registers.native_width(detect()),
        "fixed": 3,
        "strip": 0,
    },
    features=_features,
    derived={
        "outputs": lambda problem: (problem["h"] - problem["fh"] + 1) * (problem["w"] - problem["fw"] + 1),
        "taps": lambda problem: problem["fh"] * problem["fw"],
        "is_compiled_in": lambda problem, config: int(problem["fh"] == problem["fw"] == config["fixed"]),
    },
    inputs=_inputs,
    check=Check(inputs=_ragged),
    backend="c",
    libraries=("numpy",),
)


@CONV2D.implementation(build=COMPILED.build, load=COMPILED.load, facts=KERNEL.facts)
def correlate(image: Array, filter: Array, **config: Any) -> Array:
    """Return the valid correlation of a contiguous float32 image with a filter that is no larger."""
    if image.ndim != 2 or filter.ndim != 2 or not filter.size:
        raise InvalidProblem(f"image {image.shape} and filter {filter.shape} are not two matrices with elements")
    (height, width), (fh, fw) = image.shape, filter.shape
    if fh > height or fw > width:
        raise InvalidProblem(f"the filter {filter.shape} is larger than the image {image.shape}")
    out: Array = np.empty((height - fh + 1, width - fw + 1), np.float32)
    run = COMPILED.load(config)
    run(image, filter, out, height, width, fh, fw, config["strip"])
    return out


DECISIONS = {"conv2d": CONV2D}
