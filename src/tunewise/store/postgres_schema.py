"""The tables on a PostgreSQL server, in a namespace of their own, and how older ones become newer ones."""

from typing import Any

OLDEST_SERVER = 130000  # transactions have had names that outlive a connection since PostgreSQL 13
WITH_SIGNS = 2  # the first schema that has signs of life
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
)

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
        if found < len(MIGRATIONS):
            db.execute("UPDATE tunewise.schema_number SET number = %s", (len(MIGRATIONS),))
    return max(found, len(MIGRATIONS))


def why_not_written(found: int) -> str:
    """Return why a database whose schema is not ours is read but not written, and what to do."""
    ours = len(MIGRATIONS)
    if found > ours:
        return f"has schema {found}, newer than our {ours}; it is read but not written: upgrade tunewise"
    return (
        f"has schema {found}, older than the {ours} of this tunewise, and this role may not change it; it is read but "
        "not written until the role that began the store has run: tunewise store info"
    )
