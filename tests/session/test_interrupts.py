"""Exceptions from signals in the middle of a call: nothing stays open or locked, for this process or any other."""

import functools
import inspect
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import tunewise as tw
from tunewise.session import context
from tunewise.store import SqliteStore, byte_locks
from tunewise.store.database import FILE_NAME, LOCK_NAME

PROGRAM = Path(__file__).with_name("interrupted_calls.py")
_PATIENCE_S = 300  # a hang is what is looked for, not a slow machine


def interrupted(calls: int, seed: int) -> dict[str, Any]:
    """Return what a program says after so many calls; it has to end by itself, without a word about trouble."""
    command = [sys.executable, str(PROGRAM), str(calls), str(seed)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=_PATIENCE_S)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""  # no warning either
    said: dict[str, Any] = json.loads(done.stdout)
    return said


def check_that_nothing_is_left(home: Path) -> None:
    fd = os.open(home / LOCK_NAME, os.O_RDWR)
    try:
        assert byte_locks.holder(fd, 0) is None
    finally:
        os.close(fd)
    with SqliteStore(home)._database.writing() as db:
        assert db.execute("SELECT count(*) FROM misses").fetchone()[0] > 0
    assert not (home / f"{FILE_NAME}.damaged-1").exists()


def test_interrupts_leave_no_transaction_and_no_lock(home: Path) -> None:
    said = interrupted(3000, 1)
    assert said["interrupts"] > 0
    assert said["in_handler"] == said["interrupts"]
    check_that_nothing_is_left(home)


@pytest.mark.full
def test_interrupts_of_twenty_programs_leave_no_transaction_and_no_lock(home: Path) -> None:
    for seed in range(20):
        assert interrupted(3000, seed)["interrupts"] > 0
        check_that_nothing_is_left(home)


@pytest.fixture
def decision(home: Path) -> tw.Decision:
    """Return a decision that has been asked once, so that the store is open."""
    made = tw.Decision("asked", space=tw.Space({"tile": [1, 2, 4]}), default={"tile": 1})
    made.decide({"n": 0})
    return made


def test_every_function_that_a_call_runs_may_be_interrupted(decision: tw.Decision) -> None:
    """Raise where a function begins that a look-up calls in the caller's thread, at each of them once."""
    for place in range(10_000):
        if not _raising_at(place, functools.partial(decision.decide, {"n": place})):
            break
    assert 20 < place < 9_000
    assert decision.decide({"n": 10_001}).rung == "default"
    decision.forget()
    assert {miss.problem["n"] for miss in context.current_store().misses("asked")} >= {0, 10_001}


class _Stop(Exception):
    pass


def _raising_at(place: int, call: Callable[[], object]) -> bool:
    """Return whether the call ran as far as that many functions; there, an exception was raised from outside.

    The interpreter runs the handlers of signals where functions begin, where they return to Python and where loops end.
    """
    left = place

    def trace(frame: Any, event: str, argument: object) -> Any:
        nonlocal left
        left -= not frame.f_code.co_flags & inspect.CO_GENERATOR  # these are called once more when they are dropped
        if left < 0:
            sys.settrace(None)
            raise _Stop

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        call()
    except _Stop:
        return True
    finally:
        sys.settrace(before)
    return False
