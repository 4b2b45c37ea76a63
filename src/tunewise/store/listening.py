"""Hearing from other processes: a thread that listens to a PostgreSQL server and passes on what is new there."""

import os
import threading
import time
from collections.abc import Callable
from typing import Any

from tunewise import system
from tunewise.errors import StoreError
from tunewise.eventlog import logger
from tunewise.store import postgres_schema as schema
from tunewise.store.connecting import abandon, connect, driver
from tunewise.store.locks import renew_in_children
from tunewise.store.server import storable, stored

Heard = Callable[[str | None], None]  # called with the decision that something was concluded for; None: any of them

_GLANCE_S = 0.5  # how soon a thread that is to stop does
_SILENCE_S = 60.0  # after which the server is asked whether it is still there
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.5, 30.0
_LONGEST_NAME = 1_000
_log = logger(__name__)


class Listener:
    """Tells others what we concluded, and us what others did. Nothing is connected before it is started.

    After every new connection all is passed on as changed, since nobody knows what was missed without one.
    """

    def __init__(self, url: str, heard: Heard | None) -> None:
        self._url, self._heard = url, heard
        self._db: Any = None
        self._begin()
        renew_in_children(self)

    def _begin(self) -> None:
        self._origin = os.urandom(8).hex()
        self._starting = threading.Lock()
        self._stopping: threading.Event | None = None

    def start(self) -> None:
        """Begin to listen, if anybody wants to hear and it has not begun yet."""
        if self._heard is None or self._stopping is not None:
            return
        with self._starting:
            if self._stopping is None:
                self._stopping = threading.Event()
                threading.Thread(target=self._run, args=(self._stopping,), name="tunewise-listen", daemon=True).start()

    def stop(self) -> None:
        """Listen no more; the thread ends soon after."""
        with self._starting:
            if self._stopping is not None:
                self._stopping.set()
            self._stopping = None

    def tell(self, db: Any, name: str = "") -> None:
        """Say inside a transaction that something was concluded, for the decision of this name or for any."""
        text = storable(name)
        fits = text if len(text.encode()) <= _LONGEST_NAME else ""
        db.execute("SELECT pg_notify(%s, %s)", (schema.CHANNEL, f"{self._origin} {fits}"))

    def renew(self) -> None:
        """Begin anew in a forked child, where there is no thread; the next use of the store starts one."""
        abandon(self._db)
        self._db = None
        self._begin()

    def _run(self, stopping: threading.Event) -> None:
        pause_s = _FIRST_PAUSE_S
        while not stopping.wait(0):
            try:
                self._listen(stopping)
                pause_s = _FIRST_PAUSE_S
            except (StoreError, OSError, driver().Error):  # who reads or writes hears of it; here it only takes longer
                stopping.wait(pause_s)
                pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)

    def _listen(self, stopping: threading.Event) -> None:
        db = self._db = connect(self._url)
        try:
            db.add_notify_handler(lambda note: self._hear_one(note.payload))  # of what comes while we ask
            db.execute("LISTEN tunewise")
            self._pass_on(None)
            heard_at = time.monotonic()
            while not stopping.is_set():
                if system.is_readable(db.fileno(), _GLANCE_S):
                    self._hear(db)
                elif time.monotonic() < heard_at + _SILENCE_S:
                    continue
                else:
                    db.execute("SELECT 1")
                heard_at = time.monotonic()
        finally:
            self._db = None
            db.close()

    def _hear(self, db: Any) -> None:
        db.pgconn.consume_input()
        while note := db.pgconn.notifies():
            self._hear_one(note.extra.decode(errors="replace"))

    def _hear_one(self, text: str) -> None:
        origin, _, name = text.partition(" ")
        if origin != self._origin:
            self._pass_on(stored(name) or None)

    def _pass_on(self, name: str | None) -> None:
        try:
            assert self._heard is not None
            self._heard(name)
        except Exception:  # whatever it is must not end the thread that others' news come by
            _log.exception("what another process concluded could not be passed on")

    def __del__(self) -> None:
        if self._stopping is not None:
            self._stopping.set()
