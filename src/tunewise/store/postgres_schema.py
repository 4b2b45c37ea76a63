"""The tables on a PostgreSQL server, in a namespace of their own, and how older ones become newer ones."""

from collections.abc import Sequence
from typing import Any

from tunewise.store.points import points_of

OLDEST_SERVER = 130000  # transactions have had names that outlive a connection since PostgreSQL 13
WITH_SIGNS = 2  # the first schema that has signs of life
WITH_POINTS = 3  # the first schema that has an index over the numbers of problems
CHANNEL = "tunewise"  # where the clients of one database tell each other that there is something new
_MIGRATING = -1953853029  # advisory locks of subjects are positive

# One entry a schema number, the same tables as in the SQLite file. Entries are added and never changed.
MIGRATIONS: tuple[tuple[str, ...], ...] = (
    (
        "CREATE TABLE tunewise.schema_number (number INTEGER NOT NULL)",
        "INSERT INTO tunewise.schema_number VALUES (0)",
        # A digest has one row for each set of parts that do not have to match.
        """CREATE TABLE tunewise.subjects (
            id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
            digest TEXT NOT NULL,
            decision TEXT NOT NULL,
            identity BYTEA NOT NULL,
            body TEXT NOT NULL
        )""",
        "CREATE INDEX subjects_digest ON tunewise.subjects (digest)",
        """CREATE TABLE tunewise.trials (
            id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
            subject BIGINT NOT NULL REFERENCES tunewise.subjects (id),
            at DOUBLE PRECISION NOT NULL,
            identity BYTEA NOT NULL,
            body TEXT NOT NULL
        )""",
        "CREATE INDEX trials_subject ON tunewise.trials (subject)",
        """CREATE TABLE tunewise.verdicts (
            id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
            subject BIGINT NOT NULL REFERENCES tunewise.subjects (id),
            at DOUBLE PRECISION NOT NULL,
            identity BYTEA NOT NULL,
            body TEXT NOT NULL
        )""",
        "CREATE INDEX verdicts_subject ON tunewise.verdicts (subject)",
        """CREATE TABLE tunewise.misses (
            id BIGINT GENERATED ALWAYS AS IDENTITY,
            key TEXT PRIMARY KEY,
            decision TEXT NOT NULL,
            asked_as TEXT NOT NULL,
            body TEXT NOT NULL,
            count BIGINT NOT NULL
        )""",
        "CREATE INDEX misses_decision ON tunewise.misses (decision, count)",
    ),
    (
        """CREATE TABLE tunewise.signs (
            kind TEXT NOT NULL,
            key TEXT NOT NULL,
            at DOUBLE PRECISION NOT NULL,
            body TEXT NOT NULL,
            PRIMARY KEY (kind, key)
        )""",
        "CREATE INDEX signs_at ON tunewise.signs (at)",
    ),
    (
        "CREATE INDEX subjects_decision ON tunewise.subjects (decision, id)",
        """CREATE TABLE tunewise.points (
            subject BIGINT PRIMARY KEY REFERENCES tunewise.subjects (id) ON DELETE CASCADE,
            about BIGINT NOT NULL,
            family BIGINT NOT NULL,
            alike BIGINT NOT NULL,
            cell BIGINT NOT NULL,
            x DOUBLE PRECISION NOT NULL,
            y DOUBLE PRECISION NOT NULL,
            z DOUBLE PRECISION NOT NULL,
            logs BYTEA NOT NULL,
            is_tuned SMALLINT NOT NULL
        )""",
        "CREATE INDEX points_family ON tunewise.points (family, cell, x, y, z)",
        "CREATE INDEX points_alike ON tunewise.points (alike, is_tuned, cell, x, y, z)",
        # Who may write subjects writes their points too.
        """DO $$
            DECLARE given record;
            BEGIN
                FOR given IN SELECT grantee, privilege_type, is_grantable FROM information_schema.table_privileges
                WHERE table_schema = 'tunewise' AND table_name = 'subjects' AND grantee <> current_user
                LOOP
                    EXECUTE format(
                        'GRANT %s ON tunewise.points TO %s %s', given.privilege_type,
                        CASE WHEN given.grantee = 'PUBLIC' THEN 'PUBLIC' ELSE quote_ident(given.grantee) END,
                        CASE WHEN given.is_grantable = 'YES' THEN 'WITH GRANT OPTION' ELSE '' END
                    );
                END LOOP;
            END
        $$""",
    ),
)

_ADD_POINTS = """
    COPY tunewise.points (subject, about, family, alike, cell, x, y, z, logs, is_tuned) FROM STDIN (FORMAT BINARY)
"""
_SOUND = """
    SELECT id, digest, body FROM tunewise.subjects WHERE octet_length(digest) = 64 AND octet_length(body) <= 1048576
"""
_TUNED = "UPDATE tunewise.points SET is_tuned = 1 WHERE subject IN (SELECT subject FROM tunewise.verdicts)"
_POINT_TYPES = ["int8"] * 5 + ["float8"] * 3 + ["bytea", "int2"]

_OUR_TABLE = "SELECT 1 FROM pg_tables WHERE schemaname = 'tunewise' AND tablename = 'schema_number'"


def number(db: Any) -> int:
    """Return the schema number of a database, 0 where there is none of our tables."""
    # By rows, not by to_regclass(): that remembers that there was nothing, however long we waited for the lock since.
    if db.execute(_OUR_TABLE).fetchone() is None:
        return 0
    return int(db.execute("SELECT number FROM tunewise.schema_number").fetchone()[0])


def migrate(db: Any) -> int:
    """Bring a database to our schema in one transaction and return the number it has then: ours, or a newer one."""
    found = number(db)
    if found >= len(MIGRATIONS):
        return found
    with db.transaction():
        db.execute("SELECT pg_advisory_xact_lock(%s)", (_MIGRATING,))
        found = number(db)  # again: others may have waited for the same
        if db.execute("SELECT 1 FROM pg_namespace WHERE nspname = 'tunewise'").fetchone() is None:
            db.execute("CREATE SCHEMA tunewise")
        for statements in MIGRATIONS[found:]:
            for statement in statements:
                db.execute(statement)
        if found < WITH_POINTS <= len(MIGRATIONS):
            add_points(db, db.execute(_SOUND).fetchall())
            db.execute(
                "UPDATE tunewise.points SET is_tuned = 1 WHERE subject IN (SELECT subject FROM tunewise.verdicts)"
            )
        if found < len(MIGRATIONS):
            db.execute("UPDATE tunewise.schema_number SET number = %s", (len(MIGRATIONS),))
    return max(found, len(MIGRATIONS))


def add_points(db: Any, rows: Sequence[tuple[int, str, str]]) -> None:
    """Give subjects, as rows of (id, digest, body), the points that they are found by."""
    with db.cursor() as cursor, cursor.copy(_ADD_POINTS) as stream:
        stream.set_types(_POINT_TYPES)
        for key, point in points_of(rows):
            stream.write_row((key, *point, 0))


def why_not_written(found: int) -> str:
    """Return why a database whose schema is not ours is read but not written, and what to do."""
    ours = len(MIGRATIONS)
    if found > ours:
        return f"has schema {found}, newer than our {ours}; it is read but not written: upgrade tunewise"
    return (
        f"has schema {found}, older than the {ours} of this tunewise, and this role may not change it; it is read but "
        "not written until the role that began the store has run: tunewise store info"
    )
