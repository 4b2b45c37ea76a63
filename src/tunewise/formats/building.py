"""Data sets from columns: distinct problems and configs, and rows of one pair merged."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tunewise.decision import Config, Scalar
from tunewise.formats.arrow import arrow_library
from tunewise.formats.cells import Coded, feature
from tunewise.formats.dataset import TIMED, Column, DataSet, Flags, Floats, Numbers, Rows

FAR_APART = 2.0  # two measurements of one thing that differ by more contradict each other
_NONE = np.zeros(0, dtype=np.int64)
NO_ROWS = Rows(_NONE, _NONE, _NONE.astype(np.int8), _NONE.astype(np.float64), np.zeros(1, dtype=np.int64))


@dataclass(frozen=True, eq=False)
class Table:
    """Columns of one length as a file has them: features, parameters and facts of the device by name, and samples.

    In a log (`is_log`) a row is one sample of several.
    """

    features: Mapping[str, Coded[Scalar]]
    params: Mapping[str, Coded[Scalar]]
    status: NDArray[np.int8]
    samples_s: Floats
    starts: Numbers
    facts: Mapping[str, Coded[Scalar]] = field(default_factory=dict)
    is_default: Flags | None = None
    is_log: bool = False


def build(decision: str, table: Table) -> DataSet:
    """Return the data set of a table whose cells are all sound: problems and configs in the order they first come."""
    is_log = table.is_log
    data, *held = _unmerged(decision, table)
    del table
    return merged_rows(data, held.pop(), {}, is_log=is_log)  # handed over: a large table does not fit twice


def _unmerged(decision: str, table: Table) -> tuple[DataSet, Rows]:
    problem, first = numbered([*table.features.values(), *table.facts.values()], len(table.status))
    config, first_config = numbered(list(table.params.values()), len(table.status))
    configs = tuple(_config(table.params, row) for row in first_config.tolist())
    device, first_device = numbered([column.take(first) for column in table.facts.values()], len(first))
    data = DataSet(
        decision,
        tuple(_column(name, column.take(first)) for name, column in table.features.items()),
        configs,
        NO_ROWS,
        default=_default(config, table.is_default, len(configs)),
        devices=tuple(_config(table.facts, row) for row in first[first_device].tolist()) or ({},),
        device=device if table.facts else None,
    )
    return data, Rows(problem, config, table.status, table.samples_s, table.starts)


def columns_of(problems: Sequence[Mapping[str, Scalar]]) -> tuple[Column, ...]:
    """Return the features of problems that all have the same ones, as columns."""
    columns = []
    for name in problems[0] if problems else ():
        values = [problem[name] for problem in problems]
        known = {value: place for place, value in enumerate(dict.fromkeys(values))}
        codes = np.array([known[value] for value in values], dtype=np.int32)
        columns.append(_column(name, Coded(codes, tuple(known))))
    return tuple(columns)


def numbered(columns: Sequence[Coded[Any]], count: int) -> tuple[Numbers, Numbers]:
    """Return for each row the number of its combination of values, and the row in which each combination first comes.

    Combinations are numbered in the order they come. Without columns all rows are alike.
    """
    key = np.zeros(count, dtype=np.int64)
    size = 1
    for column in columns:
        if size * max(len(column.values), 1) >= 1 << 62:
            key, _ = _dense(key)
            size = int(key.max(initial=0)) + 1
        key = key * len(column.values) + column.codes
        size *= max(len(column.values), 1)
    return _dense(key)


def _dense(key: Numbers) -> tuple[Numbers, Numbers]:
    """Return keys numbered in the order they first come, and where they do; by hashing, since sorting takes longer."""
    number = arrow_library().array(key).dictionary_encode().indices.to_numpy(zero_copy_only=False)
    is_new = np.diff(np.maximum.accumulate(number), prepend=-1) > 0
    return number.astype(np.int64), np.flatnonzero(is_new)


def merged_rows(data: DataSet, rows: Rows, notes: Mapping[str, int], *, is_log: bool = False) -> DataSet:
    """Return a data set with some rows, those of one problem and config as one; `notes` count what met.

    One failure makes the whole row a failure: what fails now and then must not be chosen. In a log a row is one sample
    of several, and rows of one pair are no duplicates unless they are copies.
    """
    key = rows.problem * np.int64(max(len(data.configs), 1)) + rows.config
    if not (key[1:] >= key[:-1]).all():
        order = np.argsort(key, kind="stable")
        rows, key = rows.take(order), key[order]
        del order
    is_first = np.ones(len(key), dtype=np.bool_)
    is_first[1:] = key[1:] != key[:-1]
    counted = dict(notes)
    if not is_first.all():
        met = _met_again(rows, is_first)
        count_in(counted, "duplicates", met.copies() if is_log else len(rows) - int(is_first.sum()))
        count_in(counted, "conflicts", met.conflicts())
        rows = _joined(rows, np.flatnonzero(is_first))
    return replace(data, rows=_without_failed_samples(rows), notes=counted)


@dataclass(frozen=True, eq=False)
class _Met:
    """The rows of pairs that came more than once, and the number of each row's pair."""

    rows: Rows
    pair: Numbers

    @property
    def begins(self) -> Numbers:
        """Where each pair's rows begin."""
        return np.flatnonzero(np.diff(self.pair, prepend=-1) > 0)

    def copies(self) -> int:
        """Return how many rows have the very time of another one of their pair."""
        times = self.rows.time_s
        order = np.lexsort((times, self.pair))
        is_copy = (np.diff(times[order]) == 0) & (np.diff(self.pair[order]) == 0)
        return int(is_copy.sum())

    def conflicts(self) -> int:
        """Return how many pairs both ran and failed, or whose typical fast and slow rows are far apart.

        A row of one sample has no typical time: such rows are repeats, as the samples within a row are.
        """
        sizes = np.diff(np.concatenate([self.begins, [len(self.rows)]]))
        failed = np.add.reduceat((self.rows.status != TIMED).astype(np.int64), self.begins)
        mixed = (failed > 0) & (failed < sizes)
        medians = _medians(self.rows)
        ordered = medians[np.lexsort((medians, self.pair))]
        step = (sizes // 2 - 1) // 2  # the median of the lower half, and as far from the other end
        with np.errstate(invalid="ignore"):
            apart = ordered[self.begins + sizes - 1 - step] > FAR_APART * ordered[self.begins + step]
        is_typical = np.minimum.reduceat(np.diff(self.rows.starts), self.begins) > 1
        return int((mixed | (apart & is_typical & (failed == 0))).sum())


def _met_again(rows: Rows, is_first: Flags) -> _Met:
    is_several = ~is_first
    is_several[:-1] |= ~is_first[1:]
    several = np.flatnonzero(is_several)
    return _Met(rows.take(several), np.cumsum(is_first[several]) - 1)


def _medians(rows: Rows) -> Floats:
    counts = np.diff(rows.starts)
    owner = np.repeat(np.arange(len(counts)), counts)
    ordered = rows.samples_s[np.lexsort((rows.samples_s, owner))]
    has = counts > 0
    medians = np.full(len(counts), np.nan)
    medians[has] = ordered[(rows.starts[:-1] + (counts - 1) // 2)[has]]
    return medians


def _joined(rows: Rows, begins: Numbers) -> Rows:
    """Return sorted rows with those of one pair as one: the samples of all of them lie side by side already."""
    worst = np.maximum.reduceat(rows.status, begins)
    starts = np.concatenate([rows.starts[:-1][begins], rows.starts[-1:]])
    return Rows(rows.problem[begins], rows.config[begins], worst, rows.samples_s, starts)


def _without_failed_samples(rows: Rows) -> Rows:
    counts = np.diff(rows.starts)
    failed = rows.status != TIMED
    if not (counts[failed] > 0).any():
        return rows
    kept = np.repeat(~failed, counts)
    counts = np.where(failed, 0, counts)
    starts = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    return replace(rows, samples_s=rows.samples_s[kept], starts=starts)


def count_in(notes: dict[str, int], name: str, number: int) -> None:
    """Add to a note; one of nothing is not made."""
    if number:
        notes[name] = notes.get(name, 0) + number


def _column(name: str, column: Coded[Scalar]) -> Column:
    values, words = feature(column)
    return Column(name, values, words)


def _config(params: Mapping[str, Coded[Scalar]], row: int) -> Config:
    return {name: column.at(row) for name, column in params.items()}


def _default(config: Numbers, flags: Flags | None, count: int) -> int | None:
    """Return the config flagged most often, or None where none is."""
    if flags is None or not flags.any():
        return None
    return int(np.bincount(config[flags], minlength=count).argmax())
