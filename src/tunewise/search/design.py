"""The first configs, before there is a model: powers of two, far apart from each other."""

import numpy as np

from tunewise.search.features import Array, Features
from tunewise.search.grounds import Grounds

FIRST = 5  # configs before a model is asked: it learns more from the next ones if it chooses them
_DRAWN = 4096  # rows that the first ones are taken from
_ROUND = 64  # of them are looked at for one place


class Design:
    """Draws configs whose numbers are powers of two, where there are any, each far from those already known.

    Sizes that hardware divides evenly are rarely the worst, and often many times faster than their neighbours.
    """

    def __init__(self, grounds: Grounds, features: Features, rng: np.random.Generator, *, powers: bool = True) -> None:
        self._features, self._rng = features, rng
        rows = grounds.draw(_DRAWN, rng)
        odd = features.oddities(rows) if powers and len(rows) else np.zeros(len(rows))
        self._rows = rows[odd == odd.min()] if len(rows) else rows
        self._columns = features.columns(self._rows)

    def next(self, known: Array, taken: set[tuple[int, ...]]) -> tuple[int, ...] | None:
        """Return a row that is far from the known columns and not taken; None when there is none left."""
        free = [which for which, row in enumerate(map(tuple, self._rows.tolist())) if row not in taken]
        if not free:
            return None
        looked_at = self._rng.choice(free, min(_ROUND, len(free)), replace=False)
        return tuple(self._rows[looked_at[_farthest(self._columns[looked_at], known)]].tolist())


def _farthest(columns: Array, known: Array) -> int:
    if not len(known):
        return 0
    apart = ((columns[:, None, :] - known[None, :, :]) ** 2).sum(2).min(1)
    return int(np.argmax(apart))
