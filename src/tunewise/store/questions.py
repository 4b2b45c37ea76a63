"""Questions about many subjects, in the SQL that both databases understand: each is a few queries, whatever is held."""

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import starmap
from math import log
from typing import Any

import msgspec

from tunewise.decision import Problem, Subject, Verdict
from tunewise.formats import facts
from tunewise.store.base import Measured, Page, Remembered
from tunewise.store.points import (
    Box,
    Candidate,
    Index,
    Key,
    Point,
    box_values,
    nearest,
    point_of,
    points_of,
    sure,
)
from tunewise.store.rows import fact_of, subject_of, subjects_in

_MORE = 64  # points that are looked at where the nearest ones are damaged or forged rows
_ALL = (1 << 62) - 1  # rows: without a limit
_FAILED = '"outcome":{"is":"failure"'  # in the JSON of a trial; what is written inside of words has other quotes
_AFTER_PROBLEM = '},"policy":['  # in the JSON of a subject

_DIGESTS = "SELECT id, digest FROM {subjects} WHERE id IN {numbers} AND {size}(digest) = 64"
_ROWS = "SELECT id, digest, {body} FROM {subjects} WHERE decision = {decision} AND {size}(digest) = 64"
_DECISIONS = "SELECT digest, {body} FROM {subjects} WHERE id IN (SELECT max(id) FROM {subjects} GROUP BY decision)"
# A digest has several rows where parts differ that do not have to match: its first one stands for it.
_LAST = """
    SELECT digest FROM {subjects} s WHERE decision = {decision} AND {size}(digest) = 64
    AND NOT EXISTS (SELECT 1 FROM {subjects} e WHERE e.digest = s.digest AND e.id < s.id)
    ORDER BY id DESC LIMIT {limit}
"""
_TUNED = """
    SELECT digest FROM {subjects} s WHERE decision = {decision} AND {size}(digest) = 64
    AND NOT EXISTS (SELECT 1 FROM {subjects} e WHERE e.digest = s.digest AND e.id < s.id)
    AND EXISTS (SELECT 1 FROM {subjects} o JOIN {verdicts} v ON v.subject = o.id WHERE o.digest = s.digest)
    AND {has_features}
    ORDER BY s.id DESC LIMIT {limit}
"""
_MEASURED = """
    SELECT s.digest, t.identity, {body_of_trial} FROM {subjects} s CROSS JOIN {trials} t
    WHERE t.subject = s.id AND {size}(s.digest) = 64 AND {size}(t.identity) = 16
    AND s.decision = {decision} AND {find}(t.body, {failed}) > 0
    AND {has_features}
    ORDER BY s.id DESC, t.id DESC LIMIT {limit}
"""
_COUNT_MEASURED = """
    SELECT count(*) FROM {subjects} s CROSS JOIN {trials} t
    WHERE t.subject = s.id AND s.decision = {decision} AND {find}(t.body, {failed}) > 0
    AND {has_features}
"""
_COUNT_TUNED = """
    SELECT count(DISTINCT s.digest) FROM {subjects} s JOIN {verdicts} v ON v.subject = s.id
    WHERE s.decision = {decision}
    AND {has_features}
"""
_LOOK: dict[Key, str] = {
    "alike": """
        SELECT subject, about, logs FROM {points_by_range}
        WHERE alike = {key} AND is_tuned = 1 AND cell BETWEEN r.column1 AND r.column2
        AND x BETWEEN {low_x} AND {high_x} AND y BETWEEN {low_y} AND {high_y} AND z BETWEEN {low_z} AND {high_z}
        AND {size}(logs) <= 65536
        LIMIT {most}{end_of_range}
    """,
    "family": """
        SELECT subject, about, logs FROM {points_by_range}
        WHERE family = {key} AND cell BETWEEN r.column1 AND r.column2
        AND x BETWEEN {low_x} AND {high_x} AND y BETWEEN {low_y} AND {high_y} AND z BETWEEN {low_z} AND {high_z}
        AND {size}(logs) <= 65536
        LIMIT {most}{end_of_range}
    """,
}
_HELD: dict[Key, str] = {
    "alike": """
        SELECT count(*) FROM (
            SELECT cell FROM {points_by_range}
            WHERE alike = {key} AND is_tuned = 1 AND cell BETWEEN r.column1 AND r.column2
            AND x BETWEEN {low_x} AND {high_x} AND y BETWEEN {low_y} AND {high_y} AND z BETWEEN {low_z} AND {high_z}
            LIMIT {most}{end_of_range}
        ) AS held
    """,
    "family": """
        SELECT count(*) FROM (
            SELECT cell FROM {points_by_range}
            WHERE family = {key} AND cell BETWEEN r.column1 AND r.column2
            AND x BETWEEN {low_x} AND {high_x} AND y BETWEEN {low_y} AND {high_y} AND z BETWEEN {low_z} AND {high_z}
            LIMIT {most}{end_of_range}
        ) AS held
    """,
}
_HAS_FEATURES = """
    NOT EXISTS (
        SELECT 1 FROM {features}
        WHERE {find}(substr(s.body, 1, {find}(s.body, {after})), f.value || ',') = 0
        AND {find}(substr(s.body, 1, {find}(s.body, {after})), f.value || '}}') = 0
    )
"""


@dataclass(frozen=True, slots=True)
class Dialect:
    """How a database spells what is not the same in both."""

    mark: str  # a parameter, as a format of its name
    find: str  # the function that returns where a text is in another one
    names: str  # the rows of the parameter `names`, a list of texts
    numbers: str  # those of `numbers`, a list of whole numbers
    points_by_range: str  # points, with each range of cells as `r`
    end_of_range: str  # what ends a query over them
    features: str  # the same of `features`, as a table `f` with a column `value`
    size: str  # the function that returns how long a value is
    body: str  # the column of a JSON body, or NULL where it is too long to be read
    by_digest: str  # the query for rows of (digest, body) of the subjects of `names`, as far as they are read
    verdicts: str  # the query for rows of (digest, identity, body) of the verdicts of `names`, as far as they are read
    prefix: str = ""  # of tables
    name: Callable[[str], str] = str  # spells the name of a decision
    as_list: Callable[[Sequence[Any]], Any] = list  # a list as a parameter


@functools.cache
def _query(dialect: Dialect, text: str) -> str:
    """Return a query of ours, where names of tables and parameters stand in braces, as a database spells it."""
    words = {table: dialect.prefix + table for table in ("subjects", "trials", "verdicts", "points")}
    words |= {"find": dialect.find, "names": dialect.names, "numbers": dialect.numbers, "features": dialect.features}
    words |= {"size": dialect.size, "body": dialect.body.format("body"), "body_of_trial": dialect.body.format("t.body")}
    parts = {
        "has_features": _HAS_FEATURES,
        "points_by_range": dialect.points_by_range,
        "end_of_range": dialect.end_of_range,
    }
    words |= {name: _spelled(part, words, dialect) for name, part in parts.items()}
    return _spelled(text, words, dialect)


def _spelled(text: str, words: Mapping[str, str], dialect: Dialect) -> str:
    return text.format_map(_Words(words, dialect.mark))


class _Words(dict[str, str]):
    """Words by their names; whatever else is named is a parameter."""

    def __init__(self, words: Mapping[str, str], mark: str) -> None:
        super().__init__(words)
        self._mark = mark

    def __missing__(self, name: str) -> str:
        return self._mark.format(name)


@dataclass(frozen=True, slots=True)
class Questions:
    """Questions to one database. `run(query, parameters)` returns rows; an older one `has_points` not, and is read."""

    run: Callable[[str, Mapping[str, Any]], Sequence[Any]]
    dialect: Dialect
    has_points: bool = True

    def decisions(self) -> list[str]:
        """Return the names of decisions in alphabetical order, as sound subjects say them."""
        return sorted({subject.decision for subject in subjects_in(self._rows(_DECISIONS))})

    def near(self, subject: Subject, ratio: float, limit: int) -> list[Remembered]:
        """Return tuned subjects that differ in numbers only, each by `ratio` at most, nearest first."""
        point, found = point_of(subject, subject.digest), list[Remembered]()
        for most in (limit, max(limit, _MORE)):  # rows that are not sound hide nobody who is as near as they seem
            digests = self._nearest(subject, point, "alike", most, log(ratio))
            found = sure(subject, ratio, [one for one in self.remembered(digests) if one.verdicts])
            if len(found) >= limit or len(digests) < most:
                break
        return found[:limit]

    def kin(self, subject: Subject, limit: int) -> list[Remembered]:
        """Return other subjects of the same decision: the nearest and the last ones."""
        own = subject.digest
        found = self._nearest(subject, point_of(subject, own), "family", limit)
        last = self._rows(_LAST, decision=self.dialect.name(subject.decision), limit=limit + 1)
        others = [digest for (digest,) in last if digest != own][:limit]
        known = self.remembered(list(dict.fromkeys((*found, *others))))
        return [one for one in known if one.subject.decision == subject.decision]

    def tuned(self, decision: str, like: Problem | None, limit: int | None) -> Page[Remembered]:
        """Return the last tuned subjects of those whose problem has the features `like`."""
        values = self._about(decision, like)
        total = self._count(_COUNT_TUNED, values)
        rows = self._rows(_TUNED, **values, limit=_ALL if limit is None else limit)
        return Page(self.remembered([digest for (digest,) in reversed(rows)]), total)

    def measured(self, decision: str, like: Problem | None, limit: int | None, *, failed: bool) -> Page[Measured]:
        """Return the last trials, or only failed ones, of subjects whose problem has the features `like`."""
        values = {**self._about(decision, like), "failed": _FAILED if failed else ""}
        total = self._count(_COUNT_MEASURED, values)
        rows = self._rows(_MEASURED, **values, limit=_ALL if limit is None else limit)[::-1]
        subjects = self._by_digest(list(dict.fromkeys(digest for digest, _, _ in rows)))
        found = ((digest, fact_of(digest, identity, body, facts.read_trial)) for digest, identity, body in rows)
        return Page([Measured(subjects[d], trial) for d, trial in found if trial is not None and d in subjects], total)

    def remembered(self, digests: Sequence[str]) -> list[Remembered]:
        """Return subjects and their verdicts by their digests, in this order; damaged rows are passed over."""
        subjects, verdicts = self._by_digest(digests), dict[str, list[Verdict]]()
        for digest, identity, body in self._rows(self.dialect.verdicts, names=self.dialect.as_list(digests)):
            verdict = fact_of(digest, identity, body, facts.read_verdict)
            if verdict is not None:
                verdicts.setdefault(digest, []).append(verdict)
        return [Remembered(subjects[digest], verdicts.get(digest, [])) for digest in digests if digest in subjects]

    def _nearest(self, subject: Subject, point: Point, key: Key, limit: int, reach: float | None = None) -> list[str]:
        """Return the digests of the nearest points."""
        seeker = _Seeker(self, key) if self.has_points else self._read_index(subject.decision, key)
        bounds = {} if reach is None else {"reach": reach}
        found = nearest(point, getattr(point, key), limit, seeker, **bounds)
        rows = dict(self._rows(_DIGESTS, numbers=self.dialect.as_list([one.subject for one in found])))
        return [rows[one.subject] for one in found if one.subject in rows]

    def _read_index(self, decision: str, key: Key) -> Index:
        """Return an index of what a database without one holds: it takes as long as reading all of it."""
        rows = self._rows(_ROWS, decision=self.dialect.name(decision))
        index = Index()
        for number, point in points_of(rows):
            index.add(number, point, getattr(point, key))
        return index

    def _by_digest(self, digests: Sequence[str]) -> dict[str, Subject]:
        rows = self._rows(self.dialect.by_digest, names=self.dialect.as_list(digests))
        found = ((digest, subject_of(digest, body)) for digest, body in rows)
        return {digest: subject for digest, subject in found if subject is not None}

    def _about(self, decision: str, like: Problem | None) -> dict[str, Any]:
        """Return the parameters that choose subjects: each feature as it stands in the JSON of a problem."""
        features = [msgspec.json.encode({name: value}).decode()[1:-1] for name, value in (like or {}).items()]
        listed = self.dialect.as_list(features)
        return {"decision": self.dialect.name(decision), "features": listed, "after": _AFTER_PROBLEM}

    def _count(self, query: str, values: Mapping[str, Any]) -> int:
        """Return what a query counts; 0 where it meets a value that cannot be read."""
        rows = self._rows(query, **values)
        return int(rows[0][0]) if rows else 0

    def _rows(self, query: str, **values: Any) -> Sequence[Any]:
        return self.run(_query(self.dialect, query), values)


@dataclass(frozen=True, slots=True)
class _Seeker:
    """The index of a database."""

    questions: Questions
    key: Key

    def look(self, box: Box, most: int) -> list[Candidate]:
        """Return the points of a box, at most so many."""
        return list(starmap(Candidate, self._run(_LOOK[self.key], box, most)))

    def count(self, box: Box, most: int) -> int:
        """Return how many points a box holds, or `most` if there are more."""
        ((held,),) = self._run(_HELD[self.key], box, most)
        return int(held)

    def _run(self, query: str, box: Box, most: int) -> Sequence[Any]:
        return self.questions.run(_query(self.questions.dialect, query), {**box_values(box), "most": most})
