"""Rows of an SQLite file one by one, for when one of them has a value that is longer than we let SQLite read."""

import functools
import json
import sqlite3
import warnings
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from tunewise.errors import StoreWarning
from tunewise.formats.facts import read_trial, read_verdict
from tunewise.store.memory import MemoryStore
from tunewise.store.rows import facts_in, subject_of

_FACTS = {
    "trials": (
        "SELECT t.id FROM subjects s JOIN trials t ON t.subject = s.id WHERE s.digest = ? ORDER BY t.id",
        "SELECT identity, body FROM trials WHERE id = ?",
    ),
    "verdicts": (
        "SELECT v.id FROM subjects s JOIN verdicts v ON v.subject = s.id WHERE s.digest = ? ORDER BY v.id",
        "SELECT identity, body FROM verdicts WHERE id = ?",
    ),
}
_PAGES = {
    "trials": (
        "SELECT id FROM trials WHERE id > ? ORDER BY id LIMIT ?",
        "SELECT id, subject, identity, body FROM trials WHERE id = ?",
    ),
    "verdicts": (
        "SELECT id FROM verdicts WHERE id > ? ORDER BY id LIMIT ?",
        "SELECT id, subject, identity, body FROM verdicts WHERE id = ?",
    ),
}
_SUBJECTS = "SELECT id FROM subjects ORDER BY id", "SELECT decision, id, digest, body FROM subjects WHERE id = ?"
_BODIES = "SELECT id FROM subjects WHERE digest = ? ORDER BY id DESC", "SELECT body FROM subjects WHERE id = ?"
_MISSES = "SELECT rowid FROM misses", "SELECT key, decision, asked_as, body, count FROM misses WHERE rowid = ?"
_SIGNS = "SELECT rowid FROM signs", "SELECT kind, key, at, body FROM signs WHERE rowid = ?"


def facts(db: sqlite3.Connection, table: str, digest: str) -> list[Any]:
    """Return the readable rows of (identity, body) about a subject."""
    return _readable(db, _FACTS[table], (digest,))


def page(db: sqlite3.Connection, table: str, last: int, most: int) -> list[Any]:
    """Return rows of (id, subject, identity, body) after one; those that cannot be read belong to no subject."""
    numbers = [number for (number,) in db.execute(_PAGES[table][0], (last, most)).fetchall()]
    rows = {row[0]: row for row in _readable(db, _PAGES[table], (last, most))}
    return [rows.get(number, (number, -1, b"", "")) for number in numbers]


def subjects(db: sqlite3.Connection, decision: str | None) -> list[Any]:
    """Return the readable rows of (id, digest, body)."""
    return [row[1:] for row in _readable(db, _SUBJECTS) if decision in (None, row[0])]


def bodies(db: sqlite3.Connection, digest: str) -> list[Any]:
    """Return the readable rows of (body,) of one subject, the latest first."""
    return _readable(db, _BODIES, (digest,))


def misses(db: sqlite3.Connection, decision: str | None) -> list[Any]:
    """Return the readable rows of (key, decision, asked_as, body, count)."""
    return [row for row in _readable(db, _MISSES) if decision in (None, row[1])]


def signs(db: sqlite3.Connection, kind: str | None) -> list[Any]:
    """Return the readable rows of (kind, key, at, body)."""
    return [row for row in _readable(db, _SIGNS) if kind in (None, row[0])]


def readable(db: sqlite3.Connection, decision: str | None) -> MemoryStore:
    """Return what can be read about a decision, or about all of them."""
    store = MemoryStore()
    for digest, body in (row[1:] for row in subjects(db, decision)):
        subject = subject_of(digest, body)
        if subject is not None:
            store.add(subject, facts_in(digest, facts(db, "trials", digest), read_trial))
            for verdict in facts_in(digest, facts(db, "verdicts", digest), read_verdict):
                store.conclude(subject, verdict)
    return store


def run(db: sqlite3.Connection, query: str, values: Mapping[str, Any]) -> list[Any]:
    """Return the rows of a query; those of `names`, a JSON list, one by one where all of them cannot be read."""
    try:
        return db.execute(query, values).fetchall()
    except sqlite3.DataError:
        if "names" not in values:
            raise
    _warn(str(db.execute("PRAGMA database_list").fetchone()[2]))
    rows: list[Any] = []
    for name in json.loads(values["names"]):
        with suppress(sqlite3.DataError):
            rows += db.execute(query, {**values, "names": json.dumps([name])}).fetchall()
    return rows


def _readable(db: sqlite3.Connection, queries: tuple[str, str], values: Sequence[Any] = ()) -> list[Any]:
    rows: list[Any] = []
    for (number,) in db.execute(queries[0], values).fetchall():
        try:
            rows += db.execute(queries[1], (number,)).fetchall()
        except sqlite3.DataError:
            _warn(str(db.execute("PRAGMA database_list").fetchone()[2]))
    return rows


@functools.cache
def _warn(place: str) -> None:
    said = f"{place} holds a value that is longer than any of ours; its row is left out"
    warnings.warn(said, StoreWarning, stacklevel=6)
