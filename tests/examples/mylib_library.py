"""How the contract calls `examples/mylib`: a size is the length of a signal, with a quarter as many weights."""

import sys
from pathlib import Path
from typing import Any

import numpy as np

from tunewise.testing.autotuner_contract import Library

sys.path.insert(0, str(Path(__file__).parents[2] / "examples" / "mylib"))
import mylib


def signals(size: int) -> tuple[Any, Any, Any]:
    random = np.random.default_rng(size)
    x, w = random.standard_normal(size), random.standard_normal(size // 4)
    return x, w, random.standard_normal(len(x) - len(w) + 1)


def forward(size: int) -> object:
    x, w, _ = signals(size)
    return mylib.moving_sum(x, w)


def backward(size: int) -> object:
    x, w, g = signals(size)
    return mylib.moving_sum_backward(g, x, w)


def is_same(ours: Any, theirs: Any) -> bool:
    return all(np.allclose(a, b) for a, b in zip(ours, theirs, strict=True))


LIBRARY = Library(
    mylib.tuner, forward, backward, mylib.moving_sum.decision, mylib.moving_sum_backward.decision, is_same
)
