"""A data set: measurements of many configs on many problems as columns, never as Python objects row by row."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tunewise.decision import FAILURE_KINDS, Config, Feature, Problem, canonical, half_of
from tunewise.errors import InvalidData

Floats = NDArray[np.float64]
Numbers = NDArray[np.int64]
Flags = NDArray[np.bool_]

_BLOCK = 1 << 18  # rows worked on at once: memory is bounded, however many there are
TIMED = 0  # the status of a row that has a time; others count through FAILURE_KINDS from 1


@dataclass(frozen=True, eq=False)
class Column:
    """One feature of every problem: numbers, or the numbers of words where `words` is given."""

    name: str
    values: Floats
    words: tuple[str, ...] | None = None

    @property
    def is_word(self) -> bool:
        """Whether the feature is categorical."""
        return self.words is not None

    def at(self, problem: int) -> Feature:
        """Return the feature of one problem as a number or a word."""
        value = float(self.values[problem])
        if self.words is not None:
            return self.words[int(value)]
        is_whole = value.is_integer() and canonical.INT_MIN <= value <= canonical.INT_MAX
        return int(value) if is_whole else value

    def take(self, problems: Numbers) -> "Column":
        """Return the column of some problems, in their order."""
        return replace(self, values=self.values[problems])


@dataclass(frozen=True, eq=False)
class Rows:
    """What was measured: a row for every problem and config that met, no two alike.

    `starts` has one entry more than there are rows: the samples of row r are `samples_s[starts[r]:starts[r + 1]]`.
    """

    problem: Numbers
    config: Numbers
    status: NDArray[np.int8]
    samples_s: Floats
    starts: Numbers

    def __len__(self) -> int:
        return len(self.problem)

    @property
    def numbers(self) -> tuple[Numbers, Numbers, NDArray[np.int8]]:
        """The columns that are no times: problem, config, status."""
        return self.problem, self.config, self.status

    @cached_property
    def time_s(self) -> Floats:
        """The mean of the lower half of every row's samples; NaN where it has none."""
        return lower_half_means(self.samples_s, self.starts)

    def take(self, rows: Numbers) -> "Rows":
        """Return some rows, in their order."""
        counts = np.diff(self.starts)
        if len(counts) and (counts == counts[0]).all():  # by far the most common case, in half the memory
            width = int(counts[0])
            starts = np.arange(len(rows) + 1, dtype=np.int64) * width
            samples = self.samples_s[self.starts[0] : self.starts[-1]].reshape(len(counts), width)[rows].reshape(-1)
        else:
            starts = np.concatenate([[0], np.cumsum(counts[rows])]).astype(np.int64)
            offsets = np.repeat(self.starts[:-1][rows] - starts[:-1], counts[rows])
            samples = self.samples_s[np.arange(starts[-1]) + offsets]
        return Rows(self.problem[rows], self.config[rows], self.status[rows], samples, starts)


@dataclass(frozen=True, eq=False)
class DataSet:
    """Many problems of one decision, many configs, and what was measured of them, in seconds.

    `default` is the number of the config the decision falls back to. `device` has, for every problem, the number of
    the device it was measured on; `devices` their facts, such as hardware.name. `notes` count what a reader met:
    duplicate rows that it merged, conflicting ones, torn ones.
    """

    decision: str
    features: tuple[Column, ...]
    configs: tuple[Config, ...]
    rows: Rows
    default: int | None = None
    devices: tuple[Mapping[str, Any], ...] = ({},)
    device: Numbers | None = None
    notes: Mapping[str, int] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.features[0].values) if self.features else 0

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the features."""
        return tuple(column.name for column in self.features)

    @cached_property
    def times_s(self) -> Floats:
        """A row a problem, a column a config: seconds, infinite where it failed, NaN where it was never tried."""
        times = np.full((len(self), len(self.configs)), np.nan)
        measured = np.where(self.rows.status == TIMED, self.rows.time_s, np.inf)
        times[self.rows.problem, self.rows.config] = measured
        return times

    @cached_property
    def best_s(self) -> Floats:
        """The shortest time measured of every problem; NaN where nothing ran."""
        best = np.full(len(self), np.inf)
        timed = self.rows.status == TIMED
        np.minimum.at(best, self.rows.problem[timed], self.rows.time_s[timed])
        return np.where(np.isfinite(best), best, np.nan)

    def problem(self, number: int) -> Problem:
        """Return one problem as the value the rest of the house knows."""
        return Problem({column.name: column.at(number) for column in self.features})

    def take(self, problems: Sequence[int] | Numbers | Flags) -> "DataSet":
        """Return the data of some problems, in their order; a mask of flags will do too."""
        wanted = np.asarray(problems)
        chosen: Numbers = np.flatnonzero(wanted) if wanted.dtype == bool else wanted.astype(np.int64)
        place = np.full(len(self), -1, dtype=np.int64)
        place[chosen] = np.arange(len(chosen))
        kept = self.rows.take(np.flatnonzero(place[self.rows.problem] >= 0))
        return replace(
            self,
            features=tuple(column.take(chosen) for column in self.features),
            rows=replace(kept, problem=place[kept.problem]),
            device=None if self.device is None else self.device[chosen],
            notes={},
        )

    def with_default(self, config: Config) -> "DataSet":
        """Return the same data with another default; raises InvalidData for a config that is not in it."""
        spelled = canonical.encode(dict(config))
        for number, known in enumerate(self.configs):
            if canonical.encode(dict(known)) == spelled:
                return replace(self, default=number)
        raise InvalidData(f"{self.decision}: the default {dict(config)} is not among the {len(self.configs)} configs")

    @cached_property
    def fingerprint(self) -> str:
        """A digest of everything measured, equal for equal data."""
        parts = {
            "decision": self.decision,
            "features": [(c.name, c.words, _digest(c.values)) for c in self.features],
            "configs": [dict(config) for config in self.configs],
            "rows": [_digest(a) for a in (*self.rows.numbers, self.rows.samples_s, self.rows.starts)],
        }
        return canonical.digest(parts)


def status_of(kind: str) -> int:
    """Return the status of a failure's kind; what has a time is `TIMED`."""
    return FAILURE_KINDS.index(kind) + 1


def lower_half_means(samples: Floats, starts: Numbers) -> Floats:
    """Return the mean of the lower half of every stretch of samples; NaN for an empty one."""
    counts = np.diff(starts)
    means = np.full(len(counts), np.nan)
    for count in np.unique(counts[counts > 0]).tolist():
        rows = np.flatnonzero(counts == count)
        for begin in range(0, len(rows), _BLOCK):
            some = rows[begin : begin + _BLOCK]
            table = samples[starts[some][:, None] + np.arange(count)]
            table.sort(axis=1)
            means[some] = table[:, : half_of(count)].mean(axis=1)
    return means


def _digest(array: NDArray[Any]) -> str:
    return hashlib.sha256(np.ascontiguousarray(array).data).hexdigest()
