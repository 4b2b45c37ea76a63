"""OpenCL in processes of their own: memory, Ctrl-C, a driver that was started before, and the demo."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from tunewise.cli import demo_opencl
from tunewise.cli.app import app
from tunewise.session.context import current_store
from tunewise.workloads import find

pytestmark = pytest.mark.usefixtures("pocl")

TUNE = ("tune", "opencl-softmax", "--problem", "rows=3,columns=40", "--json")
SMALL = {
    "opencl-gemm": {"m": 17, "n": 33, "k": 9},
    "opencl-conv2d": {"h": 20, "w": 21, "fh": 3, "fw": 3},
    "opencl-softmax": {"rows": 3, "columns": 40},
}
_DEADLINE_S = 120.0


def tunewise(*words: str, **env: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "tunewise", *words]
    return subprocess.run(
        command, capture_output=True, text=True, timeout=_DEADLINE_S, env={**os.environ, **env}, check=False
    )


def test_a_second_process_answers_from_memory_with_the_winner_or_the_default() -> None:
    decision = find("opencl-softmax")
    tuning = decision.tune(SMALL["opencl-softmax"], budget=2)
    assert tuning.measured == 2
    assert tuning.verdict is not None
    assert (tuning.answer.config == decision.default) == (tuning.verdict.ending == "tie")
    again = json.loads(tunewise(*TUNE, "--budget", "2").stdout)["tunings"][0]
    assert (again["measured"], again["config"]) == (0, dict(tuning.answer.config))


def test_ctrl_c_keeps_what_was_measured_and_leaves_nobody_behind(home: Path) -> None:
    command = [sys.executable, "-m", "tunewise", *TUNE, "--budget", "100"]
    pipe = subprocess.PIPE
    running = subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True, start_new_session=True)
    wait_until(iter(lambda: len(measured()) >= 2 or running.poll() is not None, None))
    os.killpg(running.pid, signal.SIGINT)
    _, err = running.communicate(timeout=_DEADLINE_S)
    assert running.returncode == 130
    assert err.splitlines()[-1].startswith("interrupted: everything measured so far is kept")
    assert len(measured()) >= 2
    assert processes_of(home) == []


def measured() -> list[Any]:
    store = current_store()
    return [trial for subject in store.subjects("opencl-softmax") for trial in store.trials(subject)]


def wait_until(condition: Iterator[bool]) -> None:
    deadline = time.monotonic() + _DEADLINE_S
    while not next(condition):
        assert time.monotonic() < deadline
        time.sleep(0.05)


def processes_of(home: Path) -> list[str]:
    found = []
    for environ in Path("/proc").glob("[0-9]*/environ"):
        try:
            if str(home).encode() in environ.read_bytes():
                found.append(environ.with_name("cmdline").read_text())
        except OSError:
            continue
    return found


STARTED = """
import os
import numpy as np
from tunewise.measure import InProcess, clruntime, measurer_for
from tunewise.workloads.opencl_softmax import softmax

x = np.ones((2, 5), np.float32)
print(np.allclose(softmax(x), 0.2), clruntime.is_started())
print(isinstance(measurer_for(softmax.task(x).work), InProcess))
# A seed, so that chance does not find a config that a driver hangs on: here nothing can stop it.
print(softmax.tune(x, budget=2, seeds=[{"wg": 32}], heuristics=False).evaluations)
if os.fork() == 0:
    try:
        softmax(x)
    except Exception as error:
        print(type(error).__name__, error, flush=True)
    os._exit(0)
os.wait()
"""


def test_a_process_that_has_started_opencl_measures_in_itself_and_its_forks_say_why_they_cannot() -> None:
    ran = subprocess.run(
        [sys.executable, "-c", STARTED], capture_output=True, text=True, timeout=_DEADLINE_S, check=True
    )
    *said, last = ran.stdout.splitlines()
    assert said == ["True True", "True", "2"]
    assert last.startswith("KernelError OpenCL was started before this process was forked")


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo_opencl, "PROBLEMS", SMALL)


def test_the_demo_tunes_shows_failures_by_kind_and_remembers(small: None) -> None:
    first = CliRunner().invoke(app, ["demo", "--backend", "opencl", "--budget", "2", "--json"])
    told = json.loads(first.stdout)
    assert [row["decision"] for row in told["tunings"]] == list(SMALL)
    assert [row["measured"] for row in told["tunings"]] == [2, 2, 2]
    assert told["measured_again"] == 0
    failed = told["tunings"][0]["failures"]["constraints"]
    assert failed["count"] == 1
    assert "more than the" in failed["detail"]
    again = CliRunner().invoke(app, ["demo", "--backend", "opencl", "--budget", "2"])
    assert again.exit_code == 0
    assert "Nothing was measured: all of this was known" in again.stdout
    assert "1 constraints" in again.stdout
    assert "opencl-gemm, constraints: gemm.cl with " in again.stdout


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--backend", "opencl", "--device", "none such"), "there is no OpenCL device 'none such'; there are 0: "),
        (("--device", "0"), "--device needs --backend opencl."),
        (("--backend", "opencl", "--problems", "9"), "--problems is for the C kernels"),
    ],
)
def test_options_that_do_not_fit_are_refused(words: tuple[str, ...], told: str) -> None:
    result = CliRunner().invoke(app, ["demo", *words])
    assert result.exit_code != 0
    assert told in result.stderr
