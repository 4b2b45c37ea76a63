"""The store that forgets: everything in this process's memory."""

import threading
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from math import log

from tunewise.decision import Failure, Miss, Problem, Subject, Trial, Verdict
from tunewise.formats import facts
from tunewise.formats.records import Record
from tunewise.store.answers import weigh
from tunewise.store.base import (
    MAX_MISSES,
    MAX_SIGNS,
    SIGN_LIFE_S,
    Flight,
    Measured,
    Page,
    Prune,
    Pruned,
    Remembered,
    Sign,
    StoreInfo,
    has_features,
    page_of,
)
from tunewise.store.locks import ByteFlight, ThreadsOnly, renew_in_children
from tunewise.store.points import Candidate, Index, Point, nearest, point_of, sure
from tunewise.store.rows import sign_body


@dataclass(slots=True)
class _Entry:
    subject: Subject
    point: Point
    trials: list[Trial] = field(default_factory=list)
    verdicts: list[Verdict] = field(default_factory=list)

    @property
    def remembered(self) -> Remembered:
        """What is known, as it is now."""
        return Remembered(self.subject, tuple(self.verdicts))


class MemoryStore:
    """Keeps the contract of every store but outliving the process: for tests, and while the disk is in trouble."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._entries: dict[str, _Entry] = {}
        self._misses: dict[tuple[object, ...], Miss] = {}
        self._known: set[bytes] = set()
        self._signs: dict[tuple[str, str], Sign] = {}
        self._index_all()
        self._grants = ThreadsOnly()
        renew_in_children(self)

    def add(self, subject: Subject, trials: Iterable[Trial]) -> None:
        """Append trials, all of them or none."""
        checked = [(facts.write_trial(trial), trial) for trial in trials]
        digest = subject.digest
        with self._lock:
            for body, trial in checked:
                self._known.add(facts.identity(digest, body))
                self._entry(subject, digest).trials.append(trial)

    def trials(self, subject: Subject) -> list[Trial]:
        """Return the trials of a subject in the order they were added."""
        with self._lock:
            entry = self._entries.get(subject.digest)
            return list(entry.trials) if entry else []

    def conclude(self, subject: Subject, verdict: Verdict) -> None:
        """Append a verdict."""
        body, digest = facts.write_verdict(verdict), subject.digest
        with self._lock:
            self._known.add(facts.identity(digest, body))
            entry = self._entry(subject, digest)
            entry.verdicts.append(verdict)
            self._index.add(self._numbers[digest], entry.point, entry.point.alike)

    def verdicts(self, subject: Subject) -> list[Verdict]:
        """Return the verdicts of a subject, oldest first."""
        with self._lock:
            entry = self._entries.get(subject.digest)
            return list(entry.verdicts) if entry else []

    def recorded(self, subject: Subject) -> Subject | None:
        """Return the subject as last written, or None if nothing is known of it."""
        with self._lock:
            entry = self._entries.get(subject.digest)
            return entry.subject if entry else None

    def subjects(self, decision: str | None = None, last: int | None = None) -> list[Subject]:
        """Return every subject that has trials or verdicts, or the last so many, in the order they were first seen."""
        with self._lock:
            found = (e.subject for e in reversed(self._entries.values()) if decision in (None, e.subject.decision))
            return list(islice(found, last))[::-1]

    def near(self, subject: Subject, ratio: float, limit: int) -> list[Remembered]:
        """Return tuned subjects that differ in numbers only, each by `ratio` at most, nearest first."""
        with self._lock:
            point = point_of(subject, subject.digest)
            found = nearest(point, point.alike, limit, self._index, log(ratio))
            return sure(subject, ratio, self._remembered(found))

    def kin(self, subject: Subject, limit: int) -> list[Remembered]:
        """Return other subjects of the same decision: the nearest and the last ones."""
        own = subject.digest
        with self._lock:
            point = point_of(subject, own)
            found = self._remembered(nearest(point, point.family, limit, self._index))
            digests = (other.digest for other in reversed(self.subjects(subject.decision, limit + 1)))
            last = [self._entries[digest].remembered for digest in digests if digest != own][:limit]
        return list({one.subject.digest: one for one in (*found, *last)}.values())

    def tuned(self, decision: str, like: Problem | None = None, limit: int | None = None) -> Page[Remembered]:
        """Return the last tuned subjects of those whose problem has the features `like`."""
        with self._lock:
            rows = [entry.remembered for entry in self._about(decision, like) if entry.verdicts]
        return page_of(rows, limit)

    def measured(
        self, decision: str, like: Problem | None = None, limit: int | None = None, *, failed: bool = False
    ) -> Page[Measured]:
        """Return the last trials, or only failed ones, of subjects whose problem has the features `like`."""
        with self._lock:
            rows = [Measured(entry.subject, trial) for entry in self._about(decision, like) for trial in entry.trials]
        return page_of([row for row in rows if not failed or isinstance(row.trial.outcome, Failure)], limit)

    def decisions(self) -> list[str]:
        """Return the names of the decisions that have trials or verdicts, in alphabetical order."""
        return sorted({subject.decision for subject in self.subjects()})

    def miss(self, subject: Subject, count: int = 1) -> None:
        """Count a question that nobody could answer."""
        with self._lock:
            known = self._misses.get((subject.decision, subject.problem))
            self._keep_miss(
                Miss(subject.decision, subject.problem, count + (known.count if known else 0), subject.digest)
            )

    def misses(self, decision: str | None = None) -> list[Miss]:
        """Return the problems that were asked in vain, most often asked first."""
        with self._lock:
            found = [miss for miss in self._misses.values() if decision in (None, miss.decision)]
        return sorted(found, key=lambda miss: -miss.count)

    def forget_miss(self, subject: Subject) -> None:
        """Drop the misses of a subject's decision and problem."""
        with self._lock:
            self._misses.pop((subject.decision, subject.problem), None)

    def absorb_misses(self, misses: Iterable[Miss]) -> int:
        """Count misses from elsewhere at least as often as they say; return how many are new or were raised."""
        with self._lock:
            return sum(self._raise_miss(miss) for miss in misses)

    def show(self, sign: Sign) -> None:
        """Put a sign of life in the place of the last one of its kind and key."""
        sign_body(sign)
        with self._lock:
            self._signs[sign.kind, sign.key] = sign
            since = min(sign.at, time.time()) - SIGN_LIFE_S
            kept = sorted((given for given in self._signs.values() if given.at >= since), key=lambda given: given.at)
            self._signs = {(given.kind, given.key): given for given in kept[-MAX_SIGNS:]}

    def signs(self, kind: str | None = None, since: float = 0.0) -> list[Sign]:
        """Return the signs of life given since a moment, oldest first."""
        with self._lock:
            found = [sign for sign in self._signs.values() if kind in (None, sign.kind) and sign.at >= since]
        return sorted(found, key=lambda sign: sign.at)

    def flight(self, subject: Subject) -> Flight:
        """Return the right to tune a subject, held between the threads of this process."""
        return ByteFlight(self._grants, subject.digest)

    def records(self, decision: str | None = None) -> Iterator[Record]:
        """Yield every trial and verdict with its subject."""
        with self._lock:
            entries = [e for e in self._entries.values() if decision in (None, e.subject.decision)]
            found = [Record(entry.subject, trial) for entry in entries for trial in entry.trials]
            found += [Record(entry.subject, verdict) for entry in entries for verdict in entry.verdicts]
        yield from found

    def absorb(self, records: Iterable[Record]) -> int:
        """Add the records that are not known yet and return how many those were; all or none."""
        given = [(record, facts.identity(record.subject.digest, _body(record.fact))) for record in records]
        added = 0
        with self._lock:
            for record, identity in given:
                if identity not in self._known:
                    self._put(record)
                    added += 1
        return added

    def prune(self, rule: Prune, *, dry_run: bool = False) -> Pruned:
        """Remove the facts a rule takes, or only count them."""
        before = float("inf") if rule.before is None else rule.before
        with self._lock:
            taken = {digest: entry for digest, entry in self._entries.items() if rule.takes(entry.subject)}
            told = [(digest, verdict) for digest, entry in taken.items() for verdict in entry.verdicts]
            numbered = [(row, *words) for row, words in enumerate(told)]
            weighing = weigh(rule, numbered)
            old = {row for row, _, verdict in numbered if verdict.at < before} - weighing.spared
            trials = sum(trial.at < before for entry in taken.values() for trial in entry.trials)
            misses = [key for key in self._misses if rule.takes_misses and key[0] == rule.decision]
            if not dry_run:
                for digest, entry in taken.items():
                    entry.trials = [trial for trial in entry.trials if trial.at >= before]
                    entry.verdicts = [v for row, about, v in numbered if about == digest and row not in old]
                for key in misses:
                    del self._misses[key]
                self._entries = {d: e for d, e in self._entries.items() if e.trials or e.verdicts}
                self._index_all()
                self._known = {facts.identity(r.subject.digest, _body(r.fact)) for r in self.records()}
        return Pruned(trials, len(old), len(misses), weighing.lost)

    def info(self) -> StoreInfo:
        """Return what is held."""
        with self._lock:
            entries = list(self._entries.values())
            names = sorted({entry.subject.decision for entry in entries})
            return StoreInfo(
                place="memory",
                schema=0,
                trials=sum(len(entry.trials) for entry in entries),
                verdicts=sum(len(entry.verdicts) for entry in entries),
                subjects=len(entries),
                misses=len(self._misses),
                size_bytes=0,
                decisions={n: sum(len(e.trials) for e in entries if e.subject.decision == n) for n in names},
                last_trial_at=max((trial.at for entry in entries for trial in entry.trials), default=None),
                last_verdict_at=max((verdict.at for entry in entries for verdict in entry.verdicts), default=None),
            )

    def close(self) -> None:
        """Do nothing: what is held stays until the process ends."""

    def renew(self) -> None:
        """Begin a forked child with a lock of its own."""
        self._lock = threading.RLock()

    def _entry(self, subject: Subject, digest: str) -> _Entry:
        entry = self._entries.get(digest)
        if entry is None:
            entry = self._entries[digest] = _Entry(subject, point_of(subject, digest))
            self._index_entry(digest, entry)
        entry.subject = subject
        return entry

    def _index_entry(self, digest: str, entry: _Entry) -> None:
        number = len(self._digests)
        self._numbers[digest] = number
        self._digests.append(digest)
        self._index.add(number, entry.point, entry.point.family)
        if entry.verdicts:
            self._index.add(number, entry.point, entry.point.alike)

    def _index_all(self) -> None:
        self._index = Index()
        self._numbers: dict[str, int] = {}
        self._digests: list[str] = []
        for digest, entry in self._entries.items():
            self._index_entry(digest, entry)

    def _remembered(self, found: Iterable[Candidate]) -> list[Remembered]:
        return [self._entries[self._digests[one.subject]].remembered for one in found]

    def _about(self, decision: str, like: Problem | None) -> list[_Entry]:
        entries = (entry for entry in self._entries.values() if entry.subject.decision == decision)
        return [entry for entry in entries if has_features(entry.subject.problem, like)]

    def _keep_miss(self, miss: Miss) -> None:
        key = (miss.decision, miss.problem)
        is_new = key not in self._misses
        self._misses[key] = miss
        kept = [k for k in self._misses if k[0] == miss.decision] if is_new else []
        if len(kept) > MAX_MISSES:
            del self._misses[min(kept, key=lambda k: self._misses[k].count)]

    def _raise_miss(self, miss: Miss) -> bool:
        entry, known = self._entries.get(miss.digest), self._misses.get((miss.decision, miss.problem))
        if (entry is not None and entry.verdicts) or (known is not None and known.count >= miss.count):
            return False
        self._keep_miss(miss)
        return True

    def _put(self, record: Record) -> None:
        if isinstance(record.fact, Trial):
            self.add(record.subject, [record.fact])
        else:
            self.conclude(record.subject, record.fact)


def _body(fact: Trial | Verdict) -> bytes:
    return facts.write_trial(fact) if isinstance(fact, Trial) else facts.write_verdict(fact)
