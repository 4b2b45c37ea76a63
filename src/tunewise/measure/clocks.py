"""Clocks, and how a call is timed with one."""

import gc
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from math import ceil
from typing import Any

from tunewise.decision import Args
from tunewise.decision.policy import Clock

MAX_CALLS = 100_000


class DeviceClock:
    """The seconds that devices have worked for this process, as those who give them work report it.

    Reading it is reading a clock: what a call adds between two readings is what the call took on the device. Copies
    to the device, the queue and the driver's compiler are not on it.
    """

    def __init__(self) -> None:
        self._seconds = 0.0

    def __call__(self) -> float:
        """Return the seconds so far."""
        return self._seconds

    def add(self, seconds: float) -> None:
        """Move the clock on by what a device says that it worked."""
        self._seconds += seconds


DEVICE = DeviceClock()
CLOCKS: dict[Clock, Callable[[], float]] = {"cpu": time.process_time, "wall": time.perf_counter, "device": DEVICE}


def cost_of(clock: Callable[[], float]) -> float:
    """Return the seconds that reading a clock adds to whatever it times."""
    return min(abs(clock() - clock()) for _ in range(200))


def calls_for(call_s: float, min_sample_s: float) -> int:
    """Return how many calls make a sample long enough to be timed well."""
    return max(1, min(MAX_CALLS, ceil(min_sample_s / max(call_s, 1e-9))))


def time_calls(
    clock: Callable[[], float], function: Callable[..., Any], args: Args, calls: int, cost_s: float = 0.0
) -> float:
    """Return the seconds of one call, averaged over `calls` calls on the same arguments, less the clock's own cost.

    The cost would otherwise be shared by as many calls as a sample has, and tell equal configs apart.
    """
    with _no_collection():
        repeat = range(calls)
        start = clock()
        for _ in repeat:
            function(*args)
        taken = clock() - start
    return (taken - cost_s if taken > 2 * cost_s else taken) / calls


def time_each(clock: Callable[[], float], function: Callable[..., Any], inputs: Sequence[Args]) -> float:
    """Return the seconds of one call, averaged over one call on each of `inputs`: for functions that change them."""
    with _no_collection():
        start = clock()
        for args in inputs:
            function(*args)
        return (clock() - start) / len(inputs)


@contextmanager
def _no_collection() -> Iterator[None]:
    # A collection in the middle of a sample charges one config for everybody's garbage.
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
