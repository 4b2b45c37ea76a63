"""Locks between processes that die with their holder: byte ranges of one file, and turns between threads."""

import functools
import os
import random
import threading
import time
import weakref
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager, suppress
from math import inf
from pathlib import Path
from typing import Protocol

from tunewise import system
from tunewise.errors import StoreError
from tunewise.store import byte_locks
from tunewise.store.base import Flight, Holder
from tunewise.store.byte_locks import try_lock, unlock

_WRITER = 0  # the byte that stands for "I am writing"; those after it are subjects
_AWAITED = 1 << 61  # beyond all subjects: held together by all who wait for the writer's byte
WRITER_WAIT_S = 10.0  # a crowd of 64 on a slow disk takes seconds; who takes longer is stopped, or moves very much
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.005, 0.02
_WRITER_PAUSE_S = (0.002, 0.008)  # by chance, the same for all who wait: nobody is served less often than others
_STREAK_S = 0.02  # how long one process may write again and again while others wait


def poll(ask: Callable[[], bool], wait_s: float | None, longest_pause_s: float = _LONGEST_PAUSE_S) -> bool:
    """Return True once `ask()` does, False if that took longer than `wait_s`; None waits without limit.

    `ask` is called again after pauses, each twice as long as the one before it up to the longest.
    """
    deadline = inf if wait_s is None else time.monotonic() + wait_s
    pause_s = _FIRST_PAUSE_S
    while not ask():
        left = deadline - time.monotonic()
        if left <= 0:
            return False
        time.sleep(min(pause_s, left))
        pause_s = min(2 * pause_s, longest_pause_s)
    return True


class Turns:
    """Exclusion inside one process, by key. Taking is one step, so that no signal finds it half done."""

    def __init__(self) -> None:
        self._taken: dict[Hashable, object] = {}

    def take(self, key: Hashable, wait_s: float | None = 0.0) -> bool:
        """Return True once the key is ours, False if that took longer than `wait_s`."""
        turn = object()
        return poll(lambda: self._taken.setdefault(key, turn) is turn, wait_s)

    def take_by(self, key: Hashable, ask: Callable[[], bool]) -> bool:
        """Return whether the key is ours now, and `ask` says so among processes too."""
        if not self.take(key):
            return False
        is_ours = False
        try:
            is_ours = ask()
        finally:
            if not is_ours:
                self.give(key)
        return is_ours

    def give(self, key: Hashable) -> None:
        """Let the next one have the key."""
        self._taken.pop(key, None)


class LockFile:
    """The locks of this process on one file, as one of its users holds them: see `lock_file`."""

    def __init__(self, shared: "_Shared") -> None:
        self._shared = shared
        weakref.finalize(self, _leave, shared).atexit = False

    @contextmanager
    def writer(self) -> Iterator[None]:
        """Hold the right to write; raises StoreError, with who has it, if that takes longer than some seconds."""
        with self._shared.writer():
            yield

    def acquire(self, byte: int, wait_s: float | None) -> bool:
        """Return True once a byte is ours; waits by asking again, so that no wait can be part of a kernel's cycle."""
        return self._shared.acquire(byte, wait_s)

    def release(self, byte: int) -> None:
        """Give a byte back."""
        self._shared.release(byte)

    def holder(self, byte: int) -> Holder | None:
        """Return the process that keeps a byte from us; None if there is none or it cannot be told."""
        return self._shared.holder(byte)


class _Shared:
    """What all users of one lock file share.

    POSIX locks die with their process and are not inherited by children, as flock's are. But they belong to the
    process as a whole, and closing *any* descriptor of the file drops them all: so there is one of these a path and
    process, its descriptor stays open while it has users, and threads take turns before they ask the kernel.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.users = 0  # counted, as a weak reference can be followed while what it refers to is being closed
        self._begin()
        renew_in_children(self)

    def _begin(self) -> None:
        self._turns = Turns()
        self._writers = threading.RLock()
        self._opening = threading.RLock()
        self._fd: int | None = None
        self._outlived: list[int] = []
        self._held: dict[int, int] = {}  # byte -> descriptor it is locked through
        self._streak_began = -inf  # since when this process has had the writer's byte again and again
        self._wrote_at = -inf
        self._chance = random.Random(os.getpid())

    @contextmanager
    def writer(self) -> Iterator[None]:
        deadline, is_outermost = time.monotonic() + WRITER_WAIT_S, False
        try:  # around the taking too: an exception from a signal may come as soon as it is ours
            if not self._writers.acquire(timeout=WRITER_WAIT_S):
                raise StoreError(f"another thread has been writing to {self.path.parent} for over {WRITER_WAIT_S:g} s")
            is_outermost = _WRITER not in self._held
            if is_outermost:
                self._become_writer(deadline)
            yield
        finally:
            if is_outermost:
                self._unlock(_WRITER)
                self._wrote_at = time.monotonic()
            with suppress(RuntimeError):  # not taken
                self._writers.release()

    def acquire(self, byte: int, wait_s: float | None) -> bool:
        return poll(lambda: self._turns.take_by(byte, lambda: self._lock(byte)), wait_s)

    def release(self, byte: int) -> None:
        self._unlock(byte)
        self._turns.give(byte)

    def holder(self, byte: int) -> Holder | None:
        pid = byte_locks.holder(self._current(), byte)
        return None if pid is None else _known(pid)

    def _become_writer(self, deadline: float) -> None:
        """Take the writer's byte. Waiting means asking again: the kernel's own waits have no end and no order."""
        now = time.monotonic()
        if now - self._wrote_at > _WRITER_PAUSE_S[1]:
            self._streak_began = now
        elif now - self._streak_began > _STREAK_S and self.holder(_AWAITED) is not None:
            self._pause()  # between two of our writes there would be hardly a moment for those who wait
            self._streak_began = time.monotonic()
        if self._lock(_WRITER):
            return
        try:
            while not self._lock(_WRITER):
                if time.monotonic() >= deadline:
                    raise StoreError(self._busy())
                if _AWAITED not in self._held:
                    self._lock(_AWAITED, is_shared=True)
                self._pause()
                self._streak_began = time.monotonic()
        finally:
            self._unlock(_AWAITED)

    def _pause(self) -> None:
        time.sleep(self._chance.uniform(*_WRITER_PAUSE_S))

    def _busy(self) -> str:
        who = self.holder(_WRITER) or "another process"
        return f"{who} has been writing to {self.path.parent} for over {WRITER_WAIT_S:g} s; let it go on, or end it"

    def _lock(self, byte: int, *, is_shared: bool = False) -> bool:
        while True:
            fd = self._current()
            if not try_lock(fd, byte, is_shared=is_shared):
                return False
            if self._is_current(fd):
                self._held[byte] = fd
                return True
            unlock(fd, byte)

    def _unlock(self, byte: int) -> None:
        fd = self._held.pop(byte, self._fd)  # a byte that was taken and not noted is given back too
        if fd is not None:
            unlock(fd, byte)

    def _current(self) -> int:
        """Return the descriptor of the file that is at the path now; cleaners may have removed the one we had."""
        with self._opening:
            if self._fd is not None and not self._is_current(self._fd):
                self._outlived.append(self._fd)
                self._fd = None
            if self._fd is None:
                self._fd = os.open(self.path, os.O_RDWR | os.O_CREAT | system.NOFOLLOW, 0o600)
            return self._fd

    def _is_current(self, fd: int) -> bool:
        try:
            return os.path.samestat(os.stat(self.path), os.fstat(fd))
        except FileNotFoundError:
            return False

    def renew(self) -> None:
        """Begin anew in a forked child."""
        # The child owns none of its parent's locks; threads that held a turn do not exist here.
        self.close()
        self._begin()

    def close(self) -> None:
        for fd in (*self._outlived, *(() if self._fd is None else (self._fd,))):
            os.close(fd)
        self._outlived, self._fd = [], None


def _known(pid: int) -> Holder:
    try:
        raw = Path(f"/proc/{pid}/stat").read_text(errors="replace")
    except OSError:
        return Holder(pid)
    name, _, rest = raw.partition("(")[2].rpartition(")")
    return Holder(pid, "".join(c for c in name if c.isprintable()), rest.split()[0] in "Tt")


class Exclusive(Protocol):
    """What a flight needs of whoever grants it."""

    def acquire(self, byte: int, wait_s: float | None) -> bool:
        """Return whether the byte is ours now."""

    def release(self, byte: int) -> None:
        """Give the byte back."""

    def holder(self, byte: int) -> Holder | None:
        """Return the process of this machine that has the byte, where that can be told."""


class ThreadsOnly:
    """Grants flights inside one process, for a store that no other process sees."""

    def __init__(self) -> None:
        self._turns = Turns()
        renew_in_children(self)

    def acquire(self, byte: int, wait_s: float | None) -> bool:
        """Return whether the byte is ours now."""
        return self._turns.take(byte, wait_s)

    def release(self, byte: int) -> None:
        """Give the byte back."""
        self._turns.give(byte)

    def holder(self, byte: int) -> Holder | None:
        """Return None: whoever has the byte is in this process."""
        return None

    def renew(self) -> None:
        """Begin anew in a forked child."""
        self._turns = Turns()


class ByteFlight(Flight):
    """The right to tune one subject: a byte of a lock file, at a place that follows from the subject's digest."""

    def __init__(self, grants: Exclusive, digest: str) -> None:
        self._grants = grants
        self._byte = 1 + int(digest[:15], 16)
        self._pid: int | None = None

    def acquire(self, wait_s: float | None = None) -> bool:
        """Return True once it is ours; False if that took longer than `wait_s`."""
        if self._grants.acquire(self._byte, wait_s):
            self._pid = os.getpid()
        return self._pid is not None

    def release(self) -> None:
        """Let the next one have it; a forked child that inherited this object has nothing to give."""
        if self._pid == os.getpid():
            self._grants.release(self._byte)
        self._pid = None

    def holder(self) -> Holder | None:
        """Return the process of this machine that has it; None if nobody has, or that cannot be told."""
        return self._grants.holder(self._byte)


def lock_file(path: Path) -> LockFile:
    """Return the locks on a file; all that this process has of one path are the same."""
    key = os.path.realpath(path)
    with _finding:
        found = _by_path.get(key)
        if found is None:
            found = _by_path[key] = _Shared(Path(key))
        found.users += 1
    return LockFile(found)


def _leave(shared: _Shared) -> None:
    """Take leave of a lock file; the last one closes it."""
    with _finding:
        shared.users -= 1
        if not shared.users:
            del _by_path[os.fspath(shared.path)]
            shared.close()


class Renewable(Protocol):
    """Holds locks that a forked child must not inherit: the thread that would free them does not exist there."""

    def renew(self) -> None:
        """Begin anew in a forked child."""


def renew_in_children(holder: Renewable) -> None:
    """Have `holder.renew()` called in every forked child, as long as the holder lives."""
    _renewed.add(holder)
    _watch_forks()


def keep_for_ever(inherited: object) -> None:
    """Keep a parent's connection alive to the end of this process: its destructor must not speak for the parent."""
    import ctypes  # rare, and not worth its time at every start

    ctypes.pythonapi.Py_IncRef(ctypes.py_object(inherited))


# POSIX locks are a fact of the whole process, so who holds them must be known once in the process too.
_by_path: dict[str, _Shared] = {}
_finding = threading.RLock()
_renewed: weakref.WeakSet[Renewable] = weakref.WeakSet()


@functools.cache
def _watch_forks() -> None:
    def renew_all() -> None:
        global _finding
        _finding = threading.RLock()
        for one in list(_renewed):
            one.renew()

    system.at_fork(after_in_child=renew_all)
