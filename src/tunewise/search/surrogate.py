"""The model of a search: a Gaussian process whose columns earn their weights, updated one config at a time."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular
from scipy.linalg.lapack import dpotrf, dpotri
from scipy.optimize import minimize

Array = NDArray[np.float64]
Groups = NDArray[np.intp]

NOISE = 1e-3  # share of the variance that is expected not to repeat
_NOISE_DOUBT = 1.5  # standard deviation of the logarithm of that
_WEIGHTS = (-9.0, 6.0)  # logarithms of the weights that are looked at
_NOISES = (-9.2, 0.0)
_ROOM = 64  # rows of a posterior that are added before its tables are moved to larger ones
_SQRT5 = 5.0**0.5


@dataclass(frozen=True)
class Belief:
    """What is believed of the groups' weights before anything is seen: their logarithms, and the doubt about them."""

    means: Array
    doubts: Array


@dataclass(frozen=True)
class Fit:
    """The most probable logarithms of all weights and of the noise, and the cost at them: lower explains more."""

    logs: Array
    cost: float

    def scales(self, groups: Groups) -> Array:
        """Return what each column is multiplied with before distances are taken."""
        return np.asarray(np.exp(0.5 * self.logs[:-1])[groups])

    @property
    def noise(self) -> float:
        """The share of the variance that does not repeat."""
        return float(np.exp(self.logs[-1]))


def fit(columns: Array, groups: Groups, targets: Array, belief: Belief, *, start: Fit | None, steps: int) -> Fit:
    """Return the weights under which the targets are most probable, by so many steps from `start`."""
    spread = float(targets.std())
    scaled = (targets - targets.mean()) / (spread if spread > 0 else 1.0)
    begin = np.append(belief.means, np.log(NOISE)) if start is None else start.logs
    found = minimize(
        _cost,
        begin,
        args=(columns, groups, scaled, belief),
        jac=True,
        method="L-BFGS-B",
        bounds=[_WEIGHTS] * len(belief.means) + [_NOISES],
        options={"maxiter": steps},
    )
    return Fit(found.x, float(found.fun))


def _cost(logs: Array, columns: Array, groups: Groups, targets: Array, belief: Belief) -> tuple[float, Array]:
    """Return minus the log posterior of the weights and its gradient; mean and variance are the best for them."""
    n, weights, noise = len(targets), np.exp(logs[:-1]), np.exp(logs[-1])
    near, slope = _kernel_and_slope(_squared(*[columns * np.sqrt(weights)[groups]] * 2))
    near.flat[:: n + 1] = 1.0 + noise
    lower, is_broken = dpotrf(near, lower=1)
    if is_broken:
        return 1e10, np.zeros_like(logs)
    half, _ = dpotri(lower, lower=1)
    inverse = np.tril(half) + np.tril(half, -1).T
    ones = inverse.sum(0)
    centred = targets - (ones @ targets) / ones.sum()
    pulls = inverse @ centred
    variance = max(float(centred @ pulls) / n, 1e-12)
    change = 0.5 * (inverse - np.outer(pulls, pulls) / variance)
    moved = change * slope
    moved.flat[:: n + 1] = 0.0
    by_column = 2.0 * (moved.sum(1) @ (columns * columns) - np.einsum("ij,ij->j", columns, moved @ columns))
    gradient = np.append(np.bincount(groups, by_column, len(weights)) * weights, np.trace(change) * noise)
    surprise = (logs - np.append(belief.means, np.log(NOISE))) / (doubts := np.append(belief.doubts, _NOISE_DOUBT))
    cost = 0.5 * n * np.log(variance) + np.log(np.diag(lower)).sum() + 0.5 * float(surprise @ surprise)
    return float(cost), gradient + surprise / doubts


class Posterior:
    """What the model says about a fixed list of candidates, given configs whose targets may change any time.

    Adding a config costs one pass over the candidates. `shrink` takes the last ones back: that is how configs that are
    still being measured are thought through.
    """

    def __init__(self, fitted: Fit, groups: Groups, candidates: Array, known: Array) -> None:
        self._scales, self._noise = fitted.scales(groups), fitted.noise
        self._candidates = candidates * self._scales
        self._squares = np.einsum("ij,ij->i", self._candidates, self._candidates)
        self._known = known * self._scales
        n = self.size = len(known)
        near = _kernel(_squared(self._known, self._known))
        near.flat[:: n + 1] = 1.0 + self._noise
        self._lower, self._parts = np.zeros((n + _ROOM, n + _ROOM)), np.empty((n + _ROOM, len(candidates)))
        self._lower[:n, :n] = np.linalg.cholesky(near)
        self._parts[:n] = _solved(self._lower[:n, :n], self._cross(self._known))
        self._explained = np.einsum("ij,ij->j", self._parts[:n], self._parts[:n])

    def add(self, column: Array) -> None:
        """Learn that one more config is known."""
        n, row = self.size, (column * self._scales)[None]
        if n == len(self._lower):
            self._grow()
        near = _solved(self._lower[:n, :n], _kernel(_squared(self._known, row))[:, 0])
        left = np.sqrt(max(1.0 + self._noise - float(near @ near), 1e-8))
        self._lower[n, :n], self._lower[n, n] = near, left
        self._parts[n] = (self._cross(row)[0] - near @ self._parts[:n]) / left
        self._explained = self._explained + self._parts[n] ** 2
        self._known, self.size = np.vstack([self._known, row]), n + 1

    def shrink(self, size: int) -> None:
        """Forget the configs added after the first `size`."""
        for row in range(size, self.size):
            self._explained = self._explained - self._parts[row] ** 2
        self._known, self.size = self._known[:size], size

    def predict(self, targets: Array) -> tuple[Array, Array]:
        """Return mean and standard deviation for every candidate, given the targets of the known configs in order."""
        n = self.size
        solved = _solved(self._lower[:n, :n], np.column_stack([np.ones(n), targets]))
        ones, seen = solved[:, 0], solved[:, 1]
        mean = float(ones @ seen) / float(ones @ ones)
        rest = seen - mean * ones
        variance = max(float(rest @ rest) / n, 1e-12)
        return mean + rest @ self._parts[:n], np.sqrt(np.maximum(1.0 - self._explained, 1e-9) * variance)

    def _cross(self, rows: Array) -> Array:
        squared = np.einsum("ij,ij->i", rows, rows)[:, None] + self._squares - 2.0 * rows @ self._candidates.T
        return _kernel(np.maximum(squared, 0.0, out=squared))

    def _grow(self) -> None:
        n = self.size
        lower, parts = np.zeros((n + _ROOM, n + _ROOM)), np.empty((n + _ROOM, self._parts.shape[1]))
        lower[:n, :n], parts[:n] = self._lower, self._parts
        self._lower, self._parts = lower, parts


def predicted(fitted: Fit, groups: Groups, known: Array, targets: Array, rows: Array) -> Array:
    """Return the expected targets of rows, given the columns and targets of known configs."""
    scales = fitted.scales(groups)
    near = _kernel(_squared(known * scales, known * scales))
    near.flat[:: len(known) + 1] = 1.0 + fitted.noise
    mean = float(targets.mean())
    pulls = np.linalg.solve(near, targets - mean)
    return np.asarray(mean + _kernel(_squared(rows * scales, known * scales)) @ pulls)


def _squared(left: Array, right: Array) -> Array:
    squares = np.einsum("ij,ij->i", left, left)[:, None] + np.einsum("ij,ij->i", right, right) - 2.0 * left @ right.T
    return np.asarray(np.maximum(squares, 0.0, out=squares))


def _kernel(squared: Array) -> Array:
    """Return Matern 5/2: functions that bend, but not smoothly for ever."""
    r = np.sqrt(squared)
    r *= _SQRT5
    near = squared * (5.0 / 3.0)  # in place from here on: these tables are where the time goes
    near += r
    near += 1.0
    np.negative(r, out=r)
    near *= np.exp(r, out=r)
    return np.asarray(near)


def _kernel_and_slope(squared: Array) -> tuple[Array, Array]:
    r = np.sqrt(squared) * _SQRT5
    fallen = np.exp(-r)
    return (1.0 + r + r * r / 3.0) * fallen, -(5.0 / 6.0) * (1.0 + r) * fallen


def _solved(lower: Array, right: Array) -> Array:
    return np.asarray(solve_triangular(lower, right, lower=True, check_finite=False))
