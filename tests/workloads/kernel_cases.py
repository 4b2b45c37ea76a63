"""The C workloads beside numpy: sizes to try, arguments, and the right result in double precision."""

import importlib
import random
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np

from tunewise.workloads import find
from tunewise.workloads import gemm as gemm_module


@dataclass(frozen=True)
class Case:
    module: str
    implementation: str
    shapes: tuple[tuple[int, ...], ...]
    make: Callable[[tuple[int, ...], np.random.Generator], tuple[np.ndarray, ...]]
    reference: Callable[..., np.ndarray]
    call: Callable[..., tuple[Any, ...]]  # (args, out, config) -> the arguments of the C function
    tolerance: float

    @property
    def decision(self):
        return find(self.module)

    @property
    def kernel(self):
        return importlib.import_module(f"tunewise.workloads.{self.module}").KERNEL

    @property
    def function(self):
        """The bare function, which takes a config and asks nobody."""
        module = importlib.import_module(f"tunewise.workloads.{self.module}")
        return getattr(module, self.implementation).__wrapped__

    def defines(self, config):
        module = importlib.import_module(f"tunewise.workloads.{self.module}")
        return module.COMPILED.defines(config)

    def problems(self, seed):
        """Give (arguments, right result) for every shape."""
        generator = np.random.default_rng(seed)
        for shape in self.shapes:
            args = self.make(shape, generator)
            yield args, self.reference(*(arg.astype(np.float64) for arg in args))

    def sample(self, count, seed=1):
        """The default and `count` random configs, all of them compiled."""
        return self.built([dict(self.decision.default), *self.decision.space.sample(count, seed)])

    def every_build(self, seed=1):
        """One config, with blocks drawn at random, for every way to compile the source."""
        configs = list(self.decision.space)
        random.Random(seed).shuffle(configs)
        return self.built(list({tuple(self.defines(config).items()): config for config in configs}.values()))

    def built(self, configs):
        with ThreadPoolExecutor(2) as pool:
            list(pool.map(lambda config: self.kernel.build(self.defines(config)), configs))
        return configs

    def why_wrong(self, result, right):
        """Return what is wrong with a result, or None."""
        if result.shape != right.shape or result.dtype != np.float32:
            return f"{result.dtype} {result.shape} instead of float32 {right.shape}"
        error = np.abs(result - right).max() / max(np.abs(right).max(), 1e-30)
        return None if error <= self.tolerance else f"error {error:.2e}"


def gemm_args(shape, generator):
    m, n, k = shape
    return generator.standard_normal((m, k), np.float32), generator.standard_normal((k, n), np.float32)


def gemm_call(args, out, c, room=np.empty):
    """Arguments of the C function; `room` makes the panels, exactly as large as the Python side says they must be."""
    (m, k), n = args[0].shape, out.shape[1]
    panels = room(gemm_module.panel_floats(m, n, k, c), np.float32)
    return (*args, out, m, n, k, c["mc"], c["nc"], c["kc"], panels)


def conv_args(shape, generator):
    h, w, fh, fw = shape
    return generator.standard_normal((h, w), np.float32), generator.standard_normal((fh, fw), np.float32)


def softmax_args(shape, generator):
    return (generator.standard_normal(shape, np.float32) * np.float32(4),)


def correlate(image, kernel):
    windows = np.lib.stride_tricks.sliding_window_view(image, kernel.shape)
    return np.einsum("yxij,ij->yx", windows, kernel)


def softmax(x):
    e = np.exp(x - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


CASES = {
    "gemm": Case(
        "gemm",
        "matmul",
        (
            *((1, 1, 1), (1, 2, 3), (2, 1, 1), (1, 100, 1), (100, 1, 1), (1, 1, 100), (1, 257, 33), (129, 1, 65)),
            *((6, 16, 8), (7, 17, 9), (5, 15, 7), (12, 32, 64), (13, 33, 65), (24, 48, 128), (25, 49, 129)),
            *((64, 64, 64), (63, 65, 63), (31, 300, 12), (400, 9, 70), (8, 520, 70), (97, 97, 300), (3, 5, 1100)),
            *((50, 1030, 5), (390, 20, 130)),
        ),
        gemm_args,
        np.matmul,
        gemm_call,
        2e-6,
    ),
    "conv2d": Case(
        "conv2d",
        "correlate",
        (
            *((1, 1, 1, 1), (2, 2, 1, 1), (3, 3, 3, 3), (5, 5, 5, 5), (7, 7, 7, 7), (1, 40, 1, 3), (40, 1, 3, 1)),
            *((4, 11, 3, 3), (10, 10, 3, 3), (11, 35, 4, 4), (9, 67, 3, 3), (12, 68, 5, 5), (15, 71, 7, 7)),
            *((16, 64, 1, 1), (17, 65, 2, 2), (20, 130, 3, 5), (33, 47, 9, 2), (8, 300, 3, 3), (70, 33, 5, 5)),
            *((10, 520, 7, 7), (64, 64, 11, 11), (6, 2100, 3, 1), (30, 30, 30, 30), (31, 200, 6, 1)),
        ),
        conv_args,
        correlate,
        lambda args, out, c: (*args, out, *args[0].shape, *args[1].shape, c["strip"]),
        2e-6,
    ),
    "softmax": Case(
        "softmax",
        "softmax",
        (
            *((1, 1), (5, 1), (1, 2), (3, 3), (7, 4), (4, 5), (2, 7), (9, 8), (3, 9), (2, 15), (5, 16), (3, 17)),
            *((2, 31), (6, 33), (3, 63), (2, 65), (4, 100), (1, 127), (2, 129), (3, 513), (1, 2049), (2, 4097)),
            *((1, 9000), (50, 10)),
        ),
        softmax_args,
        softmax,
        lambda args, out, c: (*args, out, *out.shape, c["block"]),
        2e-6,
    ),
}
