"""torch-diode's data sets as findings and back: what was read is written as it stood, the rest in the newer schema."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import inf
from typing import Any

import msgspec
from msgspec import UNSET

from tunewise.decision import Failure, Outcome, Timing
from tunewise.formats import diode
from tunewise.formats.diode import File, Hardware, Measured, Operation, Solution, Timed
from tunewise.formats.findings import Finding, in_unit
from tunewise.formats.recording import timed
from tunewise.formats.torn import Content
from tunewise.formats.writing import Written, json_text

MS = 1e-3
_ORIGIN = "diode"
_UNTIMED = Failure("runtime", "recorded without a time")


@dataclass(frozen=True, slots=True)
class _Origin:
    """Where a finding stood in its file: its shape, and its row."""

    place: Measured
    row: Timed


def read(content: Content) -> list[Finding]:
    """Return every config of a data set with its time; raises ValueError, with the place, where it makes no sense."""
    return [finding for place in diode.measured(diode.parse(content)) for finding in findings_of(place)]


def findings_of(place: Measured) -> Iterator[Finding]:
    """Yield what was measured of a shape, in the order of the file."""
    for number, row in enumerate(place.solution.timed_configs, 1):
        config = diode.config_in(row.config, f"{place.op} {place.problem}, config {number}")
        extra = {_ORIGIN: _Origin(place, row)}
        yield Finding(place.decision, place.problem, config, outcome_of(row), place.device, extra=extra)


def outcome_of(row: Timed) -> Outcome:
    """Return what became of a config: milliseconds that no clock shows, or none, stand for a failure."""
    return _UNTIMED if row.time is None or row.time == inf else timed(row.time * MS, None)


def write_json(findings: Sequence[Finding]) -> list[Written]:
    """Return one file of JSON with all that was timed or failed; raises ValueError where diode has no words for it."""
    return [Written("diode.json", json_text(msgspec.to_builtins(file_of(findings)), indent=2))]


def write_msgpack(findings: Sequence[Finding]) -> list[Written]:
    """Return one msgpack file with all that was timed or failed; raises ValueError where diode has no words for it."""
    return [Written("diode.msgpack", msgspec.msgpack.encode(file_of(findings)))]


def file_of(findings: Sequence[Finding]) -> File:
    """Return findings as a data set; what was read from one stands in it as it stood there.

    Of several samples the time that decides is told. What failed has an infinite one: diode knows no reasons.
    """
    making = _Making({}, {})
    for finding in findings:
        if finding.outcome is not None:
            making.add(finding)
    if not making.file:
        raise ValueError("not one config of it was measured")
    return making.done()


@dataclass
class _Making:
    """A data set in the making: rows by device, op and shape, and the finding that first told of each level."""

    file: dict[str, dict[tuple[str, str], dict[str, list[Timed]]]]
    first: dict[tuple[str, ...], Measured | None]

    def add(self, finding: Finding) -> None:
        """Take a finding in."""
        origin = finding.extra.get(_ORIGIN)
        place = origin.place if isinstance(origin, _Origin) else None
        op = diode.op_of(finding.decision)
        shape = _shape(finding, place, op)
        for level in ((finding.device,), (finding.device, finding.decision), (finding.device, finding.decision, shape)):
            self.first.setdefault(level, place)
        ops = self.file.setdefault(finding.device, {})
        ops.setdefault((finding.decision, op), {}).setdefault(shape, []).append(_row(finding, origin, op))

    def done(self) -> File:
        """Return the data set."""
        first = next(iter(self.first.values()))
        version = diode.VERSION if first is None else first.file.version
        return File({device: self._hardware(device) for device in self.file}, version)

    def _hardware(self, device: str) -> Hardware:
        first = self.first[(device,)]
        named: dict[str, Operation] = {}
        for (decision, op), shapes in self.file[device].items():
            if op in named:
                raise ValueError(f"{decision} and another decision are both the op {op}; write one of them at a time")
            named[op] = self._operation(device, decision, op, shapes)
        return Hardware(named, diode.VERSION if first is None else first.hardware.version)

    def _operation(self, device: str, decision: str, op: str, shapes: dict[str, list[Timed]]) -> Operation:
        first = self.first[(device, decision)]
        return Operation(
            decision=UNSET if decision == diode.GPU + op else decision,
            name=UNSET if first is None else first.operation.name,
            solution={shape: self._solution(device, decision, shape, rows) for shape, rows in shapes.items()},
            version=diode.VERSION if first is None else first.operation.version,
        )

    def _solution(self, device: str, decision: str, shape: str, rows: list[Timed]) -> Solution:
        first = self.first[(device, decision, shape)]
        if first is None:
            return Solution(timed_configs=rows, version=diode.VERSION)
        return Solution(first.solution.name, rows, first.solution.version)


def _shape(finding: Finding, place: Measured | None, op: str) -> str:
    is_as_read = place is not None and place.problem == finding.problem
    return place.shape if place is not None and is_as_read else diode.shape_of(finding.problem, op)


def _row(finding: Finding, origin: Any, op: str) -> Timed:
    time_s = finding.time_s
    if isinstance(origin, _Origin) and _is_as_read(finding, origin):
        return origin.row
    raw = diode.raw_config(finding.config, finding.problem, op)
    return Timed(raw, inf if time_s is None else in_unit(time_s, MS), diode.VERSION)


def _is_as_read(finding: Finding, origin: _Origin) -> bool:
    same = isinstance(finding.outcome, Timing | Failure) and finding.outcome == outcome_of(origin.row)
    return same and finding.config == diode.config_in(origin.row.config, "a config")
