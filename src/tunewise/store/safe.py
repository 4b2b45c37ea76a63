"""The store that never breaks a program: whatever the disk does, facts are kept, and one warning says why."""

import time
from collections.abc import Callable, Iterable, Iterator
from copy import copy
from dataclasses import replace
from itertools import islice
from typing import Self, TypeVar

from tunewise.decision import Miss, Problem, Subject, Trial, Verdict
from tunewise.formats.records import Record
from tunewise.store.base import (
    Flight,
    Measured,
    Page,
    Prune,
    Pruned,
    Remembered,
    Sign,
    Store,
    StoreInfo,
    appended,
    joined,
    page_of,
    united,
)
from tunewise.store.guard import RETRY_S, Guard, warn_once
from tunewise.store.listening import Heard
from tunewise.store.points import merged
from tunewise.store.rows import sign_body
from tunewise.store.safe_flight import SafeFlight

_PAGE = 500  # records read at once
_T = TypeVar("_T")


class SafeStore:
    """A store on disk or a server whose troubles stay inside: a full disk, a corrupt file, a server that restarts.

    The caller hears of the first trouble by one StoreWarning; nothing else is raised, except for facts that make no
    sense in any store. No call waits without limit but `prune`; see Guard.
    """

    def __init__(
        self,
        disk: Store,
        *,
        warn: Callable[[str], None] = warn_once,
        clock: Callable[[], float] = time.monotonic,
        retry_s: float = RETRY_S,
        heard: Heard | None = None,
        is_remote: bool = False,
    ) -> None:
        self._guard = Guard(disk, warn, clock, retry_s, heard, is_remote)
        self._is_hasty = False

    @property
    def hasty(self) -> Self:
        """The same store for who would rather go on without an answer than wait for one that hangs."""
        view = copy(self)
        view._is_hasty = True
        return view

    def add(self, subject: Subject, trials: Iterable[Trial]) -> None:
        """Append trials, all of them or none."""
        given = list(trials)
        self._guard.write(lambda store: store.add(subject, given))

    def trials(self, subject: Subject) -> list[Trial]:
        """Return the trials of a subject in the order they were added."""
        return self._both(lambda store: store.trials(subject))

    def conclude(self, subject: Subject, verdict: Verdict) -> None:
        """Append the verdict of a finished tuning run."""
        self._guard.write(lambda store: store.conclude(subject, verdict))

    def verdicts(self, subject: Subject) -> list[Verdict]:
        """Return the verdicts of a subject, oldest first."""
        return self._both(lambda store: store.verdicts(subject))

    def recorded(self, subject: Subject) -> Subject | None:
        """Return the subject as last written, or None if nothing is known of it."""
        return self._guard.memory.recorded(subject) or self._read(lambda store: store.recorded(subject), lambda: None)

    def subjects(self, decision: str | None = None, last: int | None = None) -> list[Subject]:
        """Return every subject that has trials or verdicts, or the last so many, in the order they were first seen."""
        both = self._both(lambda store: store.subjects(decision, last))
        return list(page_of(list({subject.digest: subject for subject in both}.values()), last).rows)

    def near(self, subject: Subject, ratio: float, limit: int) -> list[Remembered]:
        """Return tuned subjects that differ in numbers only, each by `ratio` at most, nearest first."""
        return merged(subject, self._each(lambda store: store.near(subject, ratio, limit), []), limit)

    def kin(self, subject: Subject, limit: int) -> list[Remembered]:
        """Return other subjects of the same decision: the nearest and the last ones."""
        return united(self._each(lambda store: store.kin(subject, limit), []))

    def tuned(self, decision: str, like: Problem | None = None, limit: int | None = None) -> Page[Remembered]:
        """Return the last tuned subjects of those whose problem has the features `like`."""
        return joined(self._each(lambda store: store.tuned(decision, like, limit), Page((), 0)), limit)

    def measured(
        self, decision: str, like: Problem | None = None, limit: int | None = None, *, failed: bool = False
    ) -> Page[Measured]:
        """Return the last trials, or only failed ones, of subjects whose problem has the features `like`."""
        nothing: Page[Measured] = Page((), 0)
        return appended(self._each(lambda store: store.measured(decision, like, limit, failed=failed), nothing), limit)

    def decisions(self) -> list[str]:
        """Return the names of the decisions that have trials or verdicts, in alphabetical order."""
        return sorted(set(self._both(lambda store: store.decisions())))

    def miss(self, subject: Subject, count: int = 1) -> None:
        """Count a question that nobody could answer; it is written soon, and nobody waits for that."""
        self._guard.post(lambda store: store.miss(subject, count))

    def misses(self, decision: str | None = None) -> list[Miss]:
        """Return the problems that were asked in vain, most often asked first."""
        self._guard.settle()
        counted: dict[object, Miss] = {}
        for miss in self._both(lambda store: store.misses(decision)):
            known = counted.get((miss.decision, miss.problem))
            total = miss if known is None else replace(miss, count=miss.count + known.count)
            counted[miss.decision, miss.problem] = total
        return sorted(counted.values(), key=lambda miss: -miss.count)

    def forget_miss(self, subject: Subject) -> None:
        """Drop the misses of a subject's decision and problem; nobody waits for that either."""
        self._guard.post(lambda store: store.forget_miss(subject))

    def absorb_misses(self, misses: Iterable[Miss]) -> int:
        """Count misses from elsewhere at least as often as they say; return how many are new or were raised."""
        given = list(misses)
        return self._guard.write(lambda store: store.absorb_misses(given), is_much=True)

    def show(self, sign: Sign) -> None:
        """Give a sign of life soon; while the disk is in trouble, none is given."""
        sign_body(sign)  # raises
        self._guard.show(sign)

    def signs(self, kind: str | None = None, since: float = 0.0) -> list[Sign]:
        """Return the signs of life given since a moment, oldest first."""
        self._guard.settle()
        return self._read(lambda store: store.signs(kind, since), list)

    def flight(self, subject: Subject) -> Flight:
        """Return the right to tune a subject: between processes if the disk allows, else between threads."""
        guard = self._guard
        return SafeFlight(lambda: guard.disk.flight(subject), guard.memory.flight(subject), guard)

    def records(self, decision: str | None = None) -> Iterator[Record]:
        """Yield every trial and verdict with its subject; raises StoreError if the disk fails on the way."""
        found = self._guard.disk.records(decision)
        while page := self._guard.do(lambda _: list(islice(found, _PAGE))):
            yield from page
        yield from self._guard.memory.records(decision)

    def absorb(self, records: Iterable[Record]) -> int:
        """Add the records that are not known yet and return how many those were; all or none."""
        given = list(records)
        return self._guard.write(lambda store: store.absorb(given), is_much=True)

    def prune(self, rule: Prune, *, dry_run: bool = False) -> Pruned:
        """Remove the facts a rule takes; raises StoreError if the disk does not allow it: somebody asked for this."""
        return self._guard.do(lambda store: store.prune(rule, dry_run=dry_run))

    def info(self) -> StoreInfo:
        """Return what is held on disk, or in memory if the disk cannot be read, with the trouble there is."""
        self._guard.settle()
        held = self._read(lambda store: store.info(), self._guard.memory.info)
        return replace(held, trouble=self._guard.reading.reason or self._guard.writing.reason)

    def close(self) -> None:
        """Write what waits in memory if the disk takes it now, and let go of files."""
        self._guard.close()

    def _both(self, ask: Callable[[Store], list[_T]]) -> list[_T]:
        """Return what the disk knows and what is kept in memory; what is just being written may be in both."""
        nothing: list[_T] = []
        found = self._read(ask, nothing.copy)
        with self._guard.lock:
            return [*found, *ask(self._guard.memory)]

    def _each(self, ask: Callable[[Store], _T], nothing: _T) -> list[_T]:
        """Return what the disk knows, or `nothing` if it cannot be read, and what is kept in memory."""
        found = self._read(ask, lambda: nothing)
        with self._guard.lock:
            return [found, ask(self._guard.memory)]

    def _read(self, ask: Callable[[Store], _T], otherwise: Callable[[], _T]) -> _T:
        return self._guard.read(ask, otherwise, is_hasty=self._is_hasty)
