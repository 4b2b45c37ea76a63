"""torch-diode's data sets as data to learn from, and from JSON to msgpack and back."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import msgspec

from tunewise.decision import FAILURE_KINDS, Config, Failure, Timing, Trial, canonical
from tunewise.errors import InvalidData, InvalidFile
from tunewise.formats import diode, diode_findings, diode_shapes
from tunewise.formats.dataset import TIMED, DataSet
from tunewise.formats.diode import Measured
from tunewise.formats.findings import Finding, record_of
from tunewise.formats.malformed import Loaded
from tunewise.formats.records import Record
from tunewise.formats.torn import Content, load
from tunewise.formats.trials import data_of
from tunewise.formats.writing import json_text, replaced

Kind = Literal["diode", "diode-msgpack"]
_SUFFIXES: dict[str, Kind] = {".json": "diode", ".msgpack": "diode-msgpack", ".mp": "diode-msgpack"}


def read(path: Path, decision: str | None = None) -> Loaded:
    """Return what a data set tells of a decision, or of its only one, as data.

    Raises InvalidFile where it is not sound, and InvalidData where it is about several ops and none is named.
    """
    try:
        return Loaded(data_of(_records(load(path)), decision, where=str(path)))
    except ValueError as error:
        raise InvalidFile(f"{path} is no sound diode data set: {error}") from None


def bytes_of(data: DataSet, kind: Kind) -> bytes:
    """Return a data set as a file of diode's; raises InvalidData where diode has no words for it."""
    write = diode_findings.write_json if kind == "diode" else diode_findings.write_msgpack
    try:
        (written,) = write(list(findings_of(data)))
    except ValueError as error:
        raise InvalidData(f"{data.decision}: no diode data set can be written: {error}") from None
    return written.raw


def fields(data: DataSet) -> dict[str, str]:
    """Return what such a file of a data set holds."""
    devices = sorted({str(device.get("hardware.name", "")) for device in data.devices})
    told = {"hardware": f"the device: {', '.join(map(repr, devices))}", "operation": f"the word {data.decision!r}"}
    told |= {column.name: "a word" if column.is_word else "a number" for column in data.features}
    return told | {"config": "a config", "time": "milliseconds a call, infinite for what failed"}


def convert(source: Path | str, target: Path | str, *, is_renewed: bool = False) -> int:
    """Write a data set or shapeset of diode's as the name of `target` says, .json or .msgpack; return its rows.

    Nothing in it changes, whatever it holds besides; with `is_renewed`, configs that the older schema tells as JSON
    become objects, and every level names its version. Raises NotFound, InvalidFile for a source that is not sound, and
    InvalidData for a target that names neither.
    """
    kind = _SUFFIXES.get(Path(target).suffix)
    if kind is None:
        raise InvalidData(f"{target} does not tell by its name what to write; call it .json or .msgpack")
    content = load(Path(source))
    try:
        rows, document = _counted(content), diode.decoded(content, dict[str, Any])
        raw = _encoded(_renewed(document) if is_renewed else document, kind)
    except ValueError as error:
        raise InvalidFile(f"{source} is neither a sound diode data set nor a shapeset: {error}") from None
    with replaced(Path(target)) as part:
        part.write_bytes(raw)
    return rows


def _renewed(document: dict[str, Any]) -> dict[str, Any]:
    """Return a data set in the newer schema; its rows are known to be sound."""
    if "hardware" not in document:
        return document
    for hardware in document["hardware"].values():
        for operation in hardware["operation"].values():
            for solution in operation["solution"].values():
                solution["timed_configs"] = [_renewed_row(row) for row in solution["timed_configs"]]
                solution.setdefault("version", diode.VERSION)
            operation.setdefault("version", diode.VERSION)
        hardware.setdefault("version", diode.VERSION)
    return {**document, "version": document.get("version", diode.VERSION)}


def _renewed_row(row: dict[str, Any]) -> dict[str, Any]:
    config = row["config"]
    told = canonical.decode(config) if isinstance(config, str) else config
    return {**row, "config": told, "version": row.get("version", diode.VERSION)}


def _encoded(document: dict[str, Any], kind: Kind) -> bytes:
    try:
        return json_text(document, indent=2) if kind == "diode" else msgspec.msgpack.encode(document)
    except (TypeError, OverflowError, RecursionError) as error:  # one of the two can say it, and the other cannot
        raise ValueError(f"{error}") from None


def _counted(content: Content) -> int:
    """Return how many configs or shapes a file tells of; all of it is checked before it is read whole."""
    if diode_shapes.is_shapeset(content):
        return len(diode_shapes.parse(content))
    solutions = (measured.solution for measured in diode.measured(diode.parse(content)))
    return sum(len(solution.timed_configs) for solution in solutions)


def _records(content: Content) -> Iterator[Record]:
    known: dict[str | bytes, Config] = {}  # configs come back shape after shape
    for place in diode.measured(diode.parse(content)):
        subject = record_of(Finding(place.decision, place.problem, {}, Timing((1.0,)), place.device), "diode").subject
        for number, row in enumerate(place.solution.timed_configs, 1):
            spelled = _spelled(row.config)
            if spelled not in known:
                known[spelled] = diode.config_in(row.config, _place(place, number))
            yield Record(subject, Trial(known[spelled], diode_findings.outcome_of(row), source="diode"))


def _spelled(config: str | dict[str, Any]) -> str | bytes:
    try:
        return config if isinstance(config, str) else msgspec.msgpack.encode(config)
    except OverflowError:  # a number that no config may have: whoever reads it says so
        return repr(config)


def _place(place: Measured, number: int) -> str:
    return f"{place.op} {place.problem}, config {number}"


def findings_of(data: DataSet) -> Iterator[Finding]:
    """Yield what a data set tells as findings, row by row."""
    rows, devices = data.rows, data.device
    problems = [data.problem(number) for number in range(len(data))]
    for row, (problem, config) in enumerate(zip(rows.problem.tolist(), rows.config.tolist(), strict=True)):
        facts = data.devices[0 if devices is None else int(devices[problem])]
        status = int(rows.status[row])
        outcome = Timing((float(rows.time_s[row]),)) if status == TIMED else Failure(FAILURE_KINDS[status - 1])
        device = str(facts.get("hardware.name", ""))
        yield Finding(data.decision, problems[problem], data.configs[config], outcome, device)
