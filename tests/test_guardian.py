"""Interrupting the tests leaves nothing behind: a run is killed in every way, and what it had started is gone."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tunewise.measure import procfs

TESTS = Path(__file__).parent
STARTS = """
import json, os, subprocess, sys, time
from pathlib import Path

import crowd
import postgres_server

def test_starts_what_has_to_be_ended():
    pids = [os.getpid()]
    sleep = [sys.executable, "-c", "import time; time.sleep(600)"]
    pids += [subprocess.Popen(sleep, start_new_session=True).pid, subprocess.Popen(sleep).pid]
    pids.append(crowd.Victim(lambda report: time.sleep(600)).pid)
    places = []
    try:
        server = postgres_server.started()
        pids.append(int((server.place / "data" / "postmaster.pid").read_text().split()[0]))
        places.append(str(server.place))
    except postgres_server.NoServer:
        pass
    written = Path(__file__).with_name("written")
    written.write_text(json.dumps({"pids": pids, "places": places}))
    written.rename(Path(__file__).with_name("started"))
    time.sleep(600)
"""


def running(place: Path, *options: str) -> "subprocess.Popen[bytes]":
    """Start a run of a test that starts servers and waits."""
    (place / "test_starts.py").write_text(STARTS)
    (place / "pytest.ini").write_text("[pytest]\n")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "conftest", "--rootdir", str(place), *options, str(place)]
    path = os.pathsep.join([str(TESTS), str(TESTS / "store"), os.environ.get("PYTHONPATH", "")])
    return subprocess.Popen(
        command,
        cwd=place,
        env={**os.environ, "PYTHONPATH": path},
        stdout=subprocess.DEVNULL,
        start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )


@pytest.fixture
def scene(
    tmp_path: Path, request: pytest.FixtureRequest
) -> Iterator[tuple["subprocess.Popen[bytes]", list[int], list[Path]]]:
    """Give a run, the processes it started (the one that runs the test first), and their directories."""
    run = running(tmp_path, *request.param)
    while not (tmp_path / "started").exists():
        assert run.poll() is None, "the run ended before it had started anything"
        time.sleep(0.05)
    said = json.loads((tmp_path / "started").read_text())
    yield run, said["pids"], [Path(place) for place in said["places"]]
    run.kill()
    run.wait()


def wait_for_the_end(pids: list[int], places: list[Path]) -> None:
    deadline = time.monotonic() + 300
    while any(map(procfs.is_alive, pids)) or any(place.exists() for place in places):
        assert time.monotonic() < deadline, [pid for pid in pids if procfs.is_alive(pid)]
        time.sleep(0.05)


@pytest.mark.parametrize("scene", [["-p", "no:xdist"], ["-n", "1"]], indirect=True, ids=["alone", "xdist"])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL], ids=lambda number: number.name)
def test_a_run_that_is_killed_leaves_nothing_behind(scene, number: signal.Signals) -> None:
    run, pids, places = scene
    os.kill(run.pid, number)
    wait_for_the_end([run.pid, *pids] if number == signal.SIGKILL else pids, places)


@pytest.mark.parametrize("scene", [["-n", "1"]], indirect=True, ids=["xdist"])
def test_a_worker_that_is_killed_leaves_nothing_behind(scene) -> None:
    _, pids, places = scene
    os.kill(pids[0], signal.SIGKILL)
    wait_for_the_end(pids, places)


@pytest.mark.parametrize("scene", [["-n", "1"]], indirect=True, ids=["xdist"])
def test_ctrl_c_leaves_nothing_behind(scene) -> None:
    run, pids, places = scene
    os.killpg(run.pid, signal.SIGINT)
    wait_for_the_end(pids, places)
