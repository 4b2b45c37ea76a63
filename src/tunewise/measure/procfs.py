"""What Linux knows about processes: who descends from whom, and how much memory they hold."""

import mmap
import os
import signal
import time
from collections.abc import Iterable
from contextlib import suppress
from functools import cache
from pathlib import Path

PAGE_BYTES = mmap.PAGESIZE


def children(pid: int) -> list[int]:
    """Return the processes that any thread of `pid` started (or inherited), dead ones not yet reaped among them."""
    if not _lists_children():
        return [child for child, parent in _parents().items() if parent == pid]
    found: list[int] = []
    try:
        for thread in os.listdir(f"/proc/{pid}/task"):
            found += map(int, text(f"/proc/{pid}/task/{thread}/children").split())
    except OSError:
        pass  # it ended while we looked
    return found


def descendants(pid: int) -> list[int]:
    """Return all processes below `pid`, parents before their children."""
    found: list[int] = []
    ahead = [pid]
    while ahead:
        below = children(ahead.pop())
        found += below
        ahead += below
    return found


def everybody() -> list[int]:
    """Return all processes of the system that we can see."""
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def is_alive(pid: int) -> bool:
    """Return whether a process exists and is not merely waiting to be reaped."""
    try:
        return _stat(pid)[0] not in ("Z", "X")
    except OSError:
        return False


def stop(pids: Iterable[int], patience_s: float = 0.05) -> None:
    """Send SIGSTOP to each and wait until none of them runs any more, or for so long."""
    ahead = list(pids)
    for pid in ahead:
        with suppress(OSError):
            os.kill(pid, signal.SIGSTOP)
    deadline = time.monotonic() + patience_s
    while (ahead := [pid for pid in ahead if _is_running(pid)]) and time.monotonic() < deadline:
        time.sleep(0.0002)


def kill(pids: Iterable[int]) -> None:
    """Send SIGKILL to each; those already gone do not matter."""
    for pid in pids:
        try:
            os.kill(pid, signal.SIGKILL)
        except OSError:
            continue


def _is_running(pid: int) -> bool:
    try:
        return _stat(pid)[0] not in ("T", "t", "Z", "X")
    except OSError:
        return False


def resident_bytes(pid: int) -> int:
    """Return the memory a process holds, pages shared with others included; 0 if it is gone."""
    try:
        return int(text(f"/proc/{pid}/statm").split()[1]) * PAGE_BYTES
    except (OSError, IndexError):
        return 0


def held_bytes(pid: int) -> tuple[int, int]:
    """Return the memory a process holds alone, and all it holds with a page that n processes have counted as 1/n.

    Shared memory is in neither. Exact, and slower than `resident_bytes`; zeros if it is gone.
    """
    try:
        lines = text(f"/proc/{pid}/smaps_rollup").splitlines()[1:]
    except OSError:
        return 0, 0
    kib = {name: int(rest.split()[0]) for name, _, rest in (line.partition(":") for line in lines)}
    shared = kib.get("Pss_Shmem", 0)  # of what is shared, all that it holds alone is in there
    alone = kib["Private_Clean"] + kib["Private_Dirty"]
    return max(alone - shared, 0) * 1024, (kib["Pss"] - shared) * 1024


def mapped_shared_bytes(pid: int) -> int:
    """Return how much of its resident memory is shared memory; 0 if it is gone."""
    try:
        return _field_bytes(f"/proc/{pid}/status", "RssShmem")
    except OSError:
        return 0


def system_shared_bytes() -> int:
    """Return the shared memory of the whole system: memfds, files on a tmpfs, segments and shared mappings."""
    return _field_bytes("/proc/meminfo", "Shmem")


def data_bytes() -> int:
    """Return the size of this process's private writable memory: what RLIMIT_DATA counts."""
    return int(text("/proc/self/statm").split()[5]) * PAGE_BYTES


def available_bytes() -> int:
    """Return the memory this machine can still give away."""
    return _field_bytes("/proc/meminfo", "MemAvailable") or os.sysconf("SC_PHYS_PAGES") * PAGE_BYTES // 2


def _field_bytes(path: str, name: str) -> int:
    """Return what a file of lines such as `Shmem: 64 kB` says under a name; 0 where it says nothing."""
    begin = name + ":"
    return next((int(line.split()[1]) * 1024 for line in text(path).splitlines() if line.startswith(begin)), 0)


def text(path: str) -> str:
    """Return a file of the system's; raises OSError where there is none any more."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        parts = []
        while part := os.read(fd, 65536):
            parts.append(part)
        return b"".join(parts).decode()
    finally:
        os.close(fd)


def _stat(pid: int) -> list[str]:
    # The second field is the name in brackets, which may hold anything: what follows the last bracket is safe.
    return text(f"/proc/{pid}/stat").rpartition(")")[2].split()


@cache
def _lists_children() -> bool:
    return Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children").exists()


def _parents() -> dict[int, int]:
    found = {}
    for pid in everybody():
        try:
            found[pid] = int(_stat(pid)[1])
        except OSError:
            continue
    return found
