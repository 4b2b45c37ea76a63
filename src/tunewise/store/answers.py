"""Which verdicts answers are read off: what pruning spares when it is to change no answer, and what it costs if not."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import inf

from tunewise.decision import Subject, Verdict, canonical
from tunewise.formats import facts
from tunewise.store.base import Prune
from tunewise.store.rows import fact_of

Weighed = tuple[int, str, Verdict]  # a verdict with its row number and the digest of its subject
_Row = tuple[int, int, bytes, str]  # of verdicts: id, subject, identity, body


@dataclass(frozen=True, slots=True)
class Weighing:
    """What a rule means for answers."""

    spared: frozenset[int]  # rows of verdicts that stay although they are old
    lost: int  # problems whose every verdict goes, so that nothing answers them from memory any more


def weigh(rule: Prune, verdicts: Iterable[Weighed]) -> Weighing:
    """Return what a rule means for the answers of the subjects that it takes, given all verdicts of these in order.

    An answer is read off the latest verdict whose winner and incumbent still fit their decision. Which do is unknown
    here, so the latest of each kind is spared: whatever is answered before pruning is answered after it.
    """
    before = inf if rule.before is None else rule.before
    latest: dict[tuple[str, ...], int] = {}
    newest: dict[str, float] = {}
    for row, digest, verdict in verdicts:
        fits = (canonical.encode(dict(verdict.winner)), canonical.encode(dict(verdict.incumbent)))
        latest[(digest, verdict.ending, *fits)] = row
        newest[digest] = max(newest.get(digest, -inf), verdict.at)
    if rule.keep_answers:
        return Weighing(frozenset(latest.values()), 0)
    return Weighing(frozenset(), sum(at < before for at in newest.values()))


def verdicts_in(
    page: Callable[[int], Sequence[_Row]], subjects: Mapping[int, tuple[str, Subject]]
) -> Iterator[Weighed]:
    """Yield the verdicts of some subjects from a database's rows, where `page(id)` gives some of those after it."""
    last = 0
    while rows := page(last):
        for row, key, identity, body in rows:
            digest = subjects[key][0] if key in subjects else None
            verdict = None if digest is None else fact_of(digest, identity, body, facts.read_verdict)
            if digest is not None and verdict is not None:
                yield row, digest, verdict
        last = rows[-1][0]
