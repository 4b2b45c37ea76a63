"""A backup is whole, checked and of one moment; restoring it gives an equal store, whoever else writes meanwhile."""

import os
import signal
import sqlite3
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

from limits import HANG_S
from tunewise.decision import Failure, Trial, Verdict
from tunewise.errors import InvalidFile, NotFound, StoreError
from tunewise.store import Backup, PostgresStore, Sign, SqliteStore, backup, exchange, migrate, restore
from tunewise.testing.store_contract import subject, timed, won

WRITER = """
import sys
from pathlib import Path
from tunewise.store import store_at
from tunewise.testing.store_contract import subject, timed, won

store, step = store_at(sys.argv[1] if "://" in sys.argv[1] else Path(sys.argv[1])), 0
while True:
    store.add(subject(m=step % 7), [timed(8, run=f"{step}.{part}") for part in range(3)])
    store.conclude(subject(m=step % 7), won(at=float(step)))
    store.miss(subject("other", step % 50))
    step += 1
    print(step, flush=True)
"""


def fill(store, trials=30):
    store.add(subject("a", 1), [timed(tile, run=str(tile)) for tile in range(trials)])
    store.add(subject("a\0\\b", 2), [Trial({"tile": 1}, Failure("crash", "SIGSEGV in /home/alice"), "seed", "r", 7.0)])
    store.conclude(subject("b", 2), won())
    store.conclude(subject("b", 3), Verdict("failed", {"tile": 8}, {"tile": 8}, detail="all failed", at=3.0))
    for m, count in ((5, 3), (6, 9), (7, 3)):
        store.miss(subject("c", m), count)
    store.miss(subject("a\0\\b", 9), 4)
    store.show(Sign("run", "r1", 1.0, {"state": "running"}))


def contents(store):
    try:
        return list(store.records()), store.misses()
    finally:
        store.close()


@pytest.fixture
def filled(tmp_path):
    """The place of a store in a file that is filled."""
    store = SqliteStore(tmp_path / "filled")
    fill(store)
    store.close()
    return tmp_path / "filled"


@pytest.fixture(params=["sqlite", "postgres"])
def place(request, tmp_path):
    """The place of a store that is filled, on each kind of database."""
    if request.param == "sqlite":
        found, store = tmp_path / "filled", SqliteStore(tmp_path / "filled")
    else:
        found = request.getfixturevalue("url")
        store = PostgresStore(found)
    fill(store)
    store.close()
    return found


def opened(place):
    return PostgresStore(place) if "://" in str(place) else SqliteStore(place)


def test_backup_holds_everything_and_gives_an_equal_store_back(place, tmp_path):
    made = backup(place, tmp_path / "b.sqlite3")
    assert made == Backup(str(tmp_path / "b.sqlite3"), 31, 2, 4, (tmp_path / "b.sqlite3").stat().st_size)
    restored = restore(tmp_path / "b.sqlite3", tmp_path / "back")
    assert (restored.added, restored.known, restored.misses, restored.damaged) == (33, 0, 4, 0)
    expected = contents(opened(place))
    assert contents(SqliteStore(tmp_path / "back")) == expected
    assert contents(SqliteStore(tmp_path / "b.sqlite3", is_shared=True)) == expected


def test_backup_can_be_restored_on_a_server(filled, url, tmp_path):
    backup(filled, tmp_path / "b.sqlite3")
    assert restore(tmp_path / "b.sqlite3", url).added == 33
    assert contents(PostgresStore(url)) == contents(SqliteStore(filled))


def test_restoring_twice_doubles_nothing_and_a_dry_run_adds_nothing(filled, tmp_path):
    backup(filled, tmp_path / "b.sqlite3")
    other = SqliteStore(tmp_path / "other")
    other.miss(subject("c", 6), 20)
    other.miss(subject("c", 5), 1)
    other.conclude(subject("c", 7), won())
    other.add(subject("a", 1), [timed(0, run="0")])
    before = contents(other)
    would = restore(tmp_path / "b.sqlite3", tmp_path / "other", dry_run=True)
    assert (would.added, would.known, would.misses) == (32, 1, 2)
    assert contents(other) == before
    assert restore(tmp_path / "b.sqlite3", tmp_path / "other") == would
    assert [(miss.problem["m"], miss.count) for miss in other.misses("c")] == [(6, 20), (5, 3)]
    once = contents(other)
    again = restore(tmp_path / "b.sqlite3", tmp_path / "other")
    assert (again.added, again.known, again.misses) == (0, 33, 0)
    assert contents(other) == once


def test_restore_that_was_broken_off_goes_on_when_it_is_made_again(filled, tmp_path, monkeypatch):
    monkeypatch.setattr(exchange, "_BATCH", 5)
    backup(filled, tmp_path / "b.sqlite3")

    def interrupt(done, all_):
        if done > 10:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        restore(tmp_path / "b.sqlite3", tmp_path / "back", progress=interrupt)
    assert 0 < SqliteStore(tmp_path / "back").info().trials < 31
    rest = restore(tmp_path / "b.sqlite3", tmp_path / "back")
    assert (rest.added + rest.known, rest.misses) == (33, 0)
    assert contents(SqliteStore(tmp_path / "back")) == contents(SqliteStore(filled))


def test_migrating_takes_misses_along_and_doubles_none(place, tmp_path):
    assert migrate(place, tmp_path / "copy").misses == 4
    assert migrate(place, tmp_path / "copy").misses == 0
    assert SqliteStore(tmp_path / "copy").misses() == opened(place).misses()


def test_backup_is_one_private_file_without_signs_of_life(place, tmp_path):
    backup(place, tmp_path / "b.sqlite3")
    assert sorted(path.name for path in tmp_path.iterdir() if path.name != "filled") == ["b.sqlite3"]
    assert stat.S_IMODE((tmp_path / "b.sqlite3").stat().st_mode) == 0o600
    assert SqliteStore(tmp_path / "b.sqlite3", is_shared=True).signs() == []
    assert len(opened(place).signs()) == 1


def test_older_file_is_replaced_by_force_only(filled, tmp_path):
    (tmp_path / "b.sqlite3").write_text("precious")
    with pytest.raises(InvalidFile, match=r"exists already; choose another name, or replace it with --force"):
        backup(filled, tmp_path / "b.sqlite3")
    assert (tmp_path / "b.sqlite3").read_text() == "precious"
    assert backup(filled, tmp_path / "b.sqlite3", force=True).trials == 31


def test_store_itself_is_never_written_over(filled, tmp_path):
    for file in (filled / "store.sqlite3", tmp_path / "other" / "store.sqlite3"):
        store = SqliteStore(file.parent)
        store.add(subject("x"), [timed(8)])
        with pytest.raises(InvalidFile, match=r"is the store itself|in use as a store"):
            backup(filled, file, force=True)
        store.close()


@pytest.mark.parametrize("way", ["filled/../filled", "link"])
def test_store_that_nobody_uses_is_known_by_any_name(filled, tmp_path, way):
    (tmp_path / "link").symlink_to(filled)
    assert not (filled / "store.sqlite3-wal").exists()
    with pytest.raises(InvalidFile, match="is the store itself"):
        backup(filled, tmp_path / way / "store.sqlite3", force=True)


@pytest.mark.parametrize("name", ["b.db", "none/b.sqlite3", "filled"])
def test_place_that_cannot_hold_a_backup_is_named(filled, tmp_path, name):
    with pytest.raises(InvalidFile, match=r"\.sqlite3|no directory"):
        backup(filled, tmp_path / name)


def test_name_that_no_file_can_have_is_told(filled, tmp_path):
    file = tmp_path / f"{'x' * 300}.sqlite3"
    with pytest.raises(InvalidFile, match="File name too long"):
        backup(filled, file)
    with pytest.raises(NotFound, match="there is no file"):
        restore(file, filled)


def test_store_that_is_not_there_leaves_no_file(tmp_path):
    with pytest.raises(StoreError, match="no store at"):
        backup(tmp_path / "nowhere", tmp_path / "b.sqlite3")
    assert list(tmp_path.iterdir()) == []


def test_disk_that_is_full_leaves_the_older_backup(filled, tmp_path, monkeypatch):
    backup(filled, tmp_path / "b.sqlite3")
    saved = (tmp_path / "b.sqlite3").read_bytes()

    def full(source, target):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(InvalidFile, match="No space left on device"):
        backup(filled, tmp_path / "b.sqlite3", force=True)
    assert (tmp_path / "b.sqlite3").read_bytes() == saved
    assert {path.name for path in tmp_path.iterdir()} == {"filled", "b.sqlite3"}


LIMITED = """
import resource, sys
from pathlib import Path
from tunewise.errors import InvalidFile
from tunewise.store import backup

resource.setrlimit(resource.RLIMIT_FSIZE, (30_000, 30_000))
try:
    backup(sys.argv[1] if "://" in sys.argv[1] else Path(sys.argv[1]), Path(sys.argv[2]), force=True)
except InvalidFile as error:
    print(error)
"""


def test_place_without_room_is_named_and_the_older_backup_stays(place, tmp_path):
    (tmp_path / "b.sqlite3").write_text("older")
    ran = subprocess.run(
        [sys.executable, "-c", LIMITED, str(place), str(tmp_path / "b.sqlite3")],
        capture_output=True,
        text=True,
        check=True,
        timeout=HANG_S,
    )
    assert ran.stdout.startswith(f"{tmp_path / 'b.sqlite3'} cannot be written: ")
    assert (tmp_path / "b.sqlite3").read_text() == "older"
    assert not list(tmp_path.glob(".*.part*"))


def test_copy_that_lacks_a_row_is_not_kept(filled, tmp_path, monkeypatch):
    monkeypatch.setattr(SqliteStore, "copy_to", short_copy(SqliteStore.copy_to))
    with pytest.raises(StoreError, match="nothing was kept"):
        backup(filled, tmp_path / "b.sqlite3")
    assert {path.name for path in tmp_path.iterdir()} == {"filled"}


def short_copy(whole):
    def copy_to(self, path, tell):
        held = whole(self, path, tell)
        with sqlite3.connect(path) as db:
            db.execute("DELETE FROM trials WHERE id = 3")
        db.close()
        return held

    return copy_to


def test_damaged_backup_is_refused_and_adds_nothing(filled, tmp_path):
    store = SqliteStore(filled)
    store.add(subject("long"), [timed(tile, run="x" * 200) for tile in range(500)])
    store.close()
    backup(filled, tmp_path / "b.sqlite3")
    raw = bytearray((tmp_path / "b.sqlite3").read_bytes())
    raw[len(raw) // 2 : len(raw) // 2 + 4096] = os.urandom(4096)
    (tmp_path / "b.sqlite3").write_bytes(raw)
    with pytest.raises(InvalidFile, match=r"damaged|cannot be read"):
        restore(tmp_path / "b.sqlite3", tmp_path / "back")
    assert not (tmp_path / "back").exists()


def test_row_of_a_backup_that_does_not_hold_is_counted(filled, tmp_path):
    backup(filled, tmp_path / "b.sqlite3")
    with sqlite3.connect(tmp_path / "b.sqlite3") as db:
        db.execute("UPDATE trials SET body = replace(body, '\"tile\":8', '\"tile\":9') WHERE id = 9")
    db.close()
    restored = restore(tmp_path / "b.sqlite3", tmp_path / "back")
    assert (restored.added, restored.damaged) == (32, 1)


def test_restoring_something_else_is_refused(tmp_path):
    with pytest.raises(NotFound, match="tunewise store backup FILE"):
        restore(tmp_path / "none.sqlite3", tmp_path / "home")
    with sqlite3.connect(tmp_path / "theirs.sqlite3") as db:
        db.execute("CREATE TABLE songs (name TEXT)")
    db.close()
    (tmp_path / "empty.sqlite3").touch()
    (tmp_path / "text.sqlite3").write_text("hello\n" * 100)
    for name in ("theirs", "empty", "text"):
        with pytest.raises(InvalidFile, match=f"{name}.sqlite3"):
            restore(tmp_path / f"{name}.sqlite3", tmp_path / "home")


def test_progress_ends_with_everything_done(place, tmp_path):
    told = []
    backup(place, tmp_path / "b.sqlite3", progress=lambda done, all_: told.append((done, all_)))
    assert told[-1][0] == told[-1][1] > 0


def test_leftovers_of_a_backup_that_was_killed_are_swept_after_a_day(filled, tmp_path):
    old, new = tmp_path / ".b.sqlite3.0.part", tmp_path / ".b.sqlite3.1.part"
    old.touch()
    new.touch()
    os.utime(old, (time.time() - 90_000, time.time() - 90_000))
    backup(filled, tmp_path / "b.sqlite3")
    assert (old.exists(), new.exists()) == (False, True)


def writing(place):
    """Start a process that writes until it is killed, and wait until it does."""
    command = [sys.executable, "-c", WRITER, str(place)]
    writer = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    assert writer.stdout is not None
    assert writer.stdout.readline()
    return writer


def steps(writer):
    """Return how many steps a writer has done once it is killed."""
    writer.kill()
    last = [line for line in writer.communicate()[0].splitlines() if line]
    return int(last[-1]) if last else 1


def test_backup_while_others_write_is_of_one_moment(place, tmp_path):
    writer = writing(place)
    try:
        made = [backup(place, tmp_path / f"{number}.sqlite3") for number in range(3)]
    finally:
        done = steps(writer)
    assert done > 1
    assert made[0].trials <= made[1].trials <= made[2].trials
    for one in made:
        store = SqliteStore(Path(one.file), is_shared=True)
        trials = [record.fact for record in store.records("gemm") if isinstance(record.fact, Trial)]
        counts = {trial.run.partition(".")[0] for trial in trials}
        # Each step is three trials, then a verdict, then a miss: a moment has at most one step that is not whole.
        verdicts = sum(isinstance(record.fact, Verdict) for record in store.records("gemm"))
        misses = sum(miss.count for miss in store.misses("other"))
        assert len(trials) == 3 * len(counts)
        assert len(counts) - 1 <= misses <= verdicts <= len(counts)
        store.close()


KILLED = """
import sys
from pathlib import Path
from tunewise.store import backup

def tell(done, all_):
    print(done, flush=True)
    if done < all_:
        sys.stdin.readline()

while True:
    backup(Path(sys.argv[1]), Path(sys.argv[2]), force=True, progress=tell)
"""


def kill_in_the_middle(home, file):
    command = [sys.executable, "-c", KILLED, str(home), str(file)]
    victim = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert victim.stdout is not None
    assert victim.stdout.readline()  # it waits with a part of the copy done
    victim.send_signal(signal.SIGKILL)
    victim.communicate()


def test_backup_killed_in_the_middle_leaves_the_older_one_whole(filled, tmp_path):
    store = SqliteStore(filled)
    for run in range(12):  # more than is copied at once
        store.add(subject("long", run), [timed(tile, run=f"{run} " + "x" * 3000) for tile in range(300)])
    store.close()
    backup(filled, tmp_path / "b.sqlite3")
    saved = (tmp_path / "b.sqlite3").read_bytes()
    kill_in_the_middle(filled, tmp_path / "b.sqlite3")
    assert (tmp_path / "b.sqlite3").read_bytes() == saved
    assert backup(filled, tmp_path / "b.sqlite3", force=True).trials == 31 + 3600
