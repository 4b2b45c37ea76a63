"""One PostgreSQL server as one process sees it: connected when needed, again after a loss, never across a fork."""

import functools
import re
import threading
import time
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, TypeVar

from tunewise.errors import StoreError, TunewiseError
from tunewise.settings import shown
from tunewise.store import postgres_schema as schema
from tunewise.store.connecting import abandon, connect, driver, said
from tunewise.store.keeping import KEEP_S, Holding, is_standing
from tunewise.store.locks import Turns, poll, renew_in_children

_T = TypeVar("_T")
_TRIES = 3
_LONGEST_PAUSE_S = 0.25
_COMMIT_WAIT_S = 5.0
_BEGIN = "BEGIN; SELECT pg_current_xact_id()::text"

Proof = Callable[[Any, str], bool]  # of a connection and the number of a transaction


def _trust(db: Any, transaction: str) -> bool:
    return True


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
        self._holding = Holding()
        self._is_kept = False

    def read(self, work: Callable[[Any], _T]) -> _T:
        """Return what `work(connection)` finds; every trouble comes out as a StoreError."""
        with self._threads, self._translated():
            return self._lasting(work)

    def write(self, work: Callable[[Any], _T], token: Hashable, proof: Proof = _trust) -> _T:
        """Return what `work(connection)` gives, once its transaction is on the server's disk.

        `token` says what is written: trying again after a StoreError does nothing if it was written after all. Numbers
        of transactions that a crash took are given out again, so `proof` has to find in the tables what was written.
        """
        if self.is_read_only:
            raise StoreError(f"{self.place} is open for reading only")
        with self._threads, self._translated():
            return self._lasting(lambda db: self._transaction(db, work, token, proof))

    def acquire(self, byte: int, wait_s: float | None) -> bool:
        """Return True once an advisory lock is ours; waits by asking again, so that others can use the connection."""
        return poll(lambda: self._turns.take_by(byte, lambda: self._locked(byte)), wait_s, _LONGEST_PAUSE_S)

    def release(self, byte: int) -> None:
        """Give an advisory lock back; if the connection is gone, so is the lock."""
        with self._threads:
            try:
                if self._holding.give(byte) and self._is_connected():
                    self._db.execute("SELECT pg_advisory_unlock(%s)", (byte,))
            except (driver().Error, StoreError):
                self._drop()
        self._turns.give(byte)

    @property
    def is_silent(self) -> bool:
        """Whether a statement runs that the server has not answered so far."""
        db = self._db
        return db is not None and bool(db.is_silent)

    def holder(self, byte: int) -> None:
        """Return None: whoever has a lock may be on another machine."""

    def name(self) -> str:
        """Return where the server is and which database it is, without anything about the user."""
        return self.read(lambda db: _name(db.info))

    def close(self) -> None:
        """Close the connection unless a lock is held on it; the next use opens it again."""
        with self._threads:
            if not self._holding.held:
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

    def _transaction(self, db: Any, work: Callable[[Any], _T], token: Hashable, proof: Proof) -> _T:
        if self.schema != len(schema.MIGRATIONS):
            self._drop()  # somebody may change that: look again
            raise StoreError(f"{self.place} {schema.why_not_written(self.schema)}")
        if token in self._unsure and self._has_happened(db, token) and proof(db, self._unsure[token][0]):
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
            try:
                (status,) = db.execute("SELECT pg_xact_status(%s::xid8)", asked).fetchone()
            except driver().errors.InvalidParameterValue:  # another server took over, which never heard of it
                return False
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
            is_ours = self.read(lambda db: self._holding.take(db, byte))
            if is_ours and not self._is_kept:
                self._is_kept = True
                threading.Thread(target=self._keep, name="tunewise-keep", daemon=True).start()
            return is_ours

    def _keep(self) -> None:
        """Take again what is held whenever its connection was lost, until nothing is held any more."""
        while self._is_kept:
            time.sleep(KEEP_S)
            with self._threads:
                self._is_kept = bool(self._holding.held)
                if self._is_kept:
                    self._look_after()

    def _look_after(self) -> None:
        if self._is_connected() and not is_standing(self._db):
            self._drop()
        with suppress(StoreError):  # who reads or writes hears of it
            self.read(self._holding.regain)

    def _is_connected(self) -> bool:
        return self._db is not None and not self._db.closed

    def _connected(self) -> Any:
        if not self._is_connected():
            self._drop()
            self._db = self._opened()
            self._holding.moved(self._db)
        return self._db

    def _opened(self) -> Any:
        db = connect(self.url)
        try:
            self.schema = schema.number(db) if self.is_read_only else self._migrated(db)
            if not self.schema:
                raise StoreError(f"there is no store at {self.place}; it is begun by whoever writes to it first")
        except BaseException:
            db.close()
            raise
        return db

    def _migrated(self, db: Any) -> int:
        try:
            return schema.migrate(db)
        except driver().errors.InsufficientPrivilege:
            found = schema.number(db)  # older than ours: it can be read
            if found:
                return found
            how = "GRANT CREATE ON DATABASE to it, or let a role that may write first"
            raise StoreError(f"there is no store at {self.place}, and this role may not begin one: {how}") from None

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


def storable(name: str) -> str:
    """Return a name as a text that PostgreSQL can hold: without a zero byte."""
    return name.replace("\\", "\\\\").replace("\0", "\\0")


def stored(text: str) -> str:
    """Return the name that `storable` made a text of."""
    return re.sub(r"\\([\\0])", lambda found: "\0" if found[1] == "0" else "\\", text)


@functools.cache
def _passing() -> tuple[type[Exception], ...]:
    """Return the errors that go away when a transaction is tried again: others were in the way."""
    errors = driver().errors
    return errors.DeadlockDetected, errors.SerializationFailure


def _name(info: Any) -> str:
    if info.host.startswith("/"):
        return f"postgresql:///{info.dbname} on {info.host}:{info.port}"
    return f"postgresql://{info.host}:{info.port}/{info.dbname}"
