"""The board of ranks on several machines: the key-value store that torch.distributed brought them together with."""

import queue
import socket
import threading
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from tunewise.fleet.boards import MOST_BYTES, Lost

_PREFIX = "tunewise"  # before every key: nothing of ours meets the program's own


class TorchBoard:
    """Texts in a torch.distributed store.

    A store on another machine may never answer: a call waits for ever if the process that hosts it is stopped. So a
    thread makes the calls, and nobody waits for it longer than `patience_s`. A store that was late is lost until it has
    heard what was decided without it; one that failed is lost for good.
    """

    def __init__(self, store: Any, patience_s: float) -> None:
        self.patience_s = patience_s
        self._turn = threading.Lock()
        self._calls: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._lost = self._late = ""
        threading.Thread(target=self._serve, name="tunewise-ranks", daemon=True).start()
        # A connection of our own: the program's may be in use, by a call that waits for long.
        self._store = self._bounded(lambda: _own(store, patience_s))

    def publish(self, key: str, text: str) -> str:
        """Publish a text unless there is one already; return the one that stands."""
        return self._text(self._bounded(lambda: self._store.compare_set(key, "", text)))

    def read(self, key: str) -> str | None:
        """Return the text that stands, or None if nothing was published."""
        found = self._bounded(lambda: self._store.get(key) if self._store.check([key]) else None)
        return None if found is None else self._text(found)

    def leave_word(self, key: str, text: str) -> None:
        """Have a text published, unless there is one, should the store ever answer again; nobody waits for that."""
        self._calls.put(lambda: self._tell(key, text))

    def close(self) -> None:
        """Close our connection."""
        self._lost = self._lost or "closed"
        self._calls.put(None)

    def _text(self, raw: bytes) -> str:
        return raw[:MOST_BYTES].decode("utf-8", "replace")

    def _serve(self) -> None:
        while (call := self._calls.get()) is not None:
            call()

    def _bounded(self, call: Callable[[], Any]) -> Any:
        """Return what a call gives; raises Lost if it fails or takes too long, or one before it did."""
        done, result = threading.Event(), []

        def run() -> None:
            result.append(self._said(call))
            done.set()

        with self._turn:
            if not (self._lost or self._late):
                self._calls.put(run)
                if not done.wait(self.patience_s):
                    self._late = f"no answer within {self.patience_s:g} s"
            lost = self._lost or self._late
        if lost:
            raise Lost(lost)
        return result[0]

    def _tell(self, key: str, text: str) -> None:
        self._said(lambda: self._store.compare_set(key, "", text))
        if self._calls.empty():  # all that was decided without it
            self._late = ""

    def _said(self, call: Callable[[], Any]) -> Any:
        try:
            return call()
        except Exception as error:  # whatever a store of the program's raises: none of it is ours
            self._lost = f"{type(error).__name__}: {error}"[:300]
            return None


def _own(store: Any, patience_s: float) -> Any:
    from torch.distributed import PrefixStore, TCPStore

    host = innermost(store)
    if isinstance(host, TCPStore):  # a clone of a FileStore would count as a worker that has left
        # A store that is gone refuses this at once; to make a clone of it is tried again and again.
        socket.create_connection((host.host, host.port), timeout=patience_s).close()
        store = store.clone()
        store.set_timeout(timedelta(seconds=patience_s))
    return PrefixStore(_PREFIX, store)


def innermost(store: Any) -> Any:
    """Return the store behind all prefixes."""
    while hasattr(store, "underlying_store"):
        store = store.underlying_store
    return store
