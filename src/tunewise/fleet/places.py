"""Boards in directories: made by one rank, entered by all, cleared up by the last, found again without the store."""

import os
import secrets
import shutil
import stat
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import Literal

import msgspec

from tunewise import system
from tunewise.fleet import presence
from tunewise.fleet.boards import FileBoard, Lost, read_some, write_new

_ABOUT, _TOKEN, _CAME, _MEMBERS = "about.json", "token", "came", "members"
_entered: set[str] = set()  # boards that this process has been a member of
_STALE_S = 86_400.0  # after which a board without living members is swept away


class About(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which board a group uses. `token` is in the directory too: who reads it there sees the same directory."""

    kind: Literal["files", "torch"]
    place: str = ""
    token: str = ""
    address: str = ""  # where the group's store listens, if it does
    made_s: float = 0.0  # after the machine started


class SharedBoard(FileBoard):
    """A board of files that knows who uses it."""

    def __init__(self, place: Path, rank: int, size: int) -> None:
        super().__init__(place)
        _entered.add(str(place))
        self._size, self._pid = size, os.getpid()
        self._here = place / _MEMBERS / f"{rank}-{self._pid}"
        for path, text in ((place / _CAME / str(rank), ""), (self._here, presence.name(rank))):
            with suppress(FileExistsError):
                write_new(path, text)

    def close(self) -> None:
        """Leave; the last one removes the directory, unless some rank has never come: it may, and ask."""
        if self._pid != os.getpid():
            return
        with suppress(OSError):
            self._here.unlink(missing_ok=True)
            if len(os.listdir(self.place / _CAME)) >= self._size and not has_life(self.place):
                shutil.rmtree(self.place, ignore_errors=True)


def home() -> Path:
    """Return the private directory, in that for temporary files, where boards lie; raises Lost if it is not private."""
    place = Path(tempfile.gettempdir()).absolute() / f"tunewise-ranks-{system.user()}"
    try:
        with suppress(FileExistsError):
            place.mkdir(0o700)
        if _is_private(place):
            return place
    except OSError as error:
        raise Lost(f"{place}: {error}") from error
    raise Lost(f"{place} belongs to somebody else, or others may write to it")


def make(address: str, beside: Path | None) -> About:
    """Make a board, in a directory or in the usual one; raises OSError where files cannot be made and linked."""
    place = Path(tempfile.mkdtemp(prefix="board-" if beside is None else ".tunewise-ranks-", dir=beside or home()))
    try:
        for name in (_CAME, _MEMBERS):
            (place / name).mkdir(0o700)
        token = secrets.token_hex(16)
        write_new(place / _TOKEN, token)
        os.link(place / _TOKEN, place / "linked")
    except OSError:
        discard(str(place))
        raise
    return About("files", str(place), token, address, system.uptime_s())


def open_to_all(about: About) -> None:
    """Say in a board that it is the one of its group."""
    with suppress(OSError):
        write_new(Path(about.place) / _ABOUT, msgspec.json.encode(about).decode())


def discard(place: str) -> None:
    """Remove a board that nobody uses."""
    shutil.rmtree(place, ignore_errors=True)


def enter(about: About, rank: int, size: int) -> SharedBoard:
    """Return the board as one of its members; raises Lost where this is not the directory that the others see."""
    place = Path(about.place)
    try:
        if place.is_absolute() and _is_private(place) and read_some(place / _TOKEN) == about.token:
            return SharedBoard(place, rank, size)
    except OSError as error:
        raise Lost(f"{place}: {error}") from error
    raise Lost(f"{place} is not the directory that the other ranks see")


def find(address: str) -> About | None:
    """Return the board of a group whose store is gone, by the address where it listened; None if there is none.

    A group is complete before any rank of it makes a board, so its board is younger than this process. Groups that had
    the address before ended before that; those that this process was in itself are known.
    """
    born_s = system.uptime_s() - presence.age_s()
    found = [about for about in map(_about, home().iterdir()) if about is not None and about.address == address]
    ours = [about for about in found if about.made_s >= born_s and about.place not in _entered]
    return max(ours, key=lambda about: about.made_s, default=None)


def sweep(beside: Path | None) -> None:
    """Remove boards of jobs that ended long ago without clearing up, such as killed ones, where one is to be made."""
    for entry in home().glob("board-*") if beside is None else beside.glob(".tunewise-ranks-*"):
        with suppress(OSError):
            if time.time() - entry.stat().st_mtime > _STALE_S and not has_life(entry):
                discard(str(entry))


def identity() -> str:
    """Return what tells the directory where boards lie from all others, on this machine and on others."""
    found = os.stat(home())
    return f"{presence.host().partition(' ')[0]} {found.st_dev} {found.st_ino}"


def has_life(place: Path) -> bool:
    """Return whether a member of a board still lives, or may."""
    try:
        names = [read_some(path) for path in (place / _MEMBERS).iterdir()]
    except OSError:
        return False
    return any(name and not presence.is_gone(name) for name in names)


def _about(place: Path) -> About | None:
    try:
        about = msgspec.json.decode(read_some(place / _ABOUT) or "", type=About)
    except (OSError, msgspec.MsgspecError):
        return None
    return about if about.place == str(place) else None


def _is_private(place: Path) -> bool:
    found = os.lstat(place)
    return stat.S_ISDIR(found.st_mode) and system.is_ours(found) and not system.is_written_by_others(found.st_mode)
