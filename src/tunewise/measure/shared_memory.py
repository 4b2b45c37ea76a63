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
_APPEARS = 0x80 | 0x100 | 0x0100_0000 | 0x0200_0000  # IN_MOVED_TO, IN_CREATE, IN_ONLYDIR, IN_DONT_FOLLOW
_MAX_PLACES = 256  # directories that are watched
_MAX_UNCLAIMED = 10_000
_EVENT = struct.Struct("iIII")
_IPC_RMID = 0

Key = tuple[int, int]  # device and inode


class SharedMemory:
    """What the processes below a zygote hold in memfds, files on a tmpfs, System V segments and shared mappings.

    No process has its pages in its resident size unless it has touched them through a mapping, and files and segments
    stay after the last process. A file in /dev/shm was made here if one of these processes was seen with it right after
    it appeared, a segment if one of them created it. Nothing else is ever removed, and nothing that any process still
    uses. A file that nobody had open any more when we looked counts, as it may have been made here, and stays.
    """

    def __init__(self, zygote: int) -> None:
        self._zygote = zygote
        self._began = 0
        self._least_bytes = 0
        self._pids: set[int] = set()
        self._files: dict[Key, Path] = {}
        self._unclaimed: dict[Key, Path] = {}
        self._directories: set[Path] = set()
        self._inbox = Inbox(SHM)  # one for all workers: to close it takes the system some 10 ms

    @property
    def events(self) -> int | None:
        """A descriptor that is readable when something new is in /dev/shm; None where that cannot be watched."""
        return self._inbox.fd

    def begin(self) -> None:
        """Begin with a new worker: what is there now is not its own."""
        self._began = int(time.time())
        self._least_bytes = procfs.system_shared_bytes()
        self._pids.clear()
        self._files.clear()
        self._unclaimed.clear()
        self._directories.clear()

    def growth_bytes(self) -> int:
        """Return how much more shared memory the whole system holds than at the least since this began."""
        now = procfs.system_shared_bytes()
        self._least_bytes = min(self._least_bytes, now)
        return now - self._least_bytes

    def skip(self) -> None:
        """Pass over the new files in /dev/shm: no config runs, so others made them."""
        self._inbox.new()

    def note_last(self) -> None:
        """Find it out before all are killed: stopped, they make nothing between this and their end."""
        procfs.stop(procfs.descendants(self._zygote))
        self.note()

    def note(self) -> None:
        """Find out which of the new files in /dev/shm were made here; soon after they appear it still shows."""
        pids = procfs.descendants(self._zygote)
        self._pids.update(pids)
        paths = self._inbox.new()
        self._directories.update(path for path in paths if path.is_dir() and not path.is_symlink())
        new = {key: path for path in paths if (key := _own_file(path)) is not None}
        if new:
            held = _keys(pids)
            self._files |= {key: path for key, path in new.items() if key in held or key in self._files}
        unclaimed = {key: path for key, path in new.items() if key not in self._files}
        if unclaimed and len(self._unclaimed) < _MAX_UNCLAIMED:
            claimed = _keys(procfs.everybody())
            self._unclaimed |= {key: path for key, path in unclaimed.items() if key not in claimed}

    def held_bytes(self) -> int:
        """Return the shared memory held here, each page once; not what the zygote and so the tuner had before."""
        self.note()
        before = _keys([self._zygote])
        segments = {(_shared_device(), one.id): one for one in _segments()}
        held = {key: one.bytes for key, one in segments.items() if self._is_ours(one)}
        files = {**self._unclaimed, **self._files}
        held |= {key: _file_bytes(path) for key, path in files.items() if _own_file(path) == key}
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
        rest = sum(size for key, size in unknown.items() if key not in held)  # how much was written, only root may see
        # What others had and a config only opened is not its own: the system has not grown by it.
        return min(sum(held.values()) + rest, self.growth_bytes())

    def free(self) -> None:
        """Remove the files and segments that were made here and that nobody uses any more, after all was killed."""
        used = _keys(procfs.everybody()) if self._files else set()
        for key, path in self._files.items():
            if key not in used and _own_file(path) == key:
                self._remove(path)
        for segment in _segments():
            if segment.users == 0 and self._is_ours(segment):
                _libc().shmctl(segment.id, _IPC_RMID, None)
        self._files.clear()

    def close(self) -> None:
        """Watch no more."""
        self._inbox.close()

    def _remove(self, path: Path) -> None:
        """Remove a file, and the new directories that it was the last in."""
        try:
            path.unlink()
            while (path := path.parent) in self._directories:
                path.rmdir()
        except OSError:
            return  # there is more in it, or somebody else was quicker

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
    names = lines[0].split() if lines else []
    for line in lines[1:]:
        row = dict(zip(names, map(int, line.split()), strict=False))
        held = row.get("rss", 0) + row.get("swap", 0)
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


class Inbox:
    """What appears in a directory and in those below it, from now on; where inotify cannot be had, nothing does."""

    def __init__(self, place: Path) -> None:
        fd: int = _libc().inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        self.fd = fd if fd >= 0 else None
        self._places: dict[int, Path] = {}
        self._enter(place)

    def new(self) -> list[Path]:
        """Return what appeared since somebody asked last, what is in new directories too."""
        found: list[Path] = []
        for number, name in _events(self.fd):
            if not name:  # the directory is gone
                self._places.pop(number, None)
            elif number in self._places:
                path = self._places[number] / name
                found += [path, *self._enter(path)]
        return found

    def close(self) -> None:
        """Look no more."""
        fd, self.fd = self.fd, None
        if fd is not None:
            os.close(fd)

    def _enter(self, place: Path) -> list[Path]:
        """Watch a directory and those below it; return what was in them already, nothing for a file."""
        found: list[Path] = []
        ahead = [place]
        while ahead and self.fd is not None and len(self._places) < _MAX_PLACES:
            place = ahead.pop()
            number: int = _libc().inotify_add_watch(self.fd, os.fsencode(place), _APPEARS)
            if number < 0:
                continue  # it is a file, or gone
            self._places[number] = place
            try:
                inside = [place / name for name in os.listdir(place)]
            except OSError:
                continue
            found += inside
            ahead += [path for path in inside if path.is_dir() and not path.is_symlink()]
        return found


def _events(fd: int | None) -> Iterator[tuple[int, str]]:
    """Yield the number of the directory and the name of what appeared in it."""
    while fd is not None:
        try:
            events = os.read(fd, 1 << 16)
        except BlockingIOError:
            return
        place = 0
        while place < len(events):
            number, _, _, length = _EVENT.unpack_from(events, place)
            place += _EVENT.size + length
            yield number, os.fsdecode(events[place - length : place].rstrip(b"\0"))


@cache
def _libc() -> Any:
    return ctypes.CDLL(None, use_errno=True)
