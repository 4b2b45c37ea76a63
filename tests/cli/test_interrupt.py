"""Ctrl-C, a reader that goes away, and two at the same time."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import pytest

from limits import HANG_S
from tunewise.cli import main
from tunewise.session.context import current_store

SLOW = """
import time
import tunewise as tw

slow = tw.Decision("slow", space=tw.Space({"x": list(range(12))}), default={"x": 0},
                   features=lambda n: {"n": n}, inputs=lambda problem, seed: (problem["n"],),
                   policy=tw.Policy(clock="wall"))

@slow.implementation
def run(n, *, x):
    time.sleep(0.01 * (1 + x))
    return n
"""


@pytest.fixture
def target(tmp_path: Path) -> str:
    path = tmp_path / "slow.py"
    path.write_text(SLOW)
    return f"{path}:slow"


def command(*words: str) -> list[str]:
    return [sys.executable, "-m", "tunewise", *words]


def start(*words: str) -> "subprocess.Popen[str]":
    pipe = subprocess.PIPE
    return subprocess.Popen(command(*words), stdout=pipe, stderr=pipe, text=True, start_new_session=True)


def measured() -> int:
    return sum(len({str(t.config) for t in current_store().trials(s)}) for s in current_store().subjects("slow"))


def wait_until(condition: Iterator[bool]) -> None:
    deadline = time.monotonic() + HANG_S
    while not next(condition):
        assert time.monotonic() < deadline
        time.sleep(0.05)


def left_over(home: Path) -> list[str]:
    """Return the processes that were started with this home and live on."""
    found = []
    for environ in Path("/proc").glob("[0-9]*/environ"):
        try:
            if str(home).encode() in environ.read_bytes():
                found.append(environ.with_name("cmdline").read_text())
        except OSError:
            continue
    return found


@pytest.mark.parametrize("send", [os.killpg, os.kill], ids=["terminal", "kill"])
def test_ctrl_c_keeps_what_was_measured_and_the_next_run_goes_on(
    target: str, home: Path, send: Callable[[int, int], None]
) -> None:
    words = ("tune", target, "--problem", "n=1", "--json")
    running = start(*words)
    wait_until(iter(lambda: measured() >= 3, None))
    send(running.pid, signal.SIGINT)  # a terminal sends it to everyone at once, `kill` to one process
    out, err = running.communicate(timeout=HANG_S)
    assert running.returncode == 130
    assert out == ""
    assert "Traceback" not in err
    assert err.splitlines()[-1].startswith("interrupted: everything measured so far is kept; run the same command")
    assert left_over(home) == []
    kept = measured()
    again = subprocess.run(command(*words), capture_output=True, text=True, timeout=HANG_S, check=True)
    assert json.loads(again.stdout)["tunings"][0]["measured"] <= 12 - kept + 1
    assert measured() == 12


def test_two_that_tune_the_same_measure_it_once(target: str) -> None:
    words = ("tune", target, "--problem", "n=1", "--json")
    both = [start(*words) for _ in range(2)]
    ended = [running.communicate(timeout=HANG_S) for running in both]
    rows = [json.loads(out)["tunings"][0] for out, _ in ended]
    assert sorted(row["measured"] for row in rows) == [0, 12]
    assert rows[0]["config"] == rows[1]["config"]


def test_who_does_not_wait_gets_the_default(target: str) -> None:
    Path(target.rpartition(":")[0]).write_text(SLOW.replace("0.01", "0.5"))  # still at it when the other one asks
    running = start("tune", target, "--problem", "n=1")
    wait_until(iter(lambda: measured() >= 1, None))
    other = subprocess.run(
        command("tune", target, "--problem", "n=1", "--wait", "0", "--json"),
        capture_output=True,
        text=True,
        timeout=HANG_S,
        check=True,
    )
    row = json.loads(other.stdout)["tunings"][0]
    assert (row["ending"], row["config"], row["measured"]) == (None, {"x": 0}, 0)
    assert "another process is tuning this" in other.stderr
    os.killpg(running.pid, signal.SIGINT)
    running.communicate(timeout=HANG_S)
    assert running.returncode == 130


def test_a_reader_that_goes_away_is_no_error() -> None:
    running = subprocess.Popen(command("doctor"), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert running.stdout is not None
    assert running.stderr is not None
    running.stdout.close()
    assert running.stderr.read() == b""
    running.stderr.close()
    running.wait(timeout=HANG_S)


def test_ctrl_c_while_the_command_line_is_loaded_is_no_traceback(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Halfway(ModuleType):
        def __getattr__(self, name: str) -> object:
            raise KeyboardInterrupt

    monkeypatch.setitem(sys.modules, "tunewise.cli.app", Halfway("tunewise.cli.app"))
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 130
    assert capsys.readouterr().err == "interrupted\n"
