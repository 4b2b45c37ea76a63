"""A thread that does a store's reading or writing, so that no caller is inside of it when a signal comes."""

import queue
import threading
import weakref
from _thread import start_new_thread
from collections.abc import Callable
from typing import Any, Generic, TypeVar

from tunewise.eventlog import logger
from tunewise.store.locks import renew_in_children

_T = TypeVar("_T")
_IDLE_S = 5.0  # after which a thread that has nothing to do ends
_SHORTEST_PAUSE_S = 1.0  # between two tries of what failed
_log = logger(__name__)


class Job(Generic[_T]):
    """A piece of work, and what has come of it."""

    def __init__(self, work: Callable[[], _T]) -> None:
        self._work = work
        self._result: list[_T] = []
        self._error: BaseException | None = None
        self.has_begun = False
        self._running = threading.Lock()  # held until it is done
        self._running.acquire()

    def do(self) -> None:
        """Do the work; what it raises is for whoever asks for the result."""
        self.has_begun = True
        try:
            self._result.append(self._work())
        except BaseException as error:
            self._error = error
        self._running.release()

    def is_done(self, wait_s: float | None = 0.0) -> bool:
        """Return True once the work is done, False if that takes longer; None waits without limit."""
        if not self._running.acquire(timeout=-1 if wait_s is None else wait_s):
            return False
        self._running.release()
        return True

    def result(self) -> _T:
        """Return what the work gave, or raise what it raised; it must be done."""
        if self._error is not None:
            raise self._error
        return self._result[0]


class IOThread:
    """One thread that does jobs in the order they were given. It begins with the first job and ends when idle.

    Exceptions of signal handlers are raised in the main thread only: what runs here is done whole or not at all.
    Between jobs it calls the method `step`, which returns in how many seconds it wants to be called again, or None; its
    object is not kept alive for that. A forked child has a thread of its own and none of its parent's jobs.
    """

    def __init__(self, step: Callable[[], float | None]) -> None:
        self._step = weakref.WeakMethod(step)
        self.renew()
        renew_in_children(self)

    def renew(self) -> None:
        """Begin anew in a forked child."""
        self._jobs: queue.SimpleQueue[Job[Any] | None] = queue.SimpleQueue()
        self._serving = threading.Lock()

    def submit(self, work: Callable[[], _T]) -> Job[_T]:
        """Have work done; return at once."""
        job = Job(work)
        self._jobs.put(job)
        self._start()
        return job

    def wake(self) -> None:
        """Have `step()` called soon."""
        self._jobs.put(None)
        self._start()

    def _start(self) -> None:
        if self._serving.locked():
            return
        try:
            # Not by threading.Thread, whose start() waits with a lock that a signal could leave behind.
            start_new_thread(self._serve, ())
        except RuntimeError:  # there may be no more threads: slower, but done
            self._serve(is_patient=False)

    def _serve(self, is_patient: bool = True) -> None:
        while self._serving.acquire(blocking=False):  # who comes second has nothing to do
            try:
                self._work_until_idle(is_patient)
            finally:
                self._serving.release()
            if self._jobs.empty():  # a job that came in between found the thread still there
                return

    def _work_until_idle(self, is_patient: bool) -> None:
        while True:
            pause_s = self._stepped()
            wait_s = _IDLE_S if pause_s is None else max(pause_s, _SHORTEST_PAUSE_S)
            try:
                job = self._jobs.get(timeout=wait_s if is_patient else 0)
            except queue.Empty:
                if pause_s is None or not is_patient:
                    return
                continue
            if job is not None:
                job.do()
            del job  # nobody is kept alive over the pause

    def _stepped(self) -> float | None:
        step = self._step()
        try:
            return None if step is None else step()
        except Exception:  # the thread is for all who come
            _log.exception("the store's thread goes on after an error")
            return None
