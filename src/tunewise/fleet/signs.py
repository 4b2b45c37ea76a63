"""Signs of a fleet: what the plan and each of its devices are at, shown to whoever watches, never waited for."""

import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from tunewise import settings
from tunewise.errors import InvalidData
from tunewise.store import Sign, Store

_PAUSE_S = 1.0  # between two looks at what has changed
_LONGEST_S = 4.0  # between two signs of something that has not
STALE_S = 15.0  # without a sign for so long, whoever was busy is gone or stuck


class Signs:
    """Keeps what was said last and shows it to a store, from a thread of its own: a store may keep us waiting."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._lock = threading.Lock()
        self._said: dict[tuple[str, str], Mapping[str, Any]] = {}
        self._shown: dict[tuple[str, str], tuple[float, Mapping[str, Any]]] = {}
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._go, daemon=True)
        self._thread.start()

    def say(self, kind: str, key: str, body: Mapping[str, Any]) -> None:
        """Let this be the latest of a kind and key; it is shown within about a second, and again while it holds."""
        with self._lock:
            self._said[kind, key] = body

    def forget(self, kind: str, key: str, body: Mapping[str, Any]) -> None:
        """Show this as the last of a kind and key."""
        with self._lock:
            self._said.pop((kind, key), None)
        self._show(kind, key, body)

    def close(self) -> None:
        """Show what was said last, and no more."""
        self._is_over.set()
        self._thread.join(_LONGEST_S)
        self._flush(is_last=True)

    def _go(self) -> None:
        while not self._is_over.wait(_PAUSE_S):
            self._flush()

    def _flush(self, *, is_last: bool = False) -> None:
        with self._lock:
            said = dict(self._said)
        for (kind, key), body in said.items():
            shown_at, shown = self._shown.get((kind, key), (0.0, {}))
            is_due = time.time() - shown_at > _LONGEST_S and not is_last
            if body != shown or is_due:
                self._show(kind, key, body)
                self._shown[kind, key] = time.time(), body

    def _show(self, kind: str, key: str, body: Mapping[str, Any]) -> None:
        if settings.current().signs:
            with suppress(InvalidData):  # a name that is too long costs the sign
                self._store.show(Sign(kind, key, time.time(), body))
