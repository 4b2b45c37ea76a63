"""The store in one SQLite file."""

import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TypeVar

import msgspec

from tunewise.decision import Miss, Problem, Subject, Trial, Verdict
from tunewise.formats import facts
from tunewise.formats.records import Record
from tunewise.store import long_values
from tunewise.store.answers import Weighing, verdicts_in, weigh
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
from tunewise.store.database import FILE_NAME, Database
from tunewise.store.locks import ByteFlight
from tunewise.store.memory import MemoryStore
from tunewise.store.questions import Dialect, Questions
from tunewise.store.rows import (
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
    subject_row,
    subjects_by_key,
    subjects_in,
    written,
)
from tunewise.store.schema import WITH_POINTS, WITH_SIGNS, Held, add_points

_PAGE = 500
_T = TypeVar("_T")
_POINTS_BY_RANGE = """
    (VALUES ({first_0}, {last_0}), ({first_1}, {last_1}), ({first_2}, {last_2}), ({first_3}, {last_3}),
    ({first_4}, {last_4}), ({first_5}, {last_5}), ({first_6}, {last_6}), ({first_7}, {last_7})) AS r
    CROSS JOIN {points} p
"""
_VERDICTS = """
    SELECT s.digest, v.identity, v.body FROM {subjects} s JOIN {verdicts} v ON v.subject = s.id
    WHERE s.digest IN {names} ORDER BY v.id
"""
_DIALECT = Dialect(
    ":{}",
    "instr",
    "(SELECT value FROM json_each(:names))",
    "(SELECT value FROM json_each(:numbers))",
    _POINTS_BY_RANGE,
    "",
    "json_each(:features) AS f",
    "length",
    "{}",
    "SELECT digest, body FROM {subjects} WHERE digest IN {names} ORDER BY id",
    _VERDICTS,
    as_list=lambda values: msgspec.json.encode(values).decode(),
)

_INSERT = {
    "trials": "INSERT INTO trials (subject, at, identity, body) VALUES (?, ?, ?, ?)",
    "verdicts": "INSERT INTO verdicts (subject, at, identity, body) VALUES (?, ?, ?, ?)",
}
_OF_SUBJECT = {
    "trials": "SELECT t.identity, t.body FROM subjects s JOIN trials t ON t.subject = s.id"
    " WHERE s.digest = ? ORDER BY t.id",
    "verdicts": "SELECT v.identity, v.body FROM subjects s JOIN verdicts v ON v.subject = s.id"
    " WHERE s.digest = ? ORDER BY v.id",
}
_PAGES = {
    "trials": "SELECT id, subject, identity, body FROM trials WHERE id > ? ORDER BY id LIMIT ?",
    "verdicts": "SELECT id, subject, identity, body FROM verdicts WHERE id > ? ORDER BY id LIMIT ?",
}
_COUNT_OLD = "SELECT count(*) FROM trials WHERE subject = ? AND at < ?"
_DELETE_OLD = "DELETE FROM trials WHERE subject = ? AND at < ?"
_OLD_VERDICTS = "SELECT id FROM verdicts WHERE subject = ? AND at < ?"
_SUBJECTS = "SELECT id, digest, body FROM subjects WHERE ?1 IS NULL OR decision = ?1 ORDER BY id DESC LIMIT ?2"
_MISSES = """
    SELECT key, decision, asked_as, body, count FROM misses WHERE ?1 IS NULL OR decision = ?1 ORDER BY count DESC, rowid
"""
_LAST_WRITTEN = """
    SELECT body FROM subjects s WHERE digest = ? ORDER BY
    (SELECT max(id) FROM verdicts WHERE subject = s.id) DESC, (SELECT max(id) FROM trials WHERE subject = s.id) DESC
"""
_COUNT_MISS = """
    INSERT INTO misses (key, decision, asked_as, body, count) VALUES (?, ?, ?, ?, ?)
    ON CONFLICT (key) DO UPDATE SET count = count + excluded.count, asked_as = excluded.asked_as
"""
_RAISE_MISS = """
    INSERT INTO misses (key, decision, asked_as, body, count) SELECT ?1, ?2, ?3, ?4, ?5
    WHERE NOT EXISTS (SELECT 1 FROM subjects s JOIN verdicts v ON v.subject = s.id WHERE s.digest = ?3)
    ON CONFLICT (key) DO UPDATE SET count = excluded.count WHERE misses.count < excluded.count
"""
_DROP_MISSES = """
    DELETE FROM misses WHERE rowid IN
    (SELECT rowid FROM misses WHERE decision = ? ORDER BY count, rowid LIMIT max(0, ?))
"""
_COUNT_SUBJECTS = "SELECT count(DISTINCT digest) FROM subjects"
_COUNT_TRIALS = """
    SELECT s.decision, count(t.id) FROM subjects s LEFT JOIN trials t ON t.subject = s.id
    GROUP BY s.decision ORDER BY s.decision
"""
_COUNTS = """
    SELECT (SELECT count(*) FROM trials), (SELECT count(*) FROM verdicts),
    (SELECT count(*) FROM subjects), (SELECT count(*) FROM misses),
    (SELECT at FROM trials ORDER BY id DESC LIMIT 1), (SELECT at FROM verdicts ORDER BY id DESC LIMIT 1)
"""
_SHOW = """
    INSERT INTO signs (kind, key, at, body) VALUES (?, ?, ?, ?)
    ON CONFLICT (kind, key) DO UPDATE SET at = excluded.at, body = excluded.body
"""
_SIGNS = "SELECT kind, key, at, body FROM signs WHERE (?1 IS NULL OR kind = ?1) AND at >= ?2 ORDER BY at"
_DROP_SIGNS = "DELETE FROM signs WHERE rowid IN (SELECT rowid FROM signs ORDER BY at LIMIT ?)"


class SqliteStore:
    """Every trial in one SQLite file inside a private directory; nothing is opened before it is needed.

    Each row carries a checksum that ties it to its subject: a row that does not hold is passed over, never returned.
    With `is_shared`, a directory of somebody else is read and not written. Trouble of any kind raises StoreError.
    """

    def __init__(self, home: Path, *, is_shared: bool = False) -> None:
        self.path = home / FILE_NAME if home.suffix != ".sqlite3" else home
        self.place = str(self.path)
        self._database = Database(self.path, is_read_only=is_shared)

    @property
    def is_ready(self) -> bool:
        """Whether the file is open and its tables are ours: who reads it then waits for nobody."""
        return self._database.is_ready

    def add(self, subject: Subject, trials: Iterable[Trial]) -> None:
        """Append trials, all of them or none."""
        digest = subject.digest
        rows = [fact_row(digest, trial.at, facts.write_trial(trial)) for trial in trials]
        if rows:
            about = subject_row(subject, digest)
            with self._database.writing() as db:
                self._put(db, about, "trials", rows)

    def trials(self, subject: Subject) -> list[Trial]:
        """Return the trials of a subject in the order they were added."""
        return self._facts("trials", subject, facts.read_trial)

    def conclude(self, subject: Subject, verdict: Verdict) -> None:
        """Append a verdict; it is on the disk when this returns."""
        digest = subject.digest
        about, row = subject_row(subject, digest), fact_row(digest, verdict.at, facts.write_verdict(verdict))
        with self._database.writing(is_durable=True) as db:
            self._put(db, about, "verdicts", [row])

    def verdicts(self, subject: Subject) -> list[Verdict]:
        """Return the verdicts of a subject, oldest first."""
        return self._facts("verdicts", subject, facts.read_verdict)

    def recorded(self, subject: Subject) -> Subject | None:
        """Return the subject as last written, or None if nothing is known of it."""
        digest = subject.digest
        with self._database.reading() as db:
            try:
                bodies = db.execute(_LAST_WRITTEN, (digest,)).fetchall()
            except sqlite3.DataError:
                bodies = long_values.bodies(db, digest)
        known = (subject_of(digest, body) for (body,) in bodies)
        return next((found for found in known if found is not None), None)

    def subjects(self, decision: str | None = None, last: int | None = None) -> list[Subject]:
        """Return every subject that has trials or verdicts, or the last so many, in the order they were first seen."""
        with self._database.reading() as db:
            try:
                rows = db.execute(_SUBJECTS, (decision, -1 if last is None else last)).fetchall()
            except sqlite3.DataError:
                rows = long_values.subjects(db, decision)[::-1][:last]
        return subjects_in(row[1:] for row in reversed(rows))

    def near(self, subject: Subject, ratio: float, limit: int) -> list[Remembered]:
        """Return tuned subjects that differ in numbers only, each by `ratio` at most, nearest first."""
        return self._asked(subject.decision, lambda store: store.near(subject, ratio, limit))

    def kin(self, subject: Subject, limit: int) -> list[Remembered]:
        """Return other subjects of the same decision: the nearest and the last ones."""
        return self._asked(subject.decision, lambda store: store.kin(subject, limit))

    def tuned(self, decision: str, like: Problem | None = None, limit: int | None = None) -> Page[Remembered]:
        """Return the last tuned subjects of those whose problem has the features `like`."""
        return self._asked(decision, lambda store: store.tuned(decision, like, limit))

    def measured(
        self, decision: str, like: Problem | None = None, limit: int | None = None, *, failed: bool = False
    ) -> Page[Measured]:
        """Return the last trials, or only failed ones, of subjects whose problem has the features `like`."""
        return self._asked(decision, lambda store: store.measured(decision, like, limit, failed=failed))

    def decisions(self) -> list[str]:
        """Return the names of the decisions that have trials or verdicts, in alphabetical order."""
        return self._asked(None, lambda store: store.decisions())

    def miss(self, subject: Subject, count: int = 1) -> None:
        """Count a question that nobody could answer."""
        body = facts.write_problem(subject.problem).decode()
        row = (miss_key(subject.decision, subject.problem), subject.decision, subject.digest, body, count)
        with self._database.writing() as db:
            db.execute(_COUNT_MISS, row)
            _cap_misses(db, subject.decision)

    def misses(self, decision: str | None = None) -> list[Miss]:
        """Return the problems that were asked in vain, most often asked first."""
        with self._database.reading() as db:
            try:
                rows = db.execute(_MISSES, (decision,)).fetchall()
            except sqlite3.DataError:
                rows = long_values.misses(db, decision)
        return [miss for miss in (miss_of(*row) for row in rows) if miss is not None]

    def forget_miss(self, subject: Subject) -> None:
        """Drop the misses of a subject's decision and problem."""
        key = miss_key(subject.decision, subject.problem)
        with self._database.reading() as db:
            is_there = db.execute("SELECT 1 FROM misses WHERE key = ?", (key,)).fetchone()
        if is_there:
            with self._database.writing() as db:
                db.execute("DELETE FROM misses WHERE key = ?", (key,))

    def absorb_misses(self, misses: Iterable[Miss]) -> int:
        """Count misses from elsewhere at least as often as they say; return how many are new or were raised."""
        rows = [miss_row(miss) for miss in misses]  # read all first, as in `absorb`
        with self._database.writing(is_durable=True) as db:
            raised = sum(db.execute(_RAISE_MISS, row).rowcount for row in rows)
            for decision in {row[1] for row in rows}:
                _cap_misses(db, decision)
        return raised

    def show(self, sign: Sign) -> None:
        """Put a sign of life in the place of the last one of its kind and key."""
        row = (sign.kind, sign.key, sign.at, sign_body(sign))
        with self._database.writing() as db:
            db.execute(_SHOW, row)
            db.execute("DELETE FROM signs WHERE at < ?", (min(sign.at, time.time()) - SIGN_LIFE_S,))
            kept = db.execute("SELECT count(*) FROM signs").fetchone()[0]
            if kept > MAX_SIGNS:
                db.execute(_DROP_SIGNS, (kept - MAX_SIGNS,))

    def signs(self, kind: str | None = None, since: float = 0.0) -> list[Sign]:
        """Return the signs of life given since a moment, oldest first; a file of an older tunewise has none."""
        with self._database.reading() as db:
            if self._database.schema < WITH_SIGNS:
                return []
            try:
                rows = db.execute(_SIGNS, (kind, since)).fetchall()
            except sqlite3.DataError:
                rows = long_values.signs(db, kind)
        return [sign for sign in (sign_of(*row) for row in rows) if sign is not None]

    def flight(self, subject: Subject) -> Flight:
        """Return the right to tune a subject, held between processes."""
        return ByteFlight(self._database.locks, subject.digest)

    def records(self, decision: str | None = None) -> Iterator[Record]:
        """Yield every trial and verdict with its subject: trials first, each kind in order of adding."""
        subjects = self._subjects_by_key()
        yield from records_in(partial(self._page, "trials"), subjects, decision, facts.read_trial)
        yield from records_in(partial(self._page, "verdicts"), subjects, decision, facts.read_verdict)

    def absorb(self, records: Iterable[Record]) -> int:
        """Add the records that are not known yet and return how many those were; all or none."""
        # Read all first: records may come from another store, and two locks held at once can wait for each other.
        given = list(written(records))
        known: dict[tuple[Table, str], set[bytes]] = {}
        added = 0
        with self._database.writing(is_durable=True) as db:
            for about, table, row in given:
                digest, identity = about[0], row[1]
                if (table, digest) not in known:
                    known[table, digest] = {found[0] for found in db.execute(_OF_SUBJECT[table], (digest,))}
                if identity not in known[table, digest]:
                    self._put(db, about, table, [row])
                    known[table, digest].add(identity)
                    added += 1
        return added

    def prune(self, rule: Prune, *, dry_run: bool = False) -> Pruned:
        """Remove the facts a rule takes, or only count them."""
        before = float("inf") if rule.before is None else rule.before
        taken = {key: about for key, about in self._subjects_by_key().items() if rule.takes(about[1])}
        weighing = weigh(rule, verdicts_in(partial(self._page, "verdicts"), taken))
        misses_of = rule.decision if rule.takes_misses else None
        if dry_run:
            with self._database.reading() as db:
                trials = sum(db.execute(_COUNT_OLD, (key, before)).fetchone()[0] for key in taken)
                old = _old_verdicts(db, taken, before, weighing)
                misses = db.execute("SELECT count(*) FROM misses WHERE decision = ?", (misses_of,)).fetchone()[0]
            return Pruned(trials, len(old), misses, weighing.lost)
        with self._database.writing() as db:
            trials = sum(db.execute(_DELETE_OLD, (key, before)).rowcount for key in taken)
            old = _old_verdicts(db, taken, before, weighing)
            db.executemany("DELETE FROM verdicts WHERE id = ?", [(row,) for row in old])
            misses = db.execute("DELETE FROM misses WHERE decision = ?", (misses_of,)).rowcount
            db.execute(
                "DELETE FROM subjects WHERE NOT EXISTS (SELECT 1 FROM trials WHERE subject = subjects.id)"
                " AND NOT EXISTS (SELECT 1 FROM verdicts WHERE subject = subjects.id)"
            )
            if self._database.written_schema >= WITH_POINTS:
                db.execute("DELETE FROM points WHERE subject NOT IN (SELECT id FROM subjects)")
                db.execute("UPDATE points SET is_tuned = 0 WHERE subject NOT IN (SELECT subject FROM verdicts)")
        self._database.compact()
        return Pruned(trials, len(old), misses, weighing.lost)

    def info(self) -> StoreInfo:
        """Return what the file holds."""
        with self._database.reading() as db:
            trials, verdicts, subjects, misses, last_trial_at, last_verdict_at = db.execute(_COUNTS).fetchone()
            decisions: dict[str, int] = {}
            with suppress(sqlite3.DataError):  # names too long to be shown
                subjects = db.execute(_COUNT_SUBJECTS).fetchone()[0]
                decisions = dict(db.execute(_COUNT_TRIALS).fetchall())
        return StoreInfo(
            place=str(self.path),
            schema=self._database.schema,
            trials=trials,
            verdicts=verdicts,
            subjects=subjects,
            misses=misses,
            size_bytes=self._database.size_bytes(),
            decisions=decisions,
            sqlite=sqlite3.sqlite_version,
            last_trial_at=last_trial_at,
            last_verdict_at=last_verdict_at,
            is_read_only=self._database.is_only_read,
        )

    def copy_to(self, path: Path, tell: Callable[[int, int], None]) -> Held:
        """Write everything as it is at one moment into an empty file; return how many rows that must have then."""
        return self._database.copy_to(path, tell)

    def set_aside(self) -> Path | None:
        """Rename a damaged file so that a new one can begin; return its new path, or None if another process did."""
        return self._database.set_aside()

    def close(self) -> None:
        """Close the file; the next use opens it again."""
        self._database.close()

    def _asked(self, decision: str | None, ask: Callable[[Questions | MemoryStore], _T]) -> _T:
        """Return what a question about a decision, or about all, gives; of a file with too long values, row by row."""
        with self._database.reading() as db:
            questions = Questions(partial(long_values.run, db), _DIALECT, self._database.schema >= WITH_POINTS)
            try:
                return ask(questions)
            except sqlite3.DataError:
                return ask(long_values.readable(db, decision))

    def _key(self, db: sqlite3.Connection, about: About) -> int:
        """Return the row number of a subject, added if it is new."""
        key, is_new = _key(db, about)
        if is_new and self._database.written_schema >= WITH_POINTS:
            add_points(db, [(key, about[0], about[3])])
        return key

    def _put(self, db: sqlite3.Connection, about: About, table: Table, rows: Sequence[Row]) -> None:
        """Add facts about a subject."""
        key = self._key(db, about)
        db.executemany(_INSERT[table], [(key, *row) for row in rows])
        if table == "verdicts" and self._database.written_schema >= WITH_POINTS:
            db.execute("UPDATE points SET is_tuned = 1 WHERE subject = ? AND is_tuned = 0", (key,))

    def _facts(self, table: Table, subject: Subject, read: Callable[[str], Fact]) -> list[Fact]:
        digest = subject.digest
        with self._database.reading() as db:
            try:
                rows = db.execute(_OF_SUBJECT[table], (digest,)).fetchall()
            except sqlite3.DataError:
                rows = long_values.facts(db, table, digest)
        return facts_in(digest, rows, read)

    def _subjects_by_key(self) -> dict[int, tuple[str, Subject]]:
        with self._database.reading() as db:
            try:
                rows = db.execute(_SUBJECTS, (None, -1)).fetchall()
            except sqlite3.DataError:
                rows = long_values.subjects(db, None)
        return subjects_by_key(rows)

    def _page(self, table: Table, last: int) -> list[tuple[int, int, bytes, str]]:
        # Page by page: a reader that is slow, or forks, must not keep a query open that checkpoints wait for.
        with self._database.reading() as db:
            try:
                return db.execute(_PAGES[table], (last, _PAGE)).fetchall()
            except sqlite3.DataError:
                return long_values.page(db, table, last, _PAGE)


def _key(db: sqlite3.Connection, about: About) -> tuple[int, bool]:
    """Return the row number of a subject, added if it is new, and whether it was."""
    # Found the way readers find it, and compared whole: facts must not be tied to a row that has been damaged.
    # The plus keeps SQLite from the index of decisions, which most rows of a store may share.
    found = db.execute(
        "SELECT id FROM subjects WHERE digest = ?1 AND +decision = ?2 AND identity = ?3 AND body = ?4", about
    ).fetchone()
    if found is not None:
        return int(found[0]), False
    added = db.execute("INSERT INTO subjects (digest, decision, identity, body) VALUES (?, ?, ?, ?)", about)
    assert added.lastrowid is not None
    return added.lastrowid, True


def _old_verdicts(db: sqlite3.Connection, keys: Iterable[int], before: float, weighing: Weighing) -> list[int]:
    rows = (row for key in keys for (row,) in db.execute(_OLD_VERDICTS, (key, before)))
    return [row for row in rows if row not in weighing.spared]


def _cap_misses(db: sqlite3.Connection, decision: str) -> None:
    kept = db.execute("SELECT count(*) FROM misses WHERE decision = ?", (decision,)).fetchone()[0]
    if kept > MAX_MISSES:
        db.execute(_DROP_MISSES, (decision, kept - MAX_MISSES))
