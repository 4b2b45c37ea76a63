"""The store that never breaks a program: whatever the disk does, facts are kept, and one warning says why."""

import atexit
import logging
import threading
import time
import warnings
import weakref
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from types import TracebackType
from typing import TypeVar

from tunewise.decision import Miss, Subject, Trial, Verdict
from tunewise.errors import DamagedStore, StoreError, StoreWarning
from tunewise.formats.records import Record
from tunewise.store.base import Flight, Prune, Pruned, Store, StoreInfo
from tunewise.store.locks import renew_in_children
from tunewise.store.memory import MemoryStore
from tunewise.store.sqlite import SqliteStore

RETRY_S = 5.0
_LONGEST_PAUSE = 12  # times that: a server that does not answer costs seconds each time it is asked
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


@dataclass(slots=True)
class _Trouble:
    """Whether the disk is worth asking: after a failure it is left alone for a while, after more of them longer."""

    reason: str | None = None
    until: float = 0.0
    failures: int = 0

    def end(self) -> None:
        """Note that it works."""
        self.reason, self.failures = None, 0


class SafeStore:
    """A store on disk or a server whose troubles stay inside: a full disk, a corrupt file, a server that restarts.

    While it cannot be written, new facts are kept in memory, are read from there, and are written as soon as it takes
    them again, tried a last time when the program ends. A corrupt file is renamed and a new one begun. The caller hears
    of the first trouble by one StoreWarning; nothing else is raised, except for facts that make no sense in any store.
    """

    def __init__(
        self,
        disk: Store,
        *,
        warn: Callable[[str], None] = warn_once,
        clock: Callable[[], float] = time.monotonic,
        retry_s: float = RETRY_S,
    ) -> None:
        self._disk = disk
        self._warn, self._clock, self._retry_s = warn, clock, retry_s
        self._lock = threading.RLock()
        self._reading, self._writing = _Trouble(), _Trouble()
        self._waiting: list[Callable[[Store], object]] = []
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

    def flight(self, subject: Subject) -> Flight:
        """Return the right to tune a subject: between processes if the disk allows, else between threads."""
        return _SafeFlight(lambda: self._disk.flight(subject), self._memory.flight(subject))

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
        """Begin a forked child with a lock of its own."""
        self._lock = threading.RLock()

    def _both(self, ask: Callable[[Store], list[_T]]) -> list[_T]:
        """Return what the disk knows and what waits in memory, without a moment between the two."""
        with self._lock:
            nothing: list[_T] = []
            return [*self._read(ask, nothing.copy), *ask(self._memory)]

    def _read(self, ask: Callable[[Store], _T], otherwise: Callable[[], _T]) -> _T:
        if self._reading.reason is not None and self._clock() < self._reading.until:
            return otherwise()
        try:
            answer = self._on_disk(ask)
        except StoreError as error:
            self._note(self._reading, error)
            self._warn(f"{error}. It is left out for now.")
            return otherwise()
        self._reading.end()
        return answer

    def _write(self, act: Callable[[Store], _T]) -> _T:
        with self._lock:
            done, result = self._try_writing(act)
            if done:
                return result[0]
            kept = act(self._memory)
            if not self._waiting:
                atexit.register(_close, weakref.ref(self))
            self._waiting.append(act)
        self._warn(f"{self._writing.reason}. Results are kept in memory until it can be used.")
        return kept

    def _try_writing(self, act: Callable[[Store], _T], is_due: bool = False) -> tuple[bool, list[_T]]:
        """Return whether the disk took what waited and `act` too, and what came of `act`."""
        if self._writing.reason is not None and not is_due and self._clock() < self._writing.until:
            return False, []
        try:
            self._write_waiting()
            result = self._on_disk(act)
        except StoreError as error:
            self._note(self._writing, error)
            return False, []
        self._writing.end()
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
                self._warn(f"{error}. It was set aside as {aside.name}, and a new one was begun.")
            return result

    def _note(self, trouble: _Trouble, error: StoreError) -> None:
        pause_s = self._retry_s * min(2**trouble.failures, _LONGEST_PAUSE)
        trouble.reason, trouble.until = str(error), self._clock() + pause_s
        trouble.failures += 1


def _close(reference: "weakref.ref[SafeStore]") -> None:
    store = reference()
    if store is not None:
        store.close()


class _SafeFlight:
    """A flight between processes that becomes one between threads if the disk has no place for its lock."""

    def __init__(self, on_disk: Callable[[], Flight], in_memory: Flight) -> None:
        self._on_disk, self._in_memory = on_disk, in_memory
        self._granted: Flight | None = None

    def acquire(self, wait_s: float | None = None) -> bool:
        """Return True once it is ours; False if that took longer than `wait_s`."""
        try:
            flight = self._on_disk()
            is_ours = flight.acquire(wait_s)
        except (StoreError, OSError):
            flight = self._in_memory
            is_ours = flight.acquire(wait_s)
        self._granted = flight if is_ours else None
        return is_ours

    def release(self) -> None:
        """Let the next one have it."""
        if self._granted is not None:
            self._granted.release()
        self._granted = None

    def __enter__(self) -> "_SafeFlight":
        self.acquire()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()
