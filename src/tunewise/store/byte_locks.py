"""Locks on single bytes of a file: they exclude other processes, never wait, and end with their process.

Where the machine has neither POSIX locks nor those of Windows, every byte is always ours: processes do not exclude
each other there. A process that takes a byte twice gets it twice with POSIX locks, so threads must take turns by other
means, and closing any descriptor of the file gives up all its locks.
"""

import errno
import functools
import importlib
import os
import struct
import sys
import threading
from typing import Any

# struct flock: (type, whence, start, length, pid) on Linux, (start, length, pid, type, whence) on macOS.
_LINUX_FLOCK, _MACOS_FLOCK = struct.Struct("@hhqqi0q"), struct.Struct("@qqihh")
_FARTHEST = 2**31 - 1  # msvcrt locks at a file position that old versions keep in 31 bits
_TAKEN = (errno.EACCES, errno.EAGAIN)


def try_lock(fd: int, byte: int, *, is_shared: bool = False) -> bool:
    """Return whether the byte is ours now; several processes can share it if all of them ask with `is_shared`.

    Windows has no shared locks here: a shared one excludes everybody too.
    """
    if (posix := _posix()) is not None:
        kind = posix.LOCK_SH if is_shared else posix.LOCK_EX
        return _is_granted(lambda: posix.lockf(fd, kind | posix.LOCK_NB, 1, byte))
    if (windows := _windows()) is not None:
        return _is_granted(lambda: _at(windows, windows.LK_NBLCK, fd, byte))
    return True


def unlock(fd: int, byte: int) -> None:
    """Give a byte back that is ours."""
    if (posix := _posix()) is not None:
        posix.lockf(fd, posix.LOCK_UN, 1, byte)
    elif (windows := _windows()) is not None:
        _at(windows, windows.LK_UNLCK, fd, byte)


def holder(fd: int, byte: int) -> int | None:
    """Return the process that keeps the byte from us; None if there is none or the machine cannot name it."""
    posix = _posix()
    if posix is None or sys.platform not in ("linux", "darwin"):
        return None
    if sys.platform == "linux":
        question = _LINUX_FLOCK.pack(posix.F_WRLCK, os.SEEK_SET, byte, 1, 0)
        kind, _, _, _, pid = _LINUX_FLOCK.unpack(posix.fcntl(fd, posix.F_GETLK, question))
    else:
        question = _MACOS_FLOCK.pack(byte, 1, 0, posix.F_WRLCK, os.SEEK_SET)
        _, _, pid, kind, _ = _MACOS_FLOCK.unpack(posix.fcntl(fd, posix.F_GETLK, question))
    # A holder in another container has the number 0 here, one on another machine may have a negative one.
    return pid if kind != posix.F_UNLCK and pid > 0 else None


def _is_granted(ask: Any) -> bool:
    try:
        ask()
    except OSError as error:
        if error.errno in _TAKEN:
            return False
        raise
    return True


def _at(windows: Any, mode: int, fd: int, byte: int) -> None:
    """Lock or unlock at a byte: Windows does so at the position of the file, which threads must not move meanwhile."""
    with _moving:
        os.lseek(fd, byte if byte <= _FARTHEST else 1 + byte % _FARTHEST, os.SEEK_SET)
        windows.locking(fd, mode, 1)


_moving = threading.RLock()


@functools.cache
def _posix() -> Any:
    return _module("fcntl")


@functools.cache
def _windows() -> Any:
    return _module("msvcrt")


def _module(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError:
        return None
