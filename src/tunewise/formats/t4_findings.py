"""T4 results as findings and back: what the schema has no field for stands in the metadata under plain names."""

from collections.abc import Mapping, Sequence
from typing import Any, get_args

import msgspec

from tunewise.decision import Failure, FailureKind, Outcome, Timing
from tunewise.formats.findings import (
    Finding,
    config_of,
    date_of,
    grouped,
    in_unit,
    problem_of,
    raw_value,
    seconds_of,
    slug,
    versions_of,
)
from tunewise.formats.recording import number, timed, times
from tunewise.formats.t4 import FINE, measured_s, seconds_in, word_of
from tunewise.formats.torn import Content, decode
from tunewise.formats.writing import Written, json_text

_SCHEMA = "1.0.0"
_WORDS = ("timeout", "compile", "runtime", "correctness", "constraints")  # the schema has no others
_SPELLED = {1.0: "seconds", 1e-3: "milliseconds", 1e-6: "microseconds", 1e-9: "nanoseconds"}
_SHORT = {1.0: "s", 1e-3: "ms", 1e-6: "us", 1e-9: "ns"}
_KIND, _DETAIL = "failure_kind", "failure_detail"  # ours


class _File(msgspec.Struct, frozen=True):
    """The fields of a file."""

    results: list[dict[str, Any]]
    metadata: dict[str, Any] = {}


def read(content: Content) -> list[Finding]:
    """Return every result of a T4 file; times without a unit are milliseconds, as everybody writes them."""
    found = decode(content, _File)
    told = found.metadata
    unit_s = seconds_in(told.get("timeunit") or "ms")
    like = Finding(
        word_of(told, "kernel_name", "kernel", "benchmark"),
        problem_of(told["problem"] if isinstance(told.get("problem"), Mapping) else {}),
        {},
        None,
        word_of(told, "device_name", "device", "hardware"),
        versions_of(told.get("versions") or {}, "metadata, versions"),
        _SHORT[unit_s],
    )
    return [_finding(f"result {place}", one, unit_s, like) for place, one in enumerate(found.results, 1)]


def write(findings: Sequence[Finding]) -> list[Written]:
    """Return a file for every kernel, device, problem, unit and set of versions."""
    groups = grouped(findings, "decision", "problem", "device", "versions", "unit")
    return [_written(group, part if len(groups) > 1 else 0) for part, group in enumerate(groups, 1)]


def _finding(place: str, raw: Mapping[str, Any], unit_s: float, like: Finding) -> Finding:
    config = config_of(raw.get("configuration"), f"{place}, configuration")
    at = seconds_of(raw["timestamp"]) if "timestamp" in raw else 0.0
    outcome = _outcome(place, raw, unit_s)
    return Finding(like.decision, like.problem, config, outcome, like.device, like.versions, like.unit, at)


def _outcome(place: str, raw: Mapping[str, Any], unit_s: float) -> Outcome | None:
    """Return what became of a config; None where it ran and no time is told, as with another objective."""
    said = raw.get("invalidity") or ""
    if not isinstance(said, str):
        raise ValueError(f"{place}: invalidity={said!r:.100} is not a word")
    if said.lower() not in FINE:
        return _failure(raw, said.lower())
    taken = raw.get("times", {})
    taken = taken if isinstance(taken, Mapping) else {}
    samples_s, time_s = times(taken.get("runtimes"), unit_s), measured_s(raw.get("measurements"), unit_s)
    if time_s is None and not samples_s:
        return None
    compiling = number(taken.get("compilation", taken.get("compilation_time")))  # files say one, the schema the other
    outcome = timed(time_s if time_s is not None else samples_s[0], None if compiling is None else compiling * unit_s)
    return Timing(samples_s, outcome.compile_s) if isinstance(outcome, Timing) and samples_s else outcome


def _failure(raw: Mapping[str, Any], said: str) -> Failure:
    told = raw.get(_KIND, said)
    kinds = [kind for kind in get_args(FailureKind) if kind == told]
    detail = raw.get(_DETAIL)
    return Failure(kinds[0] if kinds else "runtime", detail if isinstance(detail, str) else said)


def _written(group: Sequence[Finding], part: int) -> Written:
    first = group[0]
    unit_s = seconds_in(first.unit)
    told: dict[str, Any] = {"timeunit": _SPELLED[unit_s], "kernel_name": first.decision, "device_name": first.device}
    told |= {"problem": dict(first.problem)} if first.problem else {}
    told |= {"versions": dict(first.versions)} if first.versions else {}
    document = {"schema_version": _SCHEMA, "metadata": told, "results": [_result(one, unit_s) for one in group]}
    return Written(f"{slug(first.decision, first.device, str(part or ''))}.t4.json", json_text(document, indent=1))


def _result(finding: Finding, unit_s: float) -> dict[str, Any]:
    outcome = finding.outcome
    told = {"timestamp": date_of(finding.at)} if finding.at else {}
    told |= {"configuration": {name: raw_value(value) for name, value in finding.config.items()}}  # type: ignore[dict-item]
    return {**told, **(_failed(outcome) if isinstance(outcome, Failure) else _ran(outcome, unit_s))}


def _ran(timing: Timing | None, unit_s: float) -> dict[str, Any]:
    told = {"invalidity": "correct", "correctness": 1}
    if timing is None:
        return {"times": {}, **told, "measurements": [], "objectives": []}
    samples = [in_unit(sample, unit_s) for sample in timing.samples_s]
    taken: dict[str, Any] = {"compilation": in_unit(timing.compile_s, unit_s)} if timing.compile_s else {}
    return {
        "times": {**taken, "runtimes": samples},
        **told,
        "measurements": [{"name": "time", "value": sum(samples) / len(samples), "unit": ""}],
        "objectives": ["time"],
    }


def _failed(failure: Failure) -> dict[str, Any]:
    said = failure.kind if failure.kind in _WORDS else "runtime"
    told: dict[str, Any] = {_KIND: failure.kind} if said != failure.kind else {}
    told |= {_DETAIL: failure.detail} if failure.detail != said else {}
    return {"times": {}, "invalidity": said, "correctness": 0, "measurements": [], "objectives": ["time"], **told}
