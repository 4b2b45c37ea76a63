"""What is remembered, for others' files: trials as they are, or one winner for every problem and device."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from tunewise import settings
from tunewise.decision import Failure, Subject, Timing, Trial, merged
from tunewise.errors import NotFound, TunewiseError
from tunewise.formats.findings import Finding, finding_of
from tunewise.formats.foreign import Format
from tunewise.formats.records import Record
from tunewise.heuristics.table_findings import findings_of
from tunewise.heuristics.table_reading import is_table, load_table
from tunewise.models.whole import read_bounded
from tunewise.session import evidence
from tunewise.session.recall import unknown
from tunewise.store import Store
from tunewise.store.exchange import shareable

_MAX_BYTES = 8 << 20
_UNTIMED = Failure("runtime")


@dataclass(frozen=True, slots=True)
class Told:
    """What is to be written, and how many rules of tables are left out because they are about more than a problem."""

    findings: list[Finding]
    left_out: int = 0


def findings_for(decision: str, format: Format, store: Store) -> Told:
    """Return what is known of a decision, as far as a format tells it: every trial, or of each problem the winner.

    Winners are those of tuning runs, else the fastest of the trials, else what tables say. Raises NotFound where
    nothing is known.
    """
    if not format.tells_winners:
        found = Told(
            [finding_of(subject, trial) for subject in store.subjects(decision) for trial in _of(store, subject)]
        )
    else:
        found = _winners(decision, store)
    if not found.findings:
        raise NotFound(unknown(decision))
    return found


def _winners(decision: str, store: Store) -> Told:
    best: dict[str, tuple[bool, Finding]] = {}
    for subject in store.subjects(decision):
        winner = _winner(store, subject)
        if winner is not None:
            is_tuned, finding = winner
            before = best.get(finding.place)
            if before is None or (is_tuned, -_time(finding)) > (before[0], -_time(before[1])):
                best[finding.place] = winner
    found = {place: finding for place, (_, finding) in best.items()}
    left_out = 0
    for told, beyond in _tables(decision):
        left_out += beyond
        for finding in told:
            found.setdefault(finding.place, finding)
    return Told(list(found.values()), left_out)


def _winner(store: Store, subject: Subject) -> tuple[bool, Finding] | None:
    """Return what won on a subject, and whether a tuning run says so; None where nothing ran."""
    verdict = next((one for one in evidence.answering(store.verdicts(subject)) if one.ending != "failed"), None)
    timed = [trial for trial in _of(store, subject) if isinstance(trial.outcome, Timing)]
    if verdict is not None:
        outcomes = [trial.outcome for trial in timed if trial.config == verdict.winner]
        trial = Trial(verdict.winner, merged(outcomes) if outcomes else _UNTIMED, at=verdict.at)
        found = finding_of(subject, trial)
        return True, found if outcomes else replace(found, outcome=None)
    if not timed:
        return None
    return False, min((finding_of(subject, trial) for trial in timed), key=_time)


def _of(store: Store, subject: Subject) -> Iterator[Trial]:
    """Yield the trials of a subject; of what failed here, nothing that could name a place or a person."""
    is_ours = "tool" not in dict(subject.policy)
    for trial in store.trials(subject):
        fact = shareable(Record(subject, trial)).fact if is_ours else trial
        assert isinstance(fact, Trial)
        yield fact


def _tables(decision: str) -> Iterator[tuple[list[Finding], int]]:
    for place in settings.current().heuristic_places:
        for file in sorted(place.glob("*.json")) if place.is_dir() else [place]:
            if _is_table(file):
                table = load_table(file)
                if table.decision == decision:
                    yield findings_of(table)


def _is_table(file: Path) -> bool:
    try:
        return is_table(read_bounded(file, _MAX_BYTES))
    except TunewiseError:
        return False


def _time(finding: Finding) -> float:
    return finding.time_s if finding.time_s is not None else float("inf")
