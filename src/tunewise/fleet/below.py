"""Processes that end with us: the kernel sees to it, however we end."""

import ctypes
import os
import signal
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from typing import IO, Any

from tunewise.measure import procfs

_SET_PDEATHSIG, _SET_CHILD_SUBREAPER = 1, 36


def start_below(
    command: list[str], *, stdin: int, stdout: int | IO[bytes], stderr: int | IO[bytes]
) -> "subprocess.Popen[bytes]":
    """Start a process in a session of its own, which Ctrl-C does not reach; the kernel ends it with this thread."""
    return subprocess.Popen(
        command, stdin=stdin, stdout=stdout, stderr=stderr, start_new_session=True, preexec_fn=_die_with(os.getpid())
    )


def adopt_orphans() -> None:
    """Become the parent of everything below that loses its own, so that nothing can slip away."""
    _prctl()(_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def bury() -> bool:
    """Reap what has died below; return whether anything is left."""
    with suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
        return True
    return False


def end_all(seconds: float) -> None:
    """Kill everything below this process, which adopts orphans, and wait for that, not for ever."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        procfs.kill(procfs.descendants(os.getpid()))
        if not bury():
            return
        time.sleep(0.01)


def end_those_of(place: str) -> None:
    """Kill every process of ours that holds a file in this directory open."""
    found = (int(name) for name in os.listdir("/proc") if name.isdigit())
    procfs.kill(pid for pid in found if pid != os.getpid() and _holds(pid, f"{place}/"))


def _holds(pid: int, start: str) -> bool:
    with suppress(OSError):  # it is gone, or somebody else's
        for name in os.listdir(f"/proc/{pid}/fd"):
            with suppress(OSError):
                if os.readlink(f"/proc/{pid}/fd/{name}").startswith(start):
                    return True
    return False


def _die_with(parent: int) -> Callable[[], None]:
    prctl = _prctl()  # loaded before the fork

    def prepare() -> None:
        prctl(_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != parent:
            os._exit(1)

    return prepare


def _prctl() -> Any:
    return ctypes.CDLL(None).prctl
