"""The store that never breaks a program: whatever the disk does, facts are kept, and one warning says why."""

import atexit
import logging
import threading
import time
import warnings
import weakref
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import TypeVar

from tunewise.decision import Miss, Subject, Trial, Verdict
from tunewise.errors import DamagedStore, StoreError, StoreWarning, UnreachableStore
from tunewise.eventlog import WARNING, tell
from tunewise.formats.records import Record
from tunewise.store.base import Flight, Prune, Pruned, Sign, Store, StoreInfo
from tunewise.store.catching_up import keep_trying
from tunewise.store.listening import Heard
from tunewise.store.locks import renew_in_children
from tunewise.store.memory import MemoryStore
from tunewise.store.safe_flight import SafeFlight
from tunewise.store.sqlite import SqliteStore
from tunewise.store.trouble import Trouble

RETRY_S = 5.0
_LONGEST_PAUSE = 12  # times that: a server that does not answer costs seconds each time it is asked
_PATIENCE = 10  # times as long as it took to find that out, it is left alone: it may cost a tenth of a program's time
_log = logging.getLogger(__name__)
_T = TypeVar("_T")
_warned = threading.Event()


def warn_once(text: str) -> None:
    """Warn of trouble with the store, once a process; what comes after is logged only."""
    if _warned.is_set():
        _log.info(text)
        return
    _warned.set()
    warnings.warn(text, StoreWarning, stacklevel=4)


class SafeStore:
    """A store on disk or a server whose troubles stay inside: a full disk, a corrupt file, a server that restarts.

    While it cannot be written, new facts are kept in memory, are read from there, and are written as soon as it takes
    them again, tried a last time when the program ends. A corrupt file is renamed and a new one begun. The caller hears
    of the first trouble by one StoreWarning; nothing else is raised, except for facts that make no sense in any store.
    `heard` is told, as of what other processes conclude, when a store that could not be read can be: answers that were
    given without it are to be looked up again.
    """

    def __init__(
        self,
        disk: Store,
        *,
        warn: Callable[[str], None] = warn_once,
        clock: Callable[[], float] = time.monotonic,
        retry_s: float = RETRY_S,
        heard: Heard | None = None,
    ) -> None:
        self._disk, self._heard = disk, heard
        self._warn, self._clock, self._retry_s = warn, clock, retry_s
        self._lock = threading.RLock()
        self._reading, self._writing = Trouble("reading"), Trouble("writing")
        self._waiting: list[Callable[[Store], object]] = []
        self._unread: Callable[[Store], object] | None = None  # the first question that it did not answer
        self._is_trying = False
        self._memory = MemoryStore()
        renew_in_children(self)

    def add(self, subject: Subject, trials: Iterable[Trial]) -> None:
        """Append trials, all of them or none."""
        given = list(trials)
        self._write(lambda store: store.add(subject, given))

    def trials(self, subject: Subject) -> list[Trial]:
        """Return the trials of a subject in the order they were added."""
        return self._both(lambda store: store.trials(subject))

    def conclude(self, subject: Subject, verdict: Verdict) -> None:
        """Append the verdict of a finished tuning run."""
        self._write(lambda store: store.conclude(subject, verdict))

    def verdicts(self, subject: Subject) -> list[Verdict]:
        """Return the verdicts of a subject, oldest first."""
        return self._both(lambda store: store.verdicts(subject))

    def recorded(self, subject: Subject) -> Subject | None:
        """Return the subject as last written, or None if nothing is known of it."""
        return self._memory.recorded(subject) or self._read(lambda store: store.recorded(subject), lambda: None)

    def subjects(self, decision: str | None = None) -> list[Subject]:
        """Return every subject that has trials or verdicts, in the order they were first seen."""
        both = self._both(lambda store: store.subjects(decision))
        return list({subject.digest: subject for subject in both}.values())

    def decisions(self) -> list[str]:
        """Return the names of the decisions that have trials or verdicts, in alphabetical order."""
        return sorted(set(self._both(lambda store: store.decisions())))

    def miss(self, subject: Subject, count: int = 1) -> None:
        """Count a question that nobody could answer."""
        self._write(lambda store: store.miss(subject, count))

    def misses(self, decision: str | None = None) -> list[Miss]:
        """Return the problems that were asked in vain, most often asked first."""
        counted: dict[object, Miss] = {}
        for miss in self._both(lambda store: store.misses(decision)):
            known = counted.get((miss.decision, miss.problem))
            total = miss if known is None else replace(miss, count=miss.count + known.count)
            counted[miss.decision, miss.problem] = total
        return sorted(counted.values(), key=lambda miss: -miss.count)

    def forget_miss(self, subject: Subject) -> None:
        """Drop the misses of a subject's decision and problem."""
        self._write(lambda store: store.forget_miss(subject))

    def absorb_misses(self, misses: Iterable[Miss]) -> int:
        """Count misses from elsewhere at least as often as they say; return how many are new or were raised."""
        given = list(misses)
        return self._write(lambda store: store.absorb_misses(given))

    def show(self, sign: Sign) -> None:
        """Give a sign of life; while the disk is in trouble, none is given."""
        with self._lock:
            began = self._clock()
            if self._writing.is_over(began):
                try:
                    self._on_disk(lambda store: store.show(sign))
                except UnreachableStore as error:
                    self._note(self._writing, error, began)
                except StoreError as error:  # of the sign alone: facts may have a place all the same
                    _log.debug("a sign of life was not given: %s", error)

    def signs(self, kind: str | None = None, since: float = 0.0) -> list[Sign]:
        """Return the signs of life given since a moment, oldest first."""
        return self._read(lambda store: store.signs(kind, since), list)

    def flight(self, subject: Subject) -> Flight:
        """Return the right to tune a subject: between processes if the disk allows, else between threads."""
        return SafeFlight(lambda: self._disk.flight(subject), self._memory.flight(subject), self._asked)

    def records(self, decision: str | None = None) -> Iterator[Record]:
        """Yield every trial and verdict with its subject; raises StoreError if the disk fails on the way."""
        yield from self._disk.records(decision)
        yield from self._memory.records(decision)

    def absorb(self, records: Iterable[Record]) -> int:
        """Add the records that are not known yet and return how many those were; all or none."""
        given = list(records)
        return self._write(lambda store: store.absorb(given))

    def prune(self, rule: Prune, *, dry_run: bool = False) -> Pruned:
        """Remove the facts a rule takes; raises StoreError if the disk does not allow it: somebody asked for this."""
        return self._disk.prune(rule, dry_run=dry_run)

    def info(self) -> StoreInfo:
        """Return what is held on disk, or in memory if the disk cannot be read, with the trouble there is."""
        held = self._read(lambda store: store.info(), self._memory.info)
        return replace(held, trouble=self._reading.reason or self._writing.reason)

    def close(self) -> None:
        """Write what waits in memory if the disk takes it now, and let go of files."""
        with self._lock:
            if self._waiting:
                self._try_writing(lambda store: None, is_due=True)
            self._disk.close()

    def renew(self) -> None:
        """Begin a forked child with a lock of its own; what waits is its parent's to write."""
        self._lock = threading.RLock()
        self._waiting, self._memory, self._is_trying, self._unread = [], MemoryStore(), False, None

    def catch_up(self) -> float | None:
        """Write what waits and read what could not be read, if it is time to.

        Return in how many seconds to try again, None if there is nothing left to do.
        """
        with self._lock:
            if self._waiting:
                self._try_writing(lambda store: None)
        self._read_again()
        with self._lock:
            due = [self._writing.until] * bool(self._waiting) + [self._reading.until] * (self._unread is not None)
            self._is_trying = bool(due)
            return min(due) - self._clock() if due else None

    def _asked(self, ask: Callable[[], bool]) -> bool:
        """Return what a flight says; raises StoreError if it cannot say, at once where that is known already."""
        began = self._clock()
        if not self._reading.is_over(began):
            raise UnreachableStore(str(self._reading.reason))
        try:
            return ask()
        except UnreachableStore as error:
            self._note(self._reading, error, began)
            raise

    def _both(self, ask: Callable[[Store], list[_T]]) -> list[_T]:
        """Return what the disk knows and what waits in memory, without a moment between the two."""
        with self._lock:
            nothing: list[_T] = []
            return [*self._read(ask, nothing.copy), *ask(self._memory)]

    def _read(self, ask: Callable[[Store], _T], otherwise: Callable[[], _T]) -> _T:
        began = self._clock()
        if not self._reading.is_over(began):
            self._leave_unread(ask)
            return otherwise()
        try:
            answer = self._on_disk(ask)
        except StoreError as error:
            self._note(self._reading, error, began)
            self._warn(f"{error}. It is left out for now.")
            self._leave_unread(ask)
            return otherwise()
        self._reading.end()
        return answer

    def _leave_unread(self, ask: Callable[[Store], object]) -> None:
        """Keep a question that had no answer, for as long as anybody wants to hear of it."""
        if self._heard is None:
            return
        with self._lock:
            if self._unread is None:
                self._unread = ask
                self._keep_trying()

    def _read_again(self) -> None:
        """Ask what had no answer; where it has one now, pass on that all may have changed."""
        if self._unread is None:
            return
        self._read(self._unread, lambda: None)
        with self._lock:
            if self._reading.reason is not None:
                return
            self._unread = None
        assert self._heard is not None
        self._heard(None)  # without our lock: who hears of it has locks of its own

    def _keep_trying(self) -> None:
        if not self._is_trying:
            self._is_trying = True
            keep_trying(self)

    def _write(self, act: Callable[[Store], _T]) -> _T:
        with self._lock:
            done, result = self._try_writing(act)
            if done:
                return result[0]
            kept = act(self._memory)
            if not self._waiting:
                atexit.register(_close, weakref.ref(self))
            self._waiting.append(act)
            self._keep_trying()
        self._warn(f"{self._writing.reason}. Results are kept in memory until it can be used.")
        return kept

    def _try_writing(self, act: Callable[[Store], _T], is_due: bool = False) -> tuple[bool, list[_T]]:
        """Return whether the disk took what waited and `act` too, and what came of `act`."""
        began = self._clock()
        if not is_due and not self._writing.is_over(began):
            return False, []
        try:
            self._write_waiting()
            result = self._on_disk(act)
        except StoreError as error:
            self._note(self._writing, error, began)
            return False, []
        self._writing.end()
        self._reading.until = 0.0  # what can be written is there: worth asking again
        return True, [result]

    def _write_waiting(self) -> None:
        if not self._waiting:
            return
        try:
            while self._waiting:
                self._on_disk(self._waiting[0])
                del self._waiting[0]
        finally:
            rest = MemoryStore()
            for act in self._waiting:
                act(rest)
            self._memory = rest

    def _on_disk(self, act: Callable[[Store], _T]) -> _T:
        """Return what `act` finds on disk, in a new file if the old one is damaged."""
        try:
            return act(self._disk)
        except DamagedStore as error:
            if not isinstance(self._disk, SqliteStore):
                raise
            aside = self._disk.set_aside()
            result = act(self._disk)
            if aside is not None:
                tell(WARNING, "store-set-aside", f"a damaged store was set aside: {error}", file=aside.name)
                self._warn(f"{error}. It was set aside as {aside.name}, and a new one was begun.")
            return result

    def _note(self, trouble: Trouble, error: StoreError, began: float) -> None:
        now, pause_s = self._clock(), self._retry_s * min(2**trouble.failures, _LONGEST_PAUSE)
        until = now + min(max(pause_s, _PATIENCE * (now - began)), self._retry_s * _LONGEST_PAUSE)
        is_away = isinstance(error, UnreachableStore)  # for every purpose
        for one in (self._reading, self._writing) if is_away else (trouble,):
            one.begin(error, until)


def _close(reference: "weakref.ref[SafeStore]") -> None:
    store = reference()
    if store is not None:
        store.close()
