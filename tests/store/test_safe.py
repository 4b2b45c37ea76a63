"""Whatever the disk does, the program goes on: facts are kept, and one warning says why."""

import os
import random
import resource
import shutil
import sqlite3
import subprocess
import sys
import time
import warnings

import pytest
from crowd import crowd, errors

from limits import HANG_S
from tunewise.errors import StoreError, StoreWarning, UnreachableStore
from tunewise.store import (
    LayeredStore,
    MemoryStore,
    Prune,
    SafeStore,
    SqliteStore,
    database,
    guard,
    home,
    io_thread,
    open_store,
)
from tunewise.store.database import FILE_NAME
from tunewise.testing.store_contract import subject, timed, won


@pytest.fixture
def told():
    return []


@pytest.fixture
def make(tmp_path, told):
    def _make(path=tmp_path / "home", **options):
        return SafeStore(SqliteStore(path), warn=told.append, retry_s=0.0, **options)

    return _make


@pytest.fixture
def unwarned(monkeypatch):
    monkeypatch.setattr(guard, "_warned", guard.threading.Event())


def _block(path):
    path.write_text("a file where the directory should be")


def test_everything_works_in_memory_when_the_directory_cannot_be_made(tmp_path, make, told):
    _block(tmp_path / "home")
    store = make()
    store.add(subject(), [timed(8)])
    store.conclude(subject(), won())
    store.miss(subject(m=2), 3)
    assert store.trials(subject()) == [timed(8)]
    assert store.verdicts(subject()) == [won()]
    assert store.recorded(subject()) == subject()
    assert store.subjects() == [subject()]
    assert store.decisions() == ["gemm"]
    assert [miss.count for miss in store.misses()] == [3]
    with store.flight(subject()):
        assert not store.flight(subject()).acquire(0)
    assert "home" in str(store.info().trouble)
    assert told


def test_person_who_prunes_is_told_that_it_did_not_happen(tmp_path, make):
    _block(tmp_path / "home")
    with pytest.raises(StoreError):
        make().prune(Prune(decision="gemm"))


def test_what_waited_in_memory_is_written_once_the_disk_works(tmp_path, make):
    _block(tmp_path / "home")
    store = make()
    store.add(subject(), [timed(8)])
    store.add(subject(), [timed(8)])
    store.miss(subject(m=5), 2)
    (tmp_path / "home").unlink()
    store.conclude(subject(), won())
    fresh = SqliteStore(tmp_path / "home")
    assert fresh.trials(subject()) == [timed(8), timed(8)]
    assert fresh.verdicts(subject()) == [won()]
    assert [miss.count for miss in fresh.misses()] == [2]
    assert store.trials(subject()) == [timed(8), timed(8)]
    assert store.info().trouble is None


def test_closing_writes_what_waited(tmp_path, make):
    _block(tmp_path / "home")
    store = make()
    store.add(subject(), [timed(8)])
    (tmp_path / "home").unlink()
    store.close()
    assert SqliteStore(tmp_path / "home").trials(subject()) == [timed(8)]


def test_disk_in_trouble_is_left_alone_for_a_while(tmp_path, told):
    now = [0.0]
    _block(tmp_path / "home")
    store = SafeStore(SqliteStore(tmp_path / "home"), warn=told.append, clock=lambda: now[0], retry_s=5.0)
    store.add(subject(), [timed(8)])
    (tmp_path / "home").unlink()
    store.add(subject(), [timed(16)])
    assert not (tmp_path / "home").exists()
    now[0] = 5.0
    store.add(subject(), [timed(32)])
    assert len(SqliteStore(tmp_path / "home").trials(subject())) == 3


def test_disk_that_stays_in_trouble_is_left_alone_longer(tmp_path, told):
    now = [0.0]
    _block(tmp_path / "home")
    store = SafeStore(SqliteStore(tmp_path / "home"), warn=told.append, clock=lambda: now[0], retry_s=5.0)
    store.add(subject(), [timed(8)])
    now[0] = 5.0
    store.add(subject(), [timed(16)])
    (tmp_path / "home").unlink()
    now[0] = 14.9
    store.add(subject(), [timed(32)])
    assert not (tmp_path / "home").exists()
    now[0] = 15.0
    store.add(subject(), [timed(64)])
    assert len(SqliteStore(tmp_path / "home").trials(subject())) == 4


def test_process_hears_of_trouble_once(tmp_path, unwarned):
    _block(tmp_path / "home")
    _block(tmp_path / "home2")
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        for name in ("home", "home2"):
            store = open_store(tmp_path / name)
            for tile in range(5):
                store.add(subject(), [timed(tile)])
                store.trials(subject())
    assert [w.category for w in heard] == [StoreWarning]
    assert "kept in memory" in str(heard[0].message)


def test_program_without_any_home_runs_with_one_warning(tmp_path):
    program = (
        "import warnings; warnings.simplefilter('always')\n"
        "from tunewise import settings\n"
        "from tunewise.store import open_store\n"
        "from tunewise.testing.store_contract import subject, timed\n"
        "store = open_store(settings.load())\n"
        "store.add(subject(), [timed(8)]); store.add(subject(), [timed(8)])\n"
        "print(len(store.trials(subject())))\n"
    )
    env = {"TUNEWISE_HOME": "/proc/nowhere", "PATH": os.environ["PATH"]}
    done = subprocess.run([sys.executable, "-c", program], env=env, capture_output=True, text=True, timeout=HANG_S)
    assert done.stdout.strip() == "2"
    assert done.stderr.count("StoreWarning:") == 1


@pytest.mark.parametrize("damage", ["garbage", "short", "middle"])
def test_corrupt_file_is_set_aside_and_a_new_one_begun(tmp_path, make, told, damage):
    path = tmp_path / "home" / FILE_NAME
    filled = SqliteStore(tmp_path / "home")
    for m in range(60):
        filled.add(subject(m=m), [timed(8)] * 5)
    filled.close()
    raw = path.read_bytes()
    spoiled = {
        "garbage": b"not a database" * 100,
        "short": raw[:5000],
        "middle": raw[:4096] + b"\xff" * (len(raw) - 4096),
    }
    path.write_bytes(spoiled[damage])
    store = make()
    assert store.trials(subject(m=1)) == []
    store.add(subject(m=1), [timed(16)])
    assert store.trials(subject(m=1)) == [timed(16)]
    assert (tmp_path / "home" / f"{FILE_NAME}.damaged-1").read_bytes()[:14] == spoiled[damage][:14]
    assert len(told) == 1
    assert "damaged-1" in told[0]


def test_many_processes_set_a_corrupt_file_aside_once(tmp_path):
    path = tmp_path / "home" / FILE_NAME
    (tmp_path / "home").mkdir(mode=0o700)
    path.write_bytes(b"not a database" * 1000)

    def work(place):
        store = SafeStore(SqliteStore(tmp_path / "home"), warn=lambda text: None)
        store.add(subject(m=place), [timed(8)])
        return len(store.trials(subject(m=place)))

    assert crowd(16, work) == [1] * 16
    assert SqliteStore(tmp_path / "home").info().trials == 16
    assert len(list((tmp_path / "home").glob("*.damaged-*"))) == 1


def _wrong_after_flips(tmp_path, flips, told):
    """Return how many facts that were never written came back, over a number of flipped bits in the file."""
    filled = SqliteStore(tmp_path / "master")
    for m in range(12):
        filled.add(subject(m=m), [timed(tile, 0.1 + tile) for tile in range(6)])
        filled.conclude(subject(m=m), won(m))
        filled.miss(subject(m=100 + m))
    truth = {m: (filled.trials(subject(m=m)), filled.verdicts(subject(m=m))) for m in range(12)}
    filled.close()
    raw, rng, wrong = (tmp_path / "master" / FILE_NAME).read_bytes(), random.Random(7), 0
    for flip in range(flips):
        flipped = bytearray(raw)
        flipped[rng.randrange(len(raw))] ^= 1 << rng.randrange(8)
        place = tmp_path / f"flip{flip}"
        place.mkdir(mode=0o700)
        (place / FILE_NAME).write_bytes(flipped)
        store = SafeStore(SqliteStore(place), warn=told.append)
        for m in range(0, 12, 3):
            trials, verdicts = truth[m]
            wrong += sum(t not in trials for t in store.trials(subject(m=m)))
            wrong += sum(v not in verdicts for v in store.verdicts(subject(m=m)))
        store.subjects(), store.misses(), store.info(), store.recorded(subject(m=1))
        store.add(subject(m=1), [timed(99)])
        store.miss(subject(m=1))
        # A flip inside an index may hide rows without any sign of it; what is shown must still be true.
        wrong += sum(t not in [*truth[1][0], timed(99)] for t in store.trials(subject(m=1)))
        store.close()
        shutil.rmtree(place)
    return wrong


def test_150_bit_flips_of_the_file_raise_nothing_and_return_nothing_wrong(tmp_path, told):
    assert _wrong_after_flips(tmp_path, 150, told) == 0


@pytest.mark.full
def test_1000_bit_flips_of_the_file_raise_nothing_and_return_nothing_wrong(tmp_path, told):
    assert _wrong_after_flips(tmp_path, 1000, told) == 0


def _fill_until_full(place, path):
    told = []
    # Files may not grow beyond this: writing more fails as a full disk does.
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, resource.RLIM_INFINITY))
    __import__("signal").signal(__import__("signal").SIGXFSZ, __import__("signal").SIG_IGN)
    store = SafeStore(SqliteStore(path), warn=told.append, retry_s=0.0)
    steps = 0
    while not told:
        store.add(subject(m=steps % 3), [timed(steps, *[0.5] * 500)])
        steps += 1
        assert steps < 5000
    for _ in range(5):
        store.add(subject(m=steps % 3), [timed(steps, *[0.5] * 500)])
        steps += 1
    readable_when_full = sum(len(store.trials(subject(m=m))) for m in range(3))
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    store.add(subject(m=0), [timed(steps)])
    store.close()
    return steps, readable_when_full, sum(len(SqliteStore(path).trials(subject(m=m))) for m in range(3))


def test_full_disk_loses_nothing_and_works_again_once_space_is_freed(tmp_path):
    (result,) = crowd(1, _fill_until_full, tmp_path / "home")
    assert errors([result]) == []
    steps, readable_when_full, on_disk_after = result
    assert readable_when_full == steps
    assert on_disk_after == steps + 1


def test_full_tmpfs_loses_nothing_and_works_again_once_space_is_freed(tmp_path, make, told):
    mount = tmp_path / "small"
    mount.mkdir()
    made = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m,mode=0700", "none", str(mount)], capture_output=True)
    if made.returncode:
        pytest.skip("mounting a small file system needs root")
    try:
        (mount / "ballast").write_bytes(b"x" * (1 << 20))
        store, steps = make(mount / "home"), 0
        while not told:
            store.add(subject(), [timed(steps, *[0.5] * 500)])
            steps += 1
            assert steps < 5000
        assert len(store.trials(subject())) == steps
        (mount / "ballast").unlink()
        store.add(subject(), [timed(steps)])
        store.close()
        assert len(SqliteStore(mount / "home").trials(subject())) == steps + 1
    finally:
        store.close()
        subprocess.run(["umount", "-l", str(mount)], check=True)


def test_network_file_system_is_not_used_and_says_so(tmp_path, make, told, monkeypatch):
    monkeypatch.setattr(home, "file_system", lambda path: "nfs4")
    store = make()
    store.add(subject(), [timed(8)])
    assert store.trials(subject()) == [timed(8)]
    assert not (tmp_path / "home" / FILE_NAME).exists()
    assert "network file system (nfs4)" in told[0]
    assert "PostgreSQL" in told[0]


def test_file_that_may_only_be_read_is_read_and_what_is_new_waits(tmp_path, make, told, monkeypatch):
    SqliteStore(tmp_path / "home").add(subject(m=1), [timed(8)])
    monkeypatch.setattr(database, "_is_writable", lambda path: False)
    store = make()
    assert store.trials(subject(m=1)) == [timed(8)]
    assert told == []
    store.add(subject(m=2), [timed(16)])
    assert store.trials(subject(m=2)) == [timed(16)]
    assert store.trials(subject(m=1)) == [timed(8)]
    assert store.info().is_read_only
    assert f"{FILE_NAME} can be read but not written" in told[0]
    assert "set TUNEWISE_HOME to another" in told[0]
    monkeypatch.undo()
    store.close()
    assert SqliteStore(tmp_path / "home").trials(subject(m=2)) == [timed(16)]


@pytest.mark.skipif(os.geteuid() == 0, reason="nothing is read-only for root")
def test_home_that_may_only_be_read_is_read(tmp_path, make, told):
    SqliteStore(tmp_path / "home").add(subject(m=1), [timed(8)])
    (tmp_path / "home").chmod(0o500)
    try:
        assert make().trials(subject(m=1)) == [timed(8)]
        assert told == []
    finally:
        (tmp_path / "home").chmod(0o700)


def test_newer_schema_is_read_and_not_written(tmp_path, make, told):
    SqliteStore(tmp_path / "home").add(subject(), [timed(8)])
    raw = sqlite3.connect(tmp_path / "home" / FILE_NAME)
    raw.execute("PRAGMA user_version = 99")
    raw.close()
    store = make()
    assert store.trials(subject()) == [timed(8)]
    store.add(subject(), [timed(16)])
    assert store.trials(subject()) == [timed(8), timed(16)]
    assert SqliteStore(tmp_path / "home").trials(subject()) == [timed(8)]
    assert "schema 99" in told[0]


def test_database_of_another_program_is_left_alone(tmp_path, make, told):
    (tmp_path / "home").mkdir(mode=0o700)
    other = sqlite3.connect(tmp_path / "home" / FILE_NAME)
    other.execute("CREATE TABLE recipes (name TEXT)")
    other.close()
    before = (tmp_path / "home" / FILE_NAME).read_bytes()
    store = make()
    store.add(subject(), [timed(8)])
    assert store.trials(subject()) == [timed(8)]
    assert f"{tmp_path / 'home' / FILE_NAME} is an SQLite database of another program" in told[0]
    assert (tmp_path / "home" / FILE_NAME).read_bytes() == before


def test_missing_layer_is_left_out_with_a_word(tmp_path, make, told):
    layer = SafeStore(SqliteStore(tmp_path / "nothing", is_shared=True), warn=told.append)
    store = LayeredStore(make(), [layer])
    store.add(subject(), [timed(8)])
    assert store.trials(subject()) == [timed(8)]
    assert "no store at" in told[0]


def test_home_that_a_cleaner_removed_is_made_again(tmp_path, make, told):
    store = make()
    store.add(subject(), [timed(8)])
    shutil.rmtree(tmp_path / "home")
    store.add(subject(), [timed(16)])
    assert make().trials(subject()) == [timed(16)]
    assert not told


def test_what_waits_is_written_by_the_parent_and_not_by_its_children_too(tmp_path, make):
    _block(tmp_path / "home")
    store = make()
    store.add(subject(), [timed(1)])
    (tmp_path / "home").unlink()
    assert errors(crowd(2, lambda place: store.add(subject(), [timed(place + 2)]))) == []
    store.add(subject(), [timed(4)])
    assert sorted(trial.config["tile"] for trial in SqliteStore(tmp_path / "home").trials(subject())) == [1, 2, 3, 4]


def test_what_waits_is_written_although_the_program_writes_nothing_more(tmp_path, make, monkeypatch):
    monkeypatch.setattr(io_thread, "_SHORTEST_PAUSE_S", 0.01)
    _block(tmp_path / "home")
    store = make()
    store.add(subject(), [timed(1)])
    (tmp_path / "home").unlink()
    deadline = time.monotonic() + HANG_S
    while not (tmp_path / "home" / FILE_NAME).exists() or not SqliteStore(tmp_path / "home").trials(subject()):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    assert store.trials(subject()) == [timed(1)]


def test_store_that_takes_long_to_fail_is_left_alone_for_longer():
    now, asked = [0.0], []

    class Slow(MemoryStore):
        def trials(self, about):
            asked.append(now[0])
            now[0] += 2.0
            raise StoreError("nobody answers")

    store = SafeStore(Slow(), warn=lambda text: None, clock=lambda: now[0])
    for _ in range(60):
        store.trials(subject())
        now[0] += 1.0
    assert asked == [0.0, 22.0, 44.0]


class _Away(MemoryStore):
    """A store that can be out of reach for a while."""

    is_away = False

    def add(self, subject, trials):
        if self.is_away:
            raise UnreachableStore("the server is away")
        super().add(subject, trials)

    def info(self):
        if self.is_away:
            raise UnreachableStore("the server is away")
        return super().info()


def test_store_that_takes_what_waited_is_read_again_at_once():
    server = _Away()
    store = SafeStore(server, warn=lambda text: None)
    server.is_away = True
    store.add(subject(), [timed(8)])
    server.is_away = False
    assert store.info().trouble is not None  # left alone for some seconds yet
    store.close()
    assert store.info().trouble is None
    assert server.trials(subject()) == [timed(8)]


@pytest.fixture
def read_again(monkeypatch):
    """What the reading thread does between two questions; here it is done when a test says so."""
    step = guard.Guard.read_again
    monkeypatch.setattr(guard.Guard, "read_again", lambda self: None)
    return lambda store: step(store._guard)


def test_who_wants_to_hear_is_told_once_that_a_store_can_be_read_again(tmp_path, make, read_again):
    heard = []
    _block(tmp_path / "home")
    store = make(heard=heard.append)
    assert store.verdicts(subject()) == []
    assert read_again(store) is not None
    assert heard == []
    (tmp_path / "home").unlink()
    assert [read_again(store), read_again(store)] == [None, None]
    assert heard == [None]


def test_store_that_another_question_found_well_is_told_too(tmp_path, make, read_again):
    heard = []
    _block(tmp_path / "home")
    store = make(heard=heard.append)
    store.verdicts(subject())
    (tmp_path / "home").unlink()
    assert store.subjects() == []
    assert heard == []  # not in the middle of a question
    assert read_again(store) is None
    assert heard == [None]


def test_what_a_store_says_while_it_is_left_alone_is_asked_again_too(read_again):
    server, heard, now = _Away(), [], [0.0]
    store = SafeStore(server, warn=lambda text: None, clock=lambda: now[0], heard=heard.append)
    server.is_away = True
    store.add(subject(), [timed(8)])  # finds out that nobody answers
    assert store.subjects() == [subject()]
    server.is_away = False
    now[0] += 1000
    assert read_again(store) is None
    assert heard == [None]
    store.close()
    assert server.trials(subject()) == [timed(8)]


def test_store_that_was_never_in_trouble_has_nothing_to_tell(make, read_again):
    heard = []
    store = make(heard=heard.append)
    store.conclude(subject(), won())
    assert store.verdicts(subject()) == [won()]
    assert read_again(store) is None
    assert heard == []
