"""Provenance: which heuristics proposed what, how it did, and which of them are worth asking."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import exp, fsum, inf, log
from statistics import median

from tunewise.decision import Config, Outcome, Proposal, Subject, Timing, Trial, Verdict, canonical, merged
from tunewise.errors import NotFound
from tunewise.session.context import current_store
from tunewise.session.recall import unknown

GOOD = 1.05  # times the best of a run: what a search is expected to find
ENOUGH = 3  # runs after which a heuristic that never helped is dead weight


@dataclass(frozen=True, slots=True)
class Seeding:
    """One tuning run: what was proposed, and how all its configs did."""

    subject: Subject
    verdict: Verdict
    times_s: Mapping[str, float]  # of every config in the order they were first measured, infinite where it failed
    sources: Mapping[str, str]

    @property
    def best_s(self) -> float:
        """The best time of the run."""
        return min(self.times_s.values(), default=inf)

    def place(self, config: Config) -> int | None:
        """Return which place a config took, from 1; None where it was not timed."""
        time_s = self.times_s.get(canonical.encode(config), inf)
        return None if time_s == inf else 1 + sum(other < time_s for other in self.times_s.values())

    def is_good(self, config: Config) -> bool:
        """Return whether a config came within five per cent of the best."""
        return self.times_s.get(canonical.encode(config), inf) <= GOOD * self.best_s < inf


@dataclass(frozen=True, slots=True)
class Record:
    """What a heuristic did over all tuning runs of a decision. Regret is its first seed's time over the run's best."""

    name: str
    kind: str
    runs: int = 0  # in which it proposed anything
    wins: int = 0  # in which its config won against the default
    proposed: int = 0
    tried: int = 0
    repeated: int = 0  # no-ops: known or proposed by somebody else before
    dropped: int = 0
    skipped: int = 0
    failed: int = 0  # tried, and did not run
    first_regret: float | None = None
    best_place: float | None = None  # median over runs of the best place that one of its seeds took
    saved: int = 0  # evaluations until the search itself was as near to the best

    @property
    def win_rate(self) -> float:
        """The share of its runs that it won."""
        return self.wins / self.runs if self.runs else 0.0

    @property
    def is_dead_weight(self) -> bool:
        """Whether it was asked often enough and never helped."""
        is_near = self.first_regret is not None and self.first_regret <= GOOD
        return self.runs >= ENOUGH and not self.wins and not self.saved and not is_near


def seedings(decision: str) -> list[Seeding]:
    """Return all concluded runs of a decision that heard proposals, oldest first; raises NotFound for unknown ones."""
    store = current_store()
    subjects = store.subjects(decision)
    if not subjects:
        raise NotFound(unknown(decision))
    return [
        _seeding(subject, verdict, store.trials(subject))
        for subject in subjects
        for verdict in store.verdicts(subject)
        if verdict.proposals
    ]


def records(found: Sequence[Seeding]) -> list[Record]:
    """Return what each heuristic did, most wins first, then the nearest first seeds."""
    rows: dict[tuple[str, str], list[tuple[Seeding, list[Proposal]]]] = defaultdict(list)
    for seeding in found:
        own: dict[tuple[str, str], list[Proposal]] = defaultdict(list)
        for proposal in seeding.verdict.proposals:
            own[proposal.by, proposal.kind].append(proposal)
        for who, proposals in own.items():
            rows[who].append((seeding, proposals))
    made = [_record(name, kind, runs) for (name, kind), runs in rows.items()]
    return sorted(made, key=lambda record: (-record.wins, record.first_regret or inf, record.name))


def _seeding(subject: Subject, verdict: Verdict, trials: Sequence[Trial]) -> Seeding:
    outcomes: dict[str, list[Outcome]] = defaultdict(list)
    sources: dict[str, str] = {}
    for trial in trials:
        key = canonical.encode(trial.config)
        outcomes[key].append(trial.outcome)
        sources.setdefault(key, trial.source)
    return Seeding(subject, verdict, {key: _time_s(parts) for key, parts in outcomes.items()}, sources)


def _time_s(outcomes: Sequence[Outcome]) -> float:
    whole = merged(outcomes)
    return whole.time_s if isinstance(whole, Timing) else inf


def _record(name: str, kind: str, runs: Sequence[tuple[Seeding, Sequence[Proposal]]]) -> Record:
    fates = [proposal.fate for _, proposals in runs for proposal in proposals]
    record = Record(
        name,
        kind,
        runs=len(runs),
        wins=sum(seeding.verdict.ending == "win" and seeding.verdict.source == name for seeding, _ in runs),
        proposed=len(fates),
        tried=fates.count("tried"),
        repeated=fates.count("repeated") + fates.count("known"),
        dropped=fates.count("dropped"),
        skipped=fates.count("skipped"),
        failed=sum(_is_failed(seeding, p) for seeding, proposals in runs for p in proposals),
        saved=sum(_saved(seeding, proposals) for seeding, proposals in runs),
    )
    regrets = [log(regret) for seeding, proposals in runs for regret in _first_regret(seeding, proposals)]
    places = [place for seeding, proposals in runs for place in _best_place(seeding, proposals)]
    return replace(
        record,
        first_regret=exp(fsum(regrets) / len(regrets)) if regrets else None,
        best_place=float(median(places)) if places else None,
    )


def _is_failed(seeding: Seeding, proposal: Proposal) -> bool:
    return proposal.fate == "tried" and seeding.times_s.get(canonical.encode(proposal.config), 0.0) == inf


def _first_regret(seeding: Seeding, proposals: Sequence[Proposal]) -> Iterator[float]:
    time_s = seeding.times_s.get(canonical.encode(proposals[0].config), inf)
    if time_s < inf:
        yield time_s / seeding.best_s


def _best_place(seeding: Seeding, proposals: Sequence[Proposal]) -> Iterator[int]:
    places = [place for proposal in proposals if (place := seeding.place(proposal.config)) is not None]
    if places:
        yield min(places)


def _saved(seeding: Seeding, proposals: Sequence[Proposal]) -> int:
    """Return how many evaluations later the search itself came as near to the best as a seed that was there first.

    A search that had not heard of the seed might have gone another way, so this is an estimate.
    """
    own = {canonical.encode(p.config) for p in proposals if p.fate == "tried"}
    seeds = {canonical.encode(p.config) for p in seeding.verdict.proposals}
    order = list(seeding.times_s)
    good = [at for at, key in enumerate(order) if seeding.times_s[key] <= GOOD * seeding.best_s < inf]
    if not good or order[good[0]] not in own:
        return 0
    later = next((at for at in good if order[at] not in seeds), len(order))
    return sum(key not in seeds for key in order[good[0] : later])
