"""Signs of life whose every name may be chosen by a test, and a live page that is served to look at them."""

import http.client
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from limits import HANG_S
from tunewise.store import Sign, Store

STATES = ("won", "tied", "failed", "stopped")
Names = Callable[[], str]


def run(key: str, at: float, *, name: str = "gemm", state: str = "running", done: int = 30, **more: Any) -> Sign:
    """Return the sign of a run that has come a way."""
    body = {
        "decision": name,
        "problem": {"m": 256, name: name},
        "hardware": name,
        "process": name,
        "began": at - 60,
        "budget": 100,
        "done": done,
        "failed": 2,
        "best_s": 1e-3,
        "default_s": 4e-3,
        "state": state,
        "curve": [[1, 8e-3], [5, 3e-3], [20, 1e-3]],
        "gain": 4.0 if state == "won" else None,
        "source": name,
    }
    return Sign("run", key, at, {**body, **more})


def ladder(key: str, at: float, **rungs: Mapping[str, int]) -> Sign:
    """Return the sign of a process that looked things up."""
    return Sign("ladder", key, at, {"decisions": {name: dict(counts) for name, counts in rungs.items()}, "began": at})


def node(key: str, at: float, *, name: str = "node", state: str = "busy") -> Sign:
    """Return the sign of a node."""
    counts = {"done": 3, "failed": 1, "evaluations": 400}
    said = {"plan": name, "name": name, "device": name, "state": state, "unit": name, "since": at - 60}
    return Sign("node", key, at, {**said, **counts})


def plan(key: str, at: float, *, name: str = "plan", state: str = "running") -> Sign:
    """Return the sign of a plan."""
    counts = {"units": 40, "done": 10, "failed": 1, "running": 3, "nodes": 3, "evaluations": 4_000}
    return Sign("plan", key, at, {"name": name, "kind": name, "began": at - 60, "state": state, **counts})


def fill(store: Store, names: Names, now: float, *, each: int = 30) -> int:
    """Let so many of each kind give signs, all named by `names`; return how many names that took."""
    taken = 0

    def name() -> str:
        nonlocal taken
        taken += 1
        return names()

    for number in range(each):
        store.show(run(f"r{number}", now, name=name()))
        store.show(run(f"f{number}", now - number, name=name(), state=STATES[number % len(STATES)]))
        store.show(node(f"n{number}", now, name=name()))
        store.show(plan(f"p{number}", now, name=name()))
        store.show(Sign("ladder", f"l{number}", now, {"decisions": {name(): {"memory": 3, "default": 1}}}))
    return taken


@dataclass(frozen=True)
class Server:
    """A live page that somebody serves."""

    process: "subprocess.Popen[str]"
    address: str
    port: int
    token: str

    def ask(self, path: str, *, headers: Mapping[str, str] | None = None) -> tuple[int, dict[str, str], str]:
        """Return the status, the headers and the text of an answer; the token is brought unless headers are given."""
        brought = {"Authorization": f"Bearer {self.token}"} if headers is None else dict(headers)
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=HANG_S)
        try:
            connection.request("GET", path, headers=brought)
            answer = connection.getresponse()
            is_stream = "event-stream" in answer.headers.get("Content-Type", "")
            text = "" if is_stream else answer.read().decode()
            return answer.status, {name.lower(): value for name, value in answer.headers.items()}, text
        finally:
            connection.close()

    @contextmanager
    def events(self) -> Iterator[Iterator[dict[str, Any]]]:
        """Look on: the events, as they come."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=HANG_S)
        try:
            connection.request("GET", "/events", headers={"Authorization": f"Bearer {self.token}"})
            answer = connection.getresponse()
            yield (json.loads(line[5:]) for line in answer if line.startswith(b"data:"))
        finally:
            connection.close()


@contextmanager
def serving(home: Path, *options: str, port: int = 0) -> Iterator[Server]:
    """Serve the live page of a home in a process of its own."""
    command = [sys.executable, "-m", "tunewise", "live", "--json", "--port", str(port), *options]
    pipe = subprocess.PIPE
    env = {**os.environ, "TUNEWISE_HOME": str(home)}
    process = subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True, env=env)
    try:
        said = _document(process)
        yield Server(process, said["address"], said["port"], said["address"].partition("token=")[2])
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate()


def _document(process: "subprocess.Popen[str]") -> dict[str, Any]:
    assert process.stdout is not None
    lines = []
    for line in process.stdout:
        lines.append(line)
        if line == "}\n":
            found: dict[str, Any] = json.loads("".join(lines))
            return found
    assert process.stderr is not None
    raise RuntimeError(f"the server did not start: {process.stderr.read()}")


def until(condition: Callable[[], bool], *, seconds: float = HANG_S) -> None:
    """Wait until a condition holds; fails if it never does."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)
