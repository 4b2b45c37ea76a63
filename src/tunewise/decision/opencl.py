"""OpenCL devices: which work, and which one is meant. Child processes try them, as drivers start threads and crash."""

import functools
import importlib.util
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import msgspec

from tunewise import settings
from tunewise.errors import MissingPart, NotFound

INSTALL = "pip install 'tunewise[opencl]'"
CURE = (
    "install your distribution's PoCL, which runs on any processor: apt-get install pocl-opencl-icd "
    "(if it is not found then: export OCL_ICD_VENDORS=/etc/OpenCL/vendors)"
)
_PREFERRED = ("gpu", "accelerator", "cpu", "other")
_PROBE = Path(__file__).with_name("opencl_probe.py")
_PATIENCE_S = 60.0  # a busy machine takes seconds to build the first kernel
_GRACE_S = 1.0  # to read what a child has answered while another one hung
_MAX_FAULT = 200
_Child = subprocess.Popen[bytes]
_Answer = TypeVar("_Answer")


class OpenCLDevice(msgspec.Struct, frozen=True, kw_only=True):
    """One device of one driver. `place` is where the drivers list it: (platform, device)."""

    place: tuple[int, int]
    platform: str
    name: str
    kind: str  # gpu, accelerator, cpu or other
    version: str
    driver: str
    units: int
    memory_bytes: int
    local_bytes: int
    fault: str = ""  # why it cannot build and run a kernel; empty if it can

    @property
    def title(self) -> str:
        """Its name for people, with the platform that runs it."""
        return f"{self.name} ({self.platform})"


class Survey(msgspec.Struct, frozen=True):
    """The devices of a machine, those that work first; `trouble` says why none works, and is empty if one does."""

    devices: tuple[OpenCLDevice, ...] = ()
    trouble: str = ""


def choose(device: str = "opencl") -> OpenCLDevice:
    """Return the device that `opencl`, `opencl:NUMBER` or `opencl:PART OF A NAME` means.

    Plain `opencl` is the device of the settings, and without one a GPU if one works. Raises MissingPart where OpenCL or
    any working device is missing, with what to install, and for a device that does not work; NotFound for a device that
    is not there.
    """
    prefix, _, named = device.partition(":")
    if prefix != "opencl":
        raise NotFound(f"{device!r} is no OpenCL device; write 'opencl', 'opencl:NUMBER' or 'opencl:PART OF A NAME'")
    wanted = named.strip() or settings.current().opencl_device or ""
    known = devices()
    if not wanted:
        return min((one for one in known if not one.fault), key=lambda one: _PREFERRED.index(one.kind))
    chosen = _named(wanted, known)
    if chosen.fault:
        working = [one for one in known if not one.fault]
        raise MissingPart(
            f"the OpenCL device {chosen.title} cannot run a kernel ({chosen.fault}); these can: {_listed(working)}"
        )
    return chosen


def devices() -> tuple[OpenCLDevice, ...]:
    """Return all devices of all drivers: those that work, at least one, then the others, each in the drivers' order.

    A device works if it builds and runs a kernel, which is tried once a process. Raises MissingPart, with what to
    install, if none works.
    """
    if not is_installed():
        raise MissingPart(f"OpenCL kernels need pyopencl, which is not installed: {INSTALL}")
    result = survey()
    if result.trouble:
        raise MissingPart(f"{result.trouble}; {CURE}")
    return result.devices


def is_installed() -> bool:
    """Return whether pyopencl is there, without importing it."""
    return importlib.util.find_spec("pyopencl") is not None


@functools.cache
def survey() -> Survey:
    """Try all devices of all drivers; done once a process, whatever comes of it.

    A driver that was started in this process could not be used in the workers that are forked from it, and may crash
    or hang: so one child lists the devices, then one child for each of them tries it, and takes the driver's threads
    with it when it ends.
    """
    try:
        with _children([()]) as (child,):
            listed = _answer(child, tuple[OpenCLDevice, ...], _deadline())
        with _children([one.place for one in listed]) as children:
            deadline = _deadline()
            faults = [_fault(child, deadline) for child in children]
    except (OSError, MissingPart) as error:
        return Survey(trouble=f"the OpenCL drivers cannot be asked for their devices ({error})")
    tried = [msgspec.structs.replace(one, fault=fault) for one, fault in zip(listed, faults, strict=True)]
    return Survey(tuple(sorted(tried, key=lambda one: bool(one.fault))), _trouble(tried))


def _trouble(tried: Sequence[OpenCLDevice]) -> str:
    if not tried:
        return "OpenCL finds no device"
    if not all(one.fault for one in tried):
        return ""
    return "no OpenCL device can run a kernel: " + ", ".join(f"{one.title}: {one.fault}" for one in tried)


def _named(wanted: str, known: Sequence[OpenCLDevice]) -> OpenCLDevice:
    if wanted.isdecimal() and int(wanted) < len(known):
        return known[int(wanted)]
    for one in known:
        if wanted.casefold() in one.title.casefold():
            return one
    raise NotFound(f"there is no OpenCL device {wanted!r}; there are {_listed(known)}")


def _listed(known: Sequence[OpenCLDevice]) -> str:
    return ", ".join(f"{number}: {one.title}" for number, one in enumerate(known))


@contextmanager
def _children(places: Sequence[Sequence[int]]) -> Iterator[list[_Child]]:
    """Start one child for each place, all at once; none is left behind."""
    children: list[_Child] = []
    try:
        for place in places:
            command = [sys.executable, "-P", str(_PROBE), *map(str, place)]
            pipe = subprocess.PIPE
            children.append(subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=pipe, stderr=pipe))
        yield children
    finally:
        for child in children:
            child.kill()
            with child:  # closes its pipes and waits for it
                pass


def _deadline() -> float:
    return time.monotonic() + _PATIENCE_S


def _fault(child: _Child, deadline: float) -> str:
    try:
        return _answer(child, str, deadline)
    except MissingPart as error:
        return str(error)


def _answer(child: _Child, kind: type[_Answer], deadline: float) -> _Answer:
    """Return what a child answers; raises MissingPart if it crashes or does not answer in time."""
    try:
        out, said = child.communicate(timeout=max(_GRACE_S, deadline - time.monotonic()))
    except subprocess.TimeoutExpired:
        raise MissingPart(f"no answer within {_PATIENCE_S:g} s") from None
    if child.returncode < 0:
        raise MissingPart(f"crashed: {signal.strsignal(-child.returncode)}")
    try:
        return msgspec.json.decode(out, type=kind)
    except msgspec.MsgspecError as error:
        lines = said.decode(errors="replace").strip().splitlines()
        raise MissingPart((lines or [str(error)])[-1][:_MAX_FAULT]) from None
