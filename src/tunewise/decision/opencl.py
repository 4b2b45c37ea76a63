"""OpenCL devices: which there are, and which one is meant. Asked in a child process, for drivers start threads."""

import functools
import importlib.util
import subprocess
import sys
from pathlib import Path

import msgspec

from tunewise import settings
from tunewise.errors import MissingPart, NotFound

INSTALL = "pip install 'tunewise[opencl]'"
_PREFERRED = ("gpu", "accelerator", "cpu", "other")
_PROBE = Path(__file__).with_name("opencl_probe.py")
_PATIENCE_S = 60.0


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

    @property
    def title(self) -> str:
        """Its name for people, with the platform that runs it."""
        return f"{self.name} ({self.platform})"


def choose(device: str = "opencl") -> OpenCLDevice:
    """Return the device that `opencl`, `opencl:NUMBER` or `opencl:PART OF A NAME` means.

    Plain `opencl` is the device of the settings, and without one a GPU if there is one. Raises MissingPart, with what
    to install, where OpenCL or any device is missing, and NotFound for a device that is not there.
    """
    prefix, _, named = device.partition(":")
    if prefix != "opencl":
        raise NotFound(f"{device!r} is no OpenCL device; write 'opencl', 'opencl:NUMBER' or 'opencl:PART OF A NAME'")
    wanted = named.strip() or settings.current().opencl_device or ""
    found = devices()
    if not wanted:
        return min(found, key=lambda one: _PREFERRED.index(one.kind))
    if wanted.isdecimal() and int(wanted) < len(found):
        return found[int(wanted)]
    for one in found:
        if wanted.casefold() in one.title.casefold():
            return one
    listed = ", ".join(f"{number}: {one.title}" for number, one in enumerate(found))
    raise NotFound(f"there is no OpenCL device {wanted!r}; there are {listed}")


@functools.cache
def devices() -> tuple[OpenCLDevice, ...]:
    """Return all devices of all drivers, at least one, in the drivers' order; asked once a process.

    A driver that was started in this process could not be used in the workers that are forked from it: so a child
    asks, and takes the drivers' threads with it when it ends.
    """
    if importlib.util.find_spec("pyopencl") is None:
        raise MissingPart(f"OpenCL kernels need pyopencl, which is not installed: {INSTALL}")
    try:
        asked = subprocess.run(
            [sys.executable, "-P", str(_PROBE)],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_PATIENCE_S,
            check=True,
        )
        found = msgspec.json.decode(asked.stdout, type=tuple[OpenCLDevice, ...])
    except (OSError, subprocess.SubprocessError, msgspec.MsgspecError) as error:
        raise MissingPart(f"the OpenCL drivers cannot be asked for their devices: {_reason(error)}") from None
    if not found:
        raise MissingPart(
            f"OpenCL finds no device; install a driver, such as PoCL, which runs on any processor: {INSTALL}"
        )
    return found


def _reason(error: Exception) -> str:
    said = error.stderr if isinstance(error, subprocess.CalledProcessError) else None
    lines = said.decode(errors="replace").strip().splitlines() if isinstance(said, bytes) else []
    return lines[-1] if lines else str(error)
