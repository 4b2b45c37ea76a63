"""Facts on the move: from one store to another, and to and from files."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path

from tunewise.decision import Failure, Trial, Verdict
from tunewise.errors import InvalidFile, NotFound
from tunewise.formats import records
from tunewise.formats.records import Record, Tally
from tunewise.store.base import Store
from tunewise.store.sqlite import SqliteStore

_BATCH = 2_000
_PLAIN = re.compile(
    r"signal SIG[A-Z0-9]+|exit code \d+|no answer within [\d.]+ s|[A-Z]\w*(?:Error|Exception|Interrupt|Exit)\b"
)


@dataclass(frozen=True, slots=True)
class Imported:
    """What became of the records that were offered."""

    added: int
    known: int
    damaged: int = 0
    refused: int = 0


def export_to(store: Store, path: Path, decision: str | None = None) -> int:
    """Write every trial and verdict to a file, one checked line each, and return how many.

    The file appears whole or not at all. It names no host, user or path: of what failed it tells the kind, and of the
    details only a signal, an exit code or the name of an exception. Problems, configs and environments are in it.
    """
    return records.write(path, map(shareable, store.records(decision)))


def shareable(record: Record) -> Record:
    """Return a record without the words of compilers, exceptions and outputs, which may hold anything."""
    fact = record.fact
    if isinstance(fact, Trial) and isinstance(fact.outcome, Failure):
        fact = replace(fact, outcome=Failure(fact.outcome.kind, _plain(fact.outcome.detail)))
    elif isinstance(fact, Verdict) and fact.ending == "failed":
        fact = replace(fact, detail="")
    return Record(record.subject, fact)


def _plain(detail: str) -> str:
    found = _PLAIN.match(detail)
    return found.group() if found else ""


def import_from(store: Store, path: Path) -> Imported:
    """Add the records of a file that are not known yet; damaged and senseless ones are passed over and counted.

    Raises NotFound if there is no such file, and InvalidFile if it holds something and not one record.
    """
    tally = Tally()
    try:
        with open(path, "rb") as stream:
            added = _absorb(store, records.read(stream, tally))
    except (FileNotFoundError, IsADirectoryError):
        raise NotFound(f"there is no file {path}; write one with: tunewise store export FILE") from None
    if tally.damaged and not tally.read and not tally.refused:
        raise InvalidFile(f"{path} holds no record of tunewise; write a file with: tunewise store export FILE")
    return Imported(added, tally.read - added, tally.damaged, tally.refused)


def merge(store: Store, other: Store | Path) -> Imported:
    """Add what another store knows and this one does not: a store, or the path of one's directory or file."""
    if not isinstance(other, Path):
        return _merged(store, other)
    if not other.exists():
        raise NotFound(f"there is no store at {other}")
    source = SqliteStore(other, is_shared=True)
    try:
        return _merged(store, source)
    finally:
        source.close()


def _merged(store: Store, other: Store) -> Imported:
    tally = Tally()

    def counted() -> Iterator[Record]:
        for record in other.records():
            tally.read += 1
            yield record

    added = _absorb(store, counted())
    return Imported(added, tally.read - added)


def _absorb(store: Store, found: Iterable[Record]) -> int:
    added, rest = 0, iter(found)
    while batch := list(islice(rest, _BATCH)):
        added += store.absorb(batch)
    return added
