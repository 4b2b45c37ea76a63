"""Configs as numbers for a model, many rows at once."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tunewise.decision.params import Param

_EXACT = 1 << 53  # numpy divides larger whole numbers less exactly than Python does


def encoded(params: Sequence[Param], places: NDArray[Any]) -> NDArray[np.float64]:
    """Return for each row of places what the parameters' `encode` gives, side by side."""
    table = np.asarray(places)
    if table.ndim != 2 or table.shape[1] != len(params):
        raise ValueError(f"places of shape {table.shape} are not rows of {len(params)} places")
    return np.hstack([_column(param, table[:, i]) for i, param in enumerate(params)])


def _column(param: Param, places: NDArray[Any]) -> NDArray[np.float64]:
    count = len(param)
    if (param.is_ordered or param.kind == "boolean") and count <= _EXACT:
        scaled: NDArray[np.float64] = places.astype(np.float64)[:, None] / max(1, count - 1)
        return scaled
    distinct, which = np.unique(places, return_inverse=True)
    width = len(param.encode(0))
    rows = np.array([param.encode(int(place)) for place in distinct], np.float64).reshape(len(distinct), width)
    return rows[which.reshape(-1)]
