"""What a model is asked to predict: log time, with the slow half squashed, and failures as slow as the slowest."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

_SLOW = 0.5  # the slower share of the configs, which a search need not tell apart well
_NARROW = 1e-3  # a difference in log time that is next to nothing


def targets(times_s: Sequence[float] | Array, *, squash: bool = True) -> Array:
    """Return one number a config, lower is better; a time that is not finite stands for a failure.

    Beyond the median, distances grow as their logarithm: a config that is fifty times too slow should not bend the
    model where the good ones are.
    """
    times = np.asarray(times_s, np.float64)
    ran = np.isfinite(times)
    if not ran.any():
        return np.zeros(len(times))
    logs = np.log(np.where(ran, times, 1.0))
    best, middle = logs[ran].min(), np.quantile(logs[ran], _SLOW)
    unit = max(float(middle - best), _NARROW)
    if squash:
        logs = np.where(logs > middle, middle + unit * np.log1p(np.maximum(logs - middle, 0.0) / unit), logs)
    return np.where(ran, logs, logs[ran].max())
