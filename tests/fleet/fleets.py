"""Plans that run on real Ray nodes: started as commands, looked into, hurt on purpose, and counted afterwards."""

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from limits import HANG_S
from tunewise.decision import Trial, canonical
from tunewise.measure import procfs
from tunewise.store import Store, store_at

RECORDING = Path(__file__).parents[1] / "data" / "pnpoly.json.gz"

# What a process of a fleet is called, by a part of its command line.
ROLES = {
    "driver": "tunewise.fleet.driver_process",
    "device": "tunewise.cli.fleet_device",
    "actor": "ray::DeviceActor",
    "raylet": "raylet/raylet",
    "head": "gcs/gcs_server",
    "agent": "ray::RuntimeEnvAgent",  # started when a node is ready
}


def write_plan(
    place: Path, *, kind: str = "collect", budget: int = 200, pause_s: float = 0.02, problems: int = 2
) -> Path:
    """Write a plan that replays a recording."""
    path = place / "plan.toml"
    path.write_text(
        f'kind = "{kind}"\nbudget = {budget}\n[[work]]\nreplay = "{RECORDING}"\npause_s = {pause_s}\n'
        f"grid = {{size = {list(range(1, problems + 1))}}}\n"
    )
    return path


@dataclass
class Running:
    """A command that runs a plan, and everything below it."""

    process: "subprocess.Popen[str]"
    store: Store
    seen: set[int]

    def below(self, role: str) -> list[int]:
        """Return the processes of a role below the command."""
        self.seen.update(procfs.descendants(self.process.pid))
        return below(role, self.process.pid)

    def wait_for_trials(self, number: int) -> list[Trial]:
        """Return what is in the store once there are so many trials."""

        def is_there() -> bool:
            assert self.process.poll() is None, self.process.communicate()
            return len(trials(self.store)) >= number

        wait_until(is_there)
        self.below("head")
        return trials(self.store)

    def end(self) -> tuple[int, dict[str, Any], str]:
        """Return the exit code, the document and the remarks of a command that ends."""
        out, err = self.process.communicate(timeout=HANG_S)
        return self.process.returncode, json.loads(out) if out.strip() else {}, err

    def leftovers(self) -> list[str]:
        """Return which processes are still there some seconds later."""
        deadline = time.monotonic() + HANG_S
        while (left := [pid for pid in self.seen if procfs.is_alive(pid)]) and time.monotonic() < deadline:
            time.sleep(0.1)
        return [command_line(pid) for pid in left]


def started(place: str | Path, plan: Path, *options: str, joins: Any = None) -> Running:
    """Start the command with a store, on nodes of its own or on those it joins."""
    command = [sys.executable, "-m", "tunewise", "fleet", "run", str(plan), "--json", *options]
    env = {**os.environ, "TUNEWISE_STORE": str(place)}
    if joins is not None:
        command += ["--address", joins.address]
        env |= dict(variable.split("=", 1) for variable in joins.environment)
    process = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=env,
        start_new_session=True,
        preexec_fn=_heed_ctrl_c,
    )
    return Running(process, store_at(place), set())


def _heed_ctrl_c() -> None:
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # tests that run in the background of a shell ignore it


def below(role: str, above: int) -> list[int]:
    """Return the processes of a role below another process."""
    return [pid for pid in procfs.descendants(above) if ROLES[role] in command_line(pid)]


def wait_until(is_so: Callable[[], bool]) -> None:
    """Return when something is so; fails if that takes too long."""
    deadline = time.monotonic() + HANG_S
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.1)


def command_line(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        return ""


def trials(store: Store) -> list[Trial]:
    """Return every trial of a store."""
    return [trial for subject in store.subjects() for trial in store.trials(subject)]


def counts(store: Store) -> list[Counter[str]]:
    """Return how often each config was measured, a counter for each problem; samples added in a final do not count."""
    return [
        Counter(canonical.encode(dict(t.config)) for t in store.trials(subject) if t.source == "fleet")
        for subject in store.subjects()
    ]
