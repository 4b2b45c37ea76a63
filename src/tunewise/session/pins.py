"""Frozen answers: the pins files in force here, and what is remembered as such a file."""

import threading
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tunewise import settings
from tunewise.decision import Answer, Declaration, Problem, Subject, Verdict, detect, environment
from tunewise.errors import InvalidFile, NotFound, PinsWarning
from tunewise.formats import pins as files
from tunewise.formats.pins import PinnedAnswer
from tunewise.session import context, evidence
from tunewise.session.recall import unknown
from tunewise.store import Store, renew_in_children


@dataclass(frozen=True, slots=True)
class Filed:
    """A pin and the file it stands in."""

    pin: PinnedAnswer
    path: Path


class _Files:
    """What the pins files in force hold, read once, until answers are to be forgotten."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.found: dict[tuple[str, Problem], list[Filed]] | None = None
        self.reported: set[tuple[object, ...]] = set()
        renew_in_children(self)
        context.remember_to_forget(self)

    def forget(self) -> None:
        """Read the files again at the next question."""
        self.found = None

    def renew(self) -> None:
        """Begin a forked child with a lock of its own."""
        self.lock = threading.RLock()

    def all(self) -> dict[tuple[str, Problem], list[Filed]]:
        """Return all pins by decision and problem, those of earlier files first."""
        with self.lock:
            found = self.found
            if found is None:
                found = self.found = {}
                for path in settings.current().pins:
                    for pin in self._read(path):
                        found.setdefault((pin.decision, Problem(pin.problem)), []).append(Filed(pin, path))
            return found

    def _read(self, path: Path) -> Sequence[PinnedAnswer]:
        try:
            return files.read(path)
        except InvalidFile as error:
            self.warn_once((path,), f"{error}; its pins are not used")
            return ()

    def warn_once(self, about: tuple[object, ...], said: str) -> None:
        """Warn of something, the first time it is met in this process."""
        with self.lock:
            is_told = about in self.reported
            self.reported.add(about)
        if not is_told:
            warnings.warn(said, PinsWarning, stacklevel=2)


_files = _Files()


def filed(decision: str, problem: Problem) -> Sequence[Filed]:
    """Return what the pins files in force hold for exactly this problem, those of earlier files first."""
    return _files.all().get((decision, problem), ()) if settings.current().pins else ()


def answered(declaration: Declaration, subject: Subject) -> Answer | None:
    """Return the answer of the pins files, or None; a config that is no longer in the space is warned of, once."""
    for one in filed(subject.decision, subject.problem):
        if one.pin.why_elsewhere(subject.environment.must) is not None:
            continue
        whole = {**declaration.default, **one.pin.config}
        reason = declaration.space.why_not(whole)
        if reason is None:
            why = f"frozen in {one.path} for exactly this problem" + (f": {one.pin.source}" if one.pin.source else "")
            return Answer(declaration.space.config(whole), "pin", str(one.path), why, 1.0)
        which = f"the pin of {subject.decision} ({subject.problem})"
        about = (one.path, subject.decision, subject.problem)
        _files.warn_once(about, f"{one.path}: {which} is not in the space and is not used: {reason}")
    return None


def why_none(declaration: Declaration, subject: Subject) -> str:
    """Return in words why the pins files do not answer; empty where they say nothing of this problem."""
    said = []
    for one in filed(subject.decision, subject.problem):
        elsewhere = one.pin.why_elsewhere(subject.environment.must)
        reason = declaration.space.why_not({**declaration.default, **one.pin.config})
        said.append(f"that in {one.path} {elsewhere or f'is not in the space: {reason}'}")
    return "; ".join(said)


def freeze(decisions: Iterable[str] = (), *, anywhere: bool = False) -> list[PinnedAnswer]:
    """Return what is remembered on this device as pins: of each problem the latest verdict, unless that run failed.

    Of all decisions, or of those named. Each is fenced by the device it was measured on, or with `anywhere` by nothing.
    Raises NotFound for a name of which nothing is remembered.
    """
    store = context.current_store()
    known, named = store.decisions(), list(decisions)
    for name in named:
        if name not in known:
            raise NotFound(unknown(name))
    latest: dict[tuple[object, ...], tuple[Subject, Verdict]] = {}
    for subject, verdict in _verdicts(store, named or known):
        fence = () if anywhere else tuple(files.facts_of_device(subject.environment.must).items())
        key = (subject.decision, subject.problem, fence)
        if key not in latest or latest[key][1].at <= verdict.at:
            latest[key] = subject, verdict
    return [_pin(*found, anywhere=anywhere) for found in latest.values() if found[1].ending != "failed"]


def _verdicts(store: Store, decisions: Iterable[str]) -> Iterable[tuple[Subject, Verdict]]:
    """Yield the last verdict of every subject that is about a device of this machine, as far as that can be told."""
    here = files.facts_of_device(environment(detect()).must)
    for decision in decisions:
        for one in store.tuned(decision).rows:
            there = files.facts_of_device(one.subject.environment.must)
            is_elsewhere = there.get("hardware.kind") == "cpu" and there != here
            verdict = None if is_elsewhere else next(evidence.answering(one.verdicts), None)
            if verdict is not None:
                yield one.subject, verdict


def _pin(subject: Subject, verdict: Verdict, *, anywhere: bool) -> PinnedAnswer:
    how = f"{verdict.gain:.2f}x faster than the default" if verdict.ending == "win" else "tie: the default"
    return PinnedAnswer(
        subject.decision,
        dict(subject.problem),
        dict(verdict.winner),
        {} if anywhere else files.facts_of_device(subject.environment.must),
        f"run {verdict.run[:8]}, {how}",
    )
