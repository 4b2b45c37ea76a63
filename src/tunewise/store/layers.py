"""Stores on top of each other: the user's own, and read-only ones below that fill in what it does not know."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Self, TypeVar

from tunewise.decision import Miss, Origin, Problem, Subject, Trial, Verdict
from tunewise.decision.origin import origin_of
from tunewise.formats.records import Record
from tunewise.store.base import (
    Flight,
    Measured,
    Page,
    Prune,
    Pruned,
    Remembered,
    Sign,
    Store,
    StoreInfo,
    appended,
    joined,
    page_of,
    united,
)
from tunewise.store.ledger import Ledger
from tunewise.store.points import merged

_Fact = TypeVar("_Fact", bound=Trial | Verdict)


class LayeredStore:
    """One store that is written, over others that are only read; the first layer lies directly below the top.

    Reading gives the facts of the lowest layer first and the top's last, so that the user's own verdict, being the
    latest, outranks all others. Misses, exports and pruning concern the top alone.

    Facts that are read from a store of several users say where they come from: what this home has added itself is in
    its ledger. Layers are such stores, and with `is_shared` the top is one too.
    """

    def __init__(
        self, top: Store, layers: Sequence[Store] = (), *, ledger: Ledger | None = None, is_shared: bool = False
    ) -> None:
        self._top = top
        self._layers = tuple(layers)
        self._ledger, self._is_shared = ledger, is_shared

    @property
    def hasty(self) -> Self:
        """The same stores for who would rather go on without an answer than wait for a store that hangs."""
        layers = [hasty(layer) for layer in self._layers]
        return type(self)(hasty(self._top), layers, ledger=self._ledger, is_shared=self._is_shared)

    def add(self, subject: Subject, trials: Iterable[Trial]) -> None:
        """Append trials to the top."""
        given = list(trials)
        self._enter(subject, given)
        self._top.add(subject, given)

    def trials(self, subject: Subject) -> list[Trial]:
        """Return the trials of a subject, the lowest layer's first."""
        return self._marked(subject, lambda store: store.trials(subject))

    def conclude(self, subject: Subject, verdict: Verdict) -> None:
        """Append a verdict to the top."""
        self._enter(subject, [verdict])
        self._top.conclude(subject, verdict)

    def verdicts(self, subject: Subject) -> list[Verdict]:
        """Return the verdicts of a subject, the lowest layer's first."""
        return self._marked(subject, lambda store: store.verdicts(subject))

    def recorded(self, subject: Subject) -> Subject | None:
        """Return the subject as the uppermost store that knows it has it."""
        known = (store.recorded(subject) for store in (self._top, *self._layers))
        return next((found for found in known if found is not None), None)

    def subjects(self, decision: str | None = None, last: int | None = None) -> list[Subject]:
        """Return every subject of every store once, or the last so many; those of the lowest layer come first."""
        found = {one.digest: one for store in self._upwards() for one in store.subjects(decision, last)}
        return list(page_of(list(found.values()), last).rows)

    def near(self, subject: Subject, ratio: float, limit: int) -> list[Remembered]:
        """Return tuned subjects of every store that differ in numbers only, nearest first."""
        found = [self._all_marked(store, store.near(subject, ratio, limit)) for store in self._upwards()]
        return merged(subject, found, limit)

    def kin(self, subject: Subject, limit: int) -> list[Remembered]:
        """Return other subjects of the same decision in every store."""
        return united([self._all_marked(store, store.kin(subject, limit)) for store in self._upwards()])

    def tuned(self, decision: str, like: Problem | None = None, limit: int | None = None) -> Page[Remembered]:
        """Return the last tuned subjects of every store, those of the lowest layer first."""
        pages = ((store, store.tuned(decision, like, limit)) for store in self._upwards())
        return joined([replace(page, rows=self._all_marked(store, page.rows)) for store, page in pages], limit)

    def measured(
        self, decision: str, like: Problem | None = None, limit: int | None = None, *, failed: bool = False
    ) -> Page[Measured]:
        """Return the last trials of every store, those of the lowest layer first."""
        return appended([store.measured(decision, like, limit, failed=failed) for store in self._upwards()], limit)

    def decisions(self) -> list[str]:
        """Return the names of the decisions of every store, in alphabetical order."""
        return sorted({name for store in self._upwards() for name in store.decisions()})

    def miss(self, subject: Subject, count: int = 1) -> None:
        """Count a miss in the top."""
        self._top.miss(subject, count)

    def misses(self, decision: str | None = None) -> list[Miss]:
        """Return the top's misses, most often asked first."""
        return self._top.misses(decision)

    def forget_miss(self, subject: Subject) -> None:
        """Drop the top's misses of a subject."""
        self._top.forget_miss(subject)

    def absorb_misses(self, misses: Iterable[Miss]) -> int:
        """Count misses from elsewhere in the top; return how many are new or were raised."""
        return self._top.absorb_misses(misses)

    def show(self, sign: Sign) -> None:
        """Give a sign of life to the top."""
        self._top.show(sign)

    def signs(self, kind: str | None = None, since: float = 0.0) -> list[Sign]:
        """Return the signs of life in every store, oldest first."""
        found = [sign for store in self._upwards() for sign in store.signs(kind, since)]
        return sorted(found, key=lambda sign: sign.at)

    def flight(self, subject: Subject) -> Flight:
        """Return the right to tune a subject, granted by the top."""
        return self._top.flight(subject)

    def records(self, decision: str | None = None) -> Iterator[Record]:
        """Yield the top's facts."""
        return self._top.records(decision)

    def absorb(self, records: Iterable[Record]) -> int:
        """Add records that the top does not know and return how many those were."""
        given = list(records)
        for _, batch in groupby(given, key=lambda record: id(record.subject)):
            mine = list(batch)
            self._enter(mine[0].subject, [record.fact for record in mine])
        return self._top.absorb(given)

    def prune(self, rule: Prune, *, dry_run: bool = False) -> Pruned:
        """Remove facts from the top."""
        return self._top.prune(rule, dry_run=dry_run)

    def info(self) -> StoreInfo:
        """Return what the top holds, with the layers inside."""
        return replace(self._top.info(), layers=tuple(layer.info() for layer in self._layers))

    def close(self) -> None:
        """Close every store."""
        for store in (self._top, *self._layers):
            store.close()

    def _enter(self, subject: Subject, given: Sequence[Trial | Verdict]) -> None:
        if self._ledger is not None and self._is_shared and given:
            self._ledger.add(subject, given)

    def _all_marked(self, store: Store, found: Sequence[Remembered]) -> Sequence[Remembered]:
        """Return what one of the stores remembers, its verdicts marked by where they come from."""
        if store is self._top and not self._is_shared:
            return found
        return [replace(one, verdicts=self._marked_by(one.subject.digest, one.verdicts)) for one in found]

    def _marked_by(self, digest: str, shared: Sequence[_Fact]) -> list[_Fact]:
        return [replace(fact, origin=self._origin(digest, fact)) for fact in shared]

    def _marked(self, subject: Subject, read: Callable[[Store], list[_Fact]]) -> list[_Fact]:
        """Return the facts of all stores, those of the lowest layer first, marked by where they come from."""
        digest = subject.digest
        shared = [fact for layer in reversed(self._layers) for fact in read(layer)]
        own: list[_Fact] = []
        (shared if self._is_shared else own).extend(read(self._top))
        return [*self._marked_by(digest, shared), *own]

    def _origin(self, digest: str, fact: Trial | Verdict) -> Origin:
        return origin_of(fact.run) if self._ledger is None else self._ledger.origin(digest, fact)

    def _upwards(self) -> tuple[Store, ...]:
        return (*reversed(self._layers), self._top)


def hasty(store: Store) -> Store:
    """Return a store for who would rather go on without an answer than wait for one that hangs."""
    view: Store = getattr(store, "hasty", store)
    return view
