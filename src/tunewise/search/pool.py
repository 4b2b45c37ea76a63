"""The candidates that a model looks at: all configs, or those around the best ones and some from everywhere."""

from collections.abc import Container, Sequence

import numpy as np
from numpy.typing import NDArray

from tunewise.decision import Places
from tunewise.search.features import Rows
from tunewise.search.grounds import Grounds

MOST = 3000  # more would cost milliseconds and find nothing better
_VALUES = 32  # of a long parameter, how many are tried when only it changes


class Pool:
    """Candidates that nobody asked for when they were chosen, and which of them are still free."""

    def __init__(self, rows: Rows) -> None:
        self.rows = rows
        self.places: list[Places] = list(map(tuple, rows.tolist()))
        self.is_free: NDArray[np.bool_] = np.ones(len(rows), bool)
        self._at = {places: which for which, places in enumerate(self.places)}

    def take(self, places: Places) -> None:
        """Mark a config as asked, if it is one of them."""
        which = self._at.get(places)
        if which is not None:
            self.is_free[which] = False


def is_whole(grounds: Grounds) -> bool:
    """Return whether a pool has room for every config."""
    return grounds.size is not None and grounds.size <= MOST


def everything(grounds: Grounds, asked: Container[Places]) -> Pool:
    """Return every config that was not asked; for grounds of which a pool can be the whole."""
    return Pool(_unasked(grounds.all(), asked))


def around(
    grounds: Grounds,
    sizes: Sequence[int],
    starts: tuple[Rows, Rows],
    asked: Container[Places],
    rng: np.random.Generator,
) -> Pool:
    """Return configs near some rows and some from everywhere, half and half.

    `starts` are the rows whose surroundings count, and further ones that count themselves.
    """
    best, further = starts
    made = [further] if not len(best) else [further, _singles(best, sizes, rng), _drifted(best, sizes, rng)]
    near = np.vstack([_unasked(grounds.legal(rows), asked) for rows in made])[: MOST // 2]
    others = _unasked(grounds.draw(MOST, rng), asked)
    _, first = np.unique(np.vstack([near, others]), axis=0, return_index=True)
    return Pool(np.vstack([near, others])[np.sort(first)[:MOST]])


def _unasked(rows: Rows, asked: Container[Places]) -> Rows:
    is_new = [places not in asked for places in map(tuple, rows.tolist())]
    return rows[np.flatnonzero(is_new)]


def _drifted(rows: Rows, sizes: Sequence[int], rng: np.random.Generator) -> Rows:
    """Return rows with two values changed and rows that are crossed, mixed: legal or not."""
    return rng.permutation(np.vstack([_doubles(rows, sizes, MOST // 2, rng), _crossed(rows, MOST // 2, rng)]), axis=0)


def _singles(rows: Rows, sizes: Sequence[int], rng: np.random.Generator) -> Rows:
    changed = []
    for which, size in enumerate(sizes):
        for place in range(size) if size <= _VALUES else rng.integers(0, size, _VALUES).tolist():
            made = rows.copy()
            made[:, which] = place
            changed.append(made)
    return np.vstack(changed)


def _doubles(rows: Rows, sizes: Sequence[int], n: int, rng: np.random.Generator) -> Rows:
    made = rows[rng.integers(0, len(rows), n)]
    for _ in range(2):
        which = rng.integers(0, len(sizes), n)
        made[np.arange(n), which] = (rng.random(n) * np.asarray(sizes, np.float64)[which]).astype(np.int64)
    return made


def _crossed(rows: Rows, n: int, rng: np.random.Generator) -> Rows:
    mothers, fathers = rows[rng.integers(0, len(rows), n)], rows[rng.integers(0, len(rows), n)]
    return np.where(rng.random(mothers.shape) < 0.5, mothers, fathers)
