"""Many processes at once, for tests: each runs one function, and what it returns or raises comes back."""

import multiprocessing
import os
import signal
import time
from collections.abc import Callable
from typing import Any

import guardian
from limits import HANG_S

_FORK = multiprocessing.get_context("fork")


def crowd(count: int, work: Callable[..., Any], *args: Any, limit_s: float = HANG_S) -> list[Any]:
    """Run `work(place, *args)` in `count` processes that start together; return what each gave, errors as text."""
    results: Any = _FORK.SimpleQueue()
    start, parent = _FORK.Event(), os.getpid()

    def run(place: int) -> None:
        guardian.die_with_parent(parent)
        start.wait()
        try:
            results.put((place, work(place, *args)))
        except BaseException as error:
            results.put((place, f"error: {type(error).__name__}: {error}"))

    members = [_FORK.Process(target=run, args=(place,)) for place in range(count)]
    for member in members:
        member.start()
    start.set()
    deadline = time.monotonic() + limit_s
    gathered = {}
    try:
        while len(gathered) < count:
            assert time.monotonic() < deadline, f"{count - len(gathered)} of {count} processes did not finish"
            if results.empty():
                time.sleep(0.002)
                continue
            place, result = results.get()
            gathered[place] = result
        for member in members:
            member.join(10)
    finally:
        for member in members:
            if member.is_alive():
                member.kill()
                member.join()
    return [gathered[place] for place in range(count)]


def errors(results: list[Any]) -> list[str]:
    """Return the results that are errors."""
    return [result for result in results if isinstance(result, str) and result.startswith("error:")]


class Victim:
    """A forked process that runs `work(report)` until it is killed; `report(text)` is heard even if it dies next."""

    def __init__(self, work: Callable[[Callable[[str], None]], None]) -> None:
        self._reader, writer = os.pipe()
        parent = os.getpid()
        self.pid = os.fork()
        if self.pid == 0:
            try:
                guardian.die_with_parent(parent)
                os.close(self._reader)
                work(lambda text: _say(writer, text))
            finally:
                os._exit(0)
        os.close(writer)
        self._heard = b""

    def wait_for(self, text: str) -> None:
        """Return once the process has reported `text`."""
        while f"{text}\n".encode() not in self._heard:
            chunk = os.read(self._reader, 1 << 16)
            assert chunk, f"the process ended before it said {text!r}; it said {self._heard[-300:]!r}"
            self._heard += chunk

    def wait_for_lines(self, count: int) -> None:
        """Return once the process has reported `count` times."""
        while self._heard.count(b"\n") < count:
            chunk = os.read(self._reader, 1 << 16)
            assert chunk, f"the process ended after saying {self._heard[-300:]!r}"
            self._heard += chunk

    def kill(self) -> list[str]:
        """Kill it without warning and return all it reported."""
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        os.set_blocking(self._reader, False)
        try:
            while chunk := os.read(self._reader, 1 << 16):
                self._heard += chunk
        except BlockingIOError:
            pass  # a child of the victim still holds the other end
        os.close(self._reader)
        return self._heard.decode().splitlines()


def _say(writer: int, text: str) -> None:
    os.write(writer, f"{text}\n".encode())
