"""Findings: what others' files tell of configs, with all they keep, between a file and the store."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from tunewise.decision import (
    Config,
    Environment,
    Outcome,
    Part,
    Problem,
    Subject,
    Timing,
    Trial,
    Value,
    canonical,
)
from tunewise.errors import InvalidProblem
from tunewise.formats.records import Record

MAX_PARAMS, MAX_WORD = 256, 10_000
_DEVICE, _VERSION, _UNIT = "hardware.name", "version.", "unit"
_OWN_UNIT = "s"


@dataclass(frozen=True)
class Finding:
    """A config of a problem as somebody's file tells it; without an outcome, the file names it and tells no time.

    Times are seconds; `unit` is what the file writes them in. `at` is when it was measured, in seconds since the epoch,
    0 where nobody tells. `extra` holds what only its own format keeps: it survives from file to file, not the store.
    """

    decision: str
    problem: Problem
    config: Config
    outcome: Outcome | None = None
    device: str = ""
    versions: Mapping[str, str] = field(default_factory=dict)
    unit: str = "ms"
    at: float = 0.0
    extra: Mapping[str, Any] = field(default_factory=dict, compare=False)

    @property
    def time_s(self) -> float | None:
        """Seconds per call, or None where it failed or no time is told."""
        return self.outcome.time_s if isinstance(self.outcome, Timing) else None

    @property
    def params(self) -> list[str]:
        """The names of the config's parameters, in alphabetical order."""
        return sorted(self.config)

    @property
    def place(self) -> str:
        """What it is about, as one text: findings of one place compete."""
        return canonical.encode([self.decision, dict(self.problem), self.device])


def record_of(finding: Finding, tool: str) -> Record:
    """Return a finding as the store keeps it; `tool`, who measured it, makes it comparable with its like only."""
    assert finding.outcome is not None
    parts = [Part(_DEVICE, finding.device, "must")] if finding.device else []
    parts += [Part(_VERSION + name, value, "must") for name, value in finding.versions.items()]
    environment = Environment((*parts, Part(_UNIT, finding.unit, "ignore")))
    subject = Subject(finding.decision, finding.problem, (("tool", tool),), environment)
    return Record(subject, Trial(finding.config, finding.outcome, source=tool, at=finding.at))


def finding_of(subject: Subject, trial: Trial) -> Finding:
    """Return what the store remembers as a finding; of our own environment all that is no hardware is a version."""
    must = subject.environment.must
    versions = {n.removeprefix(_VERSION): str(v) for n, v in must.items() if not n.startswith("hardware.")}
    return Finding(
        subject.decision,
        subject.problem,
        trial.config,
        trial.outcome,
        str(must.get(_DEVICE, "")),
        versions,
        str(subject.environment.ignore.get(_UNIT, _OWN_UNIT)),
        trial.at,
    )


def problem_of(features: Mapping[str, Any]) -> Problem:
    """Return features as a problem; raises ValueError where they are none."""
    try:
        return Problem(features)
    except InvalidProblem as error:
        raise ValueError(str(error)) from None


def config_of(raw: object, place: str) -> dict[str, Value]:
    """Return an object as a config; raises ValueError, with the place, where it is none.

    Lists of numbers and words become tuples; what is nested deeper becomes its JSON, which no parameter can hold.
    """
    if not isinstance(raw, Mapping) or not 0 < len(raw) <= MAX_PARAMS:
        raise ValueError(f"{place} is not a config of 1 to {MAX_PARAMS} parameters")
    return {word(name, place): _value(value, f"{place}, {name!s:.100}") for name, value in raw.items()}


def raw_value(value: Value) -> Any:
    """Return a value of a config as its file wrote it: the inverse of what `config_of` does to one."""
    if isinstance(value, tuple):
        return list(value)
    if isinstance(value, str) and value[:1] in ("[", "{"):
        try:
            found = canonical.decode(value)
        except ValueError:
            return value
        is_ours = _is_nested(found) and canonical.encode(found) == value
        return found if is_ours else value
    return value


def word(raw: object, place: str) -> str:
    """Return a word as it is; raises ValueError, with the place, for anything else, and for one that is too long."""
    if not isinstance(raw, str) or not raw or len(raw) > MAX_WORD:
        raise ValueError(f"{place}: {raw!r:.100} is not a word of 1 to {MAX_WORD} characters")
    canonical.scalar(raw)
    return raw


def versions_of(raw: object, place: str) -> dict[str, str]:
    """Return an object as versions by name, numbers as words; raises ValueError, with the place, where it is none."""
    if not isinstance(raw, Mapping):
        raise ValueError(f"{place} is not an object")
    return {word(name, place): str(_value(value, place)) for name, value in raw.items()}


def in_unit(time_s: float, unit_s: float) -> float:
    """Return seconds in a unit, as a number that reads back as the very same seconds where there is one."""
    guess = time_s / unit_s
    if guess * unit_s == time_s:
        return guess
    near = [math.nextafter(guess, -math.inf), math.nextafter(guess, math.inf)]
    return next((number for number in near if number * unit_s == time_s), guess)


def seconds_of(text: object) -> float:
    """Return a date and time as seconds since the epoch; 0 for what is none."""
    try:
        return datetime.fromisoformat(str(text)).timestamp()
    except (ValueError, OverflowError, OSError):
        return 0.0


def date_of(at: float) -> str:
    """Return seconds since the epoch as a date and time that `seconds_of` reads."""
    return datetime.fromtimestamp(at, UTC).isoformat(sep=" ")


def grouped(findings: Iterable[Finding], *names: str) -> list[list[Finding]]:
    """Return findings in groups that are equal in some fields, in the order they first come."""
    groups: dict[str, list[Finding]] = {}
    for finding in findings:
        key = canonical.encode([_plain(getattr(finding, name)) for name in names])
        groups.setdefault(key, []).append(finding)
    return list(groups.values())


def slug(*words: str) -> str:
    """Return words as a part of a file name: nothing of them can lead elsewhere."""
    safe = "".join(c if c.isascii() and (c.isalnum() or c in "-_.") else "_" for c in "-".join(filter(None, words)))
    return safe.strip("._-")[:100] or "unnamed"


def _value(raw: object, place: str) -> Value:
    if _is_nested(raw):
        return word(canonical.encode(raw), place)
    try:
        return tuple(canonical.scalar(one) for one in raw) if isinstance(raw, list | tuple) else canonical.scalar(raw)
    except ValueError as error:
        raise ValueError(f"{place}={raw!r:.100} {error}") from None


def _is_nested(raw: object) -> bool:
    if isinstance(raw, dict):
        return True
    return isinstance(raw, list | tuple) and any(isinstance(one, list | tuple | dict) for one in raw)


def _plain(value: Any) -> Any:
    return dict(value) if isinstance(value, Mapping) else value
