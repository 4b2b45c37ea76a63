"""The driver against a cluster that is made up: what it does when answers fail, refuse or never come."""

from types import SimpleNamespace

import pytest

from tunewise.decision import canonical
from tunewise.fleet import driver as driving
from tunewise.fleet.plans import FleetPlan, Work


class Gone(Exception):
    """What the made-up Ray raises where an actor is gone."""


class Ref:
    """What stands for an answer."""

    def __init__(self, answer):
        self.answer = answer


class Actor:
    """Answers at once: `answers` maps what is asked to a text, or to an exception that is raised instead."""

    def __init__(self, **answers):
        device = {"device": {"kind": "k", "name": "cpu", "pid": 1}}
        done = {"report": {"state": "done", "known": False, "measured": 1, "why": ""}, "evaluations": 1}
        answers = {"open": device, "work": done, "look": {"evaluations": 1}, "stop": {}, **answers}
        for name, answer in answers.items():
            setattr(self, name, SimpleNamespace(remote=lambda *_, answer=answer: Ref(answer)))


@pytest.fixture
def cluster(monkeypatch, home):
    """A cluster whose nodes and actors a test names."""
    made = SimpleNamespace(nodes=["a"], actors={}, started=[])

    def start(node, gpus, program, opening):
        made.started.append(node)
        return made.actors.get(node, [Actor()]).pop(0) if made.actors.get(node) else Actor()

    def get(ref):
        if isinstance(ref.answer, Exception):
            raise ref.answer
        return canonical.encode(ref.answer)

    ray = SimpleNamespace(wait=lambda refs, num_returns, timeout: (refs, []), get=get, kill=lambda actor: None)
    shape = {"NodeManagerHostname": "host", "NodeManagerAddress": "1.1.1.1", "Resources": {"CPU": 1.0}}
    monkeypatch.setattr(driving.ray_side, "ray", lambda: ray)
    monkeypatch.setattr(driving.ray_side, "failure", lambda: Gone)
    monkeypatch.setattr(driving.ray_side, "start_actor", start)
    monkeypatch.setattr(driving.ray_side, "alive_nodes", lambda: [{**shape, "NodeID": name} for name in made.nodes])
    for name in ("_AGAIN_S", "_NODES_S", "_LOOK_S"):
        monkeypatch.setattr(driving, name, 0.0)
    monkeypatch.setattr(driving, "PATIENCE_S", 0.5)
    return made


def driver(problems=3):
    plan = FleetPlan("p", "tune", 1, (Work("t", tuple({"n": n} for n in range(problems))),))
    return driving.Driver(plan, "tunewise.x", "", SimpleNamespace(send=lambda message: None))


def test_all_units_are_done_once(cluster):
    end = driver().run()
    assert (end["state"], end["done"], end["units"], end["failed"]) == ("done", 3, 3, [])


def test_node_whose_answers_all_fail_at_once_is_lost_once_and_its_unit_done_elsewhere(cluster):
    cluster.nodes, cluster.actors = ["a", "b"], {"a": [Actor(work=Gone(), look=Gone())]}
    end = driver().run()
    assert (end["state"], end["done"], end["failed"]) == ("done", 3, [])


def test_unit_that_kills_every_process_fails_and_the_rest_is_done(cluster):
    cluster.actors = {"a": [Actor(work={"died": "killed by signal 9"})]}
    end = driver(1).run()
    assert (end["state"], end["done"]) == ("done", 0)
    assert "3 times" in end["failed"][0]["why"]


def test_device_that_refuses_is_asked_again_and_then_left_out(cluster):
    cluster.actors = {"a": [Actor(open={"refused": "another store"}) for _ in range(9)]}
    end = driver().run()
    assert (end["state"], end["refused"]) == ("refused", ["another store"])
    assert len(cluster.started) == 3


def test_device_that_refuses_once_takes_part_after_that(cluster):
    cluster.actors = {"a": [Actor(open={"refused": "the store is away"})]}
    assert driver().run()["state"] == "done"


def test_nodes_that_differ_do_all_units_each(cluster):
    cluster.nodes = ["a", "b"]
    cluster.actors = {"b": [Actor(open={"device": {"kind": "other", "name": "gpu", "pid": 2}})]}
    end = driver().run()
    assert (end["state"], end["done"], end["units"]) == ("done", 6, 6)


def test_plan_without_nodes_is_left(cluster):
    cluster.nodes = []
    end = driver().run()
    assert (end["state"], end["done"]) == ("left", 0)


def test_machines_that_would_share_a_file_are_refused(cluster, monkeypatch):
    shape = {"NodeManagerHostname": "h", "Resources": {"CPU": 1.0}}
    nodes = [{**shape, "NodeID": name, "NodeManagerAddress": name} for name in ("1.1.1.1", "2.2.2.2")]
    monkeypatch.setattr(driving.ray_side, "alive_nodes", lambda: nodes)
    with pytest.raises(driving.StoreError, match="TUNEWISE_STORE"):
        driver().run()


def test_driver_that_is_stopped_hands_out_nothing_more(cluster):
    stopped = driver()
    stopped.stop()
    end = stopped.run()
    assert (end["state"], end["done"]) == ("stopped", 0)
