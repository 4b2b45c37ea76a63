"""Ctrl-C while a program waits for a tuning run: real processes, real signals."""

import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from loops import Loop

import tunewise as tw
from limits import HANG_S
from tunewise.session import context, on_call
from tunewise.session.events import Stopping
from tunewise.session.recall import trials, winners

PROGRAM = Path(__file__).with_name("patience.py")
SPACE = 36


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "log"


def start(log: Path, *, waits_after: int = 0) -> "subprocess.Popen[str]":
    pipes: dict[str, Any] = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    environ = {**os.environ, "EVALUATION_LOG": str(log)}
    command = [sys.executable, str(PROGRAM), str(waits_after)]
    return subprocess.Popen(command, env=environ, text=True, start_new_session=True, **pipes)


def told(process: "subprocess.Popen[str]", lines: int) -> list[dict[str, Any]]:
    assert process.stdout is not None
    return [json.loads(process.stdout.readline()) for _ in range(lines)]


def finish(process: "subprocess.Popen[str]") -> list[dict[str, Any]]:
    out, err = process.communicate("\n", timeout=HANG_S)
    assert process.returncode == 0, err
    return [json.loads(line) for line in out.splitlines()]


def press(process: "subprocess.Popen[str]") -> None:
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does: every process of the group


def stopped(log: Path, after: int = 5) -> list[dict[str, Any]]:
    """Run until so many configs are measured, press Ctrl-C, and return what the program told after that."""
    process = start(log, waits_after=after)
    told(process, after)
    press(process)
    assert told(process, 1) == [{"stopping": True}]
    return finish(process)


def first_measurements() -> list[Any]:
    tw.configure()
    return [m.trial.config for m in trials("killed") if m.trial.source not in ("race", "check", "final")]


def test_the_first_ctrl_c_ends_the_search_and_the_program_goes_on_with_the_best_so_far(log: Path) -> None:
    answer, again = stopped(log, 5)
    assert "stopped" in answer["reason"]
    assert answer["answer"] == again["again"]
    assert answer["answer"] in first_measurements()
    assert len(first_measurements()) == 5
    assert winners("killed") == []


def test_the_next_process_goes_on_from_there_and_measures_nothing_again(log: Path) -> None:
    stopped(log, 5)
    before = first_measurements()
    evaluated = [entry["config"] for entry in finish(start(log)) if "config" in entry]
    assert len(evaluated) == SPACE - 5
    assert [config for config in evaluated if config in before] == []
    assert [entry for entry in finish(start(log)) if "config" in entry] == []
    assert len(winners("killed")) == 1


def test_the_second_ctrl_c_interrupts_as_usual(log: Path) -> None:
    process = start(log, waits_after=5)
    told(process, 5)
    press(process)
    told(process, 1)
    press(process)
    assert finish(process) == [{"interrupted": True}]
    assert winners("killed") == []


def test_the_handler_of_the_program_is_back_after_a_run() -> None:
    before = signal.getsignal(signal.SIGINT)
    it = Loop()
    seen: list[Any] = []
    frame = context.frame("tune", is_patient=True, listener=lambda event: seen.append(signal.getsignal(signal.SIGINT)))
    with context.within(frame):
        it.loop(8)
    assert seen[0] is not before
    assert signal.getsignal(signal.SIGINT) is before


def test_the_second_signal_goes_to_the_handler_that_the_program_had() -> None:
    taken: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, stack: taken.append(number))
    try:
        with on_call.spending(context.frame("tune", is_patient=True)) as plan:
            signal.raise_signal(signal.SIGINT)
            assert plan["stop"]()
            assert taken == []
            signal.raise_signal(signal.SIGINT)
            assert taken == [signal.SIGINT]
    finally:
        signal.signal(signal.SIGINT, before)


def test_a_program_that_ignores_ctrl_c_goes_on_ignoring_it() -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with on_call.spending(context.frame("tune", is_patient=True)) as plan:
            signal.raise_signal(signal.SIGINT)
            assert not plan["stop"]()
    finally:
        signal.signal(signal.SIGINT, before)


def test_a_run_of_another_thread_leaves_signals_alone() -> None:
    before, seen = signal.getsignal(signal.SIGINT), []

    def call() -> None:
        with on_call.spending(context.frame("tune", is_patient=True)):
            seen.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=call)
    thread.start()
    thread.join()
    assert seen == [before]


def test_a_listener_that_cannot_write_within_a_signal_does_no_harm() -> None:
    def listen(event: object) -> None:
        if isinstance(event, Stopping):
            raise RuntimeError("reentrant call inside a writer")

    with on_call.spending(context.frame("tune", is_patient=True, listener=listen)) as plan:
        signal.raise_signal(signal.SIGINT)
        assert plan["stop"]()
