import sqlite3

import pytest

from tunewise.errors import StoreError
from tunewise.store import SqliteStore, schema
from tunewise.store.database import FILE_NAME
from tunewise.testing.store_contract import subject, timed

NEXT = ("CREATE TABLE notes (id INTEGER PRIMARY KEY, body TEXT)", "PRAGMA user_version = 3")
AFTER = ("CREATE TABLE tags (id INTEGER PRIMARY KEY)", "PRAGMA user_version = 4")
BROKEN = ("CREATE TABLE notes (id INTEGER PRIMARY KEY)", "CREATE TABLE notes (again)", "PRAGMA user_version = 3")


def _library(monkeypatch, version):
    monkeypatch.setattr(schema, "MIGRATIONS", (*ORIGINAL, NEXT, AFTER)[:version])


ORIGINAL = schema.MIGRATIONS


@pytest.mark.parametrize("written_by", [1, 2, 3, 4])
@pytest.mark.parametrize("read_by", [1, 2, 3, 4])
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
