import sqlite3
import time

import pytest

from tunewise.errors import StoreError
from tunewise.formats.records import Record
from tunewise.store import SqliteStore, schema
from tunewise.store.database import FILE_NAME
from tunewise.testing.store_contract import subject, timed, won

NEXT = ("CREATE TABLE notes (id INTEGER PRIMARY KEY, body TEXT)", "PRAGMA user_version = 4")
AFTER = ("CREATE TABLE tags (id INTEGER PRIMARY KEY)", "PRAGMA user_version = 5")
BROKEN = ("CREATE TABLE notes (id INTEGER PRIMARY KEY)", "CREATE TABLE notes (again)", "PRAGMA user_version = 4")


def _library(monkeypatch, version):
    monkeypatch.setattr(schema, "MIGRATIONS", (*ORIGINAL, NEXT, AFTER)[:version])


ORIGINAL = schema.MIGRATIONS


@pytest.mark.parametrize("written_by", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("read_by", [1, 2, 3, 4, 5])
def test_library_of_one_schema_opens_the_file_of_another(tmp_path, monkeypatch, written_by, read_by):
    _library(monkeypatch, written_by)
    SqliteStore(tmp_path / "home").add(subject(), [timed(8)])
    _library(monkeypatch, read_by)
    store = SqliteStore(tmp_path / "home")
    assert store.trials(subject()) == [timed(8)]
    if read_by < written_by:
        with pytest.raises(StoreError, match=f"schema {written_by}"):
            store.add(subject(), [timed(16)])
    else:
        store.add(subject(), [timed(16)])
    assert store.info().schema == max(written_by, read_by)


def test_older_file_is_copied_before_it_is_migrated(tmp_path, monkeypatch):
    _library(monkeypatch, 1)
    SqliteStore(tmp_path / "home").add(subject(), [timed(8)])
    _library(monkeypatch, 3)
    SqliteStore(tmp_path / "home").trials(subject())
    copy = sqlite3.connect(tmp_path / "home" / f"{FILE_NAME}.schema-1")
    assert copy.execute("PRAGMA user_version").fetchone() == (1,)
    assert copy.execute("SELECT count(*) FROM trials").fetchone() == (1,)
    copy.close()


def test_failed_migration_leaves_the_file_as_it_was(tmp_path, monkeypatch):
    SqliteStore(tmp_path / "home").add(subject(), [timed(8)])
    monkeypatch.setattr(schema, "MIGRATIONS", (*ORIGINAL, BROKEN))
    with pytest.raises(StoreError, match="already exists"):
        SqliteStore(tmp_path / "home").trials(subject())
    monkeypatch.setattr(schema, "MIGRATIONS", ORIGINAL)
    store = SqliteStore(tmp_path / "home")
    assert store.trials(subject()) == [timed(8)]
    assert store.info().schema == len(ORIGINAL)


def test_file_without_signs_of_life_has_none_when_it_is_only_read(tmp_path, monkeypatch):
    _library(monkeypatch, 1)
    SqliteStore(tmp_path / "home").add(subject(), [timed(8)])
    _library(monkeypatch, 2)
    assert SqliteStore(tmp_path / "home", is_shared=True).signs() == []


def test_older_file_gets_an_index_over_its_problems_in_one_transaction(tmp_path, monkeypatch):
    _library(monkeypatch, 2)
    old = SqliteStore(tmp_path / "home")
    old.absorb(Record(subject(m=m), won(m)) for m in range(1, 3_001))
    old.add(subject(m=1500, cpu="measured only"), [timed(8)])
    shared = SqliteStore(tmp_path / "home", is_shared=True)
    before = [shared.near(subject(m=m), 1.25, 3) for m in (1, 70, 2_000, 10_000)]
    old.close()
    shared.close()
    monkeypatch.setattr(schema, "MIGRATIONS", ORIGINAL)
    began = time.monotonic()
    store = SqliteStore(tmp_path / "home")
    assert [store.near(subject(m=m), 1.25, 3) for m in (1, 70, 2_000, 10_000)] == before
    assert [one.subject.problem["m"] for one in before[2]] == [2_001, 1_999, 2_002]
    assert time.monotonic() - began < 10
    assert store.near(subject(m=1501, cpu="measured only"), 1.25, 3) == []
    assert len(store.kin(subject(m=1501, cpu="measured only"), 1)) == 2


def test_damaged_points_cost_an_answer_and_no_more(tmp_path):
    store = SqliteStore(tmp_path / "home")
    for m in (60, 65, 66, 5_000):
        store.conclude(subject(m=m), won(m))
    store.close()
    with sqlite3.connect(store.path) as db:
        db.execute("UPDATE points SET logs = x'00' WHERE rowid = 1")
        alike, cell = db.execute("SELECT alike, cell FROM points WHERE rowid = 3").fetchone()
        db.execute("UPDATE points SET alike = ?, cell = ?, logs = zeroblob(16) WHERE rowid = 4", (alike, cell))
        db.execute("UPDATE points SET cell = 'nonsense' WHERE rowid = 2")
    assert [one.subject.problem["m"] for one in store.near(subject(m=64), 1.25, 9)] == [66]


def test_file_that_somebody_is_just_creating_holds_nothing_yet(tmp_path):
    store = SqliteStore(tmp_path / "home")
    store.path.parent.mkdir(mode=0o700)
    with sqlite3.connect(store.path) as db:
        db.execute("PRAGMA journal_mode = WAL")
    assert store.path.stat().st_size
    assert store.trials(subject()) == []
    store.add(subject(), [timed(8)])
    assert store.trials(subject()) == [timed(8)]
