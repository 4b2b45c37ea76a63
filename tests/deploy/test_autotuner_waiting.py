"""Somebody waits for a first call: told how far it is and how to stop waiting, and Ctrl-C does what it says."""

import json
import os
import pty
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from limits import HANG_S

PROGRAM = Path(__file__).with_name("autotuner_program.py")


class Waiting:
    """A process that tunes in a group of its own, as a terminal would start it, and all that it writes to stderr."""

    def __init__(self, *arguments: str, terminal: bool = False, **variables: str) -> None:
        ours, theirs = pty.openpty() if terminal else os.pipe()
        self.process = subprocess.Popen(
            [sys.executable, str(PROGRAM), *arguments],
            env={**os.environ, "SLOWLIB_LOG_LEVEL": "error", **variables},
            stdout=subprocess.PIPE,
            stderr=theirs,
            text=True,
            start_new_session=True,
        )
        os.close(theirs)
        self._descriptor, self.err = ours, ""
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        with open(self._descriptor, "rb", buffering=0) as file:
            while True:
                try:
                    piece = file.read(4096)
                except OSError:  # how a terminal says that the other side is gone
                    return
                if not piece:
                    return
                self.err += piece.decode()

    def until(self, has: Callable[[str], bool]) -> None:
        """Wait until stderr has something."""
        deadline = time.monotonic() + HANG_S
        while not has(self.err):
            assert self.process.poll() is None, self.err
            assert time.monotonic() < deadline, self.err
            time.sleep(0.01)

    def interrupt(self) -> None:
        """Press Ctrl-C: everything in the group hears it."""
        os.killpg(self.process.pid, signal.SIGINT)

    def end(self) -> str:
        """Return what it printed, once it is over."""
        said, _ = self.process.communicate(timeout=HANG_S)
        self._reader.join(HANG_S)
        return str(said)


@pytest.fixture
def start() -> Iterator[Callable[..., Waiting]]:
    started: list[Waiting] = []

    def begin(*arguments: str, **options: Any) -> Waiting:
        started.append(Waiting(*arguments, **options))
        return started[-1]

    yield begin
    for one in started:
        if one.process.poll() is None:
            os.killpg(one.process.pid, signal.SIGKILL)
            one.end()


def test_ctrl_c_goes_on_with_the_best_so_far_and_the_next_process_with_the_search(
    start: Callable[..., Waiting],
) -> None:
    first = start("600", "0.4", SLOWLIB_LOG_LEVEL="debug")
    first.until(lambda err: err.count("proposed by") >= 4)
    first.interrupt()
    said = json.loads(first.end())
    assert first.process.returncode == 0
    assert 4 <= said["tried"] < 12
    assert said["config"] == said["again"] != {"naps": 0}
    assert (said["failed"], said["concluded"]) == (0, 0)
    assert "stopped, the next process goes on with it" in first.err

    second = start("600", "0.2", SLOWLIB_LOG_LEVEL="debug")
    then = json.loads(second.end())
    assert (then["tried"], then["failed"], then["concluded"]) == (12, 0, 1)
    assert f"{said['tried']} known already" in second.err
    assert second.err.count("proposed by") == 12 - said["tried"]


def test_ctrl_c_twice_interrupts_the_program(start: Callable[..., Waiting]) -> None:
    one = start()
    one.until(lambda err: "Ctrl-C goes on with the best so far" in err)
    one.interrupt()
    one.until(lambda err: "Ctrl-C again interrupts the program" in err)
    one.interrupt()
    assert one.end() == "interrupted\n"
    assert one.process.returncode == -signal.SIGINT
    assert "KeyboardInterrupt" in one.err

    later = start("0.1", "0.1", SLOWLIB_LOG_LEVEL="debug")
    later.end()
    assert re.search(r"tuning, at most 12 configs, [1-9]\d* known already", later.err)


def test_a_long_call_says_how_far_it_is_and_how_to_stop_waiting(start: Callable[..., Waiting]) -> None:
    one = start("3")
    one.end()
    lines = one.err.splitlines()
    told = re.compile(r"slowlib: tuning slowlib\.nap \(n=1\) \d+ of 12 configs, (best \d\.\dx|nothing better than) .*")
    assert 1 <= len(lines) <= 4
    assert all(told.fullmatch(line) and line.endswith("; Ctrl-C goes on with the best so far") for line in lines)


def test_on_a_terminal_the_line_moves_and_is_gone_in_the_end(start: Callable[..., Waiting]) -> None:
    one = start("3", terminal=True)
    one.end()
    assert "\n" not in one.err
    looks = one.err.split("\r")
    told = re.compile(r"slowlib: slowlib\.nap \(n=1\) \d+/12, best \d\.\dx; Ctrl-C goes on")
    assert all(told.fullmatch(look.strip()) for look in looks if look.strip())
    assert len(looks) > 4
    assert looks[-1] == ""
    assert looks[-2].strip() == ""
    assert max(map(len, looks)) < 80


def test_who_does_not_want_to_wait_for_another_process_goes_on_with_the_default(start: Callable[..., Waiting]) -> None:
    tuning = start("600", "10", SLOWLIB_LOG_LEVEL="debug")
    tuning.until(lambda err: "proposed by" in err)
    waiting = start()
    waiting.until(lambda err: "slowlib.nap (n=1) in another process; Ctrl-C goes on with the default" in err)
    waiting.interrupt()
    assert json.loads(waiting.end())["config"] == {"naps": 0}
    assert tuning.process.poll() is None


def test_a_quick_call_says_nothing(start: Callable[..., Waiting]) -> None:
    start("0.1", "0.2").end()
    one = start()  # it knows the answer
    one.end()
    assert one.err == ""
