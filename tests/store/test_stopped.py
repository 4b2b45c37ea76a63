"""Writers and servers that are stopped, as by Ctrl-Z, a debugger or `docker pause`: nobody waits for them for long."""

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import postgres_server
import pytest
from crowd import Victim

import tunewise as tw
from limits import HANG_S
from tunewise.errors import MeasureWarning, StoreWarning
from tunewise.session import context, tune
from tunewise.store import SqliteStore, guard, locks
from tunewise.testing.store_contract import subject, timed


@pytest.fixture(autouse=True)
def _unwarned(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guard, "_warned", threading.Event())


@pytest.fixture
def decision() -> tw.Decision:
    return tw.Decision("asked", space=tw.Space({"tile": [1, 2, 4]}), default={"tile": 1}, features=lambda n: {"n": n})


@pytest.fixture
def stopped(home: Path, decision: tw.Decision) -> Iterator[Victim]:
    """Give a process that was stopped in the middle of a write, in a store that this process has open."""
    decision.decide({"n": 0})
    context.current_store().info()  # what was asked is written

    def work(report):
        with SqliteStore(home)._database.writing():
            report("writing")
            time.sleep(600)

    victim = Victim(work)
    victim.wait_for("writing")
    os.kill(victim.pid, signal.SIGSTOP)
    yield victim
    victim.kill()


def test_a_stopped_writer_delays_no_question(stopped: Victim, decision: tw.Decision) -> None:
    for n in range(200):
        assert decision.decide({"n": n}).rung == "default"
    assert decision.explain({"n": 7}).answer.rung == "default"
    decision.forget()
    assert decision.decide({"n": 7}).rung == "default"
    assert _is_stopped(stopped.pid)


def test_what_a_stopped_writer_keeps_from_the_file_is_kept_in_memory_and_written_later(
    home: Path, stopped: Victim, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(locks, "WRITER_WAIT_S", 0.2)
    store = context.current_store()
    with pytest.warns(
        StoreWarning, match=rf"process {stopped.pid} \(.*, which is stopped\) has been writing to .*memory"
    ):
        store.add(subject(), [timed(8)])
    store.add(subject(), [timed(9)])  # says nothing more, and waits for nothing
    assert store.trials(subject()) == [timed(8), timed(9)]
    assert _is_stopped(stopped.pid)
    os.kill(stopped.pid, signal.SIGKILL)
    store.close()
    assert SqliteStore(home).trials(subject()) == [timed(8), timed(9)]


def test_a_program_ends_although_a_writer_is_stopped(stopped: Victim, monkeypatch: pytest.MonkeyPatch) -> None:
    store = context.current_store()
    monkeypatch.setattr(guard, "_CLOSED_S", 0.2)
    store.miss(subject())
    store.close()
    assert _is_stopped(stopped.pid)


def test_a_stopped_tuner_is_named_and_waited_for_no_more(
    home: Path, decision: tw.Decision, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tune, "_STOPPED_S", 0.3)
    made = decision.implementation(lambda n, *, tile: None)

    def work(report):
        with SqliteStore(home).flight(decision.subject(decision.problem({"n": 7}))):
            report("tuning")
            time.sleep(600)

    victim = Victim(work)
    victim.wait_for("tuning")
    os.kill(victim.pid, signal.SIGSTOP)
    try:
        with pytest.warns(MeasureWarning, match=rf"process {victim.pid} \(.*, which is stopped\) is tuning \(n=7\)"):
            tuning = made.tune(7)
        assert (tuning.answer.rung, tuning.is_stopped) == ("default", True)
    finally:
        victim.kill()
    assert made.tune(7).verdict is not None


@pytest.fixture
def hung(
    url: str, server: postgres_server.PgServer, decision: tw.Decision, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[[], None]]:
    """Let a server hang that this process has asked before, and give what makes it go on."""
    tw.configure(store=url)
    assert decision.decide({"n": 0}).rung == "default"
    context.current_store().info()
    pids = [int(pid) for (pid,) in server.sql("SELECT pid FROM pg_stat_activity WHERE pid <> pg_backend_pid()")]
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)

    def go_on() -> None:
        for pid in pids:
            os.kill(pid, signal.SIGCONT)

    yield go_on
    go_on()
    tw.configure()


@pytest.mark.usefixtures("hung")
def test_a_server_that_hangs_delays_no_question(decision: tw.Decision) -> None:
    with pytest.warns(StoreWarning, match="has not answered within"):
        decision.decide({"n": 1})
    began = time.monotonic()
    for n in range(200):
        assert decision.decide({"n": n}).rung == "default"
    assert time.monotonic() - began < 30  # a call that waited for the server would take a minute


def test_a_server_that_goes_on_is_looked_up_again_at_once(
    hung: Callable[[], None], decision: tw.Decision, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = context.current_store()
    monkeypatch.setattr(store._top._guard, "_retry_s", 3600.0)
    with pytest.warns(StoreWarning, match="has not answered within"):
        decision.decide({"n": 1})
    hung()
    deadline = time.monotonic() + HANG_S
    while store.info().trouble is not None:
        assert time.monotonic() < deadline
        time.sleep(0.05)


def _is_stopped(pid: int) -> bool:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "T"
