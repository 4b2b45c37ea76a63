"""Several data sets of one decision as one, if they fit together."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tunewise.decision import canonical
from tunewise.errors import InvalidData
from tunewise.formats.building import NO_ROWS, count_in, merged_rows, numbered
from tunewise.formats.cells import Coded
from tunewise.formats.dataset import Column, DataSet, Floats, Numbers, Rows


def merge(parts: Sequence[DataSet]) -> DataSet:
    """Return several data sets of one decision as one; raises InvalidData, saying what differs, where they do not fit.

    Pairs that several of them have are merged, and counted in `notes`.
    """
    if not parts:
        raise InvalidData("there is no data set to merge; name at least one file")
    first = parts[0]
    for other in parts[1:]:
        _must_fit(first, other)
    if len(parts) == 1:
        return first
    configs, config_places = _united([part.configs for part in parts])
    devices, device_places = _united([part.devices for part in parts])
    device = np.concatenate([places[_devices(part)] for part, places in zip(parts, device_places, strict=True)])
    columns = tuple(_concatenated([_named(part, name) for part in parts]) for name in first.names)
    codes: list[Coded[Any]] = [Coded(*_codes(column.values)) for column in columns]
    codes.append(Coded(device.astype(np.int32), tuple(range(len(devices)))))
    number, origin = numbered(codes, len(device))
    offsets = np.cumsum([0, *(len(part) for part in parts)])
    whole = DataSet(
        first.decision,
        tuple(column.take(origin) for column in columns),
        configs,
        NO_ROWS,
        default=_agreed_default(parts, config_places),
        devices=devices,
        device=device[origin] if len(devices) > 1 or devices[0] else None,
    )
    moved = [
        replace(part.rows, problem=number[part.rows.problem + offset], config=places[part.rows.config])
        for part, offset, places in zip(parts, offsets, config_places, strict=False)
    ]
    return merged_rows(whole, _appended(moved), _summed([part.notes for part in parts]))


def _must_fit(one: DataSet, other: DataSet) -> None:
    if one.decision != other.decision:
        raise InvalidData(f"data of the decisions {one.decision!r} and {other.decision!r} do not mix; name one of them")
    if set(one.names) != set(other.names):
        apart = sorted(set(one.names) ^ set(other.names))
        raise InvalidData(f"{one.decision}: the features differ between the files: {', '.join(apart)} is in one only")
    params = [set(next(iter(data.configs), {})) for data in (one, other)]
    if params[0] != params[1]:
        apart = sorted(params[0] ^ params[1])
        raise InvalidData(f"{one.decision}: the configs differ between the files: {', '.join(apart)} is in one only")
    for column in one.features:
        if column.is_word != _named(other, column.name).is_word:
            raise InvalidData(f"{one.decision}: {column.name} is a number in one file and a word in another")
    if one.default is not None and other.default is not None:
        ours, theirs = one.configs[one.default], other.configs[other.default]
        if canonical.encode(dict(ours)) != canonical.encode(dict(theirs)):
            raise InvalidData(f"{one.decision}: the default is {dict(ours)} in one file and {dict(theirs)} in another")


def _named(data: DataSet, name: str) -> Column:
    return next(column for column in data.features if column.name == name)


def _united(parts: Sequence[Sequence[Mapping[str, Any]]]) -> tuple[tuple[Mapping[str, Any], ...], list[Numbers]]:
    """Return the distinct ones of several lists, and for each list where its members went."""
    known: dict[str, int] = {}
    united: list[Mapping[str, Any]] = []
    places = []
    for part in parts:
        for member in part:
            if known.setdefault(canonical.encode(dict(member)), len(united)) == len(united):
                united.append(member)
        places.append(np.array([known[canonical.encode(dict(member))] for member in part], dtype=np.int64))
    return tuple(united), places


def _devices(part: DataSet) -> Numbers:
    return np.zeros(len(part), dtype=np.int64) if part.device is None else part.device


def _concatenated(columns: Sequence[Column]) -> Column:
    name = columns[0].name
    if columns[0].words is None:
        return Column(name, np.concatenate([column.values for column in columns]))
    words = tuple(sorted({word for column in columns for word in column.words or ()}))
    place = {word: number for number, word in enumerate(words)}
    moved = [np.array([place[w] for w in c.words or ()], dtype=np.float64)[c.values.astype(np.int64)] for c in columns]
    return Column(name, np.concatenate(moved), words)


def _codes(values: Floats) -> tuple[NDArray[np.int32], tuple[float, ...]]:
    distinct, codes = np.unique(values, return_inverse=True)
    return codes.astype(np.int32), tuple(distinct.tolist())


def _appended(parts: Sequence[Rows]) -> Rows:
    shifts = np.cumsum([0, *(len(part.samples_s) for part in parts)])
    starts = [part.starts[:-1] + shift for part, shift in zip(parts, shifts, strict=False)]
    return Rows(
        np.concatenate([part.problem for part in parts]),
        np.concatenate([part.config for part in parts]),
        np.concatenate([part.status for part in parts]),
        np.concatenate([part.samples_s for part in parts]),
        np.concatenate([*starts, shifts[-1:]]),
    )


def _agreed_default(parts: Sequence[DataSet], places: Sequence[Numbers]) -> int | None:
    known = [int(where[part.default]) for part, where in zip(parts, places, strict=True) if part.default is not None]
    return known[0] if known else None


def _summed(notes: Sequence[Mapping[str, int]]) -> dict[str, int]:
    total: dict[str, int] = {}
    for counted in notes:
        for name, number in counted.items():
            count_in(total, name, number)
    return total
