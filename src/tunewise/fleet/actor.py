"""The Ray actor of one device: it measures nothing itself, and keeps a plain process that does.

A Ray worker has dozens of threads and a runtime that must not be forked, which is how configs are isolated; and a
config that takes its process down must not take the actor's with it.
"""

import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from tunewise.decision import canonical
from tunewise.fleet import lines

PROGRAMS = "tunewise."  # what may be run as the process of a device: a module of ours, by name


class DeviceActor:
    """Starts the process of a device, again if it died, and passes messages on. All of them are JSON texts."""

    def __init__(self, program: str, opening: str) -> None:
        assert program.startswith(PROGRAMS)
        self._command, self._opening = [sys.executable, "-m", program], canonical.decode(opening, lines.MAX_BYTES)
        self._lock = threading.Lock()
        self._child: subprocess.Popen[bytes] | None = None
        self._answers: Iterator[dict[str, Any]] = iter(())
        self._evaluations, self._before = 0, 0  # of all processes, and of those that died
        self._is_stopping = False

    def open(self) -> str:
        """Return what the device is, or why it refuses."""
        with self._lock:
            return canonical.encode(self._opened())

    def work(self, unit: str) -> str:
        """Return what became of a unit; `died` if its process did."""
        with self._lock:
            if self._child is None and "device" not in (opened := self._opened()):
                return canonical.encode(opened)
            answer = self._ask({"unit": canonical.decode(unit)})
            return canonical.encode(answer)

    def look(self) -> str:
        """Return how many evaluations there were so far, at once."""
        return canonical.encode({"evaluations": self._evaluations, "pid": self._child.pid if self._child else 0})

    def stop(self) -> None:
        """Let the evaluation at hand be the last one."""
        self._is_stopping = True
        child = self._child
        if child is not None:
            self._tell(child, {"stop": True})

    def _opened(self) -> dict[str, Any]:
        self._child = subprocess.Popen(self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert self._child.stdout is not None
        self._answers = iter(lines.Reader(self._child.stdout.fileno()))
        answer = self._ask({"open": self._opening})
        if self._is_stopping and self._child is not None:
            self._tell(self._child, {"stop": True})
        return answer

    def _ask(self, message: dict[str, Any]) -> dict[str, Any]:
        child = self._child
        assert child is not None
        self._tell(child, message)
        for answer in self._answers:
            self._evaluations = self._before + int(answer.get("evaluations", 0))
            if {"device", "refused", "report"} & answer.keys():
                return {**answer, "evaluations": self._evaluations}
        return {"died": self._buried(child), "evaluations": self._evaluations}

    def _tell(self, child: "subprocess.Popen[bytes]", message: dict[str, Any]) -> None:
        assert child.stdin is not None
        with suppress(OSError):  # whoever waits for the answer sees that it is gone
            lines.Writer(child.stdin.fileno()).send(message)

    def _buried(self, child: "subprocess.Popen[bytes]") -> str:
        code = child.wait()
        for pipe in (child.stdin, child.stdout):
            if pipe is not None:
                pipe.close()
        self._child, self._before = None, self._evaluations
        return f"killed by signal {-code}" if code < 0 else f"with exit code {code}"
