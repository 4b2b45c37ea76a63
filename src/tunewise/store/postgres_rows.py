"""Putting rows into the tables on a PostgreSQL server: subjects once, facts by statements or in one stream."""

from collections.abc import Sequence
from typing import Any

from tunewise.decision import Subject
from tunewise.formats.records import Record
from tunewise.store.rows import About, Row, Table, subject_row, written
from tunewise.store.server import storable

MANY = 8  # rows from which on they are copied in one stream instead of inserted one by one
NEW_SUBJECTS = -1953853030  # the advisory lock of whoever adds subjects; those of flights are positive
Keyed = tuple[int, float, bytes, str]  # a row of trials or verdicts with the number of its subject

_INSERT = {
    "trials": "INSERT INTO tunewise.trials (subject, at, identity, body) VALUES (%s, %s, %s, %s)",
    "verdicts": "INSERT INTO tunewise.verdicts (subject, at, identity, body) VALUES (%s, %s, %s, %s)",
}
_COPY = {
    "trials": "COPY tunewise.trials (subject, at, identity, body) FROM STDIN (FORMAT BINARY)",
    "verdicts": "COPY tunewise.verdicts (subject, at, identity, body) FROM STDIN (FORMAT BINARY)",
}
# The rows are held, as the references to them will be: nobody prunes a subject between this and a fact about it.
_KEYS = """
    SELECT id, digest, decision, identity, body FROM tunewise.subjects
    WHERE digest = ANY(%s) ORDER BY id DESC FOR KEY SHARE
"""
_ADD_SUBJECT = "INSERT INTO tunewise.subjects (digest, decision, identity, body) VALUES (%s, %s, %s, %s) RETURNING id"


def put(db: Any, table: str, rows: Sequence[Keyed]) -> None:
    """Add rows to a table: many in one stream, few by statements."""
    if len(rows) < MANY:
        for row in rows:
            db.execute(_INSERT[table], row)
        return
    with db.cursor() as cursor, cursor.copy(_COPY[table]) as stream:
        stream.set_types(["int8", "float8", "bytea", "text"])
        for row in rows:
            stream.write_row(row)


def keys_of(db: Any, abouts: Sequence[About]) -> dict[About, int]:
    """Return the row numbers of subjects, added if they are new."""
    found = _known_keys(db, abouts)
    if all(about in found for about in abouts):
        return found
    db.execute("SELECT pg_advisory_xact_lock(%s)", (NEW_SUBJECTS,))
    found = _known_keys(db, abouts)  # again: somebody else may have added them while we waited
    new = [about for about in dict.fromkeys(abouts) if about not in found]
    return {**found, **_new_keys(db, new)} if new else found


def _known_keys(db: Any, abouts: Sequence[About]) -> dict[About, int]:
    # Compared whole: facts must not be tied to a row that has been damaged.
    digests = list({about[0] for about in abouts})
    return {tuple(about): key for key, *about in db.execute(_KEYS, (digests,)).fetchall()}


def _new_keys(db: Any, abouts: Sequence[About]) -> dict[About, int]:
    with db.cursor() as cursor:
        cursor.executemany(_ADD_SUBJECT, abouts, returning=True)
        keys = {}
        for about in abouts:
            keys[about] = cursor.fetchone()[0]
            cursor.nextset()
    return keys


def written_row(record: Record) -> tuple[About, Table, Row]:
    """Return a record as rows that PostgreSQL can hold."""
    (digest, name, identity, body), table, row = written(record)
    return (digest, storable(name), identity, body), table, row


def about_row(subject: Subject, digest: str) -> About:
    """Return a subject as a row that PostgreSQL can hold."""
    digest, name, identity, body = subject_row(subject, digest)
    return digest, storable(name), identity, body
