"""Copying a PostgreSQL store into an SQLite file: every row as it is, all of one moment."""

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

from tunewise.errors import StoreError
from tunewise.settings import shown
from tunewise.store import postgres_schema, schema
from tunewise.store.connecting import connect, driver, said
from tunewise.store.schema import Held
from tunewise.store.server import stored

_AT_ONCE = 2_000
# Of one moment, whatever others commit meanwhile; the server keeps it as long as the transaction lasts.
_ONE_MOMENT = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
_HELD = """
    SELECT (SELECT count(*) FROM tunewise.subjects), (SELECT count(*) FROM tunewise.trials),
    (SELECT count(*) FROM tunewise.verdicts), (SELECT count(*) FROM tunewise.misses)
"""
_READ = {
    "subjects": "SELECT id, digest, decision, identity, body FROM tunewise.subjects WHERE id > %s ORDER BY id LIMIT %s",
    "trials": "SELECT id, subject, at, identity, body FROM tunewise.trials WHERE id > %s ORDER BY id LIMIT %s",
    "verdicts": "SELECT id, subject, at, identity, body FROM tunewise.verdicts WHERE id > %s ORDER BY id LIMIT %s",
    "misses": "SELECT id, key, decision, asked_as, body, count FROM tunewise.misses WHERE id > %s ORDER BY id LIMIT %s",
}
_WRITE = {
    "subjects": "INSERT INTO subjects (id, digest, decision, identity, body) VALUES (?, ?, ?, ?, ?)",
    "trials": "INSERT INTO trials (id, subject, at, identity, body) VALUES (?, ?, ?, ?, ?)",
    "verdicts": "INSERT INTO verdicts (id, subject, at, identity, body) VALUES (?, ?, ?, ?, ?)",
    "misses": "INSERT INTO misses (rowid, key, decision, asked_as, body, count) VALUES (?, ?, ?, ?, ?, ?)",
}
_NAMED = ("subjects", "misses")  # tables whose third column is the name of a decision


def copied(url: str, path: Path, tell: Callable[[int, int], None]) -> Held:
    """Write what the store at an address holds at one moment into an empty file; return how many rows it must have.

    `tell` hears of rows done and all. Raises StoreError if there is no store, or if the connection is lost on the way.
    """
    with closing(connect(url)) as db, closing(sqlite3.connect(path, isolation_level=None)) as copy:
        try:
            if not postgres_schema.number(db):
                raise StoreError(f"there is no store at {shown(url)}")
            db.execute(_ONE_MOMENT)
            return _copied(db, copy, path, tell)
        except driver().Error as error:  # without its cause: what the server says may name the user
            raise StoreError(f"the store {shown(url)} cannot be copied: {said(error, url)}") from None


def _copied(db: Any, copy: sqlite3.Connection, path: Path, tell: Callable[[int, int], None]) -> Held:
    held, done = Held(*db.execute(_HELD).fetchone()), 0
    schema.migrate(copy, path)
    copy.execute("BEGIN")
    for table in _READ:
        for rows in _pages(db, table):
            copy.executemany(_WRITE[table], rows)
            done += len(rows)
            tell(done, sum(held))
    schema.fill_points(copy)
    copy.execute("COMMIT")
    return held


def _pages(db: Any, table: str) -> Iterator[list[list[Any]]]:
    last = 0
    while rows := [list(row) for row in db.execute(_READ[table], (last, _AT_ONCE)).fetchall()]:
        last = rows[-1][0]
        if table in _NAMED:
            for row in rows:
                row[2] = stored(row[2])
        yield rows
