"""Tuning beside the program: what calls see, what is tuned how often, and who dies with whom."""

import contextlib
import logging
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from loops import burn

import tunewise as tw
from limits import HANG_S
from tunewise.decision import Failure
from tunewise.measure import procfs
from tunewise.session import background, context, on_call
from tunewise.session.recall import trials
from tunewise.system import fork

PROGRAM = Path(__file__).with_name("beside.py")
POLICY = tw.Policy(min_sample_s=1e-5, timeout_s=60.0)


def spin(n: int, *, steps: int) -> int:
    burn(steps)
    return n


def declared(function: Callable[..., Any] = spin, **facts: Any) -> tw.Implementation:
    facts = {"features": lambda n: {"n": n}, "policy": POLICY, "check": tw.NO_CHECK, "near": 1, **facts}
    decision = tw.Decision("beside", **{"space": tw.Space({"steps": [1, 4]}), "default": {"steps": 4}, **facts})
    return decision.implementation(function)


def runs() -> dict[Any, set[str]]:
    """Return the tuning runs of every problem."""
    found: dict[Any, set[str]] = {}
    for measured in trials("beside"):
        found.setdefault(measured.subject.problem["n"], set()).add(measured.trial.run)
    return found


@pytest.fixture(autouse=True)
def finished() -> Iterator[None]:
    """Let nothing go on after a test, and the process have spent nothing before it."""
    on_call._spent.seconds = 0.0
    yield
    assert background.wait(HANG_S)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A directory that other processes write into."""
    (tmp_path / "place").mkdir()
    return tmp_path / "place"


def test_calls_go_on_with_the_default_and_the_winner_is_picked_up() -> None:
    work = declared()
    with tw.mode("tune", background=True):
        assert work.decide(1).rung == "default"
        assert background.wait(HANG_S)
        assert (work.decide(1).rung, work.decide(1).config) == ("memory", {"steps": 1})
    assert work.decide(1).rung == "memory"


def test_the_winner_is_at_hand_without_a_look_at_the_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    work = declared()
    with tw.mode("tune", background=True):
        work(1)
        assert background.wait(HANG_S)
        monkeypatch.setattr(context, "current_store", None)
        assert work.decide(1).rung == "memory"


def test_a_switch_tunes_in_the_background_too() -> None:
    work = declared(switch=lambda: context.frame("tune", background=True))
    assert work.decide(1).rung == "default"
    assert background.wait(HANG_S)
    assert work.decide(1).rung == "memory"


def test_nothing_is_tuned_twice_whatever_threads_ask() -> None:
    work = declared()

    def ask() -> None:
        with tw.mode("tune", background=True):
            for n in (1, 2, 3) * 20:
                work(n)

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert background.wait(HANG_S)
    ask()
    assert background.wait(HANG_S)
    assert {n: len(found) for n, found in runs().items()} == {1: 1, 2: 1, 3: 1}


def test_one_child_at_a_time_measures(place: Path) -> None:
    def work(n: int, *, steps: int) -> int:
        mine = place / str(os.getpid())
        mine.touch()
        (place / f"seen-{len([one for one in place.iterdir() if one.name.isdigit()])}").touch()
        burn(steps)
        mine.unlink()
        return n

    made = declared(work)
    with tw.mode("tune", background=True):
        for n in (1, 2, 3):
            made.decide(n)
        assert background.wait(HANG_S)
    assert [one.name for one in place.iterdir()] == ["seen-1"]


def test_within_a_bucket_the_winner_is_picked_up_for_every_value() -> None:
    work = declared(buckets={"n": [10]})
    with tw.mode("tune", background=True):
        for n in (3, 4):
            work(n)
        assert background.wait(HANG_S)
        assert {work.decide(n).rung for n in (3, 4, 5)} == {"memory"}
    assert len(runs()) == 1


def test_what_is_accepted_is_not_tuned_in_the_background() -> None:
    work = declared(near=2)
    work.tune(8)
    with tw.mode("tune", background=True, accept=["near"]):
        assert work.decide(9).rung == "near"
    assert background.wait(0)
    assert set(runs()) == {8}


def test_a_candidate_that_crashes_hurts_nobody() -> None:
    def work(n: int, *, steps: int) -> int:
        if steps == 1:
            os.kill(os.getpid(), signal.SIGSEGV)
        return n

    made = declared(work)
    with tw.mode("tune", background=True):
        made.decide(1)
        assert background.wait(HANG_S)
        assert made.decide(1).config == {"steps": 4}
    assert {m.trial.outcome.kind for m in trials("beside") if isinstance(m.trial.outcome, Failure)} == {"crash"}


def test_a_child_that_breaks_is_logged_and_the_next_problem_is_tuned(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    inputs: dict[str, Any] = {"inputs": lambda problem, seed: os._exit(7) if problem["n"] == 1 else (2,)}
    work = declared(check=tw.Check(), **inputs)
    with caplog.at_level(logging.WARNING), tw.mode("tune", background=True):
        work.decide(1)
        work.decide(2)
        assert background.wait(HANG_S)
        assert [work.decide(n).rung for n in (1, 2)] == ["default", "memory"]
    assert "beside (n=1): its tuning in the background ended with exit code 7" in caplog.text


def test_what_cannot_be_forked_is_tuned_in_a_thread_of_the_program() -> None:
    where: set[int] = set()

    def work(n: int, *, steps: int) -> int:
        where.add(os.getpid())
        burn(steps)
        return n

    made = declared(work, policy=tw.Policy(isolation="none", min_sample_s=1e-5))
    with tw.mode("tune", background=True):
        made.decide(1)
        assert background.wait(HANG_S)
        assert made.decide(1).rung == "memory"
    assert where == {os.getpid()}


@contextlib.contextmanager
def busy() -> Iterator[None]:
    """Keep the background busy for the length of the block."""
    gate = threading.Event()
    background.submit(background.Job("gate", False, 1, lambda: True, lambda: gate.wait(HANG_S) and None, id, list))
    yield
    gate.set()


def test_arguments_that_the_program_has_changed_meanwhile_are_not_filed_under_the_old_problem() -> None:
    work = declared(lambda rows, *, steps: burn(steps), features=lambda rows: {"n": len(rows)})
    kept, changed = [1], [1, 2]
    with tw.mode("tune", background=True), busy():
        work.decide(kept)
        work.decide(changed)
        changed.append(3)
    assert background.wait(HANG_S)
    assert set(runs()) == {1}


def test_changes_made_while_a_child_measures_do_not_reach_it() -> None:
    work = declared(
        lambda rows, *, steps: burn(steps) or list(rows), features=lambda rows: {"n": len(rows)}, check=tw.Check()
    )
    rows = [0.0, 0.0]
    with tw.mode("tune", background=True):
        work.decide(rows)
        while not background.wait(0):
            rows[0] += 1.0
        assert work.decide(rows).rung == "memory"
    assert not [m for m in trials("beside") if isinstance(m.trial.outcome, Failure)]


def test_what_finds_too_many_waiting_is_asked_for_again_by_a_later_call(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(background, "_MOST_WAITING", 2)
    monkeypatch.setattr(background, "_bench", background._Bench())
    work = declared()
    with tw.mode("tune", background=True, budget=1):
        with busy():
            while not background._bench._waiting.empty():
                time.sleep(0.001)  # until the gate is being waited for
            for n in (1, 2, 3):
                work.decide(n)
        assert background.wait(HANG_S)
        assert [work.decide(n).rung for n in (1, 2, 3)] == ["memory", "memory", "default"]
        assert background.wait(HANG_S)
        assert work.decide(3).rung == "memory"


def test_time_in_the_background_counts_and_what_waits_is_dropped_once_it_is_spent() -> None:
    work = declared()
    with tw.mode("tune", background=True, total_seconds=1e-3):
        for n in (1, 2, 3):
            work.decide(n)
        assert background.wait(HANG_S)
        work.decide(4)
        assert background.wait(0)
    assert set(runs()) == {1}
    assert on_call._spent.seconds > 1e-3


def test_a_thorough_block_tunes_in_the_background_what_a_usual_one_did() -> None:
    work = declared(space=tw.Space({"steps": list(range(1, 9))}), default={"steps": 8})
    for bounds, configs in (({"budget": 3}, 3), ({"thorough": True}, 8)):
        with tw.mode("tune", background=True, **bounds):
            work.decide(1)
            assert background.wait(HANG_S)
            work.decide(1)
            assert background.wait(HANG_S)
        assert len({m.trial.config["steps"] for m in trials("beside")}) == configs


def test_a_forked_child_of_the_program_tunes_for_itself() -> None:
    work = declared()
    with tw.mode("tune", background=True), busy():
        work.decide(1)
        child = fork()
        if child == 0:
            try:
                is_new = background.wait(0) and work.decide(1).rung == "default" and background.wait(HANG_S)
                os._exit(0 if is_new and work.decide(1).rung == "memory" else 1)
            finally:
                os._exit(2)
        assert os.waitpid(child, 0)[1] == 0
    assert background.wait(HANG_S)
    assert len(runs()[1]) == 1  # one of the two has tuned, and the other has heard of it


def test_a_program_that_buries_its_children_itself_gets_its_winner() -> None:
    work = declared()
    before = signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    try:
        with tw.mode("tune", background=True):
            work.decide(1)
            assert background.wait(HANG_S)
            assert work.decide(1).rung == "memory"
    finally:
        signal.signal(signal.SIGCHLD, before)


def start(place: Path, n: int) -> "subprocess.Popen[str]":
    environ = {**os.environ, "BACKGROUND_PLACE": str(place)}
    command = [sys.executable, str(PROGRAM), str(n)]
    return subprocess.Popen(command, env=environ, stdout=subprocess.PIPE, text=True, start_new_session=True)


def measuring(place: Path, process: "subprocess.Popen[str]") -> set[int]:
    """Return the processes below a program, once one of them measures."""
    assert process.stdout is not None
    assert process.stdout.readline() == "called\n"
    while not {int(one.name) for one in place.iterdir()} - {process.pid}:
        time.sleep(0.01)
    return set(procfs.descendants(process.pid))


def test_the_child_and_what_it_started_die_with_a_program_that_is_killed(place: Path) -> None:
    process = start(place, 200)
    others = measuring(place, process)
    process.kill()
    process.communicate()
    deadline = time.monotonic() + HANG_S
    while any(procfs.is_alive(pid) for pid in others):
        assert time.monotonic() < deadline, others
        time.sleep(0.02)


def test_ctrl_c_is_for_the_program_and_the_child_goes_on(place: Path) -> None:
    process = start(place, 5)
    measuring(place, process)
    os.killpg(process.pid, signal.SIGINT)
    out, _ = process.communicate(timeout=HANG_S)
    assert out.split() == ["interrupted", "memory"]
