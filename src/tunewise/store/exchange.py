"""Facts on the move: from one store to another, and to and from files."""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Protocol

from tunewise.decision import Failure, Miss, Subject, Trial, Verdict
from tunewise.decision.regular import open_regular
from tunewise.errors import InvalidFile, NotFound, StoreError
from tunewise.formats import records
from tunewise.formats.records import Record, Tally
from tunewise.settings import Place, current, is_server, parse_place, shown
from tunewise.store.base import Store
from tunewise.store.layers import LayeredStore
from tunewise.store.ledger import Ledger
from tunewise.store.opening import store_at
from tunewise.store.rows import written

Progress = Callable[[int, int], None]  # told how much is done, and how much there is
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
    misses: int = 0  # problems asked in vain that are new here or were asked more often there


class Absorbing(Protocol):
    """Where records and misses from elsewhere go."""

    def absorb(self, records: Iterable[Record]) -> int:
        """Return how many were not known."""

    def absorb_misses(self, misses: Iterable[Miss]) -> int:
        """Return how many were new, or were raised."""


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
        with open_regular(path) as stream:
            added = _absorb(store, records.read(stream, tally))
    except (FileNotFoundError, IsADirectoryError):
        raise NotFound(f"there is no file {path}; write one with: tunewise store export FILE") from None
    except OSError as error:
        raise InvalidFile(f"{path} cannot be read: {error.strerror or error}") from None
    if tally.damaged and not tally.read and not tally.refused:
        raise InvalidFile(f"{path} holds no record of tunewise; write a file with: tunewise store export FILE")
    return Imported(added, tally.read - added, tally.damaged, tally.refused)


def merge(store: Store, other: Store | Place, progress: Callable[[int], None] = lambda read: None) -> Imported:
    """Add what another store knows and this one does not: a store, or the place of one. Misses stay where they are.

    `progress` is told now and then how many facts were looked at. Raises NotFound if there is no such store.
    """
    if not isinstance(other, Path | str):
        return _merged(store, other, progress)
    source = _readable(parse_place(other))
    try:
        return _merged(store, source, progress)
    finally:
        source.close()


def silent(done: int, all_: int) -> None:
    """Tell nobody how far it is."""


def migrate(source: Place, target: Place, progress: Progress = silent, *, dry_run: bool = False) -> Imported:
    """Copy everything from the store at one place to that at another, a file or a PostgreSQL database; misses too.

    What is known there already is passed over, so a copy that was broken off goes on when it is made again. Nothing is
    removed from the source. With `dry_run` it is only counted. Raises NotFound if there is no store, StoreError if one
    cannot be used or both are one.
    """
    source, target = parse_place(source), parse_place(target)
    if source == target:
        raise StoreError(f"{shown(source)} cannot be copied to itself; name another place")
    below, above = _readable(source), _writable(target)
    try:
        held = below.info()
        expected = held.trials + held.verdicts
        above.info()  # a target that cannot be used is told before anything is read
        into: Absorbing = _Counting(above) if dry_run else above
        # Misses first: whatever the target has concluded by itself is settled, what the source brings was open there.
        misses = into.absorb_misses(below.misses())
        copied = _merged(into, below, lambda read: progress(read, expected))
    finally:
        below.close()
        above.close()
    damaged = max(0, expected - copied.added - copied.known)
    return replace(copied, damaged=damaged, misses=misses)


class _Counting:
    """Takes records and misses as a store does, and only counts what that store would add."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._known: dict[str, set[bytes]] = {}

    def absorb(self, records: Iterable[Record]) -> int:
        """Return how many of these the store does not know."""
        added = 0
        for (digest, *_), _, (_, identity, _) in written(records):
            if digest not in self._known:
                self._known[digest] = self._identities(digest)
            added += identity not in self._known[digest]
            self._known[digest].add(identity)
        return added

    def absorb_misses(self, misses: Iterable[Miss]) -> int:
        """Return how many of these are new to the store, or would be counted higher there."""
        asked = {(miss.decision, miss.problem): miss.count for miss in self._store.misses()}
        settled = {digest for digest, about in self._subjects.items() if self._store.verdicts(about)}
        return sum(m.digest not in settled and m.count > asked.get((m.decision, m.problem), 0) for m in misses)

    @cached_property
    def _subjects(self) -> dict[str, Subject]:
        return {subject.digest: subject for subject in self._store.subjects()}

    def _identities(self, digest: str) -> set[bytes]:
        about = self._subjects.get(digest)
        if about is None:
            return set()
        held: list[Trial | Verdict] = [*self._store.trials(about), *self._store.verdicts(about)]
        return {row[1] for _, _, row in written(Record(about, fact) for fact in held)}


def _writable(place: Place) -> Store:
    if not is_server(place):
        return store_at(place)
    # What a user copies by hand counts as measured by this home.
    return LayeredStore(store_at(place), ledger=Ledger(current().home), is_shared=True)


def _readable(place: Place) -> Store:
    if isinstance(place, Path) and not place.exists():
        raise NotFound(f"there is no store at {place}")
    return store_at(place, is_shared=True)


def _merged(store: Absorbing, other: Store, progress: Callable[[int], None]) -> Imported:
    tally = Tally()

    def counted() -> Iterator[Record]:
        for record in other.records():
            tally.read += 1
            if tally.read % _BATCH == 0:
                progress(tally.read)
            yield record

    added = _absorb(store, counted())
    return Imported(added, tally.read - added)


def _absorb(store: Absorbing, found: Iterable[Record]) -> int:
    added, rest = 0, iter(found)
    while batch := list(islice(rest, _BATCH)):
        added += store.absorb(batch)
    return added
