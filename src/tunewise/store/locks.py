"""Locks between processes that die with their holder: byte ranges of one file, and turns between threads."""

import errno
import fcntl
import functools
import os
import threading
import time
import weakref
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from math import inf
from pathlib import Path
from typing import Protocol

from tunewise.store.base import Flight

_WRITER = 0  # the byte that stands for "I am writing"; every other byte is one subject
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.005, 0.02


class Turns:
    """Exclusion between the threads of one process, by key."""

    def __init__(self) -> None:
        self._taken: set[Hashable] = set()
        self._changed = threading.Condition()

    def take(self, key: Hashable, wait_s: float | None = None) -> bool:
        """Return True once the key is ours, False if that took longer than `wait_s`."""
        with self._changed:
            if not self._changed.wait_for(lambda: key not in self._taken, wait_s):
                return False
            self._taken.add(key)
            return True

    def take_by(
        self,
        key: Hashable,
        ask: Callable[[], bool],
        wait_s: float | None,
        longest_pause_s: float = _LONGEST_PAUSE_S,
    ) -> bool:
        """Return True once the key is ours among threads, and `ask` says among processes; False if that took longer.

        `ask` is called again after pauses, each twice as long as the one before it up to the longest.
        """
        deadline = inf if wait_s is None else time.monotonic() + wait_s
        if not self.take(key, wait_s):
            return False
        pause_s, is_ours = _FIRST_PAUSE_S, False
        try:
            while not (is_ours := ask()):
                left = deadline - time.monotonic()
                if left <= 0:
                    return False
                time.sleep(min(pause_s, left))
                pause_s = min(2 * pause_s, longest_pause_s)
            return True
        finally:
            if not is_ours:
                self.give(key)

    def give(self, key: Hashable) -> None:
        """Let the next thread have the key."""
        with self._changed:
            self._taken.discard(key)
            self._changed.notify_all()


class LockFile:
    """The POSIX locks of this process on one file, as one of its users holds them: see `lock_file`."""

    def __init__(self, shared: "_Shared") -> None:
        self._shared = shared
        weakref.finalize(self, _leave, shared).atexit = False

    @contextmanager
    def writer(self) -> Iterator[None]:
        """Hold the right to write, waiting for it without limit: writers are quick, and the kernel frees the dead's."""
        with self._shared.writer():
            yield

    def acquire(self, byte: int, wait_s: float | None) -> bool:
        """Return True once a byte is ours; waits by asking again, so that no wait can be part of a kernel's cycle."""
        return self._shared.acquire(byte, wait_s)

    def release(self, byte: int) -> None:
        """Give a byte back."""
        self._shared.release(byte)


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
        self._opening = threading.Lock()
        self._fd: int | None = None
        self._outlived: list[int] = []
        self._held: dict[int, int] = {}  # byte -> descriptor it is locked through

    @contextmanager
    def writer(self) -> Iterator[None]:
        self._turns.take(_WRITER)
        try:
            self._lock(_WRITER, waits=True)
            try:
                yield
            finally:
                self._unlock(_WRITER)
        finally:
            self._turns.give(_WRITER)

    def acquire(self, byte: int, wait_s: float | None) -> bool:
        return self._turns.take_by(byte, lambda: self._lock(byte, waits=False), wait_s)

    def release(self, byte: int) -> None:
        self._unlock(byte)
        self._turns.give(byte)

    def _lock(self, byte: int, waits: bool) -> bool:
        while True:
            fd = self._current()
            try:
                fcntl.lockf(fd, fcntl.LOCK_EX | (0 if waits else fcntl.LOCK_NB), 1, byte)
            except OSError as error:
                if error.errno in (errno.EACCES, errno.EAGAIN):
                    return False
                if error.errno != errno.EDEADLK:
                    raise
                # The kernel sees processes, not threads, and may take two stores in use for a cycle.
                time.sleep(_FIRST_PAUSE_S)
                continue
            if self._is_current(fd):
                self._held[byte] = fd
                return True
            fcntl.lockf(fd, fcntl.LOCK_UN, 1, byte)

    def _unlock(self, byte: int) -> None:
        fd = self._held.pop(byte, None)
        if fd is not None:
            fcntl.lockf(fd, fcntl.LOCK_UN, 1, byte)

    def _current(self) -> int:
        """Return the descriptor of the file that is at the path now; cleaners may have removed the one we had."""
        with self._opening:
            if self._fd is not None and not self._is_current(self._fd):
                self._outlived.append(self._fd)
                self._fd = None
            if self._fd is None:
                self._fd = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
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


class Exclusive(Protocol):
    """What a flight needs of whoever grants it."""

    def acquire(self, byte: int, wait_s: float | None) -> bool:
        """Return whether the byte is ours now."""

    def release(self, byte: int) -> None:
        """Give the byte back."""


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
        for holder in list(_renewed):
            holder.renew()

    os.register_at_fork(after_in_child=renew_all)
