"""Putting rows into the tables on a PostgreSQL server: subjects once, facts by statements or in one stream."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from tunewise.decision import Subject
from tunewise.formats.records import Record
from tunewise.store.postgres_schema import add_points
from tunewise.store.rows import TABLES, About, Row, Table, subject_row, written
from tunewise.store.server import storable

_TUNED = "UPDATE tunewise.points SET is_tuned = 1 WHERE subject = ANY(%s) AND is_tuned = 0"
MANY = 8  # rows from which on they are copied in one stream instead of inserted one by one
NEW_SUBJECTS = -1953853030  # the advisory lock of whoever adds subjects; those of flights are positive
Keyed = tuple[int, float, bytes, str]  # a row of trials or verdicts with the number of its subject

_INSERT = {
    "trials": "INSERT INTO tunewise.trials (subject, at, identity, body) VALUES (%s, %s, %s, %s)",
    "verdicts": "INSERT INTO tunewise.verdicts (subject, at, identity, body) VALUES (%s, %s, %s, %s)",
}
_WRITTEN = {
    "trials": "SELECT 1 FROM tunewise.subjects s JOIN tunewise.trials t ON t.subject = s.id"
    " WHERE s.digest = %s AND t.identity = %s AND t.xmin = %s::xid8::xid",
    "verdicts": "SELECT 1 FROM tunewise.subjects s JOIN tunewise.verdicts v ON v.subject = s.id"
    " WHERE s.digest = %s AND v.identity = %s AND v.xmin = %s::xid8::xid",
}
_COPY = {
    "trials": "COPY tunewise.trials (subject, at, identity, body) FROM STDIN (FORMAT BINARY)",
    "verdicts": "COPY tunewise.verdicts (subject, at, identity, body) FROM STDIN (FORMAT BINARY)",
}
_KNOWN = {
    "trials": "SELECT s.digest, t.identity FROM tunewise.subjects s JOIN tunewise.trials t ON t.subject = s.id"
    " WHERE s.digest = ANY(%s) AND t.identity = ANY(%s)",
    "verdicts": "SELECT s.digest, v.identity FROM tunewise.subjects s JOIN tunewise.verdicts v ON v.subject = s.id"
    " WHERE s.digest = ANY(%s) AND v.identity = ANY(%s)",
}
# The rows are held, as the references to them will be: nobody prunes a subject between this and a fact about it.
_KEYS = """
    SELECT id, digest, decision, identity, body FROM tunewise.subjects
    WHERE digest = ANY(%s) AND (digest, decision, identity, body) IN
    (SELECT * FROM unnest(%s::text[], %s::text[], %s::bytea[], %s::text[])) ORDER BY id DESC FOR KEY SHARE
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


def put_verdicts(db: Any, rows: Sequence[Keyed]) -> None:
    """Add verdicts, and have their subjects found as tuned ones."""
    put(db, "verdicts", rows)
    db.execute(_TUNED, ([row[0] for row in rows],))


def is_written(table: str, digest: str, identity: bytes, db: Any, transaction: str) -> bool:
    """Return whether a transaction has added a fact."""
    return db.execute(_WRITTEN[table], (digest, identity, transaction)).fetchone() is not None


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
    columns = [list(column) for column in zip(*set(abouts), strict=True)] or [[], [], [], []]
    return {tuple(about): key for key, *about in db.execute(_KEYS, (columns[0], *columns)).fetchall()}


def _new_keys(db: Any, abouts: Sequence[About]) -> dict[About, int]:
    with db.cursor() as cursor:
        cursor.executemany(_ADD_SUBJECT, abouts, returning=True)
        keys = {}
        for about in abouts:
            keys[about] = cursor.fetchone()[0]
            cursor.nextset()
    add_points(db, [(key, about[0], about[3]) for about, key in keys.items()])
    return keys


def unknown(db: Any, given: Sequence[tuple[About, Table, Row]]) -> dict[tuple[Table, str, bytes], tuple[About, Row]]:
    """Return the rows that are not in the tables yet, each once."""
    digests, identities = [about[0] for about, _, _ in given], [row[1] for _, _, row in given]
    known = {
        (table, digest, identity)
        for table in TABLES
        for digest, identity in db.execute(_KNOWN[table], (digests, identities)).fetchall()
    }
    fresh: dict[tuple[Table, str, bytes], tuple[About, Row]] = {}
    for about, table, row in given:
        if (table, about[0], row[1]) not in known:
            fresh.setdefault((table, about[0], row[1]), (about, row))
    return fresh


def written_rows(records: Iterable[Record]) -> Iterator[tuple[About, Table, Row]]:
    """Yield records as rows that PostgreSQL can hold."""
    for (digest, name, identity, body), table, row in written(records):
        yield (digest, storable(name), identity, body), table, row


def about_row(subject: Subject, digest: str) -> About:
    """Return a subject as a row that PostgreSQL can hold."""
    digest, name, identity, body = subject_row(subject, digest)
    return digest, storable(name), identity, body
