"""Helion's autotuning logs, as CSV or as a trace of events: every config it tried, and what became of it."""

import csv
import hashlib
import io
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from math import inf
from typing import Any

import msgspec

from tunewise.decision import FAILURE_KINDS, Config, Failure, FailureKind, Outcome, Timing
from tunewise.formats.findings import Finding, in_unit
from tunewise.formats.helionconfig import as_text, flat, from_text, whole
from tunewise.formats.helionruns import Run, beside, run_of, runs_of, told_of
from tunewise.formats.recording import number
from tunewise.formats.torn import Content
from tunewise.formats.writing import Written

FIELDS = ("run_id", "timestamp_s", "config_id", "generation", "status", "perf_ms", "compile_time_s", "config")
_MS = 1e-3
_MAX_LINES = 1_000_000
_MAX_LINE, _MAX_HEAD_BYTES = 4 << 20, 1 << 16
_STARTED, _FINE = "started", ("ok", "deduplicated")
_KINDS: Mapping[str, FailureKind] = {
    "error": "runtime",
    "unknown": "runtime",
    _STARTED: "runtime",
    "timeout": "timeout",
    "peer_compilation_fail": "compile",
    "filtered": "constraints",
    "source_rejected": "constraints",
    "accuracy_error": "correctness",
}
_KEPT = ("run_id", "generation", "timestamp_s", "event")
_TRIAL = "trial"
_EVENTS = (_TRIAL, "trial_start", "rebenchmark")  # those of a config; what is measured again is a measurement too
_Row = Mapping[str, Any]


def is_csv(content: Content) -> bool:
    """Return whether a file is a log in CSV: its header says so; one of hashes beside it, without configs, is none."""
    head = content.raw[:_MAX_HEAD_BYTES].lstrip(b"\xef\xbb\xbf \r\n")
    header = head.partition(b"\n")[0].strip().split(b",")
    return header[:5] == [name.encode() for name in FIELDS[:5]] and FIELDS[-1].encode() in header


def is_trace(content: Content) -> bool:
    """Return whether a file is a trace: lines of events, each with a run."""
    first = content.raw.lstrip().partition(b"\n")[0]
    return first.startswith(b"{") and b'"event"' in first and b'"run_id"' in first


def read_csv(content: Content) -> list[Finding]:
    """Return what became of every config of a log; one that was begun and never ended failed.

    Which kernel, arguments and device a run is about is told in a file beside the log, if Helion was asked for details;
    where it is not, findings have no decision yet.
    """
    return _findings(content, list(_csv_rows(content)), lambda row, place: from_text(str(row["config"]), place))


def read_trace(content: Content) -> list[Finding]:
    """Return what became of every config of a trace, each time it was measured, and when; the rest is as for a log."""
    return _findings(content, list(_trace_rows(content)), lambda row, place: flat(row.get("config"), place))


def write_csv(findings: Sequence[Finding]) -> list[Written]:
    """Return a log with a line for every config that ended, and beside it what its runs are about."""
    stream = io.StringIO()
    lines = csv.writer(stream)
    lines.writerow(FIELDS)
    for finding in findings:
        row = {**_raw(finding), "config": as_text(finding.config)}
        lines.writerow(["" if row.get(name) is None else row[name] for name in FIELDS])
    return [Written("helion-autotune.csv", stream.getvalue().encode(), told_of(findings), beside)]


def write_trace(findings: Sequence[Finding]) -> list[Written]:
    """Return a trace with an event for every config that ended, and beside it what its runs are about."""
    lines = [json.dumps({"schema_version": 1, **_raw(one), **_told(one)}) for one in findings]
    raw = "".join(f"{line}\n" for line in lines).encode()
    return [Written("helion-autotune.trace.jsonl", raw, told_of(findings), beside)]


def _findings(
    content: Content, rows: Sequence[tuple[str, _Row]], config_of: Callable[[_Row, str], Config]
) -> list[Finding]:
    ended = {_key(row) for _, row in rows if row.get("status") != _STARTED}
    kept = [(place, row) for place, row in rows if row.get("status") != _STARTED or _key(row) not in ended]
    if not kept:
        raise ValueError("it holds no config that was tried")
    runs = runs_of(content.path)
    only = next(iter(runs.values())) if len(runs) == 1 else Run()  # a trace and a log name one run differently
    return [
        _finding(row, config_of(row, place), _outcome(row, place), runs.get(str(row.get("run_id")), only))
        for place, row in kept
    ]


def _finding(row: _Row, config: Config, outcome: Outcome | None, run: Run) -> Finding:
    extra = {name: row.get(name) for name in _KEPT}
    return Finding(run.decision, run.problem, config, outcome, run.device, at=_at(row), extra=extra)


def _csv_rows(content: Content) -> Iterator[tuple[str, _Row]]:
    try:
        text = content.raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(f"byte {error.start} is not text") from None
    reader = csv.reader(_short_lines(text))
    try:
        header = next(reader, [])
        for cells in reader:
            if reader.line_num > _MAX_LINES:
                raise ValueError(f"it has more than {_MAX_LINES} lines")
            if len(cells) != len(header):
                raise ValueError(f"line {reader.line_num} has {len(cells)} cells and the header {len(header)}")
            row: dict[str, Any] = dict(zip(header, cells, strict=True))
            row |= {name: _number(row.get(name), reader.line_num) for name in ("perf_ms", "compile_time_s")}
            yield f"line {reader.line_num}", {**row, "config": row.get("config", "")}
    except csv.Error as error:
        raise ValueError(f"line {reader.line_num}: {error}") from None


def _short_lines(text: str) -> Iterator[str]:
    for place, line in enumerate(io.StringIO(text, newline=""), 1):
        if len(line) > _MAX_LINE:
            raise ValueError(f"line {place} has more than {_MAX_LINE} characters")
        yield line


def _trace_rows(content: Content) -> Iterator[tuple[str, _Row]]:
    lines = content.raw.splitlines()
    if len(lines) > _MAX_LINES:
        raise ValueError(f"it has more than {_MAX_LINES} lines")
    for place, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            row = msgspec.json.decode(line)
        except (msgspec.DecodeError, RecursionError) as error:
            raise ValueError(f"line {place} is not JSON: {error}") from None
        if isinstance(row, dict) and row.get("event") in _EVENTS:
            yield f"line {place}", row


def _number(cell: Any, line: int) -> float | None:
    try:
        return float(cell) if cell else None
    except ValueError:
        raise ValueError(f"line {line}: {cell!r:.100} is not a number") from None


def _key(row: _Row) -> tuple[str, str]:
    return str(row.get("run_id")), str(row.get("config_id"))


def _outcome(row: _Row, place: str) -> Outcome | None:
    """Return what became of a config; None where it ran and no time is told, as where Helion compares ratios."""
    status, perf_ms = row.get("status"), number(row.get("perf_ms"))
    if not isinstance(status, str) or not status:
        raise ValueError(f"{place} has no status")
    if status not in _FINE:
        kinds = [kind for kind in FAILURE_KINDS if kind == status]
        return Failure(_KINDS.get(status, kinds[0] if kinds else "runtime"), status)
    if perf_ms is None:
        return None
    if not 0 < perf_ms * _MS < inf:
        return Failure("runtime", f"{status} without a time")
    compile_s = number(row.get("compile_time_s"))
    return Timing((perf_ms * _MS,), compile_s if compile_s is not None and 0 < compile_s < inf else None)


def _at(row: _Row) -> float:
    """Return when an event of a trace happened; a log counts from the beginning of its run, which nobody knows."""
    at = number(row.get("timestamp_s"))
    return at if at is not None and "event" in row and 0 < at < 1e11 else 0.0


def _raw(finding: Finding) -> dict[str, Any]:
    outcome, told = finding.outcome, whole(finding.config)
    identity = json.dumps(told, sort_keys=True, separators=(",", ":"), default=str)
    row: dict[str, Any] = {"config_id": hashlib.sha256(identity.encode()).hexdigest()[:16], **finding.extra}
    row |= {"run_id": run_of(finding).id} if run_of(finding) != Run() else {}
    if isinstance(outcome, Timing):
        return {**row, "status": "ok", "perf_ms": in_unit(outcome.time_s, _MS), "compile_time_s": outcome.compile_s}
    if outcome is None:
        return {**row, "status": "ok"}
    return {**row, "status": outcome.detail if _KINDS.get(outcome.detail) == outcome.kind else outcome.kind}


def _told(finding: Finding) -> dict[str, Any]:
    at = {"timestamp_s": finding.at} if finding.at else {}
    event = finding.extra.get("event") or _TRIAL
    return {"event": event, "objective_unit": "ms", "config": whole(finding.config), **at}
