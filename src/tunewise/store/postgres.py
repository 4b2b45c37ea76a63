"""The store on a PostgreSQL server that a team shares."""

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from tunewise.decision import Miss, Problem, Subject, Trial, Verdict
from tunewise.formats import facts
from tunewise.formats.records import Record
from tunewise.store.answers import verdicts_in, weigh
from tunewise.store.base import (
    MAX_MISSES,
    MAX_SIGNS,
    SIGN_LIFE_S,
    Flight,
    Measured,
    Page,
    Prune,
    Pruned,
    Remembered,
    Sign,
    StoreInfo,
)
from tunewise.store.listening import Heard, Listener
from tunewise.store.locks import ByteFlight
from tunewise.store.postgres_copy import copied
from tunewise.store.postgres_reading import (
    BY_DIGEST,
    COUNT_TRIALS,
    DECISIONS,
    LAST_WRITTEN,
    MISSES,
    OF_SUBJECT,
    PAGES,
    SIGNS,
    SUBJECTS,
    VERDICTS,
    sent,
)
from tunewise.store.postgres_rows import (
    NEW_SUBJECTS,
    about_row,
    is_written,
    keys_of,
    put,
    put_verdicts,
    unknown,
    written_rows,
)
from tunewise.store.postgres_schema import WITH_POINTS, WITH_SIGNS
from tunewise.store.questions import Dialect, Questions
from tunewise.store.replying import unhurried
from tunewise.store.rows import (
    TABLES,
    About,
    Fact,
    Row,
    Table,
    fact_row,
    facts_in,
    miss_key,
    miss_of,
    miss_row,
    records_in,
    sign_body,
    sign_of,
    subject_of,
    subjects_by_key,
    subjects_in,
)
from tunewise.store.schema import Held
from tunewise.store.server import Server, storable, stored

_PAGE = 2_000
_DIALECT = Dialect(
    "%({})s",
    "strpos",
    "(SELECT unnest(%(names)s::text[]))",
    "(SELECT unnest(%(numbers)s::bigint[]))",
    # By one range after the other: otherwise the planner reads the whole table where it has counted it.
    "unnest({firsts}::bigint[], {lasts}::bigint[]) AS r (column1, column2) CROSS JOIN LATERAL (SELECT * FROM {points}",
    ") AS p LIMIT {most}",
    "unnest(%(features)s::text[]) AS f (value)",
    "octet_length",
    "CASE WHEN octet_length({0}) <= 1048576 THEN {0} END",
    BY_DIGEST,
    VERDICTS,
    prefix="tunewise.",
    name=storable,
)

_COUNT_OLD = "SELECT count(*) FROM tunewise.trials WHERE subject = ANY(%s) AND at < %s"
_DELETE_OLD = "DELETE FROM tunewise.trials WHERE subject = ANY(%s) AND at < %s"
_OLD_VERDICTS = "SELECT id FROM tunewise.verdicts WHERE subject = ANY(%s) AND at < %s"
_COUNT_MISSES = "SELECT count(*) FROM tunewise.misses WHERE decision = %s"
_DELETE_BARE = """
    DELETE FROM tunewise.subjects s WHERE NOT EXISTS (SELECT 1 FROM tunewise.trials WHERE subject = s.id)
    AND NOT EXISTS (SELECT 1 FROM tunewise.verdicts WHERE subject = s.id)
"""
_UNTUNED = """
    UPDATE tunewise.points p SET is_tuned = 0
    WHERE is_tuned = 1 AND NOT EXISTS (SELECT 1 FROM tunewise.verdicts WHERE subject = p.subject)
"""
_STOP_WRITERS = "LOCK TABLE tunewise.subjects, tunewise.trials, tunewise.verdicts IN EXCLUSIVE MODE"
_COUNT_MISS = """
    INSERT INTO tunewise.misses AS known (key, decision, asked_as, body, count) VALUES (%s, %s, %s, %s, %s)
    ON CONFLICT (key) DO UPDATE SET count = known.count + excluded.count, asked_as = excluded.asked_as
"""
_RAISE_MISS = """
    INSERT INTO tunewise.misses AS known (key, decision, asked_as, body, count)
    SELECT given.key, given.decision, given.asked_as, given.body, given.count
    FROM (VALUES (%s::text, %s::text, %s::text, %s::text, %s::bigint)) AS given (key, decision, asked_as, body, count)
    WHERE NOT EXISTS
    (SELECT 1 FROM tunewise.subjects s JOIN tunewise.verdicts v ON v.subject = s.id WHERE s.digest = given.asked_as)
    ON CONFLICT (key) DO UPDATE SET count = excluded.count WHERE known.count < excluded.count
"""
_FORGET_MISS = "DELETE FROM tunewise.misses WHERE key = %s"
_DROP_MISSES = """
    DELETE FROM tunewise.misses WHERE key IN
    (SELECT key FROM tunewise.misses WHERE decision = %s ORDER BY count, id LIMIT %s)
"""
_SHOW = """
    INSERT INTO tunewise.signs (kind, key, at, body) VALUES (%s, %s, %s, %s)
    ON CONFLICT (kind, key) DO UPDATE SET at = excluded.at, body = excluded.body
"""
_DROP_SIGNS = """
    DELETE FROM tunewise.signs WHERE (kind, key) IN (SELECT kind, key FROM tunewise.signs ORDER BY at LIMIT %s)
"""
_COUNTS = """
    SELECT (SELECT count(*) FROM tunewise.trials), (SELECT count(*) FROM tunewise.verdicts),
    (SELECT count(DISTINCT digest) FROM tunewise.subjects), (SELECT count(*) FROM tunewise.misses),
    (SELECT sum(pg_total_relation_size(oid)) FROM pg_class
     WHERE relnamespace = 'tunewise'::regnamespace AND relkind = 'r'), current_setting('server_version'),
    (SELECT at FROM tunewise.trials ORDER BY id DESC LIMIT 1),
    (SELECT at FROM tunewise.verdicts ORDER BY id DESC LIMIT 1)
"""


class PostgresStore:
    """Every trial in the namespace `tunewise` of one PostgreSQL database; nothing is connected before it is needed.

    `url` is an address of libpq, such as `postgresql:///?service=team`. With `is_shared` it is read and not written.
    `heard` is called with the name of a decision for which another process concluded something, or with None where it
    may be any. Rows carry checksums as in the SQLite file. Trouble of any kind raises StoreError.
    """

    def __init__(self, url: str, *, is_shared: bool = False, heard: Heard | None = None) -> None:
        self._server = Server(url, is_read_only=is_shared)
        self.place = self._server.place
        self._listener = Listener(url, heard)

    @property
    def is_silent(self) -> bool:
        """Whether a statement runs that the server has not answered so far."""
        return self._server.is_silent

    def add(self, subject: Subject, trials: Iterable[Trial]) -> None:
        """Append trials, all of them or none."""
        digest = subject.digest
        rows = [fact_row(digest, trial.at, facts.write_trial(trial)) for trial in trials]
        if not rows:
            return
        about = about_row(subject, digest)

        def write(db: Any) -> None:
            key = keys_of(db, [about])[about]
            put(db, "trials", [(key, *row) for row in rows])

        proof = partial(is_written, "trials", digest, rows[0][1])
        self._server.write(write, ("add", digest, *(row[1] for row in rows)), proof)

    def trials(self, subject: Subject) -> list[Trial]:
        """Return the trials of a subject in the order they were added."""
        return self._facts("trials", subject, facts.read_trial)

    def conclude(self, subject: Subject, verdict: Verdict) -> None:
        """Append a verdict; it is on the server's disk when this returns, and other processes hear of it."""
        digest = subject.digest
        about, row = about_row(subject, digest), fact_row(digest, verdict.at, facts.write_verdict(verdict))

        def write(db: Any) -> None:
            put_verdicts(db, [(keys_of(db, [about])[about], *row)])
            self._listener.tell(db, subject.decision)

        self._server.write(write, ("conclude", digest, row[1]), partial(is_written, "verdicts", digest, row[1]))

    def verdicts(self, subject: Subject) -> list[Verdict]:
        """Return the verdicts of a subject, oldest first."""
        return self._facts("verdicts", subject, facts.read_verdict)

    def recorded(self, subject: Subject) -> Subject | None:
        """Return the subject as last written, or None if nothing is known of it."""
        digest = subject.digest
        known = (subject_of(digest, body) for (body,) in self._all(LAST_WRITTEN, (digest,)))
        return next((found for found in known if found is not None), None)

    def subjects(self, decision: str | None = None, last: int | None = None) -> list[Subject]:
        """Return every subject that has trials or verdicts, or the last so many, in the order they were first seen."""
        rows = self._sent(SUBJECTS, {"name": decision and storable(decision), "last": last})
        return subjects_in(row[1:] for row in rows)

    def near(self, subject: Subject, ratio: float, limit: int) -> list[Remembered]:
        """Return tuned subjects that differ in numbers only, each by `ratio` at most, nearest first."""
        return self._questions().near(subject, ratio, limit)

    def kin(self, subject: Subject, limit: int) -> list[Remembered]:
        """Return other subjects of the same decision: the nearest and the last ones."""
        return self._questions().kin(subject, limit)

    def tuned(self, decision: str, like: Problem | None = None, limit: int | None = None) -> Page[Remembered]:
        """Return the last tuned subjects of those whose problem has the features `like`."""
        return self._questions().tuned(decision, like, limit)

    def measured(
        self, decision: str, like: Problem | None = None, limit: int | None = None, *, failed: bool = False
    ) -> Page[Measured]:
        """Return the last trials, or only failed ones, of subjects whose problem has the features `like`."""
        return self._questions().measured(decision, like, limit, failed=failed)

    def decisions(self) -> list[str]:
        """Return the names of the decisions that have trials or verdicts, in alphabetical order."""
        rows = self._sent(DECISIONS, None)
        return sorted({subject.decision for subject in subjects_in(rows)})

    def miss(self, subject: Subject, count: int = 1) -> None:
        """Count a question that nobody could answer."""
        name, key = storable(subject.decision), miss_key(subject.decision, subject.problem)
        row = (key, name, subject.digest, facts.write_problem(subject.problem).decode(), count)

        def write(db: Any) -> None:
            db.execute(_COUNT_MISS, row)
            _cap_misses(db, name)

        self._server.write(write, ("miss", key, count))

    def misses(self, decision: str | None = None) -> list[Miss]:
        """Return the problems that were asked in vain, most often asked first."""
        rows = self._sent(MISSES, {"name": decision and storable(decision)})
        read_rows = (miss_of(key, stored(name), asked_as, body, count) for key, name, asked_as, count, body in rows)
        return [miss for miss in read_rows if miss is not None]

    def forget_miss(self, subject: Subject) -> None:
        """Drop the misses of a subject's decision and problem."""
        key = miss_key(subject.decision, subject.problem)
        if self._all("SELECT 1 FROM tunewise.misses WHERE key = %s", (key,)):
            self._server.write(lambda db: db.execute(_FORGET_MISS, (key,)).rowcount, ("forget", key))

    def absorb_misses(self, misses: Iterable[Miss]) -> int:
        """Count misses from elsewhere at least as often as they say; return how many are new or were raised."""
        given = [(key, storable(name), *rest) for key, name, *rest in map(miss_row, misses)]

        def write(db: Any) -> int:
            with db.cursor() as cursor:
                cursor.executemany(_RAISE_MISS, given)
                raised = int(cursor.rowcount)
            for name in {str(row[1]) for row in given}:
                _cap_misses(db, name)
            return raised

        return self._server.write(write, object()) if given else 0

    def show(self, sign: Sign) -> None:
        """Put a sign of life in the place of the last one of its kind and key."""
        row = (storable(sign.kind), storable(sign.key), sign.at, sign_body(sign))
        oldest = min(sign.at, time.time()) - SIGN_LIFE_S

        def write(db: Any) -> None:
            db.execute("SET LOCAL synchronous_commit = off")  # no fact: not worth waiting for the disk
            db.execute(_SHOW, row)
            db.execute("DELETE FROM tunewise.signs WHERE at < %s", (oldest,))
            kept = db.execute("SELECT count(*) FROM tunewise.signs").fetchone()[0]
            if kept > MAX_SIGNS:
                db.execute(_DROP_SIGNS, (kept - MAX_SIGNS,))

        self._server.write(write, object())

    def signs(self, kind: str | None = None, since: float = 0.0) -> list[Sign]:
        """Return the signs of life given since a moment, oldest first; a database of an older tunewise has none."""
        asked = {"kind": kind and storable(kind), "since": since}

        def read(db: Any) -> list[Any]:
            return db.execute(SIGNS, asked).fetchall() if self._server.schema >= WITH_SIGNS else []

        rows = sent(self._server.read(read), self._server.name)
        found = (sign_of(stored(name), stored(key), at, body) for name, key, at, body in rows)
        return [sign for sign in found if sign is not None]

    def flight(self, subject: Subject) -> Flight:
        """Return the right to tune a subject, held between all clients of the server."""
        return ByteFlight(self._server, subject.digest)

    def records(self, decision: str | None = None) -> Iterator[Record]:
        """Yield every trial and verdict with its subject: trials first, each kind in order of adding."""
        subjects = self._subjects_by_key()
        yield from records_in(partial(self._page, "trials"), subjects, decision, facts.read_trial)
        yield from records_in(partial(self._page, "verdicts"), subjects, decision, facts.read_verdict)

    def absorb(self, records: Iterable[Record]) -> int:
        """Add the records that are not known yet and return how many those were; all or none."""
        # Read all first: records may come from another store, and two locks held at once can wait for each other.
        given = list(written_rows(records))
        if not given:
            return 0

        def proof(db: Any, transaction: str) -> bool:
            return not unknown(db, given)

        return self._server.write(lambda db: self._absorbed(db, given), object(), proof)

    def prune(self, rule: Prune, *, dry_run: bool = False) -> Pruned:
        """Remove the facts a rule takes, or only count them."""
        before = float("inf") if rule.before is None else rule.before
        taken = {key: about for key, about in self._subjects_by_key().items() if rule.takes(about[1])}
        weighing = weigh(rule, verdicts_in(partial(self._page, "verdicts"), taken))
        old = list(taken), before
        misses_of = (storable(rule.decision) if rule.decision is not None and rule.takes_misses else None,)
        if dry_run:
            trials, misses = self._all(_COUNT_OLD, old)[0][0], self._all(_COUNT_MISSES, misses_of)[0][0]
            verdicts = [row for (row,) in self._all(_OLD_VERDICTS, old) if row not in weighing.spared]
            return Pruned(trials, len(verdicts), misses, weighing.lost)

        def remove(db: Any) -> Pruned:
            db.execute(_STOP_WRITERS)
            trials = db.execute(_DELETE_OLD, old).rowcount
            verdicts = [row for (row,) in db.execute(_OLD_VERDICTS, old).fetchall() if row not in weighing.spared]
            db.execute("DELETE FROM tunewise.verdicts WHERE id = ANY(%s)", (verdicts,))
            misses = db.execute("DELETE FROM tunewise.misses WHERE decision = %s", misses_of).rowcount
            db.execute(_DELETE_BARE)
            db.execute(_UNTUNED)
            self._listener.tell(db)
            return Pruned(trials, len(verdicts), misses, weighing.lost)

        return self._server.write(unhurried(remove), object())

    def info(self) -> StoreInfo:
        """Return what the database holds."""
        trials, verdicts, subjects, misses, size, version, *last = self._all(_COUNTS)[0]
        return StoreInfo(
            place=self._server.name(),
            schema=self._server.schema,
            trials=trials,
            verdicts=verdicts,
            subjects=subjects,
            misses=misses,
            size_bytes=int(size),
            decisions={stored(name): count for name, count in self._all(COUNT_TRIALS)},
            postgres=version,
            last_trial_at=last[0],
            last_verdict_at=last[1],
            is_read_only=self._server.is_read_only,
        )

    def copy_to(self, path: Path, tell: Callable[[int, int], None]) -> Held:
        """Write everything as it is at one moment into an empty file; return how many rows that must have then."""
        return copied(self._server.url, path, tell)

    def close(self) -> None:
        """Let go of the connections; the next use opens them again."""
        self._listener.stop()
        self._server.close()

    def _questions(self) -> Questions:
        schema = self._server.read(lambda db: self._server.schema)  # known once connected
        return Questions(self._sent, _DIALECT, schema >= WITH_POINTS)

    def _all(self, query: str, values: Any = None) -> list[Any]:
        rows: list[Any] = self._server.read(lambda db: db.execute(query, values).fetchall())
        self._listener.start()
        return rows

    def _sent(self, query: str, values: Any) -> list[Any]:
        return sent(self._all(query, values), self._server.name)

    def _facts(self, table: Table, subject: Subject, read: Callable[[str], Fact]) -> list[Fact]:
        digest = subject.digest
        return facts_in(digest, self._sent(OF_SUBJECT[table], (digest,)), read)

    def _subjects_by_key(self) -> dict[int, tuple[str, Subject]]:
        return subjects_by_key(self._sent(SUBJECTS, {"name": None, "last": None}))

    def _page(self, table: Table, last: int) -> list[tuple[int, int, bytes, str]]:
        rows = self._all(PAGES[table], (last, _PAGE))
        sent(rows, self._server.name)
        return [(*row[:3], row[3] or "") for row in rows]  # what was not sent counts as damaged: the page goes on

    def _absorbed(self, db: Any, given: Sequence[tuple[About, Table, Row]]) -> int:
        # One at a time: two who bring the same facts would both find them unknown.
        db.execute("SELECT pg_advisory_xact_lock(%s)", (NEW_SUBJECTS,))
        fresh = unknown(db, given)
        keys = keys_of(db, [about for about, _ in fresh.values()])
        for kind in TABLES:
            rows = [(keys[about], *row) for (table, _, _), (about, row) in fresh.items() if table == kind]
            put_verdicts(db, rows) if kind == "verdicts" else put(db, kind, rows)
        if any(table == "verdicts" for table, _, _ in fresh):
            self._listener.tell(db)
        return len(fresh)


def _cap_misses(db: Any, name: str) -> None:
    kept = db.execute(_COUNT_MISSES, (name,)).fetchone()[0]
    if kept > MAX_MISSES:
        db.execute(_DROP_MISSES, (name, kept - MAX_MISSES))
