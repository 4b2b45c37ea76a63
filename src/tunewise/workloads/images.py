"""Images and filters to correlate: what the C and the OpenCL kernel are asked about, and checked on."""

from typing import Any

import numpy as np

from tunewise.decision import Problem

Array = np.ndarray[Any, np.dtype[np.float32]]


def features(image: Array, filter: Array) -> dict[str, int]:
    """Return the sizes of an image and a filter."""
    return {"h": image.shape[0], "w": image.shape[1], "fh": filter.shape[0], "fw": filter.shape[1]}


def inputs(problem: Problem, seed: int) -> tuple[Array, Array]:
    """Return a random image and filter of the sizes of a problem."""
    h, w, fh, fw = (int(problem[name]) for name in ("h", "w", "fh", "fw"))
    return _image_and_filter(h, w, fh, fw, seed)


def ragged(problem: Problem) -> list[tuple[Array, Array]]:
    """Outputs of one element, one row and one column, sizes around every tile's edge, all compiled-in filters."""
    sizes = [(1, 1, 1, 1), (3, 3, 3, 3), (1, 150, 1, 4), (45, 1, 2, 1), (9, 70, 3, 3), (21, 137, 5, 5), (17, 43, 7, 7)]
    image, filter = _image_and_filter(19, 83, 2, 6, seed=9)
    return [*(_image_and_filter(*size, seed=3) for size in sizes), (image * np.float32(1e6), filter)]


def _image_and_filter(h: int, w: int, fh: int, fw: int, seed: int) -> tuple[Array, Array]:
    random = np.random.default_rng(seed)
    return random.standard_normal((h, w), np.float32), random.standard_normal((fh, fw), np.float32)
