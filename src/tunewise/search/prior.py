"""What was measured elsewhere: each other problem or device becomes one more column that a model may come to trust."""

from collections.abc import Sequence
from functools import cached_property
from math import inf
from typing import TypeGuard

import numpy as np
from numpy.typing import NDArray

from tunewise.decision import Config, Param, Places, Timing, Trial
from tunewise.search import surrogate
from tunewise.search.features import Array, Features, Rows
from tunewise.search.targets import targets

_MODELLED = 200  # trials that are enough to guess the others by
_STEPS = 20


class Donor:
    """The trials of one origin: how slow each config was there, measured or guessed from the others.

    Parameters that the origin does not know, or knows with values that have no place here, are left out of the guess.
    """

    def __init__(self, params: Sequence[Param], features: Features) -> None:
        self._params, self._features = params, features
        self._times: dict[tuple[int | None, ...], float] = {}
        self._places: list[dict[tuple[type, object], int | None]] = [{} for _ in params]  # looked up once a value

    def hear(self, trials: Sequence[Trial]) -> None:
        """Take in more trials of this origin."""
        for trial in trials:
            self._times[self._placed(trial.config)] = _time_s(trial)
        for known in ("is_useful", "_ranked", "_slowness", "_exact", "_model"):
            self.__dict__.pop(known, None)

    @cached_property
    def is_useful(self) -> bool:
        """Whether it has anything to compare: two different times at least."""
        return len({time for time in self._times.values() if time < inf}) > 1

    def best(self, n: int) -> list[Places]:
        """Return up to `n` configs that ran there and that can be written in this space, fastest first."""
        return self._ranked[:n]

    def column(self, rows: Rows) -> Array:
        """Return for each row how slow it is, or probably is, in standard deviations from the mean over there."""
        slow = np.array([self._exact.get(row, np.nan) for row in map(tuple, rows.tolist())])
        unknown = np.isnan(slow)
        if unknown.any():
            slow[unknown] = self._guessed(rows[unknown])
        return slow

    def _placed(self, config: Config) -> tuple[int | None, ...]:
        places = []
        for param, known in zip(self._params, self._places, strict=True):
            value = config.get(param.name)
            key = (type(value), tuple(value) if isinstance(value, list) else value)
            if key not in known:
                known[key] = param.nearest_place(value)
            places.append(known[key])
        return tuple(places)

    def _guessed(self, rows: Rows) -> Array:
        fitted, groups, kept, known, slow = self._model
        return surrogate.predicted(fitted, groups, known, slow, self._features.columns(rows)[:, kept])

    @cached_property
    def _ranked(self) -> list[Places]:
        ran = [(time, row) for row, time in self._times.items() if time < inf and _is_whole(row)]
        return [row for _, row in sorted(ran)]

    @cached_property
    def _slowness(self) -> Array:
        told = targets(list(self._times.values()))
        spread = float(told.std())
        return np.asarray((told - told.mean()) / (spread if spread > 0 else 1.0))

    @cached_property
    def _exact(self) -> dict[tuple[int | None, ...], float]:
        return {row: float(slow) for row, slow in zip(self._times, self._slowness, strict=True) if _is_whole(row)}

    @cached_property
    def _model(self) -> tuple[surrogate.Fit, surrogate.Groups, NDArray[np.bool_], Array, Array]:
        chosen = _spread_out(self._slowness, _MODELLED)
        rows = [row for which, row in enumerate(self._times) if which in set(chosen.tolist())]
        missing = {which for row in rows for which, place in enumerate(row) if place is None}
        places = np.array([[0 if place is None else place for place in row] for row in rows], np.int64)
        owners = np.array(self._features.owners, np.intp)[self._features.groups]
        kept = ~np.isin(owners, sorted(missing))
        left, groups = np.unique(self._features.groups[kept], return_inverse=True)
        columns, slow = self._features.columns(places)[:, kept], self._slowness[chosen]
        believed = belief(self._features.beliefs[left])
        return surrogate.fit(columns, groups, slow, believed, start=None, steps=_STEPS), groups, kept, columns, slow


def belief(own: Array, donors: int = 0) -> surrogate.Belief:
    """Return what to expect of weights: ours matter as they say, those of donors may matter a lot or not at all."""
    means = np.append(own, np.full(donors, -1.0))
    return surrogate.Belief(means, np.append(np.full(len(own), 1.0), np.full(donors, 2.0)))


def portfolio(donors: Sequence[Donor], legal: Sequence[Places]) -> list[Places]:
    """Return legal configs to try first: the best on all donors together, then the best of each in turn."""
    rows = np.array(legal, np.int64).reshape(len(legal), -1)
    slow = np.array([donor.column(rows) for donor in donors])
    rankings = [slow.mean(0), *slow] if len(donors) > 1 else [slow[0]]
    orders = [np.argsort(ranking, kind="stable").tolist() for ranking in rankings]
    turns = (which for turn in zip(*orders, strict=True) for which in turn)
    return [legal[which] for which in dict.fromkeys(turns)]


def _spread_out(slowness: Array, n: int) -> NDArray[np.intp]:
    """Return which trials to model: the best third in full, the others at even distances, in their order."""
    order = np.argsort(slowness, kind="stable")
    if len(order) <= n:
        return np.sort(order)
    rest = order[n // 3 :]
    steps = np.linspace(0, len(rest) - 1, n - n // 3).astype(np.intp)
    return np.sort(np.append(order[: n // 3], rest[steps]))


def _is_whole(row: tuple[int | None, ...]) -> TypeGuard[Places]:
    return None not in row


def _time_s(trial: Trial) -> float:
    return trial.outcome.time_s if isinstance(trial.outcome, Timing) else inf
