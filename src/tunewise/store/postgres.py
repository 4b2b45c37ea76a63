"""The store on a PostgreSQL server that a team shares."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any

from tunewise.decision import Miss, Subject, Trial, Verdict
from tunewise.formats import facts
from tunewise.formats.records import Record
from tunewise.store.base import MAX_MISSES, Flight, Prune, Pruned, StoreInfo
from tunewise.store.listening import Heard, Listener
from tunewise.store.locks import ByteFlight
from tunewise.store.postgres_rows import NEW_SUBJECTS, about_row, keys_of, put, written_row
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
    records_in,
    subject_of,
    subjects_by_key,
    subjects_in,
)
from tunewise.store.server import Server, storable, stored

_PAGE = 2_000

_OF_SUBJECT = {
    "trials": "SELECT t.identity, t.body FROM tunewise.subjects s JOIN tunewise.trials t ON t.subject = s.id"
    " WHERE s.digest = %s ORDER BY t.id",
    "verdicts": "SELECT v.identity, v.body FROM tunewise.subjects s JOIN tunewise.verdicts v ON v.subject = s.id"
    " WHERE s.digest = %s ORDER BY v.id",
}
_KNOWN = {
    "trials": "SELECT s.digest, t.identity FROM tunewise.subjects s JOIN tunewise.trials t ON t.subject = s.id"
    " WHERE s.digest = ANY(%s) AND t.identity = ANY(%s)",
    "verdicts": "SELECT s.digest, v.identity FROM tunewise.subjects s JOIN tunewise.verdicts v ON v.subject = s.id"
    " WHERE s.digest = ANY(%s) AND v.identity = ANY(%s)",
}
_PAGES = {
    "trials": "SELECT id, subject, identity, body FROM tunewise.trials WHERE id > %s ORDER BY id LIMIT %s",
    "verdicts": "SELECT id, subject, identity, body FROM tunewise.verdicts WHERE id > %s ORDER BY id LIMIT %s",
}
_COUNT_OLD = {
    "trials": "SELECT count(*) FROM tunewise.trials WHERE subject = ANY(%s) AND at < %s",
    "verdicts": "SELECT count(*) FROM tunewise.verdicts WHERE subject = ANY(%s) AND at < %s",
}
_DELETE_OLD = {
    "trials": "DELETE FROM tunewise.trials WHERE subject = ANY(%s) AND at < %s",
    "verdicts": "DELETE FROM tunewise.verdicts WHERE subject = ANY(%s) AND at < %s",
}
_DELETE_BARE = """
    DELETE FROM tunewise.subjects s WHERE NOT EXISTS (SELECT 1 FROM tunewise.trials WHERE subject = s.id)
    AND NOT EXISTS (SELECT 1 FROM tunewise.verdicts WHERE subject = s.id)
"""
_STOP_WRITERS = "LOCK TABLE tunewise.subjects, tunewise.trials, tunewise.verdicts IN EXCLUSIVE MODE"
_SUBJECTS = """
    SELECT digest, body FROM tunewise.subjects
    WHERE %(name)s::text IS NULL OR decision = %(name)s ORDER BY id
"""
_LAST_WRITTEN = """
    SELECT body FROM tunewise.subjects s WHERE digest = %s ORDER BY
    (SELECT max(id) FROM tunewise.verdicts WHERE subject = s.id) DESC NULLS LAST,
    (SELECT max(id) FROM tunewise.trials WHERE subject = s.id) DESC NULLS LAST
"""
_COUNT_MISS = """
    INSERT INTO tunewise.misses AS known (key, decision, asked_as, body, count) VALUES (%s, %s, %s, %s, %s)
    ON CONFLICT (key) DO UPDATE SET count = known.count + excluded.count, asked_as = excluded.asked_as
"""
_FORGET_MISS = "DELETE FROM tunewise.misses WHERE key = %s"
_DROP_MISSES = """
    DELETE FROM tunewise.misses WHERE key IN
    (SELECT key FROM tunewise.misses WHERE decision = %s ORDER BY count, id LIMIT %s)
"""
_MISSES = """
    SELECT key, decision, asked_as, body, count FROM tunewise.misses
    WHERE %(name)s::text IS NULL OR decision = %(name)s ORDER BY count DESC, id
"""
_COUNTS = """
    SELECT (SELECT count(*) FROM tunewise.trials), (SELECT count(*) FROM tunewise.verdicts),
    (SELECT count(DISTINCT digest) FROM tunewise.subjects), (SELECT count(*) FROM tunewise.misses),
    (SELECT sum(pg_total_relation_size(oid)) FROM pg_class
     WHERE relnamespace = 'tunewise'::regnamespace AND relkind = 'r'), current_setting('server_version')
"""
_COUNT_TRIALS = """
    SELECT s.decision, count(t.id) FROM tunewise.subjects s LEFT JOIN tunewise.trials t ON t.subject = s.id
    GROUP BY s.decision ORDER BY s.decision COLLATE "C"
"""


class PostgresStore:
    """Every trial in the namespace `tunewise` of one PostgreSQL database; nothing is connected before it is needed.

    `url` is an address of libpq, such as `postgresql:///?service=team`. With `is_shared` it is read and not written.
    `heard` is called with the name of a decision for which another process concluded something, or with None where it
    may be any. Rows carry checksums as in the SQLite file. Trouble of any kind raises StoreError.
    """

    def __init__(self, url: str, *, is_shared: bool = False, heard: Heard | None = None) -> None:
        self._server = Server(url, is_read_only=is_shared)
        self._listener = Listener(url, heard)

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

        self._server.write(write, ("add", digest, *(row[1] for row in rows)))

    def trials(self, subject: Subject) -> list[Trial]:
        """Return the trials of a subject in the order they were added."""
        return self._facts("trials", subject, facts.read_trial)

    def conclude(self, subject: Subject, verdict: Verdict) -> None:
        """Append a verdict; it is on the server's disk when this returns, and other processes hear of it."""
        digest = subject.digest
        about, row = about_row(subject, digest), fact_row(digest, verdict.at, facts.write_verdict(verdict))

        def write(db: Any) -> None:
            put(db, "verdicts", [(keys_of(db, [about])[about], *row)])
            self._listener.tell(db, subject.decision)

        self._server.write(write, ("conclude", digest, row[1]))

    def verdicts(self, subject: Subject) -> list[Verdict]:
        """Return the verdicts of a subject, oldest first."""
        return self._facts("verdicts", subject, facts.read_verdict)

    def recorded(self, subject: Subject) -> Subject | None:
        """Return the subject as last written, or None if nothing is known of it."""
        digest = subject.digest
        known = (subject_of(digest, body) for (body,) in self._all(_LAST_WRITTEN, (digest,)))
        return next((found for found in known if found is not None), None)

    def subjects(self, decision: str | None = None) -> list[Subject]:
        """Return every subject that has trials or verdicts, in the order they were first seen."""
        return subjects_in(self._all(_SUBJECTS, {"name": decision and storable(decision)}))

    def decisions(self) -> list[str]:
        """Return the names of the decisions that have trials or verdicts, in alphabetical order."""
        return sorted({subject.decision for subject in self.subjects()})

    def miss(self, subject: Subject, count: int = 1) -> None:
        """Count a question that nobody could answer."""
        name, key = storable(subject.decision), miss_key(subject.decision, subject.problem)
        row = (key, name, subject.digest, facts.write_problem(subject.problem).decode(), count)

        def write(db: Any) -> None:
            db.execute(_COUNT_MISS, row)
            kept = db.execute("SELECT count(*) FROM tunewise.misses WHERE decision = %s", (name,)).fetchone()[0]
            if kept > MAX_MISSES:
                db.execute(_DROP_MISSES, (name, kept - MAX_MISSES))

        self._server.write(write, ("miss", key, count))

    def misses(self, decision: str | None = None) -> list[Miss]:
        """Return the problems that were asked in vain, most often asked first."""
        rows = self._all(_MISSES, {"name": decision and storable(decision)})
        read_rows = (miss_of(key, stored(name), *rest) for key, name, *rest in rows)
        return [miss for miss in read_rows if miss is not None]

    def forget_miss(self, subject: Subject) -> None:
        """Drop the misses of a subject's decision and problem."""
        key = miss_key(subject.decision, subject.problem)
        if self._all("SELECT 1 FROM tunewise.misses WHERE key = %s", (key,)):
            self._server.write(lambda db: db.execute(_FORGET_MISS, (key,)).rowcount, ("forget", key))

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
        given = [written_row(record) for record in records]
        return self._server.write(lambda db: self._absorbed(db, given), object()) if given else 0

    def prune(self, rule: Prune, *, dry_run: bool = False) -> Pruned:
        """Remove the facts a rule takes, or only count them."""
        before = float("inf") if rule.before is None else rule.before
        keys = [key for key, (_, subject) in self._subjects_by_key().items() if rule.takes(subject)]
        if dry_run:
            counts = [self._all(_COUNT_OLD[table], (keys, before))[0][0] for table in TABLES]
            return Pruned(*counts)

        def remove(db: Any) -> Pruned:
            db.execute(_STOP_WRITERS)
            gone = [db.execute(_DELETE_OLD[table], (keys, before)).rowcount for table in TABLES]
            db.execute(_DELETE_BARE)
            self._listener.tell(db)
            return Pruned(*gone)

        return self._server.write(remove, object())

    def info(self) -> StoreInfo:
        """Return what the database holds."""
        trials, verdicts, subjects, misses, size, version = self._all(_COUNTS)[0]
        return StoreInfo(
            place=self._server.name(),
            schema=self._server.schema,
            trials=trials,
            verdicts=verdicts,
            subjects=subjects,
            misses=misses,
            size_bytes=int(size),
            decisions={stored(name): count for name, count in self._all(_COUNT_TRIALS)},
            postgres=version,
            is_read_only=self._server.is_read_only,
        )

    def close(self) -> None:
        """Let go of the connections; the next use opens them again."""
        self._listener.stop()
        self._server.close()

    def _all(self, query: str, values: Any = None) -> list[Any]:
        rows: list[Any] = self._server.read(lambda db: db.execute(query, values).fetchall())
        self._listener.start()
        return rows

    def _facts(self, table: Table, subject: Subject, read: Callable[[str], Fact]) -> list[Fact]:
        digest = subject.digest
        return facts_in(digest, self._all(_OF_SUBJECT[table], (digest,)), read)

    def _subjects_by_key(self) -> dict[int, tuple[str, Subject]]:
        return subjects_by_key(self._all("SELECT id, digest, body FROM tunewise.subjects"))

    def _page(self, table: Table, last: int) -> list[tuple[int, int, bytes, str]]:
        return self._all(_PAGES[table], (last, _PAGE))

    def _absorbed(self, db: Any, given: Sequence[tuple[About, Table, Row]]) -> int:
        # One at a time: two who bring the same facts would both find them unknown.
        db.execute("SELECT pg_advisory_xact_lock(%s)", (NEW_SUBJECTS,))
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
        keys = keys_of(db, [about for about, _ in fresh.values()])
        for kind in TABLES:
            put(db, kind, [(keys[about], *row) for (table, _, _), (about, row) in fresh.items() if table == kind])
        if any(table == "verdicts" for table, _, _ in fresh):
            self._listener.tell(db)
        return len(fresh)
