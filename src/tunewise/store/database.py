"""One SQLite file as one process sees it: read beside whoever writes, written by one at a time, closed around forks."""

import functools
import os
import sqlite3
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from urllib.parse import quote

from tunewise import system
from tunewise.errors import DamagedStore, StoreError
from tunewise.eventlog import logger
from tunewise.store import schema
from tunewise.store.home import prepare, why_remote
from tunewise.store.locks import LockFile, keep_for_ever, lock_file

FILE_NAME = "store.sqlite3"
LOCK_NAME = "store.lock"
CHECKPOINT_BYTES = 4 << 20
# Readers meet SQLite's own locks only where somebody recovers or closes the file, which takes milliseconds.
_READER_BUSY_S, _WRITER_BUSY_S = 1.0, 10.0
_READERS = 4  # connections: who reads much in one thread keeps no other thread waiting
_LONGEST_VALUE = 16 << 20
_FORK_WAIT_S = 5.0
_logger = logger(__name__)
_COPIED_AT_ONCE = 2_000  # pages
# No statement of ours can break a constraint in a file that is sound.
_DAMAGE = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CONSTRAINT})

_CANNOT_WRITE = (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR_WRITE, sqlite3.SQLITE_IOERR_FSYNC)

_File = tuple[int, int]  # device and inode


class _Connection:
    """A connection with the lock that threads take before they use it, and the file that it belongs to."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.db: sqlite3.Connection | None = None
        self.file: _File | None = None
        self.schema = 0  # the number of the file's tables

    def close(self) -> None:
        # No lock between processes is needed: SQLite moves the log on closing only if nobody else has the file open.
        if self.db is not None:
            try:
                self.db.close()
            except sqlite3.Error as error:
                _logger.debug("a connection was not closed: %s", error)
        self.db = None

    def before_fork(self) -> None:
        # A thread in the middle of a long write keeps its connection; the child then leaves that one alone.
        if self.lock.acquire(timeout=_FORK_WAIT_S):
            self.close()

    def after_fork_in_parent(self) -> None:
        with suppress(RuntimeError):  # not ours any more, or the wait above was in vain
            while True:
                self.lock.release()

    def after_fork_in_child(self) -> None:
        self.lock = threading.RLock()
        if self.db is not None:
            keep_for_ever(self.db)  # closing it would undo the parent's locks
        self.db = None


class Database:
    """Connections that all threads of a process share, some to read and one to write, and the promises around them.

    SQLite before 3.51.3 can lose a WAL file's content when a checkpoint meets a writer at the wrong moment, and no
    version likes several processes to create one file. So every write, checkpoint, creation and migration happens
    under one lock between processes. Reading needs none, so nobody who writes can make a reader wait. SQLite also keeps
    a list of open files per process that a forked child would inherit and believe: so connections are closed before a
    fork and opened again after it.
    """

    def __init__(self, path: Path, *, is_read_only: bool = False) -> None:
        self.path = path
        self.is_read_only = is_read_only
        self._log = f"{path}-wal"
        self._is_durable: bool | None = None  # as the connection that writes is set now
        self._only_reads = False  # because the disk or the file's mode allows no more
        self._writer = _Connection()
        self._readers = tuple(_Connection() for _ in range(_READERS))
        self._read_schema = len(schema.MIGRATIONS)
        self._locks: LockFile | None = None
        _live.add(self)
        _watch_forks()

    @property
    def locks(self) -> LockFile:
        """The lock file beside the database; its directory is made if needed, again where cleaners removed it."""
        locks = self._locks
        if locks is None or not self.path.parent.is_dir():
            prepare(self.path.parent)
            self._locks = locks = lock_file(self.path.with_name(LOCK_NAME))
        return locks

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """Lend a connection for queries; every trouble comes out as a StoreError. Without a file nothing is known."""
        with self._translated(), self._free_reader() as reader:
            db = self._opened_for_reading(reader)
            if db is not None and self._read_schema < len(schema.MIGRATIONS) and not self.is_only_read:
                reader.close()
                with self._alone():
                    pass  # that has migrated the file
                db = self._opened_for_reading(reader)
            if db is not None:
                yield db
                return
            self._read_schema = len(schema.MIGRATIONS)
            with _nothing() as db:
                yield db

    @property
    def is_ready(self) -> bool:
        """Whether the file is open and its tables are ours: who reads it then waits for nobody."""
        return any(reader.db is not None for reader in self._readers)

    @contextmanager
    def writing(self, *, is_durable: bool = False) -> Iterator[sqlite3.Connection]:
        """Lend a connection inside a transaction that is committed at the end, or undone if the block raises.

        A commit survives the death of the process; with `is_durable` it survives a power cut too.
        """
        with self._translated(), self._alone() as db:
            self._sync(db, is_durable)
            try:
                db.execute("BEGIN IMMEDIATE")
                yield db
                db.execute("COMMIT")
            finally:
                if db.in_transaction:
                    db.execute("ROLLBACK")
            self._checkpoint(db, CHECKPOINT_BYTES)

    def compact(self) -> None:
        """Give space that pruned rows took back to the disk, as far as it allows."""
        with self._translated(), self._alone() as db:
            with suppress(sqlite3.OperationalError):  # rewriting needs room: without it the file stays as long as it is
                db.execute("VACUUM")
            self._checkpoint(db, 0)

    def copy_to(self, path: Path, tell: Callable[[int, int], None]) -> schema.Held:
        """Write the file as it is at one moment into an empty one; return how many rows that one must have.

        Others go on reading and writing: a transaction that reads keeps its moment. `tell` hears of pages done and all.
        Raises sqlite3.Error if the new file cannot be written.
        """
        failed: sqlite3.Error | None = None
        with self.reading() as db, closing(sqlite3.connect(path, isolation_level=None)) as copy:
            try:
                db.execute("BEGIN")
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
        with self._translated(), self.locks.writer(), self._writer.lock:
            damaged = {connection.file for connection in self._connections} - {None}
            self.close()
            if _identity(self.path) not in damaged:
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
        """Close the connections; the next use opens them again."""
        for connection in self._connections:
            with connection.lock:
                connection.close()
        self._only_reads = False

    @property
    def schema(self) -> int:
        """The number of the tables that are read; ours where there is no file yet."""
        return self._read_schema

    @property
    def written_schema(self) -> int:
        """The number of the tables that are written."""
        return self._writer.schema

    @property
    def _connections(self) -> tuple[_Connection, ...]:
        return self._writer, *self._readers

    def _sync(self, db: sqlite3.Connection, is_durable: bool) -> None:
        if is_durable != self._is_durable:
            db.execute("PRAGMA synchronous = FULL" if is_durable else "PRAGMA synchronous = NORMAL")
            self._is_durable = is_durable

    @contextmanager
    def _alone(self) -> Iterator[sqlite3.Connection]:
        """Lend the connection that writes under the lock between processes."""
        if self.is_read_only:
            raise StoreError(f"{self.path} is open for reading only")
        if self._writer.db is None:
            self._refuse_unless_writable()
        # The lock between processes first: who waits for it has nothing that a fork would have to wait for.
        with self.locks.writer(), self._writer.lock:
            if _identity(self.path) != self._writer.file:
                self._writer.close()  # removed or set aside by somebody else: what we write must go where others look
            db = self._writer.db or self._opened_for_writing()
            number, known = self._writer.schema, len(schema.MIGRATIONS)
            if number > known:
                raise StoreError(
                    f"{self.path} has schema {number}, newer than the {known} this tunewise knows; it is "
                    "read but not written: upgrade tunewise, or set TUNEWISE_HOME to another directory"
                )
            yield db

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

    def _refuse_link(self) -> None:
        if self.path.is_symlink():
            raise StoreError(f"{self.path} is a symbolic link; remove it or set TUNEWISE_HOME to another directory")

    @contextmanager
    def _free_reader(self) -> Iterator[_Connection]:
        """Lend a connection to read with that no other thread uses; the last one if all are in use."""
        reader = None
        try:  # around the taking too: an exception from a signal may come as soon as it is ours
            for reader in self._readers:
                if reader.lock.acquire(blocking=False):
                    break
            else:
                assert reader is not None
                reader.lock.acquire()
            yield reader
        finally:
            with suppress(RuntimeError):  # not taken
                if reader is not None:
                    reader.lock.release()

    def _opened_for_reading(self, reader: _Connection) -> sqlite3.Connection | None:
        """Return a connection to read with, opened if it has to be; None if there are no tables yet.

        Who makes them does so under the lock between processes, which a reader does not wait for.
        """
        if reader.db is None or self._writer.file not in (None, reader.file):
            reader.close()  # the file may have been replaced
            self._open_for_reading(reader)
        if reader.db is not None:
            self._read_schema = reader.schema
        return reader.db

    def _open_for_reading(self, reader: _Connection) -> None:
        if self.is_read_only:
            self._open_read_only(reader)
            return
        prepare(self.path.parent)
        self._refuse_link()
        self._only_reads = self.path.is_file() and not _is_writable(self.path)
        if self._only_reads:
            self._open_read_only(reader)
            return
        if not _size(str(self.path)):
            return
        reader.file = _identity(self.path)
        db = self._connect("mode=rw", _READER_BUSY_S)
        try:
            reader.schema = schema.number(db)
            if reader.schema:
                self._check_tables(db, reader.schema)
                db.execute("PRAGMA query_only = ON")
                reader.db = db
        finally:
            if reader.db is not db:
                db.close()

    def _opened_for_writing(self) -> sqlite3.Connection:
        """Open the file, creating or migrating it; the caller holds the lock between processes."""
        self._refuse_link()
        is_new = not self.path.exists()
        if is_new:
            # Only a file that did not exist may be opened and closed by hand: closing drops SQLite's own locks on it.
            os.close(os.open(self.path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        self._writer.file = _identity(self.path)
        db = self._connect("mode=rw", _WRITER_BUSY_S)
        try:
            schema.number(db)  # before anything is changed: the file may be somebody else's
            db.execute("PRAGMA journal_mode = WAL")
            db.execute("PRAGMA wal_autocheckpoint = 0")
            self._writer.schema = schema.migrate(db, self.path)
            self._check_tables(db, self._writer.schema)
        except BaseException:
            db.close()
            raise
        self._writer.db, self._is_durable = db, None
        if is_new:
            system.sync_directory(self.path.parent)
        return db

    def _open_read_only(self, reader: _Connection) -> None:
        if not self.path.is_file():
            raise StoreError(f"there is no store at {self.path}")
        reader.file = _identity(self.path)
        # A log beside the file must be read too, if its index can be made; a read-only directory cannot have one.
        ways = ["mode=ro", "mode=ro&immutable=1"]
        if why_remote(self.path.parent) is not None:
            del ways[0]
        for way in ways:
            db = self._connect(way, _READER_BUSY_S)
            try:
                reader.schema = schema.number(db)
            except sqlite3.OperationalError:
                db.close()
                if way == ways[-1]:
                    raise
            except BaseException:
                db.close()
                raise
            else:
                db.execute("PRAGMA query_only = ON")
                reader.db = db
                return
        raise AssertionError("the last way returns or raises")

    def _connect(self, way: str, busy_s: float) -> sqlite3.Connection:
        uri = f"file:{quote(str(self.path))}?{way}"
        db = sqlite3.connect(uri, uri=True, timeout=busy_s, isolation_level=None, check_same_thread=False)
        db.text_factory = _lenient
        db.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _LONGEST_VALUE)
        db.execute("PRAGMA trusted_schema = OFF")  # a file from elsewhere must not bring functions to run
        db.execute("PRAGMA cell_size_check = ON")
        return db

    def _check_tables(self, db: sqlite3.Connection, number: int) -> None:
        """Raise DamagedStore unless a file of our schema has the tables that were made in it.

        One damaged byte in what SQLite keeps of a table can make an error of every question that is none of damage.
        """
        if number == len(schema.MIGRATIONS) and not schema.tables() <= schema.tables_of(db):
            raise DamagedStore(self._sentence("what it says of its own tables is damaged", DamagedStore))

    def _checkpoint(self, db: sqlite3.Connection, least_bytes: int) -> None:
        """Move the log into the file once it is long; the caller holds the lock between processes."""
        if _size(self._log) < least_bytes:
            return
        # The commit is done already: readers in the way, or a full disk, are left to the next writer.
        with suppress(sqlite3.OperationalError):
            db.execute("PRAGMA busy_timeout = 200")
            db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        db.execute("PRAGMA busy_timeout = 10000")  # as it was: _WRITER_BUSY_S

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            code = getattr(error, "sqlite_errorcode", 0) & 0xFF
            kind = DamagedStore if code in _DAMAGE else StoreError
            raise kind(self._sentence(str(error), kind)) from error
        except UnicodeDecodeError as error:  # sqlite3 cannot say what is wrong with a table whose name is damaged
            raise DamagedStore(self._sentence("it holds bytes that are no text", DamagedStore)) from error
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
        for connection in self._connections:
            connection.close()


@contextmanager
def _nothing() -> Iterator[sqlite3.Connection]:
    """Lend a connection to an empty store in memory."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as db:
        schema.migrate(db, Path())
        yield db


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


_live: weakref.WeakSet[Database] = weakref.WeakSet()


@functools.cache
def _watch_forks() -> None:
    def everywhere(act: Callable[[_Connection], None]) -> Callable[[], None]:
        def act_on_all() -> None:
            for database in list(_live):
                for connection in database._connections:
                    act(connection)

        return act_on_all

    before, after = everywhere(_Connection.before_fork), everywhere(_Connection.after_fork_in_parent)
    system.at_fork(before=before, after_in_parent=after, after_in_child=everywhere(_Connection.after_fork_in_child))
    # Once more: an exception of a signal handler ends a hook, and Python only prints it.
    system.at_fork(before=before, after_in_parent=after)
