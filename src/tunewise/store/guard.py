"""What stands between a program and its store: threads that do the work, bounded waits, and memory for hard times."""

import atexit
import os
import sys
import threading
import time
import warnings
import weakref
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any, TypeVar

from tunewise.errors import DamagedStore, StoreError, StoreWarning, UnreachableStore
from tunewise.eventlog import WARNING, logger, tell
from tunewise.store.base import Sign, Store
from tunewise.store.io_thread import IOThread, Job
from tunewise.store.listening import Heard
from tunewise.store.locks import renew_in_children
from tunewise.store.memory import MemoryStore
from tunewise.store.sqlite import SqliteStore
from tunewise.store.trouble import Trouble

RETRY_S = 5.0
_LONGEST_PAUSE = 12  # times that: a server that does not answer costs seconds each time it is asked
_PATIENCE = 10  # times as long as it took to find that out, it is left alone: it may cost a tenth of a program's time
_ANSWER_S = 65.0  # for an answer that somebody wants to have; a server is given up after 60 s
# For an answer that a program would rather go without: the first needs a connection; those after it may also take so
# many times as long as answers usually do. A file answers in microseconds: what takes seconds there is a busy machine.
_FIRST_ANSWER_S, _FILE_ANSWER_S, _SERVER_ANSWER_S, _USUAL_ANSWERS = 2.0, 2.0, 0.08, 8
_QUEUED_S = 0.5  # for a question that waits for its turn
_GLANCE_S = 0.02  # between two looks at whether a server says nothing
_NEW_SHARE = 0.2  # of the latest answer in how long they usually take
_WRITTEN_S = 15.0  # for a fact to be written; who holds a file is named after 10 s
_CLOSED_S = 3.0  # for what waits when a store is closed or the program ends
_KEPT = "Results are kept in memory until it can be used."
_MOST_POSTED = 10_000  # of what nobody waits for; what is beyond that is dropped
_log = logger(__name__)
_T = TypeVar("_T")
_warned = threading.Event()


def warn_once(text: str) -> None:
    """Warn of trouble with the store, once a process; what comes after is logged only."""
    if _warned.is_set():
        _log.info(text)
        return
    _warned.set()
    warnings.warn(text, StoreWarning, stacklevel=5)


class _Busy(Exception):
    """No answer was waited for, and nothing is wrong with the store."""


class _Write:
    """Something to be written, and what has become of it."""

    def __init__(self, act: Callable[[Store], Any], *, is_result: bool = True) -> None:
        self.act, self.is_result = act, is_result
        self.result: Any = None
        self.error: Exception | None = None  # of what was to be written, not of the store
        self.is_kept = False  # in memory, until the disk takes it
        self.is_over = False  # written, or refused
        self._settled = threading.Lock()  # held until one of these is so
        self._settled.acquire()

    def settle(self) -> None:
        """Let who waits for it go on."""
        with suppress(RuntimeError):  # they do already
            self._settled.release()

    def wait(self, seconds: float | None) -> None:
        """Return once it is over or kept, or after so long; None waits for the store, however long that takes."""
        self._settled.acquire(timeout=-1 if seconds is None else seconds)


class Guard:
    """Lets a program use a store on disk or a server without ever being held up or broken by it.

    One thread writes, another one asks servers and opens files, and the caller waits for them for a bounded time: a
    signal in the middle of a question leaves no transaction open and no lock taken. An open file is read by the caller.
    While the store cannot be written, new facts are kept in memory. They are written as soon as possible, and a last
    time when the program ends. A corrupt file is renamed and a new one begun. `heard` is told when a store that could
    not be read can be read again.
    """

    def __init__(
        self,
        disk: Store,
        warn: Callable[[str], None],
        clock: Callable[[], float],
        retry_s: float,
        heard: Heard | None,
        is_remote: bool,
    ) -> None:
        self.disk, self._heard, self._is_remote = disk, heard, is_remote
        self.warn, self._clock, self._retry_s = warn, clock, retry_s
        self.reading, self.writing = Trouble("reading"), Trouble("writing")
        self._usual_s: float | None = None  # how long answers take
        self._reads, self._writes = IOThread(self.read_again), IOThread(self.write_waiting)
        self.renew()
        renew_in_children(self)
        _guards.add(self)

    def renew(self) -> None:
        """Begin a forked child with a lock of its own; what waits is its parent's to write."""
        self.lock = threading.RLock()  # held for moments, never while the disk is asked
        self.memory = MemoryStore()
        self._waiting: deque[_Write] = deque()
        self._signs: dict[tuple[str, str], Sign] = {}  # to be given, the latest of each kind and key
        self._unread: Callable[[Store], object] | None = None  # the first question that had no answer
        self._is_used = False

    def read(self, ask: Callable[[Store], _T], otherwise: Callable[[], _T], *, is_hasty: bool = False) -> _T:
        """Return what the store says, or `otherwise()` where it is in trouble or takes too long."""
        began = self._clock()
        if self.reading.is_over(began):
            try:
                answer = self._answer(ask, is_hasty)
            except _Busy as busy:
                _log.info(str(busy))
            except StoreError as error:
                self._note(self.reading, error, began)
                self.warn(f"{error}. It is left out for now.")
            else:
                self.reading.end()
                return answer
        self._leave_unread(ask)
        return otherwise()

    def ask(self, question: Callable[[], _T]) -> _T:
        """Return what a question about locks gives; raises StoreError if it has no answer, at once where that is known.

        Locks end with their process and are nobody's while the store is in trouble.
        """
        began = self._clock()
        if not self.reading.is_over(began):
            raise UnreachableStore(str(self.reading.reason))
        try:
            return self._result(self._reads.submit(question), _ANSWER_S)
        except UnreachableStore as error:
            self._note(self.reading, error, began)
            raise

    def soon(self, work: Callable[[], object]) -> None:
        """Have something done that nobody waits for."""
        self._reads.submit(work)

    def do(self, work: Callable[[Store], _T]) -> _T:
        """Return what work that a person asked for gives, however long it takes; raises StoreError if it fails."""
        self._use()
        job = self._writes.submit(lambda: work(self.disk))
        job.is_done(None)
        return job.result()

    def write(self, act: Callable[[Store], _T], *, is_much: bool = False) -> _T:
        """Have something written; return once it is, or is kept in memory because it cannot be.

        What `is_much` is waited for until the store has taken or refused it: that it takes long says nothing.
        """
        write = _Write(act)
        is_worth_waiting = self.writing.is_over(self._clock())
        self._wait_for(write)
        if is_worth_waiting:
            write.wait(None if is_much else _WRITTEN_S)
        self._keep(write)
        if write.error is not None:
            raise write.error
        if not write.is_over:
            reason = self.writing.reason or f"the store has not taken a result within {_WRITTEN_S:g} s"
            self.warn(f"{reason}. {_KEPT}")
        result: _T = write.result
        return result

    def post(self, act: Callable[[Store], object]) -> None:
        """Have something written that nobody waits for."""
        if len(self._waiting) < _MOST_POSTED:
            write = _Write(act, is_result=False)
            if not self.writing.is_over(self._clock()):
                self._keep(write)
                self.warn(f"{self.writing.reason}. {_KEPT}")
            self._wait_for(write)

    def show(self, sign: Sign) -> None:
        """Have a sign of life given; while the store is in trouble, none is."""
        self._signs[sign.kind, sign.key] = sign
        self._use()
        self._writes.wake()

    def settle(self) -> None:
        """Return once all that was posted is written, or cannot be for now."""
        if (self._waiting or self._signs) and self.writing.is_over(self._clock()):
            self._writes.submit(self.write_waiting).is_done(_WRITTEN_S)

    def close(self) -> int:
        """Write what waits if the store takes it now, and let go of files; return how many results are left."""
        return self.closed(self.closing(), _CLOSED_S)

    def closing(self) -> Job[None] | None:
        """Have what waits written, and files let go of; return the job, or None where there is nothing to do."""
        return self._writes.submit(self._finish) if self._is_used else None

    def closed(self, job: Job[None] | None, wait_s: float) -> int:
        """Wait for that job; return how many results are not written."""
        if job is not None:
            self._is_used = not job.is_done(max(0.0, wait_s)) or bool(self._waiting)
        return sum(write.is_result for write in list(self._waiting))

    def read_again(self) -> float | None:
        """Ask what had no answer, if it is time to; where it has one now, pass on that all may have changed.

        Return in how many seconds to try again, None if there is nothing to ask.
        """
        unread, began = self._unread, self._clock()
        if unread is None:
            return None
        if self.reading.is_over(began):
            try:
                self._on_disk(unread)
            except StoreError as error:
                self._note(self.reading, error, began)
            else:
                self.reading.end()
                self._unread = None
                assert self._heard is not None
                self._heard(None)
                return None
        return self.reading.until - self._clock()

    def write_waiting(self, *, is_due: bool = False) -> float | None:
        """Write what waits, if it is time to; return in how many seconds to try again, None if nothing is left."""
        was_kept = False
        try:
            while self._waiting:
                began, write = self._clock(), self._waiting[0]
                if not is_due and not self.writing.is_over(began):
                    break
                try:
                    write.result = self._on_disk(write.act)
                except StoreError as error:
                    self._note(self.writing, error, began)
                    for one in list(self._waiting):
                        self._keep(one)
                    break
                except Exception as error:  # of what was to be written; who wanted that hears of it
                    write.error = error
                with self.lock:
                    write.is_over = True
                    self._waiting.popleft()
                was_kept = was_kept or write.is_kept
                write.settle()
                self.writing.end()
                self.reading.until = 0.0  # what can be written is there: worth asking again
        finally:
            if was_kept:
                self._forget_written()
        self._give_signs()
        return self.writing.until - self._clock() if self._waiting else None

    def _answer(self, ask: Callable[[Store], _T], is_hasty: bool) -> _T:
        self._use()
        if isinstance(self.disk, SqliteStore) and self.disk.is_ready:
            # Nothing is locked or written, so a signal may come; and threads hand over slowly in a busy process.
            with suppress(DamagedStore):  # which the thread sets aside
                return ask(self.disk)
        job = self._reads.submit(lambda: self._timed(ask))
        return self._hasty_result(job) if is_hasty else self._result(job, _ANSWER_S)

    def _result(self, job: Job[_T], wait_s: float) -> _T:
        if not job.is_done(wait_s):
            raise self._silence(wait_s)
        return job.result()

    def _silence(self, wait_s: float) -> UnreachableStore:
        place = getattr(self.disk, "place", "that is used")
        return UnreachableStore(f"the store {place} has not answered within {wait_s:.2g} s")

    def _hasty_result(self, job: Job[_T]) -> _T:
        """Return what a job gives that is not waited for long; raises _Busy where that says nothing about the store."""
        wait_s, asked_at = self._hasty_s(), time.monotonic()
        is_first, pause_s = self._usual_s is None, wait_s
        while not job.is_done(pause_s):
            if is_first or getattr(self.disk, "is_silent", True):
                raise self._silence(wait_s)
            # The answer is there, and the thread has no turn to take it; or it reads a long answer for others.
            if time.monotonic() > asked_at + (_FIRST_ANSWER_S if job.has_begun else _QUEUED_S):
                raise _Busy("this process is too busy to hear what its store answers")
            pause_s = _GLANCE_S
        return job.result()

    def _timed(self, ask: Callable[[Store], _T]) -> _T:
        start = time.monotonic()
        answer = self._on_disk(ask)
        if self.reading.reason is not None:
            # Perhaps nobody waits for this answer any more, but who answers late answers again.
            self.reading.until = self.writing.until = 0.0
        spent_s = time.monotonic() - start
        # The first answer takes as long as a connection; all after it count.
        self._usual_s = 0.0 if self._usual_s is None else self._usual_s + _NEW_SHARE * (spent_s - self._usual_s)
        return answer

    def _hasty_s(self) -> float:
        """Return how long an answer may take that a program does not want to wait for."""
        if self._usual_s is None:
            return _FIRST_ANSWER_S
        return max(_SERVER_ANSWER_S if self._is_remote else _FILE_ANSWER_S, _USUAL_ANSWERS * self._usual_s)

    def _leave_unread(self, ask: Callable[[Store], object]) -> None:
        """Keep a question that had no answer, for as long as anybody wants to hear of it."""
        if self._heard is not None and self._unread is None:
            self._unread = ask
            self._reads.wake()

    def _wait_for(self, write: _Write) -> None:
        self._use()
        self._waiting.append(write)
        self._writes.wake()

    def _keep(self, write: _Write) -> None:
        """Keep in memory what is not written, so that it can be read until it is."""
        with self.lock:
            if not (write.is_kept or write.is_over):
                write.is_kept = True
                try:
                    write.result = write.act(self.memory)
                except Exception as error:  # no store would take it; that of the thread finds out too
                    write.error = error
        write.settle()

    def _forget_written(self) -> None:
        """Drop from memory what has been written."""
        with self.lock:
            self.memory = MemoryStore()
            for write in self._waiting:
                if write.is_kept and write.error is None:
                    write.act(self.memory)

    def _give_signs(self) -> None:
        while self._signs:
            began, sign = self._clock(), self._signs.pop(next(iter(self._signs)))
            if self.writing.is_over(began):
                try:
                    self._on_disk(partial(_show, sign))
                except UnreachableStore as error:
                    self._note(self.writing, error, began)
                except StoreError as error:  # of the sign alone: facts may have a place all the same
                    _log.debug("a sign of life was not given: %s", error)

    def _use(self) -> None:
        self._is_used = True
        _end_with_process()

    def _finish(self) -> None:
        self.write_waiting(is_due=True)
        self.disk.close()

    def _on_disk(self, act: Callable[[Store], _T]) -> _T:
        """Return what `act` finds on disk, in a new file if the old one is damaged."""
        try:
            return act(self.disk)
        except DamagedStore as error:
            if not isinstance(self.disk, SqliteStore):
                raise
            aside = self.disk.set_aside()
            result = act(self.disk)
            if aside is not None:
                tell(WARNING, "store-set-aside", f"a damaged store was set aside: {error}", file=aside.name)
                self.warn(f"{error}. It was set aside as {aside.name}, and a new one was begun.")
            return result

    def _note(self, trouble: Trouble, error: StoreError, began: float) -> None:
        now, pause_s = self._clock(), self._retry_s * min(2**trouble.failures, _LONGEST_PAUSE)
        until = now + min(max(pause_s, _PATIENCE * (now - began)), self._retry_s * _LONGEST_PAUSE)
        is_away = isinstance(error, UnreachableStore)  # for every purpose
        for one in (self.reading, self.writing) if is_away else (trouble,):
            one.begin(error, until)


def _show(sign: Sign, store: Store) -> None:
    store.show(sign)


_guards: "weakref.WeakSet[Guard]" = weakref.WeakSet()
_before: list[Callable[[], object]] = []


def before_closing(act: Callable[[], object]) -> None:
    """Call `act` when the program ends, before its stores are closed: it may have something to write."""
    _before.append(act)


def _end_with_process() -> None:
    """See to it that all stores are closed when this process ends, once."""
    if _Ending.pid == os.getpid():
        return
    if _Ending.pid is None:
        atexit.register(_end)
    _Ending.pid = os.getpid()
    # Children of multiprocessing end without the hooks of atexit, and know their own.
    util, process = sys.modules.get("multiprocessing.util"), sys.modules.get("multiprocessing.process")
    if util is not None and process is not None and process.parent_process() is not None:
        util.Finalize(None, _end, exitpriority=0)


class _Ending:
    pid: int | None = None  # of the process that ends with our hook


def _end() -> None:
    for act in _before:
        act()
    deadline = time.monotonic() + _CLOSED_S
    for guard, job in [(guard, guard.closing()) for guard in list(_guards)]:
        if left := guard.closed(job, deadline - time.monotonic()):
            reason = guard.writing.reason or "there was no time"
            guard.warn(f"{left} results were not written before the program ended: {reason}")
