"""Flights that never break a program: between processes while the store can grant them, else between threads."""

import os
import time
from collections.abc import Callable
from contextlib import suppress
from math import inf
from typing import Protocol, TypeVar

from tunewise.errors import StoreError
from tunewise.store.base import Flight, Holder
from tunewise.store.locks import poll

_T = TypeVar("_T")
_RESTART_S = 30.0  # how long who waits for another's tuning run takes a server that is away for one that restarts


class Asker(Protocol):
    """Asks a store that may be in trouble."""

    def ask(self, question: Callable[[], _T]) -> _T:
        """Return what a question gives, or raise StoreError."""

    def soon(self, work: Callable[[], object]) -> None:
        """Have something done that nobody waits for."""


class SafeFlight(Flight):
    """A flight between processes that becomes one between threads if the disk has no place for its lock.

    A server that goes away while another process holds the flight may be restarting, and the holder be at work: it is
    given some time before all who wait begin to tune too.
    """

    def __init__(self, on_disk: Callable[[], Flight], in_memory: Flight, asker: Asker) -> None:
        self._on_disk, self._in_memory, self._asker = on_disk, in_memory, asker
        self._outer: Flight | None = None  # that between processes
        self._pid: int | None = None  # of whoever has asked for it, and may have it
        self._others_until = -inf  # how long another process can be taken to be at work

    def acquire(self, wait_s: float | None = None) -> bool:
        """Return True once it is ours; False if that took longer than `wait_s`."""
        self._pid = os.getpid()
        return poll(self._acquired, wait_s)

    def _acquired(self) -> bool:
        try:
            is_ours = self._asker.ask(self._taken)
            self._others_until = -inf if is_ours else time.monotonic() + _RESTART_S
            return is_ours
        except (StoreError, OSError):
            return time.monotonic() >= self._others_until and self._in_memory.acquire(0)

    def _taken(self) -> bool:
        if self._outer is None:
            self._outer = self._on_disk()
        return self._outer.acquire(0)

    def release(self) -> None:
        """Let the next one have it; a forked child that inherited this object has nothing to give."""
        if self._pid != os.getpid():
            return
        self._in_memory.release()
        if self._outer is not None:
            try:
                self._asker.ask(self._outer.release)
            except (StoreError, OSError):
                self._asker.soon(self._outer.release)
        self._pid = None

    def holder(self) -> Holder | None:
        """Return the process of this machine that has it; None if nobody has, or that cannot be told."""
        with suppress(StoreError, OSError):
            return None if self._outer is None else self._asker.ask(self._outer.holder)
        return None

    def __del__(self) -> None:
        if self._pid == os.getpid():  # who was interrupted when it was taken or given back
            self._in_memory.release()
            if self._outer is not None:
                self._asker.soon(self._outer.release)
