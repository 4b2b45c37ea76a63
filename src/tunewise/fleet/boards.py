"""Boards: where ranks publish what all of them are to read. What was published first under a key stands."""

import os
import re
import threading
import time
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Protocol

MOST_BYTES = 1 << 18  # of one publication
_KEY = re.compile(r"[a-z0-9][a-z0-9/-]{0,199}")
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.001, 0.025


class Lost(Exception):
    """The board cannot be reached, now or ever again: whoever kept it is gone or does not answer."""


class Board(Protocol):
    """A place for short texts by key, which all ranks see. Every method returns within `patience_s`, or raises Lost."""

    patience_s: float

    def publish(self, key: str, text: str) -> str:
        """Publish a text unless there is one already; return the one that stands, the same for all who ask."""

    def read(self, key: str) -> str | None:
        """Return the text that stands, or None if nothing was published."""

    def leave_word(self, key: str, text: str) -> None:
        """Have a text published, unless there is one, should a board that was lost ever answer again. Never raises."""

    def close(self) -> None:
        """Let go of it; the last one to do so clears up."""


class FileBoard:
    """A directory that all ranks see, a file a key. It outlives every rank, and nobody can hold it up.

    A file appears whole (it is linked to its name when it is written), once, and is never changed. There is no lock: a
    rank that is stopped at any point leaves nothing that others wait for.
    """

    patience_s = 0.0  # nothing is waited for

    def __init__(self, place: Path) -> None:
        self.place = place
        self._numbers = count()

    def publish(self, key: str, text: str) -> str:
        """Publish a text unless there is one already; return the one that stands."""
        path = self._path(key)
        found = _read(path)
        if found is not None:
            return found
        draft = self.place / f".{os.getpid()}-{threading.get_ident()}-{next(self._numbers)}"
        try:
            write_new(draft, text)
            try:
                os.link(draft, path)
            except FileExistsError:
                pass
            finally:
                draft.unlink()
        except OSError as error:
            raise Lost(f"{self.place}: {error}") from error
        stands = _read(path)
        if stands is None:
            raise Lost(f"{path} is gone")
        return stands

    def read(self, key: str) -> str | None:
        """Return the text that stands, or None if nothing was published."""
        found = _read(self._path(key))
        if found is None and not self.place.is_dir():
            raise Lost(f"{self.place} is gone")
        return found

    def leave_word(self, key: str, text: str) -> None:
        """Do nothing: a directory that is gone does not come back."""

    def close(self) -> None:
        """Leave it as it is."""

    def _path(self, key: str) -> Path:
        assert _KEY.fullmatch(key), key
        return self.place / key.replace("/", ".")


def write_new(path: Path, text: str) -> None:
    """Write a file that does not exist yet, for nobody else's eyes."""
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    with os.fdopen(fd, "w", encoding="utf-8") as stream:
        stream.write(text)


def read_some(path: Path) -> str | None:
    """Return what a file says, or None if there is none; raises OSError where it cannot be read."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
    except FileNotFoundError:
        return None
    with os.fdopen(fd, "rb") as stream:
        return stream.read(MOST_BYTES).decode("utf-8", "replace")


def wait_for(look: Callable[[], str | None], until: float) -> str | None:
    """Return what `look` finds, asked again and again, ever less often; None if it found nothing in time."""
    pause_s = _FIRST_PAUSE_S
    while (found := look()) is None:
        left = until - time.monotonic()
        if left <= 0:
            return None
        time.sleep(min(pause_s, left))
        pause_s = min(1.5 * pause_s, _LONGEST_PAUSE_S)
    return found


def _read(path: Path) -> str | None:
    try:
        return read_some(path)
    except OSError as error:
        raise Lost(f"{path}: {error}") from error
