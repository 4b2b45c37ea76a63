"""Tuning beside the program: calls go on with the answer there is, and the winner is picked up once it is known.

One child at a time, forked from the program and with a core of its own where there are several: neither Python's lock
nor its garbage ever makes a call wait. It does all that waits when it is forked. Devices that a forked child cannot use
are tuned in a thread.
"""

import gc
import os
import queue
import select
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import NoReturn

from tunewise.eventlog import logger
from tunewise.store import renew_in_children
from tunewise.system import fork, give_way

_MOST_WAITING = 64  # problems; each keeps the arguments of a call alive
_GLANCE_S = 0.1  # between two looks at whether a child lives
_DONE, _LEFT = b"D", b"L"  # what a child tells of each job in turn
_NICER = 10  # a child gives way to the program wherever both want the same core

_log = logger(__name__)


@dataclass(frozen=True, slots=True)
class Job:
    """One problem to be tuned beside the program."""

    name: str  # for people
    is_forked: bool  # a forked child can do it
    threads: int  # that its work takes
    is_due: Callable[[], bool]  # asked when its turn comes
    run: Callable[[], None]  # what is found goes into the store
    spend: Callable[[float], None]  # count so many seconds, in whichever process goes on
    pick_up: Callable[[], None]  # let the program's next call see what was found


class _Bench:
    """What waits to be tuned, and the one thread that sees to it."""

    def __init__(self) -> None:
        renew_in_children(self)
        self.renew()

    def renew(self) -> None:
        """Begin anew, as a forked child must: the thread and what waits for it stay with the parent."""
        self._lock = threading.RLock()
        self._waiting: queue.Queue[Job] = queue.Queue(_MOST_WAITING)
        self._thread: threading.Thread | None = None
        self._open = 0
        self._idle = threading.Condition(self._lock)

    def submit(self, job: Job) -> bool:
        """Have a job done and return True; False if too many are waiting: a later call asks again then."""
        with self._lock:
            try:
                self._waiting.put_nowait(job)
            except queue.Full:
                return False
            self._open += 1
            if self._thread is None:
                self._thread = threading.Thread(target=self._serve, name="tunewise-background", daemon=True)
                self._thread.start()
            return True

    def wait(self, seconds: float | None) -> bool:
        """Return True once nothing is left to be done; False if that took longer."""
        with self._idle:
            return self._idle.wait_for(lambda: self._open == 0, seconds)

    def _serve(self) -> None:
        while True:
            batch = [self._waiting.get()]
            with suppress(queue.Empty):
                while True:
                    batch.append(self._waiting.get_nowait())
            _do(batch)
            with self._idle:
                self._open -= len(batch)
                self._idle.notify_all()


_bench = _Bench()


def submit(job: Job) -> bool:
    """Have a problem tuned beside the program; return False where too many are waiting."""
    return _bench.submit(job)


def wait(seconds: float | None = None) -> bool:
    """Wait until everything asked for so far is tuned; return False if that took longer than `seconds`."""
    return _bench.wait(seconds)


def _do(batch: Sequence[Job]) -> None:
    """Do all that waits: in one child what can be, so that few forks interrupt the program, then the rest here."""
    forked = [job for job in batch if job.is_forked and _is_due(job)]
    while forked:
        forked = _in_child(forked)
    for job in batch:
        if not job.is_forked and _is_due(job):
            start = time.monotonic()
            if _is_run(job):
                _pick_up(job, time.monotonic() - start)


def _is_due(job: Job) -> bool:
    with _nothing_escapes(job):
        return job.is_due()
    return False


def _is_run(job: Job) -> bool:
    """Tune; return whether it came to an end."""
    with _nothing_escapes(job):
        job.run()
        return True
    return False


def _pick_up(job: Job, seconds: float) -> None:
    with _nothing_escapes(job):
        job.spend(seconds)
        job.pick_up()


@contextmanager
def _nothing_escapes(job: Job) -> Iterator[None]:
    try:
        yield
    except Exception:  # whatever it is, the program must not notice more than this
        _log.warning("%s could not be tuned in the background", job.name, exc_info=True)


def _in_child(jobs: Sequence[Job]) -> list[Job]:
    """Do jobs in a forked child, and pick up each as it is done; return those that it did not live to begin."""
    parent, (news, telling) = os.getpid(), os.pipe()
    # Ctrl-C is for the program: none may reach the child before it has left the terminal.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    try:
        child = fork()
        if child == 0:
            _live(jobs, parent, telling)
    except OSError as error:  # no more processes, or no memory for one
        _log.warning("%s could not be tuned in the background: %s", jobs[0].name, error)
        return list(jobs[1:])
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        os.close(telling)
    try:
        return _follow(jobs, child, news)
    finally:
        os.close(news)


def _follow(jobs: Sequence[Job], child: int, news: int) -> list[Job]:
    done, start, how = 0, time.monotonic(), None
    while how is None:
        how = _ended(child)  # asked first: what it told before its end is still in the pipe
        while select.select([news], [], [], 0 if how is not None else _GLANCE_S)[0]:
            told = os.read(news, len(jobs))
            if not told:
                how = how if how is not None else _buried(child)
                break
            for mark in told:
                now = time.monotonic()
                if mark == _DONE[0]:
                    _pick_up(jobs[done], now - start)
                done, start = done + 1, now
    if done == len(jobs):
        return []
    _log.warning("%s: its tuning in the background ended with %s", jobs[done].name, how or "its process")
    return list(jobs[done + 1 :])


def _ended(child: int) -> str | None:
    """Return how a child ended, or None as long as it lives."""
    try:
        pid, status = os.waitpid(child, os.WNOHANG)
    except ChildProcessError:  # the program buries all its children itself, or has the system do it
        return ""
    return _told(status) if pid else None


def _buried(child: int) -> str:
    """Wait for a child; return how it ended."""
    try:
        return _told(os.waitpid(child, 0)[1])
    except ChildProcessError:
        return ""


def _told(status: int) -> str:
    return f"signal {os.WTERMSIG(status)}" if os.WIFSIGNALED(status) else f"exit code {os.WEXITSTATUS(status)}"


def _live(jobs: Sequence[Job], parent: int, telling: int) -> NoReturn:
    """Tune in a forked child; ends the process."""
    code = 1
    try:
        os.setsid()
        _leave_signals()
        # Nothing of the program's is ever collected here: its finalizers would act on the program's files and devices.
        gc.freeze()
        threading.Thread(target=_end_with, args=(parent,), daemon=True).start()
        _step_aside(max(job.threads for job in jobs))
        for job in jobs:
            start = time.monotonic()
            is_done = _is_due(job) and _is_run(job)
            job.spend(time.monotonic() - start)  # what is left for the next one
            os.write(telling, _DONE if is_done else _LEFT)
        code = 0
    finally:
        os._exit(code)


def _leave_signals() -> None:
    """Let signals end this process as they end any other: what the program does about them is not to be done twice."""
    signal.set_wakeup_fd(-1)
    for which in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGCHLD):
        signal.signal(which, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())


def _end_with(parent: int) -> None:
    try:
        watch = os.pidfd_open(parent)
        if os.getppid() == parent:
            select.select([watch], [], [])
    except (AttributeError, OSError):  # no such call here: ask now and then
        while os.getppid() == parent:
            time.sleep(1.0)
    os._exit(1)


def _step_aside(threads: int) -> None:
    """Leave the program its cores but those that the work needs, the last that it may use; be second everywhere."""
    give_way(_NICER)
    cores = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []
    if len(cores) > threads:
        os.sched_setaffinity(0, cores[-threads:])
