"""Rows that no tunewise wrote, in the index of problems: they cost themselves, and hide nobody."""

import sqlite3
from pathlib import Path

import pytest

from tunewise.store import SqliteStore, schema
from tunewise.store.database import FILE_NAME
from tunewise.store.points import points_of
from tunewise.testing.store_contract import subject, timed, won

NEAREST, NEXT, ASKED = subject(m=101), subject(m=110), subject(m=100)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    store = SqliteStore(tmp_path / "home")
    for about in (NEAREST, NEXT):
        store.add(about, [timed(8)])
        store.conclude(about, won())
    store.close()
    return tmp_path / "home"


def change(home: Path, statement: str, *values: object) -> None:
    with sqlite3.connect(home / FILE_NAME) as db:
        db.execute(statement, values)
    db.close()


def near(home: Path) -> list[float]:
    found = SqliteStore(home).near(ASKED, 2.0, 1)
    return [float(one.subject.problem["m"]) for one in found]


@pytest.mark.parametrize(
    "logs", [5, "abcdefgh", b"", b"12345678", b"\xff\xff\xff\xff\xff\xff\xff\x7f", b"\0" * (20 << 20), -1.5]
)
def test_an_odd_point_hides_nobody(home: Path, logs: object) -> None:
    assert near(home) == [101]
    change(home, "UPDATE points SET logs = ? WHERE subject = 1", logs)
    assert near(home) == [110]


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE verdicts SET body = 'x' WHERE subject = 1",
        "DELETE FROM verdicts WHERE subject = 1",
        "UPDATE verdicts SET body = printf('%.*c', 20000000, 'x') WHERE subject = 1",
        "UPDATE subjects SET body = '{}' WHERE id = 1",
        "UPDATE subjects SET body = printf('%.*c', 20000000, 'x') WHERE id = 1",
    ],
)
@pytest.mark.filterwarnings("ignore:.*longer than any of ours")
def test_a_damaged_nearest_row_hides_nobody(home: Path, statement: str) -> None:
    change(home, statement)
    assert near(home) == [110]


def test_a_deep_row_has_no_point() -> None:
    assert list(points_of([(1, "0" * 64, '{"policy":' + "[" * 3000 + "]" * 3000 + "}")])) == []


def test_a_deep_row_does_not_keep_an_older_file_from_its_index(home: Path) -> None:
    deep = '{"decision":"d","problem":{},"policy":' + "[" * 3000 + "]" * 3000 + "}"
    change(home, "INSERT INTO subjects (digest, decision, identity, body) VALUES (?, 'd', x'00', ?)", "0" * 64, deep)
    for statement in ("DROP INDEX points_family", "DROP INDEX points_alike", "DROP INDEX subjects_decision"):
        change(home, statement)
    change(home, "DROP TABLE points")
    change(home, "PRAGMA user_version = 2")
    assert near(home) == [101]
    assert SqliteStore(home).info().schema == len(schema.MIGRATIONS)


@pytest.mark.parametrize("column", ["identity", "body"])
@pytest.mark.filterwarnings("ignore:.*longer than any of ours")
def test_one_long_trial_empties_no_list(home: Path, column: str) -> None:
    long = {
        "identity": "UPDATE trials SET identity = zeroblob(20000000) WHERE subject = 1",
        "body": "UPDATE trials SET body = printf('%.*c', 20000000, 'x') WHERE subject = 1",
    }
    change(home, long[column])
    store = SqliteStore(home)
    assert [one.subject for one in store.measured(NEXT.decision).rows] == [NEXT]
    assert store.decisions() == [NEXT.decision]
