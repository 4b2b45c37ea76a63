"""Plans on a real cluster of three Ray nodes: finished, gone on with, stopped, and hurt in the middle."""

import os
import random
import signal
import stat
import time
from pathlib import Path

import fleets
import pytest

from tunewise.store import store_at

pytest.importorskip("ray", reason="ray is not installed: pip install 'tunewise[ray]'")

CONFIGS, PROBLEMS = 96, 2

TOY = """
import os
import tunewise as tw

toy = tw.Decision(
    "toy",
    space=tw.Space({"work": [1, 2, 4]}),
    default={"work": 4},
    features=lambda n: {"n": n},
    inputs=lambda problem, seed: (int(problem["n"]),) if problem["n"] != 13 else os.abort(),
)

@toy.implementation
def run(n, *, work):
    for _ in range(n * work):
        pass
    return n
"""


@pytest.fixture
def plan(tmp_path):
    return fleets.write_plan(tmp_path, budget=CONFIGS, problems=PROBLEMS)


def assert_all_measured_once(store, acknowledged=()):
    counted = fleets.counts(store)
    assert [(len(each), max(each.values())) for each in counted] == [(CONFIGS, 1)] * PROBLEMS
    assert all(store.verdicts(subject) for subject in store.subjects())
    kept = fleets.trials(store)
    assert [trial for trial in acknowledged if trial not in kept] == []


def test_stopped_plan_is_gone_on_with_and_a_node_killed_in_the_middle_costs_nothing(home, plan, nodes):
    run = fleets.started(home, plan, joins=nodes)
    acknowledged = run.wait_for_trials(16)
    run.process.send_signal(signal.SIGINT)
    code, said, err = run.end()
    assert (code, said["state"]) == (130, "stopped")
    assert "run the same command again" in err
    assert run.leftovers() == []
    stopped_at = len(fleets.trials(run.store))
    again = fleets.started(home, plan, joins=nodes)
    acknowledged += again.wait_for_trials(stopped_at + 16)
    (head,) = fleets.below("head", nodes._keeper.pid)
    others = [pid for pid in fleets.below("raylet", nodes._keeper.pid) if os.getpgid(pid) != os.getpgid(head)]
    os.kill(random.choice(others), signal.SIGKILL)
    code, said, err = again.end()
    assert (code, said["state"], said["failed"]) == (0, "done", []), err
    assert_all_measured_once(run.store, acknowledged)
    assert again.leftovers() == []


def test_unit_that_kills_its_process_fails_alone(home, tmp_path, nodes):
    (tmp_path / "toy.py").write_text(TOY)
    (tmp_path / "plan.toml").write_text(
        'kind = "tune"\nbudget = 3\n[[work]]\ntarget = "toy.py:toy"\nproblems = [{n = 100}, {n = 13}, {n = 200}]\n'
    )
    run = fleets.started(home, tmp_path / "plan.toml", joins=nodes)
    code, said, err = run.end()
    assert (code, said["done"]) == (1, 2), err
    (failed,) = said["failed"]
    assert "n=13" in failed["unit"]
    assert "died 3 times" in failed["why"]
    store = store_at(home)
    assert {subject.problem["n"] for subject in store.subjects("toy") if store.verdicts(subject)} == {100, 200}


def test_a_node_whose_agent_died_is_started_again(home, plan, nodes):
    nodes.news()
    (head,) = fleets.below("head", nodes._keeper.pid)
    agents = set(fleets.below("agent", nodes._keeper.pid))
    killed = next(pid for pid in agents if os.getpgid(pid) != os.getpgid(head))
    os.kill(killed, signal.SIGKILL)
    fleets.wait_until(lambda: len(set(fleets.below("agent", nodes._keeper.pid)) - {killed}) == len(agents))
    (said,) = nodes.news()
    assert said.endswith("of 3 is gone (Ray ended its raylet, as it does when an agent dies): starting it again")
    run = fleets.started(home, plan, joins=nodes)
    code, _, err = run.end()
    assert (code, err.count("takes part")) == (0, 3), err


def test_a_cluster_whose_heads_agent_died_is_started_again(home, plan):
    run = fleets.started(home, plan, "--local-nodes", "1")
    acknowledged = run.wait_for_trials(8)
    (agent,) = run.below("agent")
    os.kill(agent, signal.SIGKILL)
    code, said, err = run.end()
    assert (code, said["state"], said["restarts"]) == (0, "done", 1), err
    assert "the head of the cluster is gone" in err
    assert_all_measured_once(run.store, acknowledged)
    assert run.leftovers() == []


def test_nodes_on_this_machine_are_for_its_user_alone(nodes):
    place = Path(nodes._place)
    assert stat.S_IMODE(place.stat().st_mode) == 0o700  # Ray lets everybody write to what is in it
    assert "RAY_AUTH_MODE=token" in nodes.environment


@pytest.mark.full
def test_killed_driver_is_started_again_and_the_plan_is_known_after_that(home, plan, nodes):
    run = fleets.started(home, plan, joins=nodes)
    acknowledged = run.wait_for_trials(16)
    (driver,) = run.below("driver")
    os.kill(driver, signal.SIGKILL)
    code, said, _ = run.end()
    assert (code, said["restarts"]) == (0, 1)
    assert_all_measured_once(run.store, acknowledged)
    before = len(fleets.trials(run.store))
    code, said, _ = fleets.started(home, plan, joins=nodes).end()
    assert (code, said["done"], said["known"], said["evaluations"]) == (0, said["units"], said["units"], 0)
    assert len(fleets.trials(run.store)) == before


def _hurt(run, server, url, plan, role):
    """Kill one process of a role; return the command that ends the plan."""
    if role == "server":
        server.stop("immediate")
        time.sleep(0.5)
        server.start()
    elif role == "client":
        run.process.kill()
        run.process.communicate()
        assert run.leftovers() == []
        return fleets.started(url, plan, "--local-nodes", "3")
    else:
        found = run.below(role)
        if found:  # a small plan may be over
            os.kill(random.choice(found), signal.SIGKILL)
    return run


def _killed_at_random(server, tmp_path, roles, seed):
    rng = random.Random(seed)
    for place, role in enumerate(roles):
        url = server.database()
        (tmp_path / str(place)).mkdir()
        plan = fleets.write_plan(tmp_path / str(place), budget=CONFIGS, pause_s=0.05, problems=PROBLEMS)
        run = fleets.started(url, plan, "--local-nodes", "3")
        acknowledged = run.wait_for_trials(rng.randrange(8, CONFIGS))
        last = _hurt(run, server, url, plan, role)
        code, said, err = last.end()
        assert (code, said["state"], said["failed"]) == (0, "done", []), f"{role}: {err}"
        assert_all_measured_once(run.store, acknowledged)
        assert last.leftovers() == []
        run.store.close()
        last.store.close()
        server.give_back(url)


@pytest.mark.full
def test_20_kills_of_any_one_process_lose_nothing(postgres, tmp_path):
    roles = [*fleets.ROLES, "client", "server"]
    rng = random.Random(8)
    _killed_at_random(postgres, tmp_path, [*roles, *rng.choices(roles, k=20 - len(roles))], 1)
