"""The process of a device and the actor that keeps it, without Ray."""

import os
import signal
import time
from dataclasses import asdict

import pytest
from fleets import RECORDING

from limits import HANG_S
from tunewise.decision import canonical
from tunewise.fleet.actor import DeviceActor
from tunewise.fleet.device import HANDSHAKE, Presence
from tunewise.fleet.patient import PATIENCE_S
from tunewise.fleet.plans import FleetPlan, Work, units, written
from tunewise.measure import procfs
from tunewise.store import Sign, SqliteStore

PROGRAM = "tunewise.cli.fleet_device"
PLAN = FleetPlan("p", "collect", 16, (Work(replay=str(RECORDING), problems=({"size": 1},), size=16, pause_s=0.01),))


@pytest.fixture
def store(home):
    found = SqliteStore(home)
    found.show(Sign(HANDSHAKE, "token", time.time(), {}))
    yield found
    found.close()


def actor(home, plan=PLAN, token="token"):
    opening = canonical.encode({"plan": written(plan), "place": str(home), "token": token})
    return DeviceActor(PROGRAM, opening)


def ended(actor):
    """End the process of an actor as the end of the actor itself does: by closing the pipe."""
    child = actor._child
    child.stdin.close()
    code = child.wait(HANG_S)
    child.stdout.close()
    return code


def test_device_tells_what_it_is_and_does_units(home, store):
    held = actor(home)
    opened = canonical.decode(held.open())
    assert opened["device"]["kind"]
    answers = [canonical.decode(held.work(canonical.encode(asdict(unit)))) for unit in units(PLAN)]
    assert [answer["report"]["state"] for answer in answers] == ["done", "done"]
    assert canonical.decode(held.look())["evaluations"] == 16
    assert ended(held) == -signal.SIGKILL
    assert len({str(trial.config) for subject in store.subjects() for trial in store.trials(subject)}) >= 16


def test_device_that_died_is_started_again(home, store):
    held = actor(home)
    first = canonical.decode(held.open())["device"]["pid"]
    os.kill(first, signal.SIGKILL)
    unit = canonical.encode(asdict(units(PLAN)[0]))
    assert canonical.decode(held.work(unit)) == {"died": "killed by signal 9", "evaluations": 0}
    assert canonical.decode(held.work(unit))["report"]["state"] == "done"
    assert canonical.decode(held.look())["pid"] != first
    ended(held)


def test_evaluations_of_a_process_that_died_still_count(home, store):
    held = actor(home)
    first = canonical.decode(held.open())["device"]["pid"]
    one, end = (canonical.encode(asdict(unit)) for unit in units(PLAN))
    assert canonical.decode(held.work(one))["evaluations"] == 16
    os.kill(first, signal.SIGKILL)
    assert canonical.decode(held.work(end))["evaluations"] == 16
    assert canonical.decode(held.work(end))["evaluations"] == 16
    ended(held)


def test_device_with_another_store_is_refused(home, store):
    held = actor(home / "other", token="unheard")
    (home / "other").mkdir(mode=0o700)
    assert "TUNEWISE_STORE" in canonical.decode(held.open())["refused"]
    ended(held)


def test_device_that_does_not_find_its_target_is_refused(home, store):
    lost = FleetPlan("p", "tune", 1, (Work("nowhere.py:x", ({"n": 1},)),))
    held = actor(home, lost)
    assert "nowhere.py" in canonical.decode(held.open())["refused"]
    ended(held)


def test_device_leaves_nothing_when_its_keeper_is_gone(home, store):
    held = actor(home)
    pid = canonical.decode(held.open())["device"]["pid"]
    ended(held)
    assert not procfs.is_alive(pid)


def test_presence_knows_that_it_was_held_up(monkeypatch):
    now = [0.0]
    monkeypatch.setattr("tunewise.fleet.device._now", lambda: now[0])
    here = Presence()
    now[0] += PATIENCE_S - 1
    here.tick()
    assert not here.is_away()
    now[0] += PATIENCE_S + 1
    assert here.is_away()
    here.tick()
    assert here.is_away()
    here.come_back()
    assert not here.is_away()
