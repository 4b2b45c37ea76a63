"""Tuning in the middle of a program: what it may spend there, and how somebody who will not wait can stop it."""

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any

from tunewise.session import events
from tunewise.session.context import Frame
from tunewise.store import renew_in_children


class _Spent:
    """How long this process has waited for tuning runs that began with a call."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.seconds = 0.0
        renew_in_children(self)

    def renew(self) -> None:
        """Begin a forked child with a lock of its own; what its parent spent counts."""
        self.lock = threading.RLock()


_spent = _Spent()
_LEAST_S = 1e-3


def may_spend(frame: Frame) -> bool:
    """Return whether this process has time left for a tuning run."""
    return frame.total_seconds is None or _spent.seconds < frame.total_seconds


@contextmanager
def spending(frame: Frame) -> Iterator[dict[str, Any]]:
    """Give what a run in this frame may spend, as keywords of `Plan`; what it took is counted.

    Where the frame is patient, the first Ctrl-C stops the search and the second one is an interrupt as usual.
    """
    start = time.monotonic()
    try:
        with _stoppable(frame) as stop:
            yield bounds(frame, stop)
    finally:
        count(time.monotonic() - start)
        frame.listener(events.Resumed())


def bounds(frame: Frame, is_stopped: Callable[[], bool] = bool) -> dict[str, Any]:
    """Return what a run that begins now may spend in this frame, as keywords of `Plan`.

    A run that the allowance of the process ends is one that was stopped: the next process goes on with it. Concluded,
    the little that was left for the last problem would be its answer for good.
    """
    plan = frame.plan
    if frame.total_seconds is None:
        return {**plan, "stop": is_stopped}
    left = max(frame.total_seconds - _spent.seconds, _LEAST_S)
    end = time.monotonic() + left
    plan["seconds"] = min(left, plan.get("seconds", left))
    return {**plan, "stop": lambda: is_stopped() or time.monotonic() >= end}


def count(seconds: float) -> None:
    """Count what a run took against what this process may spend."""
    with _spent.lock:
        _spent.seconds += seconds


def is_interruptible() -> bool:
    """Return whether Ctrl-C reaches a run that begins here: in the main thread, unless the program has its own ways."""
    return threading.current_thread() is threading.main_thread() and callable(signal.getsignal(signal.SIGINT))


@contextmanager
def _stoppable(frame: Frame) -> Iterator[Callable[[], bool]]:
    stopped = threading.Event()
    before = signal.getsignal(signal.SIGINT)
    if not frame.is_patient or not is_interruptible() or not callable(before):
        yield stopped.is_set
        return

    def stop(number: int, stack: FrameType | None) -> None:
        if stopped.is_set():
            before(number, stack)
        stopped.set()
        with suppress(RuntimeError):  # it was writing a line when the signal came, and cannot write another within it
            frame.listener(events.Stopping())

    signal.signal(signal.SIGINT, stop)
    try:
        yield stopped.is_set
    finally:
        signal.signal(signal.SIGINT, before)
