"""Shared memory of a worker's processes: how much it is, mapped or not, and what must be freed when they are killed."""

import ctypes
import os
import stat
import struct
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from tunewise.measure import procfs

SHM = Path("/dev/shm")
_IN_MOVED_TO, _IN_CREATE = 0x80, 0x100
_EVENT = struct.Struct("iIII")
_IPC_RMID = 0

Key = tuple[int, int]  # device and inode


class SharedMemory:
    """What the processes below a zygote hold in memfds, files on a tmpfs, System V segments and shared mappings.

    No process has its pages in its resident size unless it has touched them through a mapping, and files and segments
    stay after the last process. A file in /dev/shm counts as made here only if one of these processes was seen with it
    right after it appeared, a segment only if one of them created it. Nothing else is ever removed, and nothing that
    any process still uses.
    """

    def __init__(self, zygote: int) -> None:
        self._zygote = zygote
        self._began = int(time.time())
        self._least_bytes = procfs.system_shared_bytes()
        self._pids: set[int] = set()
        self._files: dict[Key, Path] = {}
        self.events = _watch(SHM)  # readable when something new is in there; None where that cannot be watched

    def growth_bytes(self) -> int:
        """Return how much more shared memory the whole system holds than at the least since this began."""
        now = procfs.system_shared_bytes()
        self._least_bytes = min(self._least_bytes, now)
        return now - self._least_bytes

    def skip(self) -> None:
        """Pass over the new files in /dev/shm: no config runs, so others made them."""
        _new_names(self.events)

    def note(self) -> None:
        """Find out which of the new files in /dev/shm were made here; soon after they appear it still shows."""
        pids = procfs.descendants(self._zygote)
        self._pids.update(pids)
        new = {key: SHM / name for name in _new_names(self.events) if (key := _own_file(SHM / name)) is not None}
        if new:
            held = _keys(pids)
            self._files |= {key: path for key, path in new.items() if key in held or key in self._files}

    def held_bytes(self) -> int:
        """Return the shared memory held here, each page once; not what the zygote and so the tuner had before."""
        self.note()
        before = _keys([self._zygote])
        segments = {(_shared_device(), one.id): one for one in _segments()}
        held = {key: one.bytes for key, one in segments.items() if self._is_ours(one)}
        held |= {key: _file_bytes(path) for key, path in self._files.items() if _own_file(path) == key}
        unknown: dict[Key, int] = {}
        for pid in procfs.descendants(self._zygote):
            held |= _opened(pid)
            for mapping in _mapped(pid):
                if mapping.key in segments:
                    held[mapping.key] = segments[mapping.key].bytes
                elif mapping.key not in held:
                    unknown[mapping.key] = max(unknown.get(mapping.key, 0), mapping.end)
        for key in before:
            held.pop(key, None)
            unknown.pop(key, None)
        known = sum(held.values())
        # How much of such a mapping was written to, only root may see: not more than the system's growth, in any case.
        rest = sum(size for key, size in unknown.items() if key not in held)
        return known + min(rest, max(self.growth_bytes() - known, 0))

    def free(self) -> None:
        """Remove the files and segments that were made here and that nobody uses any more, after all was killed."""
        used = _keys(procfs.everybody()) if self._files else set()
        for key, path in self._files.items():
            if key not in used and _own_file(path) == key:
                _remove(path)
        for segment in _segments():
            if segment.users == 0 and self._is_ours(segment):
                _libc().shmctl(segment.id, _IPC_RMID, None)
        self._files.clear()

    def close(self) -> None:
        """Watch no more."""
        events, self.events = self.events, None
        if events is not None:
            os.close(events)

    def _is_ours(self, segment: "_Segment") -> bool:
        is_made_here = segment.creator in self._pids and segment.changed >= self._began
        return is_made_here and segment.uid == os.getuid()


@dataclass(frozen=True, slots=True)
class _Segment:
    """A System V segment of this IPC namespace."""

    id: int
    creator: int
    users: int
    uid: int
    changed: int
    bytes: int


@dataclass(frozen=True, slots=True)
class _Mapping:
    """A mapping of shared memory: which, and up to where in it."""

    key: Key
    end: int


def _segments() -> Iterator[_Segment]:
    try:
        lines = procfs.text("/proc/sysvipc/shm").splitlines()
    except OSError:
        return
    names = lines[0].split()
    for line in lines[1:]:
        row = dict(zip(names, map(int, line.split()), strict=False))
        held = row["rss"] + row["swap"]
        yield _Segment(row["shmid"], row["cpid"], row["nattch"], row["cuid"], row["ctime"], held)


def _keys(pids: Iterable[int]) -> set[Key]:
    """Return the shared memory that some processes have open or mapped."""
    return {key for pid in pids for key in (*_opened(pid), *(mapping.key for mapping in _mapped(pid)))}


def _opened(pid: int) -> dict[Key, int]:
    """Return the files in memory that a process has open, and the bytes each holds."""
    found: dict[Key, int] = {}
    try:
        names = os.listdir(f"/proc/{pid}/fd")
    except OSError:
        return found
    for name in names:
        try:
            status = os.stat(f"/proc/{pid}/fd/{name}")
        except OSError:
            continue  # closed while we looked
        if stat.S_ISREG(status.st_mode) and status.st_dev in _devices():
            found[status.st_dev, status.st_ino] = status.st_blocks * 512
    return found


def _mapped(pid: int) -> Iterator[_Mapping]:
    """Yield the shared memory that a process has mapped."""
    try:
        lines = procfs.text(f"/proc/{pid}/maps").splitlines()
    except OSError:
        return
    for line in lines:
        span, mode, offset, device, inode = line.split(None, 5)[:5]
        major, _, minor = device.partition(":")
        key = os.makedev(int(major, 16), int(minor, 16)), int(inode)
        if mode[3] == "s" and key[0] in _devices():
            begin, _, end = span.partition("-")
            yield _Mapping(key, int(offset, 16) + int(end, 16) - int(begin, 16))


def _own_file(path: Path) -> Key | None:
    """Return which file of this user's stands at a path; None for anything else."""
    try:
        status = os.lstat(path)
    except OSError:
        return None
    is_ours = stat.S_ISREG(status.st_mode) and status.st_uid == os.getuid()
    return (status.st_dev, status.st_ino) if is_ours else None


def _file_bytes(path: Path) -> int:
    try:
        return os.lstat(path).st_blocks * 512
    except OSError:
        return 0


def _remove(path: Path) -> None:
    try:
        path.unlink()
    except OSError:
        return  # somebody else was quicker


@cache
def _devices() -> frozenset[int]:
    """Return the devices whose files are in memory: every tmpfs, and that of memfds and shared mappings."""
    found = {_shared_device()}
    for line in procfs.text("/proc/self/mountinfo").splitlines():
        place, _, kind = line.partition(" - ")
        if kind.split(None, 1)[0] in ("tmpfs", "ramfs", "hugetlbfs"):
            major, _, minor = place.split()[2].partition(":")
            found.add(os.makedev(int(major), int(minor)))
    return frozenset(found)


@cache
def _shared_device() -> int:
    fd = os.memfd_create("tunewise")
    try:
        return os.fstat(fd).st_dev
    finally:
        os.close(fd)


def _watch(place: Path) -> int | None:
    """Return an inotify descriptor that tells of new files in a directory; None where there can be none."""
    fd: int = _libc().inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
    if fd < 0:
        return None
    if _libc().inotify_add_watch(fd, os.fsencode(place), _IN_CREATE | _IN_MOVED_TO) < 0:
        os.close(fd)
        return None
    return fd


def _new_names(fd: int | None) -> Iterable[str]:
    """Return the names of files that appeared since somebody asked last."""
    if fd is None:
        return ()
    names: list[str] = []
    while True:
        try:
            events = os.read(fd, 1 << 16)
        except BlockingIOError:
            return names
        place = 0
        while place < len(events):
            _, _, _, length = _EVENT.unpack_from(events, place)
            place += _EVENT.size + length
            names.append(os.fsdecode(events[place - length : place].rstrip(b"\0")))


@cache
def _libc() -> Any:
    return ctypes.CDLL(None, use_errno=True)
