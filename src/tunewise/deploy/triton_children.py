"""Jobs that may hang or crash, each in a forked child with a deadline; several run at once."""

import contextlib
import faulthandler
import os
import selectors
import signal
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NoReturn

from tunewise.decision import Failure
from tunewise.system import fork

_CHUNK = 1 << 16
_MAX_REPLY = 1 << 20
_END = b"\0"  # whoever is killed while he speaks does not come to it

Job = Callable[[], bytes]


@dataclass(eq=False)
class _Child:
    """A running job: its process, the end of a pipe that its reply comes through, and when it must be done."""

    place: int
    pid: int
    pipe: int
    deadline: float
    said: bytearray = field(default_factory=bytearray)


def run(jobs: Sequence[Job], *, timeout_s: float, at_once: int) -> list[bytes | Failure]:
    """Return what each job returned, in their order; a Failure where one took too long or died.

    A job runs in a forked copy of this process, so it may use whatever is in memory here. All that it started ends
    with it. Raises OSError where no process can be made.
    """
    results: dict[int, bytes | Failure] = {}
    waiting, running = list(enumerate(jobs)), list[_Child]()
    with selectors.DefaultSelector() as selector:
        try:
            while waiting or running:
                while waiting and len(running) < at_once:
                    running.append(_started(*waiting.pop(0), timeout_s))
                    selector.register(running[-1].pipe, selectors.EVENT_READ, running[-1])
                for child in _finished(selector, running):
                    selector.unregister(child.pipe)
                    running.remove(child)
                    results[child.place] = _buried(child, timeout_s)
        finally:
            for child in running:
                _buried(child, timeout_s)
    return [results[place] for place in range(len(jobs))]


def _started(place: int, job: Job, timeout_s: float) -> _Child:
    ours, theirs = os.pipe()
    pid = fork()
    if pid == 0:
        os.close(ours)
        _live(job, theirs)
    os.close(theirs)
    return _Child(place, pid, ours, time.monotonic() + timeout_s)


def _live(job: Job, pipe: int) -> NoReturn:
    """Do the job in the child, silently, and leave without running anything of the parent's at exit."""
    try:
        faulthandler.disable()  # it would write to a copy of the parent's stderr
        os.setsid()  # so that a compiler started by the job can be ended with it
        quiet = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(quiet, stream)
        said = job() + _END
        while said:
            said = said[os.write(pipe, said) :]
        os._exit(0)
    finally:
        os._exit(1)


def _finished(selector: selectors.BaseSelector, running: Sequence[_Child]) -> list[_Child]:
    """Wait until something happens, and return the children that have said all or whose time is up."""
    now = time.monotonic()
    patience = max(0.0, min(child.deadline for child in running) - now)
    done = [key.data for key, _ in selector.select(patience) if not _heard(key.data)]
    late = [child for child in running if child not in done and child.deadline <= time.monotonic()]
    return done + late


def _heard(child: _Child) -> bool:
    """Return whether a child said something; False when it has said all."""
    chunk = os.read(child.pipe, _CHUNK)
    child.said += chunk
    return bool(chunk) and len(child.said) <= _MAX_REPLY


def _buried(child: _Child, timeout_s: float) -> bytes | Failure:
    """End a child and all it started, and return what became of its job."""
    is_late = child.deadline <= time.monotonic()
    for end in (os.killpg, os.kill):  # one that has left already keeps the status it left with
        with contextlib.suppress(ProcessLookupError, PermissionError):
            end(child.pid, signal.SIGKILL)
    _, status = os.waitpid(child.pid, 0)
    os.close(child.pipe)
    if child.said.endswith(_END):
        return bytes(child.said[: -len(_END)])
    if is_late:
        return Failure("timeout", f"stopped after {timeout_s:g} s")
    code = os.waitstatus_to_exitcode(status)
    return Failure("crash", f"killed by signal {-code}" if code < 0 else f"left with code {code} and no result")
