"""What Linux knows about processes: who descends from whom, and how much memory they hold."""

import os
import signal
from collections.abc import Iterable
from functools import cache
from pathlib import Path

PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


def children(pid: int) -> list[int]:
    """Return the processes that any thread of `pid` started (or inherited), dead ones not yet reaped among them."""
    if not _lists_children():
        return [child for child, parent in _parents().items() if parent == pid]
    found: list[int] = []
    try:
        for thread in os.listdir(f"/proc/{pid}/task"):
            found += map(int, _read(f"/proc/{pid}/task/{thread}/children").split())
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


def is_alive(pid: int) -> bool:
    """Return whether a process exists and is not merely waiting to be reaped."""
    try:
        return _stat(pid)[0] not in ("Z", "X")
    except OSError:
        return False


def kill(pids: Iterable[int]) -> None:
    """Send SIGKILL to each; those already gone do not matter."""
    for pid in pids:
        try:
            os.kill(pid, signal.SIGKILL)
        except OSError:
            continue


def resident_bytes(pid: int) -> int:
    """Return the memory a process holds, pages shared with others included; 0 if it is gone."""
    try:
        return int(_read(f"/proc/{pid}/statm").split()[1]) * PAGE_BYTES
    except (OSError, IndexError):
        return 0


def held_bytes(pid: int) -> tuple[int, int]:
    """Return the memory a process holds alone, and all it holds with a page shared by n processes counted as 1/n.

    Exact, and slower than `resident_bytes`; zeros if it is gone.
    """
    try:
        lines = _read(f"/proc/{pid}/smaps_rollup").splitlines()[1:]
    except OSError:
        return 0, 0
    kib = {name: int(rest.split()[0]) for name, _, rest in (line.partition(":") for line in lines)}
    return (kib["Private_Clean"] + kib["Private_Dirty"]) * 1024, kib["Pss"] * 1024


def data_bytes() -> int:
    """Return the size of this process's private writable memory: what RLIMIT_DATA counts."""
    return int(_read("/proc/self/statm").split()[5]) * PAGE_BYTES


def available_bytes() -> int:
    """Return the memory this machine can still give away."""
    for line in _read("/proc/meminfo").splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) * 1024
    return os.sysconf("SC_PHYS_PAGES") * PAGE_BYTES // 2


def _read(path: str) -> str:
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
    return _read(f"/proc/{pid}/stat").rpartition(")")[2].split()


@cache
def _lists_children() -> bool:
    return Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children").exists()


def _parents() -> dict[int, int]:
    found = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                found[int(name)] = int(_stat(int(name))[1])
            except OSError:
                continue
    return found
