"""Facts as rows of tables and back: what every database of ours holds, each row with a checksum of its own."""

from collections.abc import Callable
from typing import Literal, TypeVar, get_args

from tunewise.decision import Miss, Problem, Subject, Trial, Verdict, canonical
from tunewise.formats import facts
from tunewise.formats.records import Record

Fact = TypeVar("Fact", Trial, Verdict)
Table = Literal["trials", "verdicts"]
TABLES: tuple[Table, ...] = get_args(Table)
About = tuple[str, str, bytes, str]  # a row of subjects: digest, decision, identity, body
Row = tuple[float, bytes, str]  # a row of trials or verdicts: at, identity, body


def miss_key(decision: str, problem: Problem) -> str:
    """Return what misses are counted by: not the environment, since tuning the problem anywhere settles it here."""
    return canonical.digest({"decision": decision, "problem": dict(problem)})


def subject_row(subject: Subject, digest: str) -> About:
    """Return a subject as a row."""
    body = facts.write_subject(subject)
    return digest, subject.decision, facts.identity(digest, body), body.decode()


def fact_row(digest: str, at: float, body: bytes) -> Row:
    """Return the JSON of a trial or verdict as a row that is tied to its subject by a checksum."""
    return at, facts.identity(digest, body), body.decode()


def written(record: Record) -> tuple[About, Table, Row]:
    """Return a record as rows: its subject's, and the fact's with the table that is for."""
    digest, fact = record.subject.digest, record.fact
    about = subject_row(record.subject, digest)
    if isinstance(fact, Trial):
        return about, "trials", fact_row(digest, fact.at, facts.write_trial(fact))
    return about, "verdicts", fact_row(digest, fact.at, facts.write_verdict(fact))


def subject_of(digest: str, body: str) -> Subject | None:
    """Return the subject of a row, or None if the row is damaged."""
    try:
        subject = facts.read_subject(body)
        return subject if subject.digest == digest else None
    except (ValueError, TypeError):
        return None


def fact_of(digest: str, identity: bytes, body: str, read: Callable[[str], Fact]) -> Fact | None:
    """Return the fact of a row, or None if the row is damaged."""
    try:
        return read(body) if facts.identity(digest, body.encode()) == identity else None
    except (ValueError, TypeError, AttributeError):  # a flipped type makes a number of what was text
        return None


def miss_of(key: str, decision: str, asked_as: str, body: str, count: int) -> Miss | None:
    """Return the miss of a row, or None if the row is damaged."""
    try:
        problem = facts.read_problem(body)
        return Miss(decision, problem, int(count), asked_as) if miss_key(decision, problem) == key else None
    except (ValueError, TypeError):
        return None
