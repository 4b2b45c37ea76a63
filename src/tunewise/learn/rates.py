"""What one of each amount of work takes, read off times: rates that are never negative, all of them or as few as do."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tunewise.formats.dataset import Floats

_TRIES = 100  # for every rate
_UNSEEN = 0.03  # of a time: who drops amounts may be off by so much besides what all of them are off by


def rates_of(amounts: Floats, log_seconds: Floats, weight: Floats) -> Floats:
    """Return the seconds that one of each amount takes, none of them negative, by which times are explained best."""
    return _Sums.of(amounts, log_seconds, weight).rates(range(amounts.shape[1]))[0]


def few_rates(amounts: Floats, log_seconds: Floats, weight: Floats) -> Floats:
    """Return rates of as few amounts as explain times nearly as well as all; those of the others are nothing.

    The amount that is missed least is dropped, again and again, until times would be off by more than can be told.
    """
    sums = _Sums.of(amounts, log_seconds, weight)
    rates, off = sums.rates(range(amounts.shape[1]))
    most = float(np.hypot(off, _UNSEEN))
    while len(used := np.flatnonzero(rates).tolist()) > 1:  # of no columns at all, scipy's nnls dies
        fewer = [sums.rates([number for number in used if number != dropped]) for dropped in used]
        best, off = min(fewer, key=lambda found: found[1])
        if off > most:
            break
        rates = best
    return rates


def short(rate: float, digits: int) -> float:
    """Return a rate by its first digits: more would not be known, and would not be read."""
    return float(f"{rate:.{digits}g}")


def typical(amounts: Floats, log_seconds: Floats) -> Floats:
    """Return how much of each amount there typically is for a second."""
    found: Floats = (amounts / np.exp(log_seconds)[:, None]).mean(axis=0)
    return np.maximum(found, np.finfo(float).tiny)


@dataclass(frozen=True)
class _Sums:
    """Times over amounts, folded into as many rows as there are amounts: what is asked many times is small."""

    usual: Floats
    rows: Floats
    sums: Floats
    total: float
    beyond: float  # squares that no rates explain

    @classmethod
    def of(cls, amounts: Floats, log_seconds: Floats, weight: Floats) -> "_Sums":
        usual, root = typical(amounts, log_seconds), np.sqrt(weight)
        turned, rows = np.linalg.qr(amounts / np.exp(log_seconds)[:, None] / usual * root[:, None])
        sums = turned.T @ root
        return cls(usual, rows, sums, float(weight.sum()), max(float(weight.sum() - sums @ sums), 0.0))

    def rates(self, used: Sequence[int]) -> tuple[Floats, float]:
        """Return the rates where only some amounts take time, and how far off times are with them, on average."""
        from scipy.optimize import nnls

        found, distance = nnls(self.rows[:, list(used)], self.sums, maxiter=_TRIES * len(self.usual))
        rates = np.zeros(len(self.usual))
        rates[list(used)] = found
        return rates / self.usual, float(np.sqrt((distance**2 + self.beyond) / self.total))
