"""A Gaussian process over problems: what choices cost where that changes smoothly, and not in the steps of trees."""

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from tunewise.formats.dataset import Floats, Numbers

_MOST_FITTED, _MOST_KNOWN = 200, 600  # problems that scales are fitted to, and that are remembered: more add seconds
_MOST_COLUMNS = 24  # each has a scale of its own, and time grows with them
_STEPS = 40  # downhill, to the scales
_SCALES, _NOISES, _VARIANCES = (0.05, 50.0), (1e-4, 1.0), (1e-3, 10.0)  # that are looked at, of columns in deviations


@dataclass(frozen=True, eq=False)
class Process:
    """What a process expects of any problems, and what it would have expected of those it knows, each left out."""

    costs: Callable[[Floats], Floats]  # of rows of columns: a column a choice
    known: Numbers  # numbers of the problems that it knows
    left_out: Floats  # a row for each of these


def process_of(columns: Floats, costs: Floats, weights: Floats, seed: int) -> Process | None:
    """Return a process fitted to what choices cost, a row a problem; None where there is too little, or too much.

    All choices have the same scales: how far one must go in a column to see costs change. Problems without weight are
    not looked at.
    """
    chance = np.random.default_rng(seed)
    known: Numbers = chance.permutation(np.flatnonzero(weights > 0))[:_MOST_KNOWN]
    if len(known) < 2 or columns.shape[1] > _MOST_COLUMNS:
        return None
    means, deviations = columns[known].mean(axis=0), columns[known].std(axis=0)
    scaled = (columns - means) / np.where(deviations > 0, deviations, 1.0)
    base = costs[known].mean(axis=0)
    missing = costs[known] - base
    fitted = _fitted(scaled[known[:_MOST_FITTED]], missing[:_MOST_FITTED])
    near = fitted.kernel_(scaled[known])
    inverse = np.linalg.inv(near)
    pulls = inverse @ missing

    def expected(rows: Floats) -> Floats:
        at = (rows - means) / np.where(deviations > 0, deviations, 1.0)
        found: Floats = fitted.kernel_(at, scaled[known]) @ pulls + base
        return found

    return Process(expected, known, costs[known] - pulls / np.diag(inverse)[:, None])


def _fitted(columns: Floats, missing: Floats) -> Any:
    """Return a process of scikit-learn with the scales that make some costs most probable."""
    from scipy.optimize import minimize
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import ConstantKernel, Matern, WhiteKernel

    def downhill(cost: Callable[[Floats], Any], start: Floats, bounds: Floats) -> tuple[Floats, float]:
        found = minimize(cost, start, jac=True, method="L-BFGS-B", bounds=bounds, options={"maxiter": _STEPS})
        return found.x, float(found.fun)

    rough = Matern(np.ones(columns.shape[1]), _SCALES, nu=1.5)
    kernel = ConstantKernel(0.1, _VARIANCES) * rough + WhiteKernel(0.01, _NOISES)
    with warnings.catch_warnings():  # a column that tells nothing has the largest scale there is, as it should
        warnings.simplefilter("ignore", ConvergenceWarning)
        return GaussianProcessRegressor(kernel, optimizer=downhill).fit(columns, missing)
