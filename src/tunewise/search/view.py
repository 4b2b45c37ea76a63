"""One way to look at a search: a model of the targets over some columns, with or without what donors say."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from tunewise.decision import Places
from tunewise.search import surrogate
from tunewise.search.features import Array, Features, Rows
from tunewise.search.prior import Donor, belief

_FIRST_STEPS = 20  # of the first fit
_STEPS = 10  # of later ones, which start from the one before


class View:
    """A model and its posterior over a pool of candidates."""

    def __init__(self, features: Features, donors: Sequence[Donor] = ()) -> None:
        self._features, self._donors = features, donors
        self._groups = np.append(features.groups, len(features.beliefs) + np.arange(len(donors)))
        self._belief = belief(features.beliefs, len(donors))
        self._fit: surrogate.Fit | None = None
        self._posterior: surrogate.Posterior | None = None
        self._known: list[Places] = []

    @property
    def cost(self) -> float:
        """How badly the model explains what it was fitted to; each donor must earn its place."""
        assert self._fit is not None
        return self._fit.cost + len(self._donors)

    def fit(self, known: Rows, targets: Array) -> None:
        """Find the weights that explain the targets, starting from the last ones."""
        steps = _FIRST_STEPS if self._fit is None else _STEPS
        columns = self._columns(known)
        self._fit = surrogate.fit(columns, self._groups, targets, self._belief, start=self._fit, steps=steps)
        self.forget()

    def forget(self) -> None:
        """Drop the posterior: the candidates are others now."""
        self._posterior = None

    def look(self, candidates: Rows, known: Sequence[Places]) -> None:
        """Prepare predictions for all candidates, given known configs: most of them the same as last time."""
        assert self._fit is not None
        if self._posterior is None:
            columns = self._columns(candidates), self._columns(_rows(known))
            self._posterior, self._known = surrogate.Posterior(self._fit, self._groups, *columns), list(known)
            return
        same = _common(self._known, known)
        self._posterior.shrink(same)
        if same < len(known):
            for column in self._columns(_rows(known[same:])):
                self._posterior.add(column)
        self._known = list(known)

    def predict(self, targets: Array) -> tuple[Array, Array]:
        """Return mean and standard deviation of every candidate."""
        assert self._posterior is not None
        return self._posterior.predict(targets)

    def _columns(self, rows: Rows) -> Array:
        columns = self._features.columns(rows)
        return np.column_stack([columns, *(donor.column(rows) for donor in self._donors)])


def _rows(places: Sequence[Places]) -> Rows:
    return np.array(places, np.int64)


def _common(left: Sequence[Places], right: Sequence[Places]) -> int:
    """Return how many configs two lists begin with in common."""
    shorter = min(len(left), len(right))
    return next((which for which in range(shorter) if left[which] != right[which]), shorter)


def sample(targets: Array, n: int, rng: np.random.Generator) -> NDArray[np.intp]:
    """Return which of many configs a model should learn from: the best, the latest, and some others by chance."""
    if len(targets) <= n:
        return np.arange(len(targets))
    kept = np.zeros(len(targets), bool)
    kept[np.argsort(targets, kind="stable")[: n // 3]] = True
    kept[-(n // 3) :] = True
    others = rng.permutation(np.flatnonzero(~kept))
    kept[others[: n - int(kept.sum())]] = True
    return np.flatnonzero(kept)
