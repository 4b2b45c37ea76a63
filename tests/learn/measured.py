"""Data sets with a rule planted in them: what is best where is known, so learners can be held to it."""

from collections.abc import Mapping, Sequence

import numpy as np

from tunewise.formats.dataset import TIMED, Column, DataSet, Floats, Rows, status_of


def measured(
    features: Mapping[str, Sequence[float] | Sequence[str]], times_s: Floats, default: int | None = 0, samples: int = 1
) -> DataSet:
    """Return data of the given times, a row a problem; an infinite time is a failure, and NaN was never tried."""
    problems, configs = np.nonzero(~np.isnan(times_s))
    times = times_s[problems, configs]
    ran = np.isfinite(times)
    starts = np.concatenate([[0], np.cumsum(ran * samples)])
    status = np.where(ran, TIMED, status_of("runtime")).astype(np.int8)
    rows = Rows(problems, configs, status, np.repeat(times[ran], samples), starts)
    columns = tuple(_column(name, values) for name, values in features.items())
    return DataSet("toy", columns, tuple({"choice": f"c{n}"} for n in range(times_s.shape[1])), rows, default=default)


def crossing(count: int = 120, noise: float = 0.03, seed: int = 0) -> DataSet:
    """Return a decision of three choices: c1 is best where n * m is small, c2 for words of `dtype` b, else c0."""
    chance = np.random.default_rng(seed)
    n, m = (np.round(np.exp(chance.uniform(0, np.log(4096), count))) for _ in range(2))
    words = chance.choice(["a", "b"], count)
    best = np.where(n * m < 4096, 1, np.where(words == "b", 2, 0))
    times = np.where(np.arange(3) == best[:, None], 1.0, 2.0) * np.exp(chance.normal(0, noise, (count, 3)))
    return measured({"n": n, "m": m, "dtype": words.tolist()}, times * 1e-3)


def _column(name: str, values: Sequence[float] | Sequence[str]) -> Column:
    if not isinstance(values[0], str):
        return Column(name, np.array(values, dtype=np.float64))
    words = tuple(sorted({str(value) for value in values}))
    return Column(name, np.array([words.index(str(value)) for value in values], dtype=np.float64), words)
