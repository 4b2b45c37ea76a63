"""The store of a device: whatever is written is in it for good when the call returns, however long that takes."""

import time
from collections.abc import Callable, Iterable, Iterator
from math import inf
from typing import TypeVar

from tunewise.decision import Miss, Problem, Subject, Trial, Verdict
from tunewise.errors import DamagedStore, StoreError
from tunewise.eventlog import logger
from tunewise.formats.records import Record
from tunewise.store import Flight, Measured, Page, Prune, Pruned, Remembered, Sign, Store, StoreInfo

_T = TypeVar("_T")
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.1, 5.0
PATIENCE_S = 15.0  # a device that is out of reach for longer may have lost its unit to another
_log = logger(__name__)


class Away(Exception):
    """Nobody may count on this process's claims any more: it goes back and asks for work anew."""


class PatientStore:
    """A store that waits for its server or disk instead of going on without it.

    A program must not wait for its memory; a device of a fleet must, because a unit counts as done only when all its
    facts are kept. What was written before the answer was lost is not written again: stores see to that. Facts are
    refused with Away where `is_away` says that this process was held up, or where the store was out of reach: others
    may be at the same unit by now, and what is measured twice must not count twice.
    """

    def __init__(
        self,
        store: Store,
        *,
        is_away: Callable[[], bool] = bool,
        clock: Callable[[], float] = time.monotonic,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        self._store, self._is_away, self._clock, self._pause = store, is_away, clock, pause

    def add(self, subject: Subject, trials: Iterable[Trial]) -> None:
        """Append trials, all of them or none."""
        given = list(trials)
        self._fact(lambda: self._store.add(subject, given))

    def trials(self, subject: Subject) -> list[Trial]:
        """Return the trials of a subject in the order they were added."""
        return self._lasting(lambda: self._store.trials(subject))

    def conclude(self, subject: Subject, verdict: Verdict) -> None:
        """Append the verdict of a finished tuning run."""
        self._fact(lambda: self._store.conclude(subject, verdict))

    def verdicts(self, subject: Subject) -> list[Verdict]:
        """Return the verdicts of a subject, oldest first."""
        return self._lasting(lambda: self._store.verdicts(subject))

    def recorded(self, subject: Subject) -> Subject | None:
        """Return the subject as last written, or None if nothing is known of it."""
        return self._lasting(lambda: self._store.recorded(subject))

    def subjects(self, decision: str | None = None, last: int | None = None) -> list[Subject]:
        """Return every subject that has trials or verdicts, or the last so many, in the order they were first seen."""
        return self._lasting(lambda: self._store.subjects(decision, last))

    def near(self, subject: Subject, ratio: float, limit: int) -> list[Remembered]:
        """Return tuned subjects that differ in numbers only, each by `ratio` at most, nearest first."""
        return self._lasting(lambda: self._store.near(subject, ratio, limit))

    def kin(self, subject: Subject, limit: int) -> list[Remembered]:
        """Return other subjects of the same decision: the nearest and the last ones."""
        return self._lasting(lambda: self._store.kin(subject, limit))

    def tuned(self, decision: str, like: Problem | None = None, limit: int | None = None) -> Page[Remembered]:
        """Return the last tuned subjects of those whose problem has the features `like`."""
        return self._lasting(lambda: self._store.tuned(decision, like, limit))

    def measured(
        self, decision: str, like: Problem | None = None, limit: int | None = None, *, failed: bool = False
    ) -> Page[Measured]:
        """Return the last trials, or only failed ones, of subjects whose problem has the features `like`."""
        return self._lasting(lambda: self._store.measured(decision, like, limit, failed=failed))

    def decisions(self) -> list[str]:
        """Return the names of the decisions that have trials or verdicts."""
        return self._lasting(self._store.decisions)

    def miss(self, subject: Subject, count: int = 1) -> None:
        """Count a question that nobody could answer."""
        self._lasting(lambda: self._store.miss(subject, count))

    def misses(self, decision: str | None = None) -> list[Miss]:
        """Return the problems that were asked in vain, most often asked first."""
        return self._lasting(lambda: self._store.misses(decision))

    def forget_miss(self, subject: Subject) -> None:
        """Drop the misses of a subject's decision and problem."""
        self._lasting(lambda: self._store.forget_miss(subject))

    def absorb_misses(self, misses: Iterable[Miss]) -> int:
        """Count misses from elsewhere; return how many are new or were raised."""
        given = list(misses)
        return self._lasting(lambda: self._store.absorb_misses(given))

    def flight(self, subject: Subject) -> Flight:
        """Return the right to tune a subject, not acquired yet."""
        return _PatientFlight(self._store.flight(subject), self._lasting)

    def records(self, decision: str | None = None) -> Iterator[Record]:
        """Yield every trial and verdict with its subject; raises StoreError in trouble."""
        return self._store.records(decision)

    def absorb(self, records: Iterable[Record]) -> int:
        """Add the records that are not known yet and return how many those were; all or none."""
        given = list(records)
        return self._lasting(lambda: self._store.absorb(given))

    def prune(self, rule: Prune, *, dry_run: bool = False) -> Pruned:
        """Remove the facts a rule takes; raises StoreError in trouble."""
        return self._store.prune(rule, dry_run=dry_run)

    def show(self, sign: Sign) -> None:
        """Give a sign of life; trouble costs the sign and no time."""
        try:
            self._store.show(sign)
        except StoreError as error:
            _log.info("a sign of life was lost: %s", error)

    def signs(self, kind: str | None = None, since: float = 0.0) -> list[Sign]:
        """Return the signs of life given since a moment, oldest first."""
        return self._lasting(lambda: self._store.signs(kind, since))

    def info(self) -> StoreInfo:
        """Return what the store holds; raises StoreError in trouble."""
        return self._store.info()

    def close(self) -> None:
        """Let go of files; the next use opens them again."""
        self._store.close()

    def _fact(self, write: Callable[[], None]) -> None:
        if self._is_away():
            raise Away("this process was held up, and others may be at its unit by now")
        self._lasting(write, self._clock() + PATIENCE_S)

    def _lasting(self, act: Callable[[], _T], until: float = inf) -> _T:
        pause_s = _FIRST_PAUSE_S
        while True:
            try:
                return act()
            except DamagedStore:
                raise
            except StoreError as error:
                if self._clock() > until:
                    raise Away(f"the store was out of reach for {PATIENCE_S:g} s") from error
                _log.warning("%s; trying again in %.1f s", error, pause_s)
            self._pause(pause_s)
            pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)


class _PatientFlight(Flight):
    """A flight that waits for the store where it cannot be asked."""

    def __init__(self, flight: Flight, lasting: Callable[[Callable[[], bool]], bool]) -> None:
        self._flight, self._lasting = flight, lasting

    def acquire(self, wait_s: float | None = None) -> bool:
        """Return True once it is ours; False if that took longer than `wait_s`, trouble with the store apart."""
        return self._lasting(lambda: self._flight.acquire(wait_s))

    def release(self) -> None:
        """Let the next one have it."""
        self._flight.release()
