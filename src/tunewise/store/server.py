"""One PostgreSQL server as one process sees it: connected when needed, again after a loss, never across a fork."""

import functools
import importlib
import os
import re
import threading
import time
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, TypeVar

from tunewise.errors import StoreError, TunewiseError
from tunewise.settings import shown
from tunewise.store import postgres_schema as schema
from tunewise.store.locks import Turns, keep_for_ever, renew_in_children

_T = TypeVar("_T")
_TRIES = 3
_LONGEST_PAUSE_S = 0.25
_COMMIT_WAIT_S = 5.0
# Unless the user's address says otherwise. A server that is gone must cost a program seconds, never a hang.
_USUAL: dict[str, object] = {
    "connect_timeout": 5,
    "keepalives_idle": 30,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 30_000,
    "client_encoding": "utf8",
    "fallback_application_name": "tunewise",
}
_SESSION = """
    SET lock_timeout = '30s'; SET idle_in_transaction_session_timeout = '60s';
    SET default_transaction_isolation = 'read committed'
"""
_BEGIN = "BEGIN; SELECT pg_current_xact_id()::text"


class Server:
    """A connection that all threads of a process share, and the promises around it.

    What was begun when the connection broke is done again on a new one, and exactly once: whether a transaction whose
    commit was not answered took place is asked of the server. Advisory locks end with the connection they were taken
    on, so those that are held are taken again after a loss.
    """

    def __init__(self, url: str, *, is_read_only: bool = False) -> None:
        self.url, self.place, self.is_read_only = url, shown(url), is_read_only
        self.schema = 0
        self._db: Any = None
        self._unsure: dict[Hashable, tuple[str, Any]] = {}  # commits that were not answered
        self._begin()
        renew_in_children(self)

    def _begin(self) -> None:
        self._threads = threading.RLock()
        self._turns = Turns()
        self._granted: set[int] = set()

    def read(self, work: Callable[[Any], _T]) -> _T:
        """Return what `work(connection)` finds; every trouble comes out as a StoreError."""
        with self._threads, self._translated():
            return self._lasting(work)

    def write(self, work: Callable[[Any], _T], token: Hashable) -> _T:
        """Return what `work(connection)` gives, once its transaction is on the server's disk.

        `token` says what is written: trying again after a StoreError does nothing if it was written after all.
        """
        if self.is_read_only:
            raise StoreError(f"{self.place} is open for reading only")
        with self._threads, self._translated():
            return self._lasting(lambda db: self._transaction(db, work, token))

    def acquire(self, byte: int, wait_s: float | None) -> bool:
        """Return True once an advisory lock is ours; waits by asking again, so that others can use the connection."""
        return self._turns.take_by(byte, lambda: self._locked(byte), wait_s, _LONGEST_PAUSE_S)

    def release(self, byte: int) -> None:
        """Give an advisory lock back; if the connection is gone, so is the lock."""
        with self._threads:
            self._granted.discard(byte)
            try:
                if self._is_connected():
                    self._db.execute("SELECT pg_advisory_unlock(%s)", (byte,))
            except driver().Error:
                self._drop()
        self._turns.give(byte)

    def name(self) -> str:
        """Return where the server is and which database it is, without anything about the user."""
        return self.read(lambda db: _name(db.info))

    def close(self) -> None:
        """Close the connection unless a lock is held on it; the next use opens it again."""
        with self._threads:
            if not self._granted:
                self._drop()

    def renew(self) -> None:
        """Begin anew in a forked child: it has none of its parent's locks, and a connection of its own."""
        abandon(self._db)
        self._db = None
        self._begin()

    def _lasting(self, work: Callable[[Any], _T]) -> _T:
        """Return what `work` gives, tried again where the connection was lost or others were in the way."""
        for left in reversed(range(_TRIES)):
            db = self._connected()
            try:
                return work(db)
            except driver().Error as error:
                is_lost = bool(db.closed)
                if not left or not (is_lost or isinstance(error, _passing())):
                    raise
        raise AssertionError("the last try returns or raises")

    def _transaction(self, db: Any, work: Callable[[Any], _T], token: Hashable) -> _T:
        if self.schema > len(schema.MIGRATIONS):
            raise StoreError(
                f"{self.place} has schema {self.schema}, newer than the {len(schema.MIGRATIONS)} this tunewise knows; "
                "it is read but not written: upgrade tunewise"
            )
        if token in self._unsure and self._has_happened(db, token):
            done: _T = self._unsure.pop(token)[1]
            return done
        self._unsure.pop(token, None)
        try:
            begun = db.execute(_BEGIN)
            begun.nextset()
            transaction = begun.fetchone()[0]
            result = work(db)
        except BaseException:
            self._undo(db)
            raise
        self._unsure[token] = transaction, result
        db.execute("COMMIT")
        del self._unsure[token]
        return result

    def _has_happened(self, db: Any, token: Hashable) -> bool:
        """Return whether a transaction whose commit was not answered took place."""
        deadline = time.monotonic() + _COMMIT_WAIT_S
        while True:
            asked = (self._unsure[token][0],)
            (status,) = db.execute("SELECT pg_xact_status(%s::xid8)", asked).fetchone()
            if status != "in progress":
                return bool(status == "committed")
            if time.monotonic() > deadline:
                raise StoreError(f"the store {self.place} is still busy with what was written last; try again")
            time.sleep(_LONGEST_PAUSE_S)

    def _undo(self, db: Any) -> None:
        try:
            db.rollback()
        except driver().Error:
            self._drop()

    def _locked(self, byte: int) -> bool:
        with self._threads:
            is_ours = bool(self.read(lambda db: db.execute("SELECT pg_try_advisory_lock(%s)", (byte,)).fetchone()[0]))
            if is_ours:
                self._granted.add(byte)
            return is_ours

    def _is_connected(self) -> bool:
        return self._db is not None and not self._db.closed

    def _connected(self) -> Any:
        if not self._is_connected():
            self._drop()
            self._db = self._opened()
            for byte in self._granted:  # whoever was quicker keeps it: nobody is thrown out
                self._db.execute("SELECT pg_try_advisory_lock(%s)", (byte,))
        return self._db

    def _opened(self) -> Any:
        db = connect(self.url)
        try:
            self.schema = schema.number(db) if self.is_read_only else schema.migrate(db)
            if not self.schema:
                raise StoreError(f"there is no store at {self.place}; it is begun by whoever writes to it first")
        except BaseException:
            db.close()
            raise
        return db

    def _drop(self) -> None:
        db, self._db = self._db, None
        if db is not None:
            with suppress(driver().Error):
                db.close()

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except TunewiseError:
            raise
        except driver().Error as error:  # without its cause: what the server says may name the user
            raise StoreError(f"the store {self.place} cannot be used: {said(error, self.url)}") from None

    def __del__(self) -> None:
        self._drop()


def connect(url: str) -> Any:
    """Return a new connection; raises StoreError with the place and the reason, never with user or password."""
    psycopg, place = driver(), shown(url)
    try:
        given = psycopg.conninfo.conninfo_to_dict(url)
    except psycopg.Error:
        form = "write postgresql://host/database, or postgresql:///?service=NAME"
        raise StoreError(f"{place} is not an address of a PostgreSQL database; {form}") from None
    usual = {name: value for name, value in _USUAL.items() if name not in given}
    try:
        db = psycopg.connect(url, autocommit=True, **usual)
    except psycopg.Error as error:
        raise StoreError(f"the store {place} cannot be reached: {said(error, url)}") from None
    try:
        _check(db, place)
        db.execute(_SESSION)
    except BaseException:
        db.close()
        raise
    return db


def storable(name: str) -> str:
    """Return a name as a text that PostgreSQL can hold: without a zero byte."""
    return name.replace("\\", "\\\\").replace("\0", "\\0")


def stored(text: str) -> str:
    """Return the name that `storable` made a text of."""
    return re.sub(r"\\([\\0])", lambda found: "\0" if found[1] == "0" else "\\", text)


def abandon(inherited: Any) -> None:
    """Let go of a parent's connection in a forked child, without a word to the server."""
    # To close it would end the parent's session; to keep its socket would keep the parent's locks after its death.
    if inherited is not None and not inherited.closed:
        keep_for_ever(inherited)
        with suppress(OSError):
            os.close(inherited.fileno())


def said(error: Exception, url: str) -> str:
    """Return what the server or libpq said in one line, without the user's name and password."""
    primary = getattr(getattr(error, "diag", None), "message_primary", None)
    line = (primary or str(error).strip() or type(error).__name__).splitlines()[0]
    line = re.sub(r'\b(user|role) "(?:[^"]|"")*"', r"\1", line)
    password = driver().conninfo.conninfo_to_dict(url).get("password")
    return line.replace(str(password), "...") if password else line


@functools.cache
def driver() -> Any:
    """Return psycopg; raises StoreError if it is not installed, so that a program goes on without it."""
    try:
        return importlib.import_module("psycopg")
    except ImportError as error:
        raise StoreError(f"PostgreSQL needs psycopg ({error}): pip install 'tunewise[postgres]'") from None


@functools.cache
def _passing() -> tuple[type[Exception], ...]:
    """Return the errors that go away when a transaction is tried again: others were in the way."""
    errors = driver().errors
    return errors.DeadlockDetected, errors.SerializationFailure


def _check(db: Any, place: str) -> None:
    if db.info.server_version < schema.OLDEST_SERVER:
        raise StoreError(f"{place} is a PostgreSQL server older than 13; upgrade it")
    encoding = db.info.parameter_status("server_encoding")
    if encoding != "UTF8":
        raise StoreError(
            f"{place} is a database in {encoding}; make one with: createdb --encoding UTF8 --template template0"
        )


def _name(info: Any) -> str:
    if info.host.startswith("/"):
        return f"postgresql:///{info.dbname} on {info.host}:{info.port}"
    return f"postgresql://{info.host}:{info.port}/{info.dbname}"
