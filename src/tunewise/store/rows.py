"""Facts as rows of tables and back: what every database of ours holds, each row with a checksum of its own."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from math import isfinite
from typing import Literal, TypeVar, get_args

import msgspec

from tunewise.decision import Miss, Problem, Subject, Trial, Verdict, canonical
from tunewise.errors import InvalidData
from tunewise.formats import facts
from tunewise.formats.records import Record
from tunewise.store.base import Sign

_LONGEST_SIGN = 32_768

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


def written(records: Iterable[Record]) -> Iterator[tuple[About, Table, Row]]:
    """Yield records as rows: the subject's, and the fact's with the table that is for.

    A subject is written once for all records that share it: that is most of the work, and stores hold it so.
    """
    abouts: dict[int, tuple[Subject, About]] = {}  # with the subject, which keeps its place in memory meanwhile
    for record in records:
        subject, fact = record.subject, record.fact
        if id(subject) not in abouts:
            abouts[id(subject)] = subject, subject_row(subject, subject.digest)
        about = abouts[id(subject)][1]
        if isinstance(fact, Trial):
            yield about, "trials", fact_row(about[0], fact.at, facts.write_trial(fact))
        else:
            yield about, "verdicts", fact_row(about[0], fact.at, facts.write_verdict(fact))


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


def subjects_in(rows: Iterable[tuple[str, str]]) -> list[Subject]:
    """Return the subjects of rows of (digest, body), each digest once, in the order they were first seen."""
    found: dict[str, Subject] = {}
    for digest, body in rows:
        subject = subject_of(digest, body)
        if subject is not None:
            found[digest] = subject
    return list(found.values())


def subjects_by_key(rows: Iterable[tuple[int, str, str]]) -> dict[int, tuple[str, Subject]]:
    """Return digests and subjects by the key of their rows of (key, digest, body)."""
    found = ((key, digest, subject_of(digest, body)) for key, digest, body in rows)
    return {key: (digest, subject) for key, digest, subject in found if subject is not None}


def facts_in(digest: str, rows: Iterable[tuple[bytes, str]], read: Callable[[str], Fact]) -> list[Fact]:
    """Return the facts of one subject's rows of (identity, body)."""
    found = (fact_of(digest, identity, body, read) for identity, body in rows)
    return [fact for fact in found if fact is not None]


def records_in(
    page: Callable[[int], Sequence[tuple[int, int, bytes, str]]],
    subjects: Mapping[int, tuple[str, Subject]],
    decision: str | None,
    read: Callable[[str], Fact],
) -> Iterator[Record]:
    """Yield the records of rows of (id, subject, identity, body), where `page(id)` gives some of those after it."""
    last = 0
    while rows := page(last):
        for _, key, identity, body in rows:
            digest, subject = subjects.get(key, ("", None))
            if subject is None or decision not in (None, subject.decision):
                continue
            fact = fact_of(digest, identity, body, read)
            if fact is not None:
                yield Record(subject, fact)
        last = rows[-1][0]


def miss_of(key: str, decision: str, asked_as: str, body: str, count: int) -> Miss | None:
    """Return the miss of a row, or None if the row is damaged."""
    try:
        problem = facts.read_problem(body)
        return Miss(decision, problem, int(count), asked_as) if miss_key(decision, problem) == key else None
    except (ValueError, TypeError, OverflowError):
        return None


def miss_row(miss: Miss) -> tuple[str, str, str, str, int]:
    """Return a miss as a row: key, decision, as what subject it was asked, body, count."""
    body = facts.write_problem(miss.problem).decode()
    return miss_key(miss.decision, miss.problem), miss.decision, miss.digest, body, miss.count


def sign_body(sign: Sign) -> str:
    """Return what a sign of life says as text; raises InvalidData if that is too long or no JSON."""
    try:
        text = msgspec.json.encode(sign.body).decode()
    except (TypeError, ValueError) as error:
        raise InvalidData(f"the sign of life {sign.kind!r} is no JSON: {error}") from error
    if len(text) > _LONGEST_SIGN:
        raise InvalidData(f"the sign of life {sign.kind!r} has {len(text)} characters; the limit is {_LONGEST_SIGN}")
    return text


def sign_of(kind: str, key: str, at: float, body: str) -> Sign | None:
    """Return the sign of a row, or None if the row is damaged."""
    try:
        said = msgspec.json.decode(body)
        is_sound = isinstance(said, dict) and isinstance(kind, str) and isinstance(key, str) and isfinite(at)
        return Sign(kind, key, float(at), said) if is_sound else None
    except (ValueError, TypeError, RecursionError):
        return None
