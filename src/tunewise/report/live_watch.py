"""Watching a store: what changes is read every tick, what is costly to count now and then, each in a thread."""

import threading
import time
from collections.abc import Callable
from dataclasses import replace

from tunewise.errors import StoreError
from tunewise.report.live_board import Board
from tunewise.report.live_state import DAY_S, Ledger, Snapshot, count, told
from tunewise.report.live_wins import Concluded
from tunewise.settings import Settings
from tunewise.store import LayeredStore, SafeStore, Store, store_at

TICK_S = 1.0
_OVERLAP_S = 15.0  # signs are read again so far back: clocks of machines differ, and writers wait for each other
_ALL_S = 60.0  # after so long all signs are read, for clocks that differ by more
_REST = 20.0  # counting rests for so many times as long as it took, so it takes a twentieth of a core at most
_SOON_S, _LATE_S = 5.0, 60.0  # and at least so long: after a run has ended, and where nothing is known to have changed


class Watch:
    """What a store tells, read with as little as possible; one thread may ask at a time.

    Signs that were read are kept, so a tick reads only the latest ones. What is costly to count is in `ledger`, which
    another thread may replace at any moment.
    """

    def __init__(self, store: Store) -> None:
        self.ledger = Ledger()
        self.ended = 0  # runs that are known to have ended
        self._store = store
        self._board = Board()
        self._latest = self._all_at = 0.0
        self._read_s = 0.0
        self._trouble: str | None = None

    def snapshot(self, now: float) -> Snapshot:
        """Return what is going on; while the store cannot be read, what was known before, and the trouble."""
        start = time.perf_counter()
        try:
            self._read(now)
            self._trouble = None
        except StoreError as error:
            self._trouble = str(error)
        self._read_s = time.perf_counter() - start
        seen = told(self._board, self.ledger, now, read_s=self._read_s, trouble=self._trouble)
        self.ended = seen.finished.total
        return seen

    def _read(self, now: float) -> None:
        is_all = now - self._all_at >= _ALL_S
        if is_all:
            self._store.close()  # opened anew: somebody may have put another file in the place of this one
        found = self._store.signs(since=now - DAY_S if is_all else self._latest - _OVERLAP_S)
        if is_all:
            self._board.keep(found)
            self._all_at = now
        else:
            self._board.put(found)
        # A clock that is ahead must not hide the others.
        self._latest = max((sign.at for sign in found if sign.at <= now), default=self._latest)


class Gathering:
    """Two threads that look after a store while anybody wants to know, and tell what they see."""

    def __init__(self, store: Store, counted: Store, tell: Callable[[Snapshot], None]) -> None:
        self._watch, self._counted, self._tell = Watch(store), counted, tell
        self._wanted, self._ended = threading.Event(), threading.Event()

    def start(self) -> None:
        """Begin; nothing is read before somebody wants to know."""
        # Daemons: a store that does not answer must not hold the end of the program.
        for work in (self._look, self._count):
            threading.Thread(target=work, name=f"tunewise-live-{work.__name__}", daemon=True).start()

    def want(self, is_wanted: bool) -> None:
        """Say whether anybody wants to know."""
        if is_wanted:
            self._wanted.set()
        else:
            self._wanted.clear()

    def end(self) -> None:
        """Let the threads end when they next look up."""
        self._ended.set()
        self._wanted.set()

    def _look(self) -> None:
        while self._wanted.wait() and not self._ended.is_set():
            start = time.monotonic()
            self._tell(self._watch.snapshot(time.time()))
            self._ended.wait(max(0.1, TICK_S - (time.monotonic() - start)))

    def _count(self) -> None:
        concluded, ended, due, late = Concluded(), -1, 0.0, 0.0
        while self._wanted.wait() and not self._ended.wait(0.25):
            now = time.monotonic()
            if now < due or (now < late and ended == self._watch.ended):
                continue
            ended = self._watch.ended
            found = count(self._counted, time.time(), concluded)
            self._counted.close()
            # While the store cannot be read, what was counted before stands, with the trouble.
            known = self._watch.ledger
            self._watch.ledger = replace(known, trouble=found.trouble) if found.info is None else found
            took_s, late_s = time.monotonic() - now, _SOON_S if found.trouble else _LATE_S
            due, late = (time.monotonic() + max(pause_s, _REST * took_s) for pause_s in (_SOON_S, late_s))


def watched(settings: Settings) -> Store:
    """Return the store that settings name, as one who only looks on wants it: its trouble is raised, not hidden.

    It never sets a damaged file aside; layers are read as far as they can be.
    """
    top = store_at(settings.store or settings.home)
    layers = [SafeStore(store_at(place, is_shared=True), warn=lambda text: None) for place in settings.layers]
    return LayeredStore(top, layers) if layers else top
