"""Where a search may go: legal rows of places, listed in a table or, where there are too many, drawn."""

import random
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from tunewise.decision import Space
from tunewise.search.features import Rows

_MULTIPLIERS = 0x9E3779B97F4A7C15  # seeds the numbers that turn a row into one key


class Grounds(Protocol):
    """The legal configs of a space as rows of places."""

    @property
    def size(self) -> int | None:
        """How many there are; None where they are too many to list."""

    def all(self) -> Rows:
        """Return every row; only where there are few enough to list."""

    def draw(self, n: int, rng: np.random.Generator) -> Rows:
        """Return about `n` different legal rows by chance."""

    def legal(self, rows: Rows) -> Rows:
        """Return those of some rows that are legal, each once."""


def of(space: Space) -> Grounds:
    """Return the grounds of a space: listed if it can be."""
    table = space.table()
    return Drawn(space) if table is None else Listed(table.astype(np.int64))


class Listed:
    """A table of all legal rows."""

    def __init__(self, table: Rows) -> None:
        self._table = table
        width = table.shape[1]
        self._factors = np.random.default_rng(_MULTIPLIERS).integers(1, 2**63, width, dtype=np.uint64) | np.uint64(1)

    @property
    def size(self) -> int:
        """How many rows there are."""
        return len(self._table)

    def all(self) -> Rows:
        """Return the whole table."""
        return self._table

    def draw(self, n: int, rng: np.random.Generator) -> Rows:
        """Return `n` different rows, or all of them by chance order."""
        count = len(self._table)
        return self._table[rng.choice(count, min(n, count), replace=False)]

    def legal(self, rows: Rows) -> Rows:
        """Return the rows that the table has, each once."""
        if not len(rows) or not len(self._table):
            return self._table[:0]
        keys = np.unique(self._keyed(rows))
        sorted_keys, order = self._keys
        at = np.minimum(np.searchsorted(sorted_keys, keys), len(sorted_keys) - 1)
        found: Rows = self._table[order[at[sorted_keys[at] == keys]]]
        return found

    @cached_property
    def _keys(self) -> tuple[NDArray[np.uint64], NDArray[np.intp]]:
        keys = self._keyed(self._table)
        order = np.argsort(keys, kind="stable")
        return keys[order], order

    def _keyed(self, rows: Rows) -> NDArray[np.uint64]:
        """Return one number a row; among millions of rows no two agree but by a chance of one in a million."""
        return np.asarray((rows.astype(np.uint64) * self._factors).sum(1, dtype=np.uint64))


class Drawn:
    """Rows of a space that is too large to list."""

    size = None

    def __init__(self, space: Space) -> None:
        self._space = space

    def all(self) -> Rows:
        """There is no list: return nothing."""
        return np.zeros((0, len(self._space.params)), np.int64)

    def draw(self, n: int, rng: np.random.Generator) -> Rows:
        """Return `n` rows, drawn uniformly."""
        chance = random.Random(int(rng.integers(2**62)))
        places = [self._space.places(config) for config in self._space.sample(n, chance)]
        return np.array(places, np.int64).reshape(len(places), len(self._space.params))

    def legal(self, rows: Rows) -> Rows:
        """Return the rows that keep all rules, each once."""
        unique = np.unique(rows, axis=0)
        params = self._space.params
        configs = ({p.name: p.values[place] for p, place in zip(params, row, strict=True)} for row in unique.tolist())
        kept = [config in self._space for config in configs]
        return unique.compress(kept, 0)
