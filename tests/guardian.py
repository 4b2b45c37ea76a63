"""Ends what a test run started once the run itself is gone, however it ended: servers, browsers, clusters.

Each process of pytest marks what it starts by a variable that children inherit, and has a guardian outside of its own
family: a process that waits for its end and then ends whatever has the mark. Forked children that never run another
program look like pytest itself, so they ask the kernel to end them with it: see `die_with_parent`.
"""

import ctypes
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from pathlib import Path

VARIABLE = "TEST_RUN"  # holds the mark
_GENTLE_S, _LONGEST_S = 5.0, 30.0
_SET_PDEATHSIG = 1


def watch() -> None:
    """Have everything ended that this process starts from now on, as soon as it has ended itself."""
    mark = f"{os.getpid()}-{uuid.uuid4().hex[:8]}"
    env = {name: value for name, value in os.environ.items() if name != VARIABLE}
    command = [sys.executable, "-S", "-E", __file__, str(os.getpid()), mark, tempfile.gettempdir()]
    subprocess.run(command, env=env, check=True, stdin=subprocess.DEVNULL, start_new_session=True, timeout=600)
    os.environ[VARIABLE] = mark


def die_with_parent(parent: int) -> None:
    """Have this process, forked from the main thread of `parent`, killed when that one ends."""
    ctypes.CDLL(None).prctl(_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(1)


def _guard(pid: int, mark: str, temporary: Path) -> None:
    """Wait for the end of a process, in a child that belongs to nobody; return when it is waiting."""
    ended = os.pidfd_open(pid)
    if os.getppid() != pid or os.fork():
        return
    null = os.open(os.devnull, os.O_RDWR)
    for stream in (1, 2):
        os.dup2(null, stream)  # whoever reads what pytest writes must not wait for us
    select.select([ended], [], [])
    _end_all(f"{VARIABLE}={mark}".encode())
    for left in temporary.glob(f"tw-*-{mark}-*"):
        shutil.rmtree(left, ignore_errors=True)


def _end_all(marked: bytes) -> None:
    start = time.monotonic()
    while (left := _with(marked)) and time.monotonic() < start + _LONGEST_S:
        for pid in left:
            # Killed, PostgreSQL would leave shared memory behind.
            is_gentle = _name(pid) == "postgres" and time.monotonic() < start + _GENTLE_S
            _send(pid, signal.SIGQUIT if is_gentle else signal.SIGKILL)
        time.sleep(0.1)


def _with(marked: bytes) -> list[int]:
    found = []
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                environ = Path(f"/proc/{entry}/environ").read_bytes()
            except OSError:  # it has ended, or belongs to another user
                continue
            if marked in environ.split(b"\0"):
                found.append(int(entry))
    return found


def _name(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return ""


def _send(pid: int, number: int) -> None:
    try:
        os.kill(pid, number)
    except OSError:
        return


if __name__ == "__main__":
    _guard(int(sys.argv[1]), sys.argv[2], Path(sys.argv[3]))
