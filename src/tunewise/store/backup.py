"""Backups: everything a store holds at one moment in one file, checked before it counts, and the way back."""

import os
import sqlite3
import time
import uuid
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from tunewise import system
from tunewise.errors import InvalidFile, NotFound, StoreError
from tunewise.settings import Place, parse_place
from tunewise.store import schema
from tunewise.store.database import FILE_NAME
from tunewise.store.exchange import Imported, Progress, migrate, silent
from tunewise.store.opening import store_at

SUFFIX = ".sqlite3"  # what a store's file ends in: a backup can be read as one where it lies
_LEFTOVER_S = 86_400.0


@dataclass(frozen=True, slots=True)
class Backup:
    """A copy of a whole store, and what is in it."""

    file: str
    trials: int
    verdicts: int
    misses: int
    size_bytes: int


def backup(place: Place, file: Path, *, force: bool = False, progress: Progress = silent) -> Backup:
    """Copy everything that the store at a place holds at one moment into one SQLite file, and return what that has.

    Others go on reading and writing. The file appears whole, checked and readable by its owner alone, or not at all;
    an older one is replaced with `force` only. `progress` is told how much is done and how much there is, in pages of
    a file or rows of a server. Raises StoreError if the store cannot be read, InvalidFile if the file cannot be made.
    """
    file = Path(file).absolute()
    place = parse_place(place)
    beside = file.with_name(f".{file.name}.{uuid.uuid4().hex}.part")
    try:
        why_not = _why_not(file, place, force)
        if why_not is not None:
            raise InvalidFile(why_not)
        _sweep(file)
        os.close(os.open(beside, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        return _made(place, beside, file, progress)
    except (OSError, sqlite3.Error) as error:
        said = getattr(error, "strerror", None) or str(error)
        raise InvalidFile(f"{file} cannot be written: {said}; choose another place for it") from error
    finally:
        for suffix in ("", "-journal", "-wal", "-shm"):
            with suppress(OSError):
                os.unlink(f"{beside}{suffix}")


def restore(file: Path, place: Place, *, dry_run: bool = False, progress: Progress = silent) -> Imported:
    """Add what a backup holds and the store at a place does not; with `dry_run` only count it.

    Nothing is removed or written twice, so a restore that was broken off goes on when it is made again. Raises NotFound
    if there is no such file, InvalidFile if it is none of ours or damaged, StoreError if the store cannot be used.
    """
    file = Path(file).absolute()
    if not os.path.isfile(file):  # False too for a name that cannot be one
        raise NotFound(f"there is no file {file}; write one with: tunewise store backup FILE")
    if file.suffix != SUFFIX:
        raise InvalidFile(f"{file.name} does not end in {SUFFIX}, as a backup does")
    _check(file)
    return migrate(file, place, progress, dry_run=dry_run)


def _why_not(file: Path, place: Place, force: bool) -> str | None:
    if file.suffix != SUFFIX:
        return f"{file.name} does not end in {SUFFIX}; name it so, and it can be read as a store where it lies"
    if not file.parent.is_dir():
        return f"there is no directory {file.parent}; make it, or choose another place for the backup"
    if file.is_dir() or file.is_symlink():
        return f"{file} is a {'directory' if file.is_dir() else 'symbolic link'}; choose another place for the backup"
    if isinstance(place, Path) and os.path.realpath(file) in map(os.path.realpath, (place, place / FILE_NAME)):
        return f"{file} is the store itself; choose another place for the backup"
    if file.exists() and not force:
        return f"{file} exists already; choose another name, or replace it with --force"
    if any(file.with_name(f"{file.name}-{log}").exists() for log in ("wal", "journal")):
        return f"{file} is in use as a store, or was when its program died; choose another place for the backup"
    return None


def _made(place: Place, beside: Path, file: Path, progress: Progress) -> Backup:
    store = store_at(place, is_shared=True)
    try:
        expected = store.copy_to(beside, progress)
    finally:
        store.close()
    _tidy(beside)
    found = _check(beside)
    if found != expected:
        raise StoreError(f"the copy holds {tuple(found)} rows and not {tuple(expected)}; nothing was kept: try again")
    size = _on_disk(beside)
    os.replace(beside, file)
    system.sync_directory(file.parent)
    return Backup(str(file), found.trials, found.verdicts, found.misses, size)


def _tidy(copy: Path) -> None:
    """Leave facts alone, in one file: signs of life are of processes that will be gone, and a log is a second file."""
    with _translated(copy), closing(sqlite3.connect(copy, isolation_level=None)) as db:
        db.execute("PRAGMA journal_mode = DELETE")
        if schema.number(db) >= schema.WITH_SIGNS:
            db.execute("DELETE FROM signs")


def _check(file: Path) -> schema.Held:
    """Return how many rows a backup has; raises InvalidFile if it is none, or damaged."""
    with _translated(file), closing(sqlite3.connect(f"{file.as_uri()}?mode=ro", uri=True)) as db:
        try:
            is_ours = schema.number(db) > 0
        except StoreError:
            is_ours = False
        if not is_ours:
            raise InvalidFile(f"{file} is no backup of a store; write one with: tunewise store backup FILE")
        (told,) = db.execute("PRAGMA integrity_check(1)").fetchone()
        if told != "ok":
            raise InvalidFile(f"{file} is damaged ({told}); use another backup")
        return schema.held(db)


def _on_disk(file: Path) -> int:
    """Return the size of a file once it is on the disk."""
    fd = os.open(file, os.O_RDWR)  # Windows syncs nothing that cannot be written through
    try:
        os.fsync(fd)
        return os.fstat(fd).st_size
    finally:
        os.close(fd)


def _sweep(file: Path) -> None:
    """Remove what backups to the same file left behind that were killed a day ago or more."""
    for leftover in file.parent.iterdir():
        if leftover.name.startswith(f".{file.name}.") and ".part" in leftover.name:
            with suppress(OSError):
                if leftover.stat().st_mtime < time.time() - _LEFTOVER_S:
                    leftover.unlink()


@contextmanager
def _translated(file: Path) -> Iterator[None]:
    try:
        yield
    except sqlite3.Error as error:
        raise InvalidFile(f"{file} cannot be read as a backup: {error}; use another one") from error
