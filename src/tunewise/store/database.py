"""One SQLite file as one process sees it: opened when needed, written by one at a time, closed around every fork."""

import functools
import os
import sqlite3
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from urllib.parse import quote

from tunewise.errors import DamagedStore, StoreError
from tunewise.store import schema
from tunewise.store.home import prepare, why_remote
from tunewise.store.locks import LockFile, keep_for_ever, lock_file

FILE_NAME = "store.sqlite3"
LOCK_NAME = "store.lock"
BUSY_S = 30.0
CHECKPOINT_BYTES = 4 << 20
_LONGEST_VALUE = 16 << 20
_FORK_WAIT_S = 5.0
_COPIED_AT_ONCE = 2_000  # pages
# No statement of ours can break a constraint in a file that is sound.
_DAMAGE = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CONSTRAINT})

_CANNOT_WRITE = (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR_WRITE, sqlite3.SQLITE_IOERR_FSYNC)

_File = tuple[int, int]  # device and inode


class Database:
    """A connection that all threads of a process share, and the promises around it.

    SQLite before 3.51.3 can lose a WAL file's content when a checkpoint meets a writer at the wrong moment, and no
    version likes several processes to create one file. So every write, checkpoint, creation and migration happens
    under one lock between processes; reading needs none. SQLite also keeps a list of open files per process that a
    forked child would inherit and believe: so connections are closed before a fork and opened again after it.
    """

    def __init__(self, path: Path, *, is_read_only: bool = False) -> None:
        self.path = path
        self.is_read_only = is_read_only
        self.schema = 0
        self._log = f"{path}-wal"
        self._is_durable: bool | None = None  # as the connection is set now
        self._only_reads = False  # the connection, because the disk or the file's mode allows no more
        self._threads = threading.RLock()
        self._db: sqlite3.Connection | None = None
        self._file: _File | None = None
        self._locks: LockFile | None = None
        _live.add(self)
        _watch_forks()

    @property
    def locks(self) -> LockFile:
        """The lock file beside the database; its directory is made if needed, again where cleaners removed it."""
        if self._locks is None or not self.path.parent.is_dir():
            prepare(self.path.parent)
            self._locks = lock_file(self.path.with_name(LOCK_NAME))
        return self._locks

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """Lend the connection for queries; every trouble comes out as a StoreError."""
        with self._threads, self._translated():
            if self._db is None:
                self._open_for_reading()
            assert self._db is not None
            yield self._db

    @contextmanager
    def writing(self, *, is_durable: bool = False) -> Iterator[sqlite3.Connection]:
        """Lend the connection inside a transaction that is committed at the end, or undone if the block raises.

        A commit survives the death of the process; with `is_durable` it survives a power cut too.
        """
        with self._threads, self._translated(), self._alone() as db:
            self._sync(db, is_durable)
            db.execute("BEGIN IMMEDIATE")
            try:
                yield db
                db.execute("COMMIT")
            except BaseException:
                if db.in_transaction:
                    db.execute("ROLLBACK")
                raise
            self._checkpoint(CHECKPOINT_BYTES)

    def compact(self) -> None:
        """Give space that pruned rows took back to the disk, as far as it allows."""
        with self._threads, self._translated(), self._alone() as db:
            with suppress(sqlite3.OperationalError):  # rewriting needs room: without it the file stays as long as it is
                db.execute("VACUUM")
            self._checkpoint(0)

    def copy_to(self, path: Path, tell: Callable[[int, int], None]) -> schema.Held:
        """Write the file as it is at one moment into an empty one; return how many rows that one must have.

        Others go on reading and writing: a transaction that reads keeps its moment. `tell` hears of pages done and all.
        Raises sqlite3.Error if the new file cannot be written.
        """
        failed: sqlite3.Error | None = None
        with self.reading() as db, closing(sqlite3.connect(path, isolation_level=None)) as copy:
            db.execute("BEGIN")
            try:
                held = schema.held(db)
                db.backup(copy, pages=_COPIED_AT_ONCE, progress=lambda _, left, all_: tell(all_ - left, all_))
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode not in _CANNOT_WRITE:
                    raise
                failed = error
            finally:
                db.execute("ROLLBACK")
        if failed is not None:  # of the copy, as nothing else is written: no word about this store
            raise failed
        return held

    def set_aside(self) -> Path | None:
        """Rename a damaged file so that a new one can begin; return its new path, or None if another process did."""
        if self.is_read_only:
            raise StoreError(f"{self.path} is damaged, and only read: replace it")
        with self._threads, self._translated(), self.locks.writer():
            damaged = self._file
            self._close()
            if damaged is None or _identity(self.path) != damaged:
                return None
            target = _free_name(self.path)
            # The log goes first: a new database that finds an old log would read it.
            for suffix in ("-wal", "-shm", ""):
                with suppress(FileNotFoundError):
                    os.rename(f"{self.path}{suffix}", f"{target}{suffix}")
            return target

    def size_bytes(self) -> int:
        """Return the size of the file and its log."""
        return _size(str(self.path)) + _size(self._log)

    def close(self) -> None:
        """Close the connection; the next use opens it again."""
        with self._threads:
            self._close()

    def _sync(self, db: sqlite3.Connection, is_durable: bool) -> None:
        if is_durable != self._is_durable:
            db.execute("PRAGMA synchronous = FULL" if is_durable else "PRAGMA synchronous = NORMAL")
            self._is_durable = is_durable

    @contextmanager
    def _alone(self) -> Iterator[sqlite3.Connection]:
        """Lend the connection under the lock between processes."""
        if self.is_read_only:
            raise StoreError(f"{self.path} is open for reading only")
        if self._db is None or self._only_reads:
            self._refuse_unless_writable()
            self._close()
        with self.locks.writer():
            if self._db is not None and _identity(self.path) != self._file:
                self._close()  # removed or set aside by somebody else: what we write must go where others look
            if self._db is None:
                self._open()
            if self.schema > len(schema.MIGRATIONS):
                raise StoreError(
                    f"{self.path} has schema {self.schema}, newer than the {len(schema.MIGRATIONS)} this tunewise "
                    "knows; it is read but not written: upgrade tunewise, or set TUNEWISE_HOME to another directory"
                )
            assert self._db is not None
            yield self._db

    @property
    def is_only_read(self) -> bool:
        """Whether nothing can be written, because that was not asked for or is not allowed."""
        return self.is_read_only or self._only_reads

    def _refuse_unless_writable(self) -> None:
        if self.path.is_file() and not _is_writable(self.path):
            raise StoreError(
                f"the store {self.path} can be read but not written; make it and its directory writable, or set "
                "TUNEWISE_HOME to another directory"
            )

    def _open_for_reading(self) -> None:
        if self.is_read_only:
            self._open_read_only()
        elif self.path.is_file() and not _is_writable(self.path):
            prepare(self.path.parent)
            self._refuse_link()
            self._open_read_only()
            self._only_reads = True
        else:
            with self.locks.writer():
                self._open()

    def _refuse_link(self) -> None:
        if self.path.is_symlink():
            raise StoreError(f"{self.path} is a symbolic link; remove it or set TUNEWISE_HOME to another directory")

    def _open(self) -> None:
        """Open the file, creating or migrating it; the caller holds the lock between processes."""
        self._refuse_link()
        is_new = not self.path.exists()
        if is_new:
            # Only a file that did not exist may be opened and closed by hand: closing drops SQLite's own locks on it.
            os.close(os.open(self.path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600))
        self._file = _identity(self.path)
        db = self._connect(f"file:{quote(str(self.path))}?mode=rw")
        try:
            schema.number(db)  # before anything is changed: the file may be somebody else's
            db.execute("PRAGMA journal_mode = WAL")
            db.execute("PRAGMA wal_autocheckpoint = 0")
            self.schema = schema.migrate(db, self.path)
        except BaseException:
            db.close()
            raise
        self._db, self._is_durable = db, None
        if is_new:
            sync_directory(self.path.parent)

    def _open_read_only(self) -> None:
        if not self.path.is_file():
            raise StoreError(f"there is no store at {self.path}")
        self._file = _identity(self.path)
        # A log beside the file must be read too, if its index can be made; a read-only directory cannot have one.
        ways = ["mode=ro", "mode=ro&immutable=1"]
        if why_remote(self.path.parent) is not None:
            del ways[0]
        for way in ways:
            db = self._connect(f"file:{quote(str(self.path))}?{way}")
            try:
                self.schema = schema.number(db)
            except sqlite3.OperationalError:
                db.close()
                if way == ways[-1]:
                    raise
            except BaseException:
                db.close()
                raise
            else:
                db.execute("PRAGMA query_only = ON")
                self._db = db
                return

    def _connect(self, uri: str) -> sqlite3.Connection:
        db = sqlite3.connect(uri, uri=True, timeout=BUSY_S, isolation_level=None, check_same_thread=False)
        db.text_factory = _lenient
        db.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _LONGEST_VALUE)
        db.execute("PRAGMA trusted_schema = OFF")  # a file from elsewhere must not bring functions to run
        db.execute("PRAGMA cell_size_check = ON")
        return db

    def _checkpoint(self, least_bytes: int) -> None:
        """Move the log into the file once it is long; the caller holds the lock between processes."""
        if _size(self._log) < least_bytes or self._db is None:
            return
        # The commit is done already: readers in the way, or a full disk, are left to the next writer.
        with suppress(sqlite3.OperationalError):
            self._db.execute("PRAGMA busy_timeout = 200")
            self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        self._db.execute("PRAGMA busy_timeout = 30000")

    def _close(self) -> None:
        # No lock between processes is needed: SQLite moves the log on closing only if nobody else has the file open.
        db, self._db, self._only_reads = self._db, None, False
        if db is not None:
            with suppress(sqlite3.Error):
                db.close()

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            code = getattr(error, "sqlite_errorcode", 0) & 0xFF
            kind = DamagedStore if code in _DAMAGE else StoreError
            raise kind(self._sentence(str(error), kind)) from error
        except OSError as error:
            raise StoreError(self._sentence(error.strerror or str(error), StoreError)) from error

    def _sentence(self, said: str, kind: type[StoreError]) -> str:
        # What is damaged is set aside, and who only reads a store has not chosen it by its home.
        is_ours = kind is not DamagedStore and not self.is_read_only
        out = "; correct that, or set TUNEWISE_HOME to another directory" if is_ours else ""
        return f"the store {self.path} cannot be used: {said}{out}"

    def __del__(self) -> None:
        # sqlite3's statement cache refers back to its connection, so without this it would stay open until some
        # later collection of garbage, in the middle of anything.
        self._close()

    def _before_fork(self) -> None:
        # A thread in the middle of a long write keeps its connection; the child then leaves that one alone.
        if self._threads.acquire(timeout=_FORK_WAIT_S):
            self._close()

    def _after_fork_in_parent(self) -> None:
        with suppress(RuntimeError):  # not ours: the wait above was in vain
            self._threads.release()

    def _after_fork_in_child(self) -> None:
        self._threads = threading.RLock()
        if self._db is not None:
            keep_for_ever(self._db)  # closing it would undo the parent's locks
        self._db, self._only_reads = None, False


def _is_writable(path: Path) -> bool:
    """Return whether SQLite may change a file: it needs room for a log beside it."""
    return os.access(path, os.W_OK) and os.access(path.parent, os.W_OK)


def _lenient(raw: bytes) -> str:
    return raw.decode(errors="replace")  # damage shows when the row is checked, not as an exception here


def _identity(path: Path) -> _File | None:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _size(path: str) -> int:
    try:
        return os.stat(path).st_size
    except OSError:
        return 0


def _free_name(path: Path) -> Path:
    place = 1
    while (target := path.with_name(f"{path.name}.damaged-{place}")).exists():
        place += 1
    return target


def sync_directory(directory: Path) -> None:
    """Return once the names in a directory are on the disk."""
    fd = os.open(directory, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


_live: weakref.WeakSet[Database] = weakref.WeakSet()


@functools.cache
def _watch_forks() -> None:
    def everywhere(act: Callable[[Database], None]) -> Callable[[], None]:
        def act_on_all() -> None:
            for database in list(_live):
                act(database)

        return act_on_all

    os.register_at_fork(
        before=everywhere(Database._before_fork),
        after_in_parent=everywhere(Database._after_fork_in_parent),
        after_in_child=everywhere(Database._after_fork_in_child),
    )
