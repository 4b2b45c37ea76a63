"""What is in force here and now: settings, store and mode. Nothing is read or opened before it is needed."""

import functools
import threading
import weakref
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from tunewise import settings
from tunewise.decision import Rung
from tunewise.errors import InvalidSetting
from tunewise.settings import Mode
from tunewise.store import Store, open_store, renew_in_children


class Forgetful(Protocol):
    """Something that keeps answers in memory and can be told to look again."""

    def forget(self) -> None:
        """Drop the answers kept in memory."""


@dataclass(frozen=True, eq=False, slots=True)
class Frame:
    """One `with tw.mode(...)` block. Compared by identity, so that it is cheap as part of a key."""

    mode: Mode
    accept: frozenset[str] = frozenset()
    budget: int | None = None
    seconds: float | None = None


_ACCEPTABLE: frozenset[Rung] = frozenset({"table", "promoted", "learned", "near"})
FRAME: ContextVar[Frame | None] = ContextVar("tunewise_frame", default=None)


class _Process:
    """The one mutable thing: what this process has opened so far, and who keeps answers."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.store: Store | None = None
        self.forgetful: weakref.WeakSet[Forgetful] = weakref.WeakSet()
        renew_in_children(self)

    def renew(self) -> None:
        """Begin a forked child with a lock of its own."""
        self.lock = threading.RLock()


_process = _Process()


def current_store() -> Store:
    """Return the store in force, opened the first time; trouble with it costs one warning and no more."""
    with _process.lock:
        if _process.store is None:
            _process.store = open_store(settings.current())
        return _process.store


def configure(
    *,
    home: str | Path | None = None,
    mode: Mode | None = None,
    layers: Iterable[str | Path] | None = None,
    heuristics: Iterable[str | Path] | None = None,
    log_path: str | Path | None = None,
    opencl_device: str | None = None,
) -> None:
    """Set for this process what the environment variables set: where the store lies, the mode, read-only layers.

    `heuristics` are files and directories of heuristics that may answer, and `log_path` is where AutoHeuristic logs
    go; `opencl_device` is the device that OpenCL kernels run on. What is left out falls back to the environment, which
    is read again. Answers kept in memory are dropped.
    """
    fresh = settings.load()
    if home is not None:
        fresh = replace(fresh, home=Path(home).expanduser().absolute())
    if mode is not None:
        fresh = replace(fresh, mode=settings.parse_mode(mode))
    if layers is not None:
        fresh = replace(fresh, layers=tuple(Path(layer) for layer in layers))
    if heuristics is not None:
        fresh = replace(fresh, heuristics=tuple(Path(place).expanduser().absolute() for place in heuristics))
    if log_path is not None:
        fresh = replace(fresh, log_path=Path(log_path).expanduser().absolute())
    if opencl_device is not None:
        fresh = replace(fresh, opencl_device=opencl_device)
    with _process.lock:
        if _process.store is not None:
            _process.store.close()
        _process.store = None
        settings.put_in_force(fresh)
    refresh()


def refresh() -> None:
    """Drop all answers kept in memory, so that the next question looks into the store again."""
    for holder in list(_process.forgetful):
        holder.forget()


def remember_to_forget(holder: Forgetful) -> None:
    """Let `refresh` reach a holder of answers for as long as it lives."""
    _process.forgetful.add(holder)


@contextmanager
def mode(
    name: Mode, *, accept: Iterable[Rung] = (), budget: int | None = None, seconds: float | None = None
) -> Iterator[None]:
    """Run a block in a mode: `use`, `tune`, `collect`, `replay` or `off`. The innermost block wins.

    In `tune`, `accept` names further rungs that count as good enough (`accept=["learned", "near"]`); `budget` and
    `seconds` bound each tuning run.
    """
    token = FRAME.set(_frame(settings.parse_mode(name), frozenset(accept), budget, seconds))
    try:
        yield
    finally:
        FRAME.reset(token)


@functools.cache
def _frame(name: Mode, accept: frozenset[str], budget: int | None, seconds: float | None) -> Frame:
    unknown = accept - _ACCEPTABLE
    if unknown:
        there_are = ", ".join(sorted(_ACCEPTABLE))
        raise InvalidSetting(f"accept={sorted(unknown)} is not a rung that can be accepted; there are: {there_are}")
    return Frame(name, accept, budget, seconds)
