"""Who proposed the winners: win rates counted the way `tunewise heuristics` does, without reading everything again."""

from collections.abc import Iterable
from dataclasses import dataclass

from tunewise.decision import Proposal, Subject, Verdict
from tunewise.report.live_signs import text
from tunewise.session import provenance
from tunewise.session.provenance import Seeding
from tunewise.store import Store


@dataclass(frozen=True, slots=True)
class Heuristic:
    """How a heuristic did in all concluded runs of a decision."""

    decision: str
    name: str
    kind: str
    runs: int
    wins: int

    @property
    def win_rate(self) -> float:
        """The share of its runs that it won."""
        return self.wins / self.runs if self.runs else 0.0


class Concluded:
    """The verdicts of a store, as far as win rates need them: trials and times would take long to read."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[int, list[Seeding]]] = {}  # digest -> how many verdicts, those with proposals

    def heuristics(self, store: Store, verdicts: int) -> tuple[Heuristic, ...]:
        """Return who proposed what in how many runs, and won, the most often asked first.

        `verdicts` is how many the store holds now: if that many are known, nothing is read.
        """
        if not self._is_all(verdicts):
            subjects = store.subjects()
            self._read(store, (subject for subject in subjects if subject.digest not in self._known))
            if not self._is_all(verdicts):  # a problem was tuned again, or some are gone
                self._known.clear()
                self._read(store, subjects)
        found: dict[str, list[Seeding]] = {}
        for _, seedings in self._known.values():
            for seeding in seedings:
                found.setdefault(seeding.subject.decision, []).append(seeding)
        rows = [
            Heuristic(text(decision), text(record.name), record.kind, record.runs, record.wins)
            for decision, seedings in found.items()
            for record in provenance.records(seedings)
        ]
        return tuple(sorted(rows, key=lambda row: (-row.runs, -row.wins, row.decision, row.name)))

    def _is_all(self, verdicts: int) -> bool:
        return sum(number for number, _ in self._known.values()) == verdicts

    def _read(self, store: Store, subjects: Iterable[Subject]) -> None:
        for subject in subjects:
            found = store.verdicts(subject)
            with_proposals = [Seeding(subject, _lean(one), {}, {}) for one in found if one.proposals]
            self._known[subject.digest] = len(found), with_proposals


def _lean(verdict: Verdict) -> Verdict:
    """Return a verdict without what win rates do not need: a server keeps all of them."""
    proposals = tuple(Proposal(p.by, p.kind, p.rank, {}, p.fate) for p in verdict.proposals)
    return Verdict(verdict.ending, {}, {}, source=verdict.source, proposals=proposals)
