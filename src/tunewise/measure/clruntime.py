"""OpenCL in this process: a context and a profiled queue for a device, made when a kernel first needs them."""

import functools
import os
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tunewise.decision.opencl import INSTALL, OpenCLDevice, choose
from tunewise.errors import KernelError, LimitExceeded, MissingPart

_MAPS = Path("/proc/self/maps")
_DRIVERS = ("libpocl", "libnvidia-opencl", "libamdocl", "libigdrcl", "libintelocl", "libRusticl")


@dataclass(frozen=True, eq=False)
class Runtime:
    """A device with its context and queue, and the limits that every launch must keep."""

    device: Any
    context: Any
    queue: Any
    shares_memory: bool  # the device works on the host's arrays themselves: nothing is copied
    max_items: int
    max_sizes: tuple[int, ...]
    local_bytes: int

    def check(self, local_size: tuple[int, ...]) -> None:
        """Raise LimitExceeded, with what was asked and what is allowed, for a work-group the device cannot run."""
        if len(local_size) > len(self.max_sizes):
            raise LimitExceeded(
                f"a work-group of {len(local_size)} dimensions is more than the {len(self.max_sizes)} of the device "
                "(CL_DEVICE_MAX_WORK_ITEM_DIMENSIONS)"
            )
        for place, (asked, allowed) in enumerate(zip(local_size, self.max_sizes, strict=False)):
            if asked > allowed:
                raise LimitExceeded(
                    f"{asked} work-items in dimension {place} of a work-group are more than the {allowed} "
                    "that the device takes (CL_DEVICE_MAX_WORK_ITEM_SIZES)"
                )
        check_items(local_size, self.max_items, "that the device takes (CL_DEVICE_MAX_WORK_GROUP_SIZE)")


def check_items(local_size: tuple[int, ...], allowed: int, whose: str) -> None:
    """Raise LimitExceeded if a work-group has more items than allowed; `whose` says by what."""
    items = functools.reduce(int.__mul__, local_size, 1)
    if items > allowed:
        shape = " x ".join(map(str, local_size))
        raise LimitExceeded(f"a work-group of {shape} = {items} work-items is more than the {allowed} {whose}")


class _Process:
    """What this process has started; a forked copy of it is of no use."""

    owner = 0
    runtimes: dict[tuple[int, int], Runtime] = {}  # noqa: RUF012  # one a process, on purpose
    lock = threading.Lock()


def opencl() -> Any:
    """Return pyopencl; raises MissingPart, with the command that installs it, if it is not there.

    Importing it starts no driver: it is safe in a process that forks workers.
    """
    try:
        import pyopencl
    except ImportError as error:
        raise MissingPart(f"OpenCL kernels need pyopencl ({error}): {INSTALL}") from None
    return pyopencl


def runtime(device: str = "opencl") -> Runtime:
    """Return the context and queue of a device in this process, made the first time.

    Raises KernelError in a process that was forked after OpenCL was started: the drivers' threads did not come along.
    """
    chosen = choose(device)
    with _Process.lock:
        if _Process.runtimes and _Process.owner != os.getpid():
            raise KernelError(
                "OpenCL was started before this process was forked, and cannot be used in it; "
                "tune before the first call, or in a process of its own: tunewise tune"
            )
        if chosen.place not in _Process.runtimes:
            _Process.owner = os.getpid()
            _Process.runtimes[chosen.place] = _start(chosen)
        return _Process.runtimes[chosen.place]


def is_started() -> bool:
    """Return whether a driver lives in this process, ours or somebody else's, so that a forked copy would hang."""
    if _Process.runtimes:
        return True
    try:
        maps = _MAPS.read_text(errors="replace")
    except OSError:
        return False
    return any(driver in maps for driver in _DRIVERS)


def _start(chosen: OpenCLDevice) -> Runtime:
    cl = opencl()
    platform, place = chosen.place
    device = cl.get_platforms()[platform].get_devices()[place]
    context = cl.Context([device])
    return Runtime(
        device=device,
        context=context,
        queue=cl.CommandQueue(context, device, properties=cl.command_queue_properties.PROFILING_ENABLE),
        shares_memory=chosen.kind == "cpu",
        max_items=int(device.max_work_group_size),
        max_sizes=tuple(int(size) for size in device.max_work_item_sizes),
        local_bytes=int(device.local_mem_size),
    )
