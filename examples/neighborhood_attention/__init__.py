"""Neighborhood attention on grids of tokens, whose tile shapes are tuned once for each problem.

    from neighborhood_attention import na2d, use_autotuner

    use_autotuner()                          # the first call of each new problem is tuned, and remembered for good
    out = na2d(q, k, v, kernel_size=7)       # (batch, height, width, heads, dim)

`python -m neighborhood_attention --help` is the profiler.
"""

from .ops import na1d, na2d, na3d
from .reference import reference
from .tuning import autotuning, disable_autotuner, is_autotuner_enabled, tuner, use_autotuner

__all__ = [
    "na1d",
    "na2d",
    "na3d",
    "reference",
    "use_autotuner",
    "autotuning",
    "disable_autotuner",
    "is_autotuner_enabled",
    "tuner",
]
