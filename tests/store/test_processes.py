"""Many processes on one store, and processes that die in the middle of things."""

import os
import random
import statistics
import time
from multiprocessing import get_context

import pytest
from crowd import Victim, crowd, errors

from tunewise.store import SqliteStore, database
from tunewise.testing.store_contract import subject, timed, won

MANY = 64


def _create(place, home):
    store = SqliteStore(home)
    store.add(subject(m=place), [timed(8)])
    return len(store.trials(subject(m=place)))


def _all_create(tmp_path, trials):
    for trial in range(trials):
        home = tmp_path / f"home{trial}"
        assert crowd(MANY, _create, home) == [1] * MANY
        assert SqliteStore(home).info().trials == MANY


def test_64_processes_create_one_store_without_an_error(tmp_path):
    _all_create(tmp_path, 3)


@pytest.mark.full
def test_64_processes_create_one_store_without_an_error_20_times(tmp_path):
    _all_create(tmp_path, 20)


def _look_up_and_insert(place, home, seconds):
    store = SqliteStore(home)
    rng, done, end = random.Random(place), 0, time.monotonic() + seconds
    while time.monotonic() < end:
        asked = subject(m=rng.randrange(50))
        store.trials(asked)[-1:]
        store.add(subject(m=1000 + place), [timed(8, run=f"{place}.{done}")])
        done += 1
    return done


def _all_look_up_and_insert(tmp_path, seconds):
    home = tmp_path / "home"
    done = crowd(MANY, _look_up_and_insert, home, seconds)
    assert errors(done) == []
    assert SqliteStore(home).info().trials == sum(done)
    assert _wal_bytes(home) <= 2 * database.CHECKPOINT_BYTES


def _write(place, home, everybody, seconds):
    store, done = SqliteStore(home), 0
    store.add(subject(m=place), [timed(8)])
    everybody.wait(120)
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        store.add(subject(m=place), [timed(8)])
        done += 1
    return done


def test_of_64_writers_none_gets_much_less_than_the_others(tmp_path):
    done = crowd(MANY, _write, tmp_path / "home", get_context("fork").Barrier(MANY), 4.0)
    assert errors(done) == []
    assert 5 * min(done) >= statistics.median(done)


def test_64_processes_look_up_and_insert_without_an_error(tmp_path):
    _all_look_up_and_insert(tmp_path, 2.0)


@pytest.mark.full
def test_64_processes_look_up_and_insert_for_10_seconds_without_an_error(tmp_path):
    _all_look_up_and_insert(tmp_path, 10.0)


def _wal_bytes(home):
    wal = home / f"{database.FILE_NAME}-wal"
    return wal.stat().st_size if wal.exists() else 0


def _checkpoints_outside_the_lock(place, home):
    store, outside, inside = SqliteStore(home), 0, 0

    def note(statement):
        nonlocal outside, inside
        if "wal_checkpoint(" in statement:
            is_held = 0 in store._database.locks._shared._held
            outside, inside = outside + (not is_held), inside + is_held

    with store._database.writing() as db:
        db.set_trace_callback(note)
    for step in range(40):
        store.add(subject(m=place), [timed(8, run=str(step))])
    return outside, inside


def test_every_checkpoint_is_made_under_the_lock(tmp_path, monkeypatch):
    monkeypatch.setattr(database, "CHECKPOINT_BYTES", 32 << 10)
    found = crowd(16, _checkpoints_outside_the_lock, tmp_path / "home")
    assert errors(found) == []
    assert sum(outside for outside, _ in found) == 0
    assert sum(inside for _, inside in found) > 0


def _add_for_ever(home, run):
    def work(report):
        store = SqliteStore(home)
        step = 0
        while True:
            if step % 5 == 4:
                store.conclude(subject(m=step % 3), won(step))
                report(f"v {step % 3} {step}")
            else:
                store.add(subject(m=step % 3), [timed(step, run=run), timed(step + 1, run=run)])
                report(f"t {step % 3} {step}")
            step += 1

    return work


def _lost_after_kills(tmp_path, kills, seed):
    """Return (acknowledged, lost) over a number of processes killed at random points on one store."""
    home, rng = tmp_path / "home", random.Random(seed)
    acknowledged = lost = 0
    for kill in range(kills):
        victim = Victim(_add_for_ever(home, run := f"run{kill}"))
        victim.wait_for_lines(rng.randrange(20))
        time.sleep(rng.uniform(0.0, 0.003))
        said = victim.kill()
        store = SqliteStore(home)
        trials = {(m, t.config["tile"]) for m in range(3) for t in store.trials(subject(m=m)) if t.run == run}
        verdicts = {(m, v.challenger["tile"]) for m in range(3) for v in store.verdicts(subject(m=m))}
        for line in said:
            kind, m, step = line.split()
            where = verdicts if kind == "v" else trials
            lost += (int(m), int(step)) not in where
        acknowledged += len(said)
        with store._database.reading() as db:
            assert db.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        store.close()
    assert [p.name for p in home.iterdir() if "damaged" in p.name] == []
    return acknowledged, lost


def test_kill_at_20_random_points_loses_nothing_acknowledged(tmp_path, monkeypatch):
    monkeypatch.setattr(database, "CHECKPOINT_BYTES", 64 << 10)
    acknowledged, lost = _lost_after_kills(tmp_path, 20, seed=1)
    assert acknowledged > 100
    assert lost == 0


@pytest.mark.full
def test_kill_at_200_random_points_loses_nothing_acknowledged(tmp_path, monkeypatch):
    monkeypatch.setattr(database, "CHECKPOINT_BYTES", 64 << 10)
    acknowledged, lost = _lost_after_kills(tmp_path, 200, seed=2)
    assert acknowledged > 1000
    assert lost == 0


def test_batches_are_whole_after_kills(tmp_path):
    home = tmp_path / "home"
    rng = random.Random(3)
    for _ in range(5):
        victim = Victim(_add_for_ever(home, "r"))
        victim.wait_for_lines(rng.randrange(10))
        time.sleep(rng.uniform(0.0, 0.003))
        victim.kill()
    assert sum(len(SqliteStore(home).trials(subject(m=m))) for m in range(3)) % 2 == 0


def _tune_once(place, home):
    store = SqliteStore(home)
    ran = 0
    with store.flight(subject()):
        if not store.verdicts(subject()):
            ran = 1
            time.sleep(0.02)
            store.conclude(subject(), won(place + 1))
    return ran, store.verdicts(subject())[-1].winner["tile"]


def test_64_processes_tune_one_problem_once(tmp_path):
    results = crowd(MANY, _tune_once, tmp_path / "home")
    assert errors(results) == []
    assert sum(ran for ran, _ in results) == 1
    assert len({winner for _, winner in results}) == 1


def _hold_for_ever(home):
    def work(report):
        flight = SqliteStore(home).flight(subject())
        flight.acquire()
        report("holding")
        time.sleep(600)

    return work


def test_flight_of_a_killed_holder_is_taken_over(tmp_path):
    home = tmp_path / "home"
    for _ in range(3):
        victim = Victim(_hold_for_ever(home))
        victim.wait_for("holding")
        assert not SqliteStore(home).flight(subject()).acquire(0)
        victim.kill()
    results = crowd(16, _tune_once, home)
    assert sum(ran for ran, _ in results) == 1
    assert len({winner for _, winner in results}) == 1


def _hold_with_a_child(home):
    def work(report):
        store = SqliteStore(home)
        flight = store.flight(subject())
        flight.acquire()
        child = os.fork()
        if child == 0:
            report(f"child {os.getpid()}")
            report("ready")
            time.sleep(600)
            os._exit(0)
        time.sleep(600)

    return work


def test_flight_does_not_survive_in_the_children_of_its_holder(tmp_path):
    home = tmp_path / "home"
    victim = Victim(_hold_with_a_child(home))
    victim.wait_for("ready")
    said = victim.kill()
    child = int(next(line for line in said if line.startswith("child")).split()[1])
    try:
        assert os.kill(child, 0) is None
        flight = SqliteStore(home).flight(subject())
        assert flight.acquire(5)
        flight.release()
    finally:
        os.kill(child, 9)


def test_store_used_before_a_fork_works_on_both_sides(tmp_path):
    store = SqliteStore(tmp_path / "home")
    store.add(subject(m=0), [timed(8)])

    def work(place):
        assert len(store.trials(subject(m=0))) >= 1
        store.add(subject(m=1), [timed(place)])
        return store._database._writer.db is not None

    assert crowd(8, work) == [True] * 8
    store.add(subject(m=1), [timed(99)])
    assert len(store.trials(subject(m=1))) == 9


def test_no_connection_crosses_a_fork(tmp_path):
    store = SqliteStore(tmp_path / "home")
    store.add(subject(), [timed(8)])
    assert store._database._writer.db is not None
    assert crowd(2, lambda place: store._database._writer.db is None) == [True, True]


def test_child_that_outlives_its_parent_keeps_writing_safely(tmp_path):
    # SQLite's own list of open files, inherited, would let the next opener truncate the child's shared memory.
    home = tmp_path / "home"

    def parent(report):
        store = SqliteStore(home)
        store.add(subject(m=0), [timed(8)])
        if os.fork() == 0:
            for step in range(200):
                store.add(subject(m=1), [timed(step)])
                report(f"added {step}")
            report("done")
            os._exit(0)
        report("forked")
        time.sleep(600)

    victim = Victim(parent)
    victim.wait_for("forked")
    os.kill(victim.pid, 9)
    for _ in range(50):
        other = SqliteStore(home)
        other.add(subject(m=2), [timed(8)])
        other.close()
    victim.wait_for("done")
    victim.kill()
    store = SqliteStore(home)
    assert len(store.trials(subject(m=1))) == 200
    with store._database.reading() as db:
        assert db.execute("PRAGMA integrity_check").fetchall() == [("ok",)]


def test_forked_child_does_not_give_back_its_parents_flight(tmp_path):
    store = SqliteStore(tmp_path / "home")
    with store.flight(subject()) as flight:
        crowd(1, lambda place: flight.release())
        assert crowd(1, lambda place: SqliteStore(tmp_path / "home").flight(subject()).acquire(0)) == [False]


def test_second_store_object_on_one_file_does_not_drop_locks(tmp_path):
    # Closing any descriptor of a file drops all POSIX locks of the process on it.
    home = tmp_path / "home"
    with SqliteStore(home).flight(subject()):
        other = SqliteStore(home)
        other.add(subject(), [timed(8)])
        assert not other.flight(subject()).acquire(0)
        other.close()
        del other
        assert crowd(1, lambda place: SqliteStore(home).flight(subject()).acquire(0)) == [False]


def test_file_removed_under_us_is_begun_anew(tmp_path):
    home = tmp_path / "home"
    store = SqliteStore(home)
    store.add(subject(m=1), [timed(8)])
    for path in home.iterdir():
        path.unlink()
    store.add(subject(m=2), [timed(8)])
    assert SqliteStore(home).trials(subject(m=2)) == [timed(8)]


def _work_under_deletion(place, home, seconds):
    from tunewise.store import SafeStore

    store = SafeStore(SqliteStore(home), warn=lambda text: None, retry_s=0.0)
    end, step = time.monotonic() + seconds, 0
    while time.monotonic() < end:
        with store.flight(subject(m=place)):
            store.trials(subject(m=place))
            store.add(subject(m=place), [timed(step)])
        step += 1
    return step


def test_files_deleted_while_16_processes_work_raise_nothing(tmp_path):
    home = tmp_path / "home"
    SqliteStore(home).add(subject(), [timed(8)])

    def work(place):
        if place:
            return _work_under_deletion(place, home, 1.5)
        rng, end = random.Random(0), time.monotonic() + 1.5
        while time.monotonic() < end:
            names = sorted(home.iterdir())
            if names:
                rng.choice(names).unlink(missing_ok=True)
            time.sleep(0.01)
        return 1

    assert errors(crowd(17, work)) == []
