"""The tables of the SQLite file, and how an older file becomes a newer one."""

import functools
import sqlite3
from collections.abc import Iterable
from contextlib import closing
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from tunewise.errors import DamagedStore, StoreError
from tunewise.store.points import points_of

APPLICATION_ID = 1953853029  # "tune": tells our file from anybody else's
WITH_SIGNS = 2  # the first schema that has signs of life
WITH_POINTS = 3  # the first schema that has an index over the numbers of problems

# One entry a schema number, each ending with the statement that sets it. Entries are added and never changed.
# Rows are found by subject only: an index on identities, which are random, would triple what every insert writes.
MIGRATIONS: tuple[tuple[str, ...], ...] = (
    (
        # A digest has one row for each set of parts that do not have to match.
        """CREATE TABLE subjects (
            id INTEGER PRIMARY KEY,
            digest TEXT NOT NULL,
            decision TEXT NOT NULL,
            identity BLOB NOT NULL,
            body TEXT NOT NULL
        )""",
        "CREATE INDEX subjects_digest ON subjects (digest)",
        """CREATE TABLE trials (
            id INTEGER PRIMARY KEY,
            subject INTEGER NOT NULL REFERENCES subjects (id),
            at REAL NOT NULL,
            identity BLOB NOT NULL,
            body TEXT NOT NULL
        )""",
        "CREATE INDEX trials_subject ON trials (subject)",
        """CREATE TABLE verdicts (
            id INTEGER PRIMARY KEY,
            subject INTEGER NOT NULL REFERENCES subjects (id),
            at REAL NOT NULL,
            identity BLOB NOT NULL,
            body TEXT NOT NULL
        )""",
        "CREATE INDEX verdicts_subject ON verdicts (subject)",
        """CREATE TABLE misses (
            key TEXT PRIMARY KEY,
            decision TEXT NOT NULL,
            asked_as TEXT NOT NULL,
            body TEXT NOT NULL,
            count INTEGER NOT NULL
        )""",
        "CREATE INDEX misses_decision ON misses (decision, count)",
        "PRAGMA application_id = 1953853029",
        "PRAGMA user_version = 1",
    ),
    (
        """CREATE TABLE signs (
            kind TEXT NOT NULL,
            key TEXT NOT NULL,
            at REAL NOT NULL,
            body TEXT NOT NULL,
            PRIMARY KEY (kind, key)
        )""",
        "CREATE INDEX signs_at ON signs (at)",
        "PRAGMA user_version = 2",
    ),
    (
        "CREATE INDEX subjects_decision ON subjects (decision)",
        """CREATE TABLE points (
            subject INTEGER PRIMARY KEY REFERENCES subjects (id),
            about INTEGER NOT NULL,
            family INTEGER NOT NULL,
            alike INTEGER NOT NULL,
            cell INTEGER NOT NULL,
            x REAL NOT NULL,
            y REAL NOT NULL,
            z REAL NOT NULL,
            logs BLOB NOT NULL,
            is_tuned INTEGER NOT NULL
        )""",
        "CREATE INDEX points_family ON points (family, cell, x, y, z)",
        "CREATE INDEX points_alike ON points (alike, is_tuned, cell, x, y, z)",
        "PRAGMA user_version = 3",
    ),
)

_ADD_POINT = "INSERT OR REPLACE INTO points VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"

_HELD = """
    SELECT (SELECT count(*) FROM subjects), (SELECT count(*) FROM trials), (SELECT count(*) FROM verdicts),
    (SELECT count(*) FROM misses)
"""


class Held(NamedTuple):
    """How many rows each table of facts has."""

    subjects: int
    trials: int
    verdicts: int
    misses: int


def held(db: sqlite3.Connection) -> Held:
    """Return how many rows a file has."""
    return Held(*db.execute(_HELD).fetchone())


_NUMBERS = """
    SELECT application_id, user_version, (SELECT count(*) FROM sqlite_master)
    FROM pragma_application_id, pragma_user_version
"""


def tables_of(db: sqlite3.Connection) -> set[tuple[str, ...]]:
    """Return what a file says of its tables and indices, each as (type, name, table, statement)."""
    rows = db.execute("SELECT type, name, tbl_name, coalesce(sql, '') FROM sqlite_master").fetchall()
    return {(*row[:3], " ".join(row[3].split())) for row in rows}


def tables() -> frozenset[tuple[str, ...]]:
    """Return what a sound file of our schema says of its tables and indices."""
    return _tables_after(MIGRATIONS)


@functools.cache
def _tables_after(migrations: tuple[tuple[str, ...], ...]) -> frozenset[tuple[str, ...]]:
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as db:
        for statement in chain.from_iterable(migrations):
            db.execute(statement)
        return frozenset(tables_of(db))


def number(db: sqlite3.Connection) -> int:
    """Return the schema number of a file, 0 for an empty one; raises StoreError if the file is not a store."""
    # One statement sees one moment: another process may be creating the tables.
    application, version, count = db.execute(_NUMBERS).fetchone()
    if application != APPLICATION_ID and count:
        place = db.execute("PRAGMA database_list").fetchone()[2]
        if tables() <= tables_of(db):
            raise DamagedStore(f"the store {place} cannot be used: its header is damaged")
        raise StoreError(
            f"{place} is an SQLite database of another program; set TUNEWISE_HOME to a directory of its own"
        )
    return int(version)


def migrate(db: sqlite3.Connection, path: Path) -> int:
    """Bring a file to our schema in one transaction and return the number it has then: ours, or a newer one.

    An older file is copied beside itself first, so that the library that wrote it can still be used.
    """
    found = number(db)
    if found >= len(MIGRATIONS):
        return found
    if found:
        copy = path.with_name(f"{path.name}.schema-{found}")
        if not copy.exists():
            db.execute("VACUUM INTO ?", (str(copy),))
    db.execute("BEGIN IMMEDIATE")
    try:
        for statements in MIGRATIONS[found:]:
            for statement in statements:
                db.execute(statement)
        if found < WITH_POINTS <= len(MIGRATIONS):
            fill_points(db)
        db.execute("COMMIT")
    except BaseException:
        if db.in_transaction:
            db.execute("ROLLBACK")
        raise
    return len(MIGRATIONS)


def fill_points(db: sqlite3.Connection) -> None:
    """Give every subject its point: where a file had none yet, and after subjects were copied into it."""
    add_points(db, db.execute("SELECT id, digest, body FROM subjects"))
    db.execute("UPDATE points SET is_tuned = 1 WHERE subject IN (SELECT subject FROM verdicts)")


def add_points(db: sqlite3.Connection, rows: Iterable[tuple[int, str, str]]) -> None:
    """Give subjects, as rows of (id, digest, body), the points that they are found by."""
    db.executemany(_ADD_POINT, ((key, *point, 0) for key, point in points_of(rows)))
