"""Facts on the move: from one store to another, and to and from files."""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path

from tunewise.decision import Failure, Trial, Verdict
from tunewise.errors import InvalidFile, NotFound, StoreError
from tunewise.formats import records
from tunewise.formats.records import Record, Tally
from tunewise.settings import Place, parse_place, shown
from tunewise.store.base import Store
from tunewise.store.opening import store_at

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


def merge(store: Store, other: Store | Place, progress: Callable[[int], None] = lambda read: None) -> Imported:
    """Add what another store knows and this one does not: a store, or the place of one.

    `progress` is told now and then how many facts were looked at. Raises NotFound if there is no such store.
    """
    if not isinstance(other, Path | str):
        return _merged(store, other, progress)
    source = _readable(parse_place(other))
    try:
        return _merged(store, source, progress)
    finally:
        source.close()


def migrate(source: Place, target: Place, progress: Callable[[int, int], None] = lambda read, all_: None) -> Imported:
    """Copy every trial and verdict from the store at one place to that at another, a file or a PostgreSQL database.

    What is known there already is passed over, so a copy that was broken off goes on when it is made again. Nothing is
    removed from the source. Raises NotFound if there is no store, StoreError if one cannot be used or both are one.
    """
    source, target = parse_place(source), parse_place(target)
    if source == target:
        raise StoreError(f"{shown(source)} cannot be copied to itself; name another place")
    below, above = _readable(source), store_at(target)
    try:
        held = below.info()
        expected = held.trials + held.verdicts
        above.info()  # a target that cannot be used is told before anything is read
        return _merged(above, below, lambda read: progress(read, expected))
    finally:
        below.close()
        above.close()


def _readable(place: Place) -> Store:
    if isinstance(place, Path) and not place.exists():
        raise NotFound(f"there is no store at {place}")
    return store_at(place, is_shared=True)


def _merged(store: Store, other: Store, progress: Callable[[int], None]) -> Imported:
    tally = Tally()

    def counted() -> Iterator[Record]:
        for record in other.records():
            tally.read += 1
            if tally.read % _BATCH == 0:
                progress(tally.read)
            yield record

    added = _absorb(store, counted())
    return Imported(added, tally.read - added)


def _absorb(store: Store, found: Iterable[Record]) -> int:
    added, rest = 0, iter(found)
    while batch := list(islice(rest, _BATCH)):
        added += store.absorb(batch)
    return added
