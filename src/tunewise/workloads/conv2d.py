"""Two-dimensional correlation in C: algorithm, register tile, strips and compiled-in filter sizes as one decision."""

from pathlib import Path
from typing import Any

import numpy as np

from tunewise.decision import Check, Space, detect, registers
from tunewise.errors import InvalidProblem
from tunewise.measure.ckernel import CKernel
from tunewise.session import Decision
from tunewise.workloads import images
from tunewise.workloads.compiled import Compiled
from tunewise.workloads.images import Array

KERNEL = CKernel(
    Path(__file__).parent / "kernels" / "conv2d.c",
    signature="const float *image, const float *filter, float *out, int64_t height, int64_t width, "
    "int64_t fh, int64_t fw, int64_t strip",
)
COMPILED = Compiled(KERNEL, ("algorithm", "rows", "nv", "vector", "fixed"))


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
    features=images.features,
    derived={
        "outputs": lambda problem: (problem["h"] - problem["fh"] + 1) * (problem["w"] - problem["fw"] + 1),
        "taps": lambda problem: problem["fh"] * problem["fw"],
        "is_compiled_in": lambda problem, config: int(problem["fh"] == problem["fw"] == config["fixed"]),
    },
    inputs=images.inputs,
    check=Check(inputs=images.ragged),
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
