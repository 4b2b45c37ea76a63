"""Many clients of one PostgreSQL server, clients that die, and a server that does."""

import os
import random
import threading
import time

import pytest
from crowd import Victim, crowd, errors

from limits import HANG_S
from tunewise.store import PostgresStore, SafeStore
from tunewise.testing.store_contract import subject, timed, won

CLIENTS, PROBLEMS = 32, 4


def _tune_all(place, url, problems):
    store, ran = PostgresStore(url), []
    for m in range(problems):
        about = subject(m=(m + place) % problems)
        with store.flight(about):
            if not store.verdicts(about):
                store.add(about, [timed(place + 1, run=str(place))] * 20)
                store.conclude(about, won(place + 1))
                ran.append(about.problem["m"])
    found = [store.verdicts(subject(m=m))[-1].winner["tile"] for m in range(problems)]
    store.close()
    return ran, found


def _everybody_tunes(url, problems):
    results = crowd(CLIENTS, _tune_all, url, problems)
    assert errors(results) == []
    assert sorted(m for ran, _ in results for m in ran) == list(range(problems))
    assert len({tuple(found) for _, found in results}) == 1
    info = PostgresStore(url).info()
    assert (info.trials, info.verdicts, info.subjects) == (20 * problems, problems, problems)


def test_32_clients_begin_a_store_and_tune_every_problem_once(url):
    _everybody_tunes(url, PROBLEMS)


@pytest.mark.full
def test_32_clients_tune_100_problems_once(url):
    _everybody_tunes(url, 100)


def _absorb(place, url, records):
    store = PostgresStore(url)
    added = store.absorb(records)
    store.close()
    return added


def test_8_clients_that_bring_the_same_facts_add_them_once(url, tmp_path):
    from tunewise.store import MemoryStore

    source = MemoryStore()
    for m in range(20):
        source.add(subject(m=m), [timed(tile) for tile in range(5)])
        source.conclude(subject(m=m), won())
    added = crowd(8, _absorb, url, list(source.records()))
    assert errors(added) == []
    assert sum(added) == 120
    assert PostgresStore(url).info().trials == 100


def _hold_for_ever(url, with_child=False):
    def work(report):
        store = PostgresStore(url)
        store.flight(subject()).acquire()
        if with_child and os.fork() == 0:
            report(f"child {os.getpid()}")
            report("holding")
            time.sleep(600)
            os._exit(0)
        if not with_child:
            report("holding")
        time.sleep(600)

    return work


def _is_free(url, wait_s):
    store = PostgresStore(url)
    flight = store.flight(subject())
    is_ours = flight.acquire(wait_s)
    flight.release()
    store.close()
    return is_ours


def test_flight_of_a_killed_holder_is_taken_over(url):
    victim = Victim(_hold_for_ever(url))
    victim.wait_for("holding")
    assert not _is_free(url, 0)
    victim.kill()
    assert _is_free(url, 10)


def test_flight_does_not_survive_in_the_children_of_its_holder(url):
    victim = Victim(_hold_for_ever(url, with_child=True))
    victim.wait_for("holding")
    assert not _is_free(url, 0)
    said = victim.kill()
    child = int(next(line for line in said if line.startswith("child")).split()[1])
    try:
        assert os.kill(child, 0) is None
        assert _is_free(url, 10)
    finally:
        os.kill(child, 9)


def test_child_has_a_connection_of_its_own(url):
    store = PostgresStore(url)
    store.add(subject(m=0), [timed(8)])
    ask = "SELECT pg_backend_pid()"

    def work(place):
        store.add(subject(m=1), [timed(place)])
        return store._server.read(lambda db: db.execute(ask).fetchone()[0])

    with store.flight(subject()):
        sessions = crowd(8, work)
        assert errors(sessions) == []
        sessions.append(store._server.read(lambda db: db.execute(ask).fetchone()[0]))
        assert len(set(sessions)) == 9
        assert crowd(1, lambda place: store.flight(subject()).acquire(0)) == [False]
    assert len(store.trials(subject(m=1))) == 8
    store.close()


def test_flight_held_while_the_connection_is_lost_is_held_again(url, server):
    store = PostgresStore(url)
    with store.flight(subject()):
        server.sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'tunewise'")
        store.add(subject(), [timed(8)])
        assert not _is_free(url, 0)
    assert _is_free(url, 0)
    store.close()


def test_closing_the_store_keeps_a_flight(url):
    store = PostgresStore(url)
    with store.flight(subject()):
        store.close()
        assert not _is_free(url, 0)
    store.close()


def test_program_goes_on_while_the_server_restarts_and_loses_nothing(url, server):
    told = []
    store = SafeStore(PostgresStore(url), warn=told.append, retry_s=0.0)
    for tile in range(10):
        store.add(subject(), [timed(tile)])
    assert told == []
    server.stop("immediate")
    try:
        for tile in range(10, 20):
            store.add(subject(), [timed(tile)])
        store.conclude(subject(), won())
        with store.flight(subject()):
            assert [trial.config["tile"] for trial in store.trials(subject())] == list(range(10, 20))
    finally:
        server.start()
    assert "kept in memory" in told[0]
    store.add(subject(), [timed(20)])
    fresh = PostgresStore(url)
    assert [trial.config["tile"] for trial in fresh.trials(subject())] == list(range(21))
    assert fresh.verdicts(subject()) == [won()]
    assert store.info().trouble is None
    fresh.close()
    store.close()


def _add_for_ever(url, run):
    def work(report):
        store, step = SafeStore(PostgresStore(url), warn=lambda text: None, retry_s=0.1), 0
        while True:
            store.add(subject(m=1), [timed(step, run=run)])
            if not store._guard._waiting:  # what waits in memory is not acknowledged by anybody but us
                report(f"on disk {step}")
            step += 1

    return work


def test_clients_killed_at_random_points_lose_and_double_nothing(url):
    rng, acknowledged = random.Random(4), 0
    for kill in range(8):
        victim = Victim(_add_for_ever(url, str(kill)))
        victim.wait_for_lines(1 + rng.randrange(20))
        time.sleep(rng.uniform(0.0, 0.003))
        said = victim.kill()
        steps = [int(line.split()[-1]) for line in said]
        store = PostgresStore(url)
        found = [trial.config["tile"] for trial in store.trials(subject(m=1)) if trial.run == str(kill)]
        store.close()
        assert found == list(range(len(found)))
        assert len(found) > max(steps)
        acknowledged += len(steps)
    assert acknowledged > 20


def _lost_in_restarts(url, server, clients, restarts):
    victims = [Victim(_add_for_ever(url, str(place))) for place in range(clients)]
    for victim in victims:
        victim.wait_for_lines(5)
    for restart in range(restarts):
        server.stop("immediate" if restart % 2 == 0 else "fast")
        server.start()
        time.sleep(0.5)
    said = [victim.kill() for victim in victims]
    store, lost, twice = PostgresStore(url), 0, 0
    found = [(trial.run, trial.config["tile"]) for trial in store.trials(subject(m=1))]
    store.close()
    for place, lines in enumerate(said):
        last = int(lines[-1].split()[-1])  # the store is behind nobody's back: all before it are there too
        lost += sum((str(place), step) not in set(found) for step in range(last + 1))
    twice = len(found) - len(set(found))
    return sum(map(len, said)), lost, twice


def test_restarts_under_4_clients_lose_and_double_nothing(url, server):
    acknowledged, lost, twice = _lost_in_restarts(url, server, 4, 2)
    assert acknowledged > 20
    assert (lost, twice) == (0, 0)


@pytest.mark.full
def test_20_restarts_under_16_clients_lose_and_double_nothing(url, server):
    acknowledged, lost, twice = _lost_in_restarts(url, server, 16, 20)
    assert acknowledged > 100
    assert (lost, twice) == (0, 0)


def test_others_hear_what_is_concluded_and_its_author_does_not(url):
    heard, mine = [], []
    news, ready = threading.Event(), threading.Event()

    def hear(name):
        heard.append(name)
        (ready if name is None else news).set()

    listening = PostgresStore(url, heard=hear)
    author = PostgresStore(url, heard=lambda name: mine.append(name) if name else None)
    listening.trials(subject())
    author.trials(subject())
    assert ready.wait(HANG_S)
    author.add(subject("quiet"), [timed(8)])
    author.conclude(subject("loud"), won())
    assert news.wait(HANG_S)
    assert heard == [None, "loud"]
    assert mine == []
    listening.close()
    author.close()


def test_listener_hears_again_after_the_server_restarted(url, server):
    heard, news, ready = [], threading.Event(), threading.Event()

    def hear(name):
        heard.append(name)
        (ready if name is None else news).set()

    listening = PostgresStore(url, heard=hear)
    listening.trials(subject())
    assert ready.wait(HANG_S)
    server.stop("immediate")
    server.start()
    author = PostgresStore(url)
    deadline = time.monotonic() + HANG_S
    while not news.wait(0.2):
        author.conclude(subject("after"), won())
        assert time.monotonic() < deadline
    assert heard.count(None) >= 2
    listening.close()
    author.close()
