"""Our own exports as recordings: one for every problem, device and way of measuring in the file."""

import io
import re

from tunewise.decision import Subject, Timing, Trial, canonical, merged
from tunewise.formats import records
from tunewise.formats.recording import Recording, Row, plain, recording
from tunewise.formats.torn import Content

_LINE = re.compile(rb"\s*[0-9a-f]{8} \{")


def is_export(content: Content) -> bool:
    """Return whether a file looks like an export: lines of a checksum and an object."""
    return _LINE.match(content.raw) is not None


def read(content: Content, name: str) -> tuple[Recording, ...]:
    """Return what an export holds of each subject; raises ValueError where nothing in it was timed.

    Trials of one config add up. Verdicts are no trials and are left out, as are configs with other parameters than
    the latest one's: the space has changed since.
    """
    tally = records.Tally()
    subjects: dict[str, Subject] = {}
    trials: dict[str, list[Trial]] = {}
    for record in records.read(io.BytesIO(content.raw), tally):
        if isinstance(record.fact, Trial):
            digest = record.subject.digest
            subjects[digest] = record.subject
            trials.setdefault(digest, []).append(record.fact)
    timed = {d: found for d, found in trials.items() if any(isinstance(t.outcome, Timing) for t in found)}
    if not timed:
        raise ValueError("no trial in it has a time")
    remark = f"{tally.damaged} damaged and {tally.refused} senseless records were passed over"
    return tuple(
        _recorded(name, subjects[d], found, len(timed), remark if tally.damaged or tally.refused else "")
        for d, found in timed.items()
    )


def _recorded(name: str, subject: Subject, trials: list[Trial], count: int, remark: str) -> Recording:
    problem = " ".join(f"{key}={value}" for key, value in subject.problem.items())
    return recording(
        name if count == 1 else f"{name}: {subject.decision} {problem}",
        _rows(trials),
        kernel=subject.decision,
        device=str(subject.environment.must.get("hardware.name", "")),
        remark=remark,
    )


def _rows(trials: list[Trial]) -> list[Row]:
    names = set(trials[-1].config)
    by_config: dict[str, list[Trial]] = {}
    for trial in trials:
        if set(trial.config) == names:
            by_config.setdefault(canonical.encode(trial.config), []).append(trial)
    return [_row(of_one) for of_one in by_config.values()]


def _row(trials: list[Trial]) -> Row:
    outcome = merged([trial.outcome for trial in trials])
    config = {name: plain(value) for name, value in trials[0].config.items()}
    if isinstance(outcome, Timing):
        return Row(config, Timing((outcome.time_s,), outcome.compile_s), outcome.samples_s)
    return Row(config, outcome)
