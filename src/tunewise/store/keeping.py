"""The advisory locks one process holds on a PostgreSQL server: taken again when their connection was lost."""

import time
from typing import Any

from tunewise import system
from tunewise.store.connecting import driver

KEEP_S = 1.0  # between two looks at whether the connection still stands
PATIENCE_S = 5.0  # after a loss, those who held a lock may take it again before those who waited for it


_SESSION = "SELECT pid, backend_start FROM pg_stat_activity WHERE pid = pg_backend_pid()"
_END = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid = %s AND backend_start = %s"


class Holding:
    """What is held, and what others hold. Every method is called by one thread at a time."""

    def __init__(self) -> None:
        self.held: set[int] = set()
        self._here: set[int] = set()  # of those, the ones that are locked on the connection of now
        self._elsewhere: set[int] = set()  # what others had when they were asked for last
        self._session: tuple[Any, ...] | None = None  # the one that locks were taken in
        self._connections = 0
        self._patient_until = 0.0

    def take(self, db: Any, lock: int) -> bool:
        """Return whether a lock is ours now; after a loss its last holder, who may be at work, has the first right."""
        if lock in self._elsewhere and time.monotonic() < self._patient_until:
            return False
        if not _is_locked(db, lock):
            self._elsewhere.add(lock)
            return False
        self._elsewhere.discard(lock)
        self.held.add(lock)
        self._here.add(lock)
        self._session = self._session or db.execute(_SESSION).fetchone()
        return True

    def give(self, lock: int) -> bool:
        """Hold a lock no more; return whether the connection of now has it and should hear of that."""
        is_here = lock in self._here
        self.held.discard(lock)
        self._here.discard(lock)
        return is_here

    def moved(self, db: Any) -> None:
        """Take on a new connection what was locked on the one before."""
        last, self._session = self._session, None
        self._here.clear()
        self._connections += 1
        if self._connections > 1:
            self._patient_until = time.monotonic() + PATIENCE_S
        if self.held and last is not None:  # where only we saw the connection end, the server still has us there
            db.execute(_END, last)
        self.regain(db)

    def regain(self, db: Any) -> None:
        """Take what is held and not locked here; whoever was quicker keeps it: nobody is thrown out."""
        # Asked again and again: it may be our own last session that still has it, until the server misses us.
        for lock in self.held - self._here:
            if _is_locked(db, lock):
                self._here.add(lock)
        if self._here and self._session is None:
            self._session = db.execute(_SESSION).fetchone()


def is_standing(db: Any) -> bool:
    """Return whether an idle connection still stands, without a word to the server."""
    while system.is_readable(
        db.fileno(), 0.0
    ):  # what a server says unasked is a notice, or that it ends; the end itself raises
        try:
            db.pgconn.consume_input()
        except driver().Error:
            return False
    return True


def _is_locked(db: Any, lock: int) -> bool:
    return bool(db.execute("SELECT pg_try_advisory_lock(%s)", (lock,)).fetchone()[0])
