"""What operating systems do not have in common: users, private files, cores, forks. All of it works on each of them."""

import functools
import os
import select
import stat
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

# Flags of os.open that Windows does not know, or that nobody else does.
NONBLOCK: int = getattr(os, "O_NONBLOCK", 0)
NOFOLLOW: int = getattr(os, "O_NOFOLLOW", 0)
BINARY: int = getattr(os, "O_BINARY", 0)


def has_owners() -> bool:
    """Return whether a file belongs to a user and has a mode; on Windows it has an access list instead."""
    return hasattr(os, "geteuid")


def user() -> int | None:
    """Return the number of the user whose rights this process has; None on Windows."""
    return os.geteuid() if has_owners() else None


def user_name() -> str | None:
    """Return what the user who started this process is called; None where the system does not say."""
    if has_owners():
        entry = _entry(os.getuid())
        return entry and entry[0]
    try:
        return os.getlogin()
    except OSError:
        return None


def user_home() -> str | None:
    """Return the home that the system has on record for the user; None where there is none."""
    entry = _entry(os.geteuid()) if has_owners() else None
    return entry and entry[1]


def has_lent_rights() -> bool:
    """Return whether this process has rights that the user who started it does not have, as setuid programs do."""
    return has_owners() and (os.getuid() != os.geteuid() or os.getgid() != os.getegid())


def is_ours(facts: os.stat_result) -> bool:
    """Return whether a file or directory belongs to us; what Windows lets us use always does."""
    return not has_owners() or facts.st_uid == os.geteuid()


def is_written_by_others(mode: int) -> bool:
    """Return whether others than its owner may write to a file or directory of this mode."""
    return has_owners() and bool(mode & (stat.S_IWGRP | stat.S_IWOTH))


def is_read_by_others(mode: int) -> bool:
    """Return whether others than its owner may read or write a file of this mode."""
    return has_owners() and bool(mode & (stat.S_IRWXG | stat.S_IRWXO))


def sync_directory(directory: Path) -> None:
    """Return once the names in a directory are on the disk. Windows opens no directories, and writes them itself."""
    if not has_owners():
        return
    fd = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def cores() -> int:
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def uptime_s() -> float:
    """Return how long the machine has been on; elsewhere than on Linux, without the time it was asleep."""
    return time.clock_gettime(time.CLOCK_BOOTTIME) if hasattr(time, "CLOCK_BOOTTIME") else time.monotonic()


def give_way(steps: int) -> None:
    """Lower the priority of this process, where it has one."""
    if hasattr(os, "nice"):
        os.nice(steps)


def is_readable(fd: int, wait_s: float) -> bool:
    """Return whether a socket has something to read, or has ended, within so many seconds."""
    if not hasattr(select, "poll"):  # as on Windows; elsewhere select() would fail for high numbers
        return bool(select.select([fd], [], [], wait_s)[0])
    poll = select.poll()
    poll.register(fd, select.POLLIN)
    return bool(poll.poll(wait_s * 1000))


def waits() -> int:
    """Return how often this process has given up its core of its own accord; 0 where nobody counts that."""
    usage = _usage()
    return 0 if usage is None else int(usage().ru_nvcsw)


def page_faults() -> int:
    """Return how many pages this process has been given so far; 0 where nobody counts that."""
    usage = _usage()
    return 0 if usage is None else int(usage().ru_minflt)


def fork() -> int:
    """Return os.fork(), without the warning that other threads do not come along: nothing here waits for them."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        return os.fork()


def at_fork(**hooks: Callable[[], None]) -> None:
    """Call os.register_at_fork(); nothing where processes cannot fork."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(**hooks)


def has_worker_processes() -> bool:
    """Return whether a process can be watched and limited as measuring configs in processes of their own takes."""
    return sys.platform.startswith("linux") and hasattr(os, "pidfd_open")


@functools.cache
def _usage() -> Callable[[], Any] | None:
    try:
        import resource
    except ImportError:
        return None
    return functools.partial(resource.getrusage, resource.RUSAGE_SELF)


def _entry(number: int) -> tuple[str, str] | None:
    try:
        import pwd

        found = pwd.getpwuid(number)
    except (ImportError, KeyError):  # a user without an entry, as in some containers
        return None
    return found.pw_name, found.pw_dir
