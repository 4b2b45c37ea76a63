"""Two-dimensional correlation in OpenCL: work-group, outputs per item, local and constant memory as one decision."""

from pathlib import Path
from typing import Any

import numpy as np

from tunewise.decision import Check, Space, boolean, pow2
from tunewise.errors import InvalidProblem
from tunewise.measure.clkernel import POLICY, Local, OpenCLKernel
from tunewise.session import Decision
from tunewise.workloads import images
from tunewise.workloads.compiled import defines
from tunewise.workloads.images import Array

KERNEL = OpenCLKernel(Path(__file__).parent / "kernels" / "conv2d.cl", "conv2d", writes=(2,))


def _correlate(image: Array, filter: Array) -> Array:
    """The reference: one shifted image a filter element, summed in double precision."""
    rows, columns = image.shape[0] - filter.shape[0] + 1, image.shape[1] - filter.shape[1] + 1
    out = np.zeros((rows, columns))
    for (v, u), weight in np.ndenumerate(filter):
        out += float(weight) * image[v : v + rows, u : u + columns]
    return out.astype(np.float32)


CONV2D = Decision(
    "opencl-conv2d",
    space=Space(
        {
            "wg_x": pow2(1, 256),
            "wg_y": pow2(1, 32),
            "ty": [1, 2, 4, 8],
            "vec": pow2(1, 16),
            "local": boolean(),
            "filter_constant": boolean(),
            "fixed": [0, 3, 5, 7],
        },
        rules=[
            "ty * vec <= 64",  # the sums of a work-item
            "wg_x * vec <= 1024 and wg_y * ty <= 128",  # larger tiles leave most of a device without work
        ],
    ),
    default={"wg_x": 16, "wg_y": 8, "ty": 4, "vec": 4, "local": False, "filter_constant": True, "fixed": 3},
    features=images.features,
    derived={
        "outputs": lambda problem: (problem["h"] - problem["fh"] + 1) * (problem["w"] - problem["fw"] + 1),
        "taps": lambda problem: problem["fh"] * problem["fw"],
        "is_compiled_in": lambda problem, config: int(problem["fh"] == problem["fw"] == config["fixed"]),
        "items": lambda problem, config: config["wg_x"] * config["wg_y"],
    },
    inputs=images.inputs,
    check=Check(reference=_correlate, inputs=images.ragged),
    policy=POLICY,
    backend="opencl",
    device="opencl",
    libraries=("pyopencl",),
)


@CONV2D.implementation(facts=KERNEL.facts)
def correlate(image: Array, filter: Array, **config: Any) -> Array:
    """Return the valid correlation of a contiguous float32 image with a filter that is no larger."""
    if image.ndim != 2 or filter.ndim != 2 or not filter.size:
        raise InvalidProblem(f"image {image.shape} and filter {filter.shape} are not two matrices with elements")
    (height, width), (fh, fw) = image.shape, filter.shape
    if fh > height or fw > width:
        raise InvalidProblem(f"the filter {filter.shape} is larger than the image {image.shape}")
    out: Array = np.empty((height - fh + 1, width - fw + 1), np.float32)
    KERNEL.run(
        *(image, filter, out, Local(_part_bytes(fh, fw, config)), height, width, fh, fw),
        defines=defines(config, config),
        global_size=(-(-out.shape[1] // config["vec"]), -(-out.shape[0] // config["ty"])),
        local_size=(config["wg_x"], config["wg_y"]),
    )
    return out


def _part_bytes(fh: int, fw: int, config: dict[str, Any]) -> int:
    """Return the local memory that a work-group's part of the image takes, as conv2d.cl lays it out."""
    if not config["local"]:
        return 4  # none, but a pointer to nothing cannot be given
    high: int = config["wg_y"] * config["ty"] + fh - 1
    wide: int = config["wg_x"] * config["vec"] + fw - 1
    return 4 * high * wide


DECISIONS = {"opencl-conv2d": CONV2D}
