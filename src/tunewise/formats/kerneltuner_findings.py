"""Kernel Tuner's cache files as findings and back: the problem, every sample, and what kept a config from running."""

from collections.abc import Mapping, Sequence
from typing import Any, get_args

import msgspec

from tunewise.decision import Failure, FailureKind, Outcome, Problem, Timing, Value, canonical, merged
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
    word,
)
from tunewise.formats.kerneltuner import FAILED_MS, KINDS
from tunewise.formats.recording import Spelling, number, timed, times
from tunewise.formats.torn import Content, decode
from tunewise.formats.writing import Written, json_text

_MS = 1e-3
_SIZE, _AXES = "problem_size", ("x", "y", "z")
_KIND, _DETAIL = "failure_kind", "failure_detail"  # ours: what no error word of theirs says
_TAKEN = ("time", "times", "compile_time", "timestamp", _KIND, _DETAIL)


class _Cache(msgspec.Struct, frozen=True):
    """The fields of a cache file."""

    cache: dict[str, dict[str, Any]]
    device_name: Any = ""
    kernel_name: Any = ""
    problem_size: Any = ()
    objective: Any = "time"
    tune_params_keys: list[str] = []
    tune_params: dict[str, list[Any]] = {}


def read(content: Content) -> list[Finding]:
    """Return every config of a cache; its problem size is the features problem_size_x, _y and _z."""
    found = decode(content, _Cache)
    names = found.tune_params_keys or list(found.tune_params)
    if not names:
        raise ValueError("it has no `tune_params_keys` that names its parameters")
    spellings = {word(name, "tune_params_keys"): Spelling(found.tune_params.get(name, ())) for name in names}
    problem, device = _problem(found.problem_size), _text(found.device_name, "device_name")
    kernel = _text(found.kernel_name, "kernel_name")
    return [
        _finding(f"the record {key!r:.100}", record, spellings, Finding(kernel, problem, {}, None, device))
        for key, record in found.cache.items()
    ]


def write(findings: Sequence[Finding]) -> list[Written]:
    """Return a cache for every kernel, device, problem and set of parameters; several trials of a config are one."""
    groups = grouped(findings, "decision", "problem", "device", "versions", "params")
    return [_written(group, number if len(groups) > 1 else 0) for number, group in enumerate(groups, 1)]


def _finding(place: str, record: Mapping[str, Any], spellings: Mapping[str, Spelling], like: Finding) -> Finding:
    missing = [name for name in spellings if name not in record]
    if missing:
        raise ValueError(f"{place} has no value of {missing[0]!r:.100}")
    config = config_of({name: _spelled(spelling, record[name]) for name, spelling in spellings.items()}, place)
    outcome, at = _outcome(record), seconds_of(record["timestamp"]) if "timestamp" in record else 0.0
    taken = {*_TAKEN, *spellings} - (set() if isinstance(outcome, Timing) else {"compile_time"})
    extra = {name: value for name, value in record.items() if name not in taken}
    return Finding(like.decision, like.problem, config, outcome, like.device, at=at, extra=extra)


def _spelled(spelling: Spelling, raw: Any) -> Any:
    return raw if isinstance(raw, list | dict) else spelling(raw)


def _outcome(record: Mapping[str, Any]) -> Outcome | None:
    """Return what became of a config; None where neither a time nor an error is told, as with another objective."""
    if record.get("time") is None and "__error__" not in record:
        return None
    time_ms = number(record.get("time"))
    if time_ms is None or time_ms >= FAILED_MS:
        return _failure(record)
    compile_ms = number(record.get("compile_time"))
    outcome = timed(time_ms * _MS, None if compile_ms is None else compile_ms * _MS)
    samples_s = times(record.get("times"), _MS)
    return Timing(samples_s, outcome.compile_s) if isinstance(outcome, Timing) and samples_s else outcome


def _failure(record: Mapping[str, Any]) -> Failure:
    said = str(record.get("__error__", record.get("time")))
    kinds = [kind for kind in get_args(FailureKind) if kind == record.get(_KIND)]
    detail = record.get(_DETAIL)
    return Failure(kinds[0] if kinds else KINDS.get(said, "runtime"), detail if isinstance(detail, str) else said)


def _problem(size: Any) -> Problem:
    if isinstance(size, Mapping):
        return problem_of(size)
    listed = size if isinstance(size, list | tuple) else [] if size is None else [size]
    if len(listed) <= len(_AXES) and all(number(one) is not None for one in listed):
        return problem_of({f"{_SIZE}_{axis}": one for axis, one in zip(_AXES, listed, strict=False)})
    return problem_of({_SIZE: canonical.encode(size) if isinstance(size, list) else size})


def _raw_problem(problem: Problem) -> Any:
    axes = [f"{_SIZE}_{axis}" for axis in _AXES[: len(problem)]]
    if list(problem) == axes and not problem.categorical:
        return [problem[name] for name in axes]
    return dict(problem)


def _text(raw: Any, place: str) -> str:
    return word(raw, place) if raw else ""


def _written(group: Sequence[Finding], part: int) -> Written:
    first = group[0]
    names = list(first.config)
    configs: dict[str, list[Finding]] = {}
    for finding in group:
        configs.setdefault(canonical.encode(finding.config), []).append(finding)
    cache: dict[str, Any] = {}
    for same in configs.values():
        key = ",".join(str(raw_value(same[0].config[name])) for name in names)
        cache[key if key not in cache else f"{key} ({len(cache)})"] = _record(same)
    document = {
        "device_name": first.device,
        "kernel_name": first.decision,
        _SIZE: _raw_problem(first.problem),
        "tune_params_keys": names,
        "tune_params": {name: _values(group, name) for name in names},
        "objective": "time",
        "cache": cache,
    }
    # Kernel Tuner takes off the last brackets to go on in a file, and looks for nothing behind them.
    return Written(f"{slug(first.decision, first.device, str(part or ''))}.json", json_text(document).rstrip())


def _record(same: Sequence[Finding]) -> dict[str, Any]:
    first, last = same[0], same[-1]
    outcomes = [finding.outcome for finding in same if finding.outcome is not None]
    told: dict[str, Any] = {name: raw_value(value) for name, value in first.config.items()}
    told |= _raw_outcome(merged(outcomes)) if outcomes else {}
    told |= {name: value for name, value in first.extra.items() if name not in told}
    return told | ({"timestamp": date_of(last.at)} if last.at else {})


def _raw_outcome(outcome: Outcome) -> dict[str, Any]:
    return _raw_timing(outcome) if isinstance(outcome, Timing) else _raw_failure(outcome)


def _raw_timing(timing: Timing) -> dict[str, Any]:
    samples = [in_unit(sample, _MS) for sample in timing.samples_s]
    told: dict[str, Any] = {"time": sum(samples) / len(samples), "times": samples}
    return told | ({"compile_time": in_unit(timing.compile_s, _MS)} if timing.compile_s else {})


def _raw_failure(failure: Failure) -> dict[str, Any]:
    words = [said for said, kind in KINDS.items() if kind == failure.kind]
    said = words[0] if words else "RuntimeFailedConfig"
    told = {"time": said} | ({_KIND: failure.kind} if not words else {})
    return told | ({_DETAIL: failure.detail} if failure.detail != said else {})


def _values(group: Sequence[Finding], name: str) -> list[Any]:
    """Return the values of a parameter, each once: numbers in their order, others as they come."""
    found = {canonical.encode(finding.config[name]): finding.config[name] for finding in group}
    values: list[Value] = list(found.values())
    is_number = all(number(value) is not None for value in values)
    return [raw_value(value) for value in (sorted(values) if is_number else values)]  # type: ignore[type-var]
