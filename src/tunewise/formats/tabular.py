"""Tables of measurements as data sets: a row a problem and config, or a row a problem with columns a config."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tunewise.decision import CHOICE, FAILURE_KINDS, Scalar
from tunewise.errors import InvalidData
from tunewise.formats.arrow import Sheet
from tunewise.formats.building import Table, build
from tunewise.formats.cells import Coded, distinct, is_garbled, is_unusable, number, strays
from tunewise.formats.dataset import TIMED, DataSet, Flags, Floats, Numbers, status_of
from tunewise.formats.layout import Layout
from tunewise.formats.malformed import Faults
from tunewise.formats.units import unit_s

_FIRST = "c0"  # the default of a wide table, as config 0 is of numbered ones
_SHOWN = 40  # characters of a cell in a reason
_FALSE = frozenset({"", "0", "false", "no", "none", "0.0"})
_RUNTIME, _WRONG = status_of("runtime"), status_of("correctness")


@dataclass(frozen=True, eq=False)
class Samples:
    """Stretches of samples, one a row; `is_endless` marks rows with an infinite time, which ran and never ended."""

    values: Floats
    starts: Numbers
    is_endless: Flags

    @property
    def counts(self) -> Numbers:
        """How many samples each row has."""
        return np.diff(self.starts)


@dataclass(frozen=True, eq=False)
class _Reading:
    """A sheet on its way to a data set."""

    sheet: Sheet
    layout: Layout
    file: str
    faults: Faults
    features: Mapping[str, Coded[Scalar]]
    facts: Mapping[str, Coded[Scalar]]
    scale_s: float

    def has(self, name: str) -> bool:
        """Whether the sheet has a column of what is known besides."""
        return name in self.layout.aside


def data_of(sheet: Sheet, layout: Layout, file: str) -> tuple[DataSet, Faults]:
    """Return the data set of a sheet and the rows that had to be left out; its name is empty unless the sheet tells."""
    faults = Faults(np.zeros(sheet.count, dtype=np.bool_))
    decision = _one_word(sheet, layout, "decision", file) or ""
    return build(decision, _table(sheet, layout, file, faults)), faults


def _table(sheet: Sheet, layout: Layout, file: str, faults: Faults) -> Table:
    reading = _Reading(
        sheet,
        layout,
        file,
        faults,
        _features(sheet, layout, faults),
        {name: _fact(sheet.coded(column)) for name, column in layout.facts.items()},
        _scale_s(sheet, layout, file),
    )
    return _wide(reading) if layout.wide else _long(reading)


def _fact(column: Coded[Scalar]) -> Coded[Scalar]:
    """Return a column of facts; an empty cell is what nobody knows."""
    return distinct(column.codes, [None if value == "" else value for value in column.values])


def _features(sheet: Sheet, layout: Layout, faults: Faults) -> dict[str, Coded[Scalar]]:
    features = _dimensions(sheet, layout.shape, faults) if layout.shape is not None else {}
    for name, column in layout.features.items():
        coded = sheet.coded(column)
        features[name] = coded if sheet.tells_kinds(column) else _without_strays(coded, column, faults)
        faults.add(features[name].where(list(map(is_unusable, features[name].values))), f"{column} has no value")
        sheet.drop(column)
    return features


def _without_strays(coded: Coded[Scalar], column: str, faults: Faults) -> Coded[Scalar]:
    """Return a column with the words in it, if it is one of numbers otherwise, as faults of their rows."""
    flags = strays(coded)
    if not any(flags):
        return coded
    for place in np.flatnonzero(flags).tolist():
        reason = f"{column} is {str(coded.values[place])[:_SHOWN]!r}, and a number in nearly all other rows"
        faults.add(coded.codes == place, reason)
    return distinct(coded.codes, [number(str(value)) for value in coded.values])


def _dimensions(sheet: Sheet, column: str, faults: Faults) -> dict[str, Coded[Scalar]]:
    """Return the sizes of a shape such as 64x32 as d0, d1 and so on; most rows say how many there are."""
    shapes = sheet.words(column)
    sizes = [tuple(number(part) for part in word.split("x")) for word in shapes.values]
    lengths = np.array([len(size) for size in sizes], dtype=np.int64)[shapes.codes]
    usual = int(np.bincount(lengths).argmax()) if len(lengths) else 0
    wrong = [len(size) != usual or None in size for size in sizes]
    faults.add(shapes.where(wrong), f"{column} is not {usual} numbers such as 64x32")
    padded = [(None,) * usual if bad else size for size, bad in zip(sizes, wrong, strict=True)]
    return {f"d{place}": distinct(shapes.codes, [size[place] for size in padded]) for place in range(usual)}


def _scale_s(sheet: Sheet, layout: Layout, file: str) -> float:
    word = _one_word(sheet, layout, "unit", file)
    if word is None:
        return layout.unit_s or 1.0
    if layout.unit_s not in (None, unit_s(word)):
        raise InvalidData(f"{file} says {word} in its column `unit`, and another unit was named; give all in one unit")
    return unit_s(word)


def _one_word(sheet: Sheet, layout: Layout, name: str, file: str) -> str | None:
    """Return the word that a column says in all rows, or None without such a column."""
    if name not in layout.aside:
        return None
    words = sorted(set(sheet.words(name).values))
    if len(words) > 1:
        way_out = "give all samples in one unit" if name == "unit" else "write a file for each"
        raise InvalidData(f"{file} mixes in its column `{name}` {' and '.join(words[:3])}; {way_out}")
    return words[0].strip() or None if words else None


def _long(reading: _Reading) -> Table:
    sheet, layout, faults = reading.sheet, reading.layout, reading.faults
    params = {name: sheet.coded(column) for name, column in layout.params.items()}
    sheet.drop(*(column for column in layout.params.values() if column not in layout.aside))
    for name, param in params.items():
        faults.add(param.where(list(map(is_garbled, param.values))), f"{layout.params[name]} is no text")
    samples = _samples(reading, layout.samples)
    status = _status(reading, samples)
    return taken(
        Table(
            reading.features,
            params,
            status,
            samples.values,
            samples.starts,
            reading.facts,
            _default_flags(reading),
            is_log=len(layout.samples) == 1 and int(samples.counts.max(initial=0)) <= 1,
        ),
        faults.kept,
    )


def taken(table: Table, rows: Numbers | None) -> Table:
    """Return some rows of a table; None stands for all of them."""
    if rows is None:
        return table
    counts = np.diff(table.starts)
    is_kept = np.zeros(len(counts), dtype=np.bool_)
    is_kept[rows] = True
    return Table(
        {name: column.take(rows) for name, column in table.features.items()},
        {name: column.take(rows) for name, column in table.params.items()},
        table.status[rows],
        table.samples_s[np.repeat(is_kept, counts)],
        np.concatenate([[0], np.cumsum(counts[rows])]).astype(np.int64),
        {name: column.take(rows) for name, column in table.facts.items()},
        None if table.is_default is None else table.is_default[rows],
        table.is_log,
    )


def _samples(reading: _Reading, names: Sequence[str]) -> Samples:
    """Return the samples of some columns in seconds: lists of them, or one a column."""
    sheet, faults = reading.sheet, reading.faults
    if len(names) == 1 and sheet.is_listed(names[0]):
        return _listed(reading, names[0])
    matrix = np.empty((sheet.count, len(names)))
    for place, name in enumerate(names):
        matrix[:, place], garbled = sheet.floats(name)
        sheet.drop(name)
        faults.add(garbled, f"{name} is not a time")
        with np.errstate(invalid="ignore"):
            faults.add(matrix[:, place] <= 0, f"{name} is not a time above 0")
    return flat(matrix, reading.scale_s)


def _listed(reading: _Reading, name: str) -> Samples:
    values, starts = reading.sheet.lists(name)
    counts = np.diff(starts)
    owner = np.repeat(np.arange(len(counts)), counts)
    bad = np.zeros(len(counts), dtype=np.bool_)
    bad[owner[~(values > 0)]] = True
    reading.faults.add(bad, f"{name} holds what is not a time above 0")
    endless = np.zeros(len(counts), dtype=np.bool_)
    endless[owner[np.isinf(values)]] = True
    return Samples(values * reading.scale_s, starts, endless)


def flat(matrix: Floats, scale_s: float) -> Samples:
    """Return a matrix of samples as one stretch a row, in seconds, without what is missing or endless."""
    count, width = matrix.shape
    there = np.isfinite(matrix)
    if there.all():
        values, starts = matrix.reshape(-1), np.arange(count + 1, dtype=np.int64) * width
        endless = np.zeros(count, dtype=np.bool_)
    else:
        values, starts = matrix[there], np.concatenate([[0], np.cumsum(there.sum(axis=1))]).astype(np.int64)
        endless = np.asarray(np.isinf(matrix).any(axis=1))
    return Samples(values if scale_s == 1.0 else values * scale_s, starts, endless)


def _status(reading: _Reading, samples: Samples) -> NDArray[np.int8]:
    """Return what became of each row: the failure it names, a wrong result, or no time at all."""
    without = (samples.counts == 0) | samples.is_endless
    status = np.where(without, _RUNTIME, TIMED).astype(np.int8)
    if reading.has("ok"):
        status[~_is_true(reading.sheet.words("ok")) & ~without] = _WRONG
    if reading.has("failure"):
        kinds = reading.sheet.words("failure")
        unknown = [bool(word) and word not in FAILURE_KINDS for word in kinds.values]
        reading.faults.add(kinds.where(unknown), f"failure is none of {', '.join(FAILURE_KINDS)}")
        numbers = [status_of(word) if word in FAILURE_KINDS else TIMED for word in kinds.values]
        told = np.array(numbers, dtype=np.int8)[kinds.codes]
        status = np.where(told != TIMED, told, status).astype(np.int8)
    return status


def _default_flags(reading: _Reading) -> Flags | None:
    if reading.has("is_default"):
        return _is_true(reading.sheet.words("is_default"))
    if reading.has("cfg"):  # numbered from the default on
        numbers = reading.sheet.words("cfg")
        return numbers.where([number(word) == 0 for word in numbers.values])
    return None


def _is_true(words: Coded[str]) -> Flags:
    return words.where([word.strip().lower() not in _FALSE for word in words.values])


def _wide(reading: _Reading) -> Table:
    of_choice = [_samples(reading, names) for names in reading.layout.wide.values()]
    choices = tuple(reading.layout.wide)
    count = reading.sheet.count
    rows = np.tile(np.arange(count), len(choices))
    codes = np.repeat(np.arange(len(choices), dtype=np.int32), count)
    counts = np.concatenate([samples.counts for samples in of_choice])
    is_endless = np.concatenate([samples.is_endless for samples in of_choice])
    table = Table(
        {name: column.take(rows) for name, column in reading.features.items()},
        {CHOICE: Coded(codes, choices)},
        np.where(is_endless, _RUNTIME, TIMED).astype(np.int8),
        np.concatenate([samples.values for samples in of_choice]),
        np.concatenate([[0], np.cumsum(counts)]).astype(np.int64),
        {name: column.take(rows) for name, column in reading.facts.items()},
        codes == choices.index(_FIRST) if _FIRST in choices else None,
    )
    # What was never tried has no row.
    return taken(table, np.flatnonzero(((counts > 0) | is_endless) & ~reading.faults.bad[rows]))
