"""Flights that never break a program: between processes while the store can grant them, else between threads."""

import time
from collections.abc import Callable
from functools import partial
from math import inf

from tunewise.errors import StoreError
from tunewise.store.base import Flight

_RESTART_S = 30.0  # how long who waits for another's tuning run takes a server that is away for one that restarts
_GLANCE_S = 0.5


class SafeFlight(Flight):
    """A flight between processes that becomes one between threads if the disk has no place for its lock.

    `asked(ask)` is what `ask()` says, or raises StoreError. A server that goes away while another process holds the
    flight may be restarting, and the holder be at work: it is given some time before all who wait begin to tune too.
    """

    def __init__(
        self, on_disk: Callable[[], Flight], in_memory: Flight, asked: Callable[[Callable[[], bool]], bool]
    ) -> None:
        self._on_disk, self._in_memory, self._asked = on_disk, in_memory, asked
        self._granted: Flight | None = None
        self._others_until = -inf  # how long another process can be taken to be at work

    def acquire(self, wait_s: float | None = None) -> bool:
        """Return True once it is ours; False if that took longer than `wait_s`."""
        deadline = inf if wait_s is None else time.monotonic() + wait_s
        while not self._acquired(max(0.0, min(_GLANCE_S, deadline - time.monotonic()))):
            if time.monotonic() >= deadline:
                return False
        return True

    def _acquired(self, wait_s: float) -> bool:
        try:
            flight = self._on_disk()
            is_ours = self._asked(partial(flight.acquire, wait_s))
            self._others_until = -inf if is_ours else time.monotonic() + _RESTART_S
        except (StoreError, OSError):
            if time.monotonic() < self._others_until:
                time.sleep(wait_s)
                return False
            flight = self._in_memory
            is_ours = flight.acquire(wait_s)
        self._granted = flight if is_ours else None
        return is_ours

    def release(self) -> None:
        """Let the next one have it."""
        if self._granted is not None:
            self._granted.release()
        self._granted = None
