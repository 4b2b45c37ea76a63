"""Data sets as tables of typed columns, the way we write CSV and Parquet."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from tunewise.decision import CHOICE, FAILURE_KINDS, canonical
from tunewise.formats.arrow import JSON_MARK, arrow_library
from tunewise.formats.cells import has_many_numbers, spelled
from tunewise.formats.dataset import Column, DataSet, Numbers


def fields(data: DataSet, *, is_listed: bool) -> dict[str, str]:
    """Return the columns a data set is written with, and what each holds: all that leaves the machine."""
    told = {"decision": f"the word {data.decision!r}"}
    told |= dict.fromkeys(fact_names(data), "a fact of the device")
    told |= {f"f_{c.name}": "a word" if c.is_word else "a number" for c in data.features}
    told |= {_param(data, name): "a parameter" for name in param_names(data)}
    told |= {"is_default": "whether the config is the default"} if data.default is not None else {}
    samples = "samples_s" if is_listed else "t0, t1, ..."
    return told | {"failure": "a kind, such as timeout; empty for what ran", samples: "seconds a call"}


def param_names(data: DataSet) -> list[str]:
    """Return the parameters of the configs."""
    return list(dict.fromkeys(name for config in data.configs for name in config))


def fact_names(data: DataSet) -> list[str]:
    """Return the facts known of the devices."""
    return list(dict.fromkeys(name for facts in data.devices for name in facts))


def table_of(data: DataSet, *, is_listed: bool) -> Any:
    """Return an arrow table, a row for every problem and config.

    Samples are a list a row in a file with types (`is_listed`), and in columns t0, t1, ... in one without.
    """
    arrow = arrow_library()
    rows = data.rows
    columns: list[tuple[Any, Any]] = [_constant("decision", data.decision, len(rows))]
    device = np.zeros(len(data), dtype=np.int64) if data.device is None else data.device
    for name in fact_names(data):
        columns.append(_scalars(name, [facts.get(name) for facts in data.devices], device[rows.problem], is_listed))
    columns += [_feature(column, rows.problem, is_listed) for column in data.features]
    for name in param_names(data):
        values = [config.get(name) for config in data.configs]
        columns.append(_scalars(_param(data, name), values, rows.config, is_listed))
    if data.default is not None:
        columns.append((arrow.field("is_default", arrow.bool_()), arrow.array(rows.config == data.default)))
    columns.append(_chosen("failure", ["", *FAILURE_KINDS], rows.status.astype(np.int64)))
    columns += _listed(data) if is_listed else _spread(data)
    return arrow.table([array for _, array in columns], schema=arrow.schema([field for field, _ in columns]))


def _param(data: DataSet, name: str) -> str:
    return CHOICE if param_names(data) == [CHOICE] else f"p_{name}"


def _constant(name: str, word: str, count: int) -> tuple[Any, Any]:
    return _chosen(name, [word], np.zeros(count, dtype=np.int64))


def _scalars(name: str, values: Sequence[Any], numbers: Numbers, is_typed: bool) -> tuple[Any, Any]:
    """Return a column of scalars; as JSON where the file could not tell their kinds."""
    used = [values[number] for number in np.flatnonzero(np.bincount(numbers, minlength=len(values))).tolist()]
    if not _is_one_kind(values) or not (is_typed or _stay_words(used)):
        field, array = _chosen(name, [canonical.encode(value) for value in values], numbers)
        return field.with_metadata(JSON_MARK), array
    return _chosen(name, values, numbers)


def _is_one_kind(values: Sequence[Any]) -> bool:
    kinds = {bool if isinstance(v, bool) else str if isinstance(v, str) else float for v in values if v is not None}
    return len(kinds) < 2 and not (str in kinds and None in values)


def _stay_words(values: Sequence[Any]) -> bool:
    """Return whether no words among values of one kind would be read as the numbers or switches that they spell."""
    is_words = any(isinstance(value, str) for value in values)
    return not is_words or (spelled(values) == tuple(values) and not has_many_numbers(values))


def _chosen(name: str, values: Sequence[Any], numbers: Numbers) -> tuple[Any, Any]:
    """Return a column that takes one of a few values of one kind in each row."""
    arrow = arrow_library()
    listed = arrow.array(values)
    if arrow.types.is_string(listed.type):
        array = arrow.DictionaryArray.from_arrays(arrow.array(numbers.astype(np.int32)), listed)
    else:
        array = listed.take(arrow.array(numbers))
    return arrow.field(name, array.type), array


def _feature(column: Column, problem: Numbers, is_typed: bool) -> tuple[Any, Any]:
    arrow = arrow_library()
    name = f"f_{column.name}"
    if column.words is not None:
        return _scalars(name, column.words, column.values[problem].astype(np.int64), is_typed)
    values = column.values
    is_whole = bool((values == np.rint(values)).all() and (np.abs(values) < 1 << 53).all())
    array = arrow.array((values.astype(np.int64) if is_whole else values)[problem])
    return arrow.field(name, array.type), array


def _listed(data: DataSet) -> list[tuple[Any, Any]]:
    arrow = arrow_library()
    rows = data.rows
    array = arrow.LargeListArray.from_arrays(arrow.array(rows.starts), arrow.array(rows.samples_s))
    return [(arrow.field("samples_s", array.type), array)]


def _spread(data: DataSet) -> list[tuple[Any, Any]]:
    arrow = arrow_library()
    rows = data.rows
    counts = np.diff(rows.starts)
    columns = []
    for place in range(max(int(counts.max(initial=0)), 1)):
        there = counts > place
        values = np.full(len(rows), np.nan)
        values[there] = rows.samples_s[rows.starts[:-1][there] + place]
        columns.append((arrow.field(f"t{place}", arrow.float64()), arrow.array(values, mask=~there)))
    return columns
