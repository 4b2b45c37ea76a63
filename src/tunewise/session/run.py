"""The one loop: ask, build, measure, remember, tell; then the race of the best, and the final against the default."""

import random
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby
from math import inf

from tunewise import search, system
from tunewise.decision import (
    Config,
    Failure,
    Outcome,
    Places,
    Proposal,
    Timing,
    Trial,
    Verdict,
    lower_half_mean,
    merged,
)
from tunewise.decision.origin import run_id
from tunewise.measure.compare import Comparison, compare
from tunewise.measure.race import ENTRY, ROUNDS, Gap, Round, race
from tunewise.measure.work import Measurer
from tunewise.session import events, evidence, journal, priors, seeding, signs
from tunewise.session.building import built
from tunewise.session.plan import Plan, Task
from tunewise.store import Store

_BATCH = 4  # asked at once; of more, the later ones would be asked without knowing how the others did
_COLLECT_SAMPLES = 5
_HASTY = 2  # rounds of a race that somebody waits for
_PINNED = 3.0  # a seed within this of the best is in the race: no single sample is that far off
_PINS = 9  # seeds that are pinned; of more, those are in the race that are near the best, as of all configs


class Run:
    """One tuning run. Its state is a function of the seed and the store, so a killed run goes on where it stopped."""

    def __init__(self, task: Task, plan: Plan, store: Store, measurer: Measurer) -> None:
        self._task, self._plan, self._store, self._measurer = task, plan, store, measurer
        self._space, self._default = task.declaration.space, dict(task.declaration.default)
        # Made first: a strategy that does not exist is refused before anything is measured.
        self._strategy = search.make(plan.strategy, self._space, seed=plan.seed, budget=plan.budget)
        self._deadline = inf if plan.seconds is None else time.monotonic() + plan.seconds
        self.known: dict[Places, Outcome] = {}
        self._configs: dict[Places, Config] = {}
        self._sources: dict[Places, str] = {}
        self._times: dict[Places, float] = {}  # of those that ran: what everything is judged by
        self._verified: set[Places] = set()
        self.measured = 0
        self.is_stopped = False  # somebody did not want to wait until the search was over
        told = [t for t in store.trials(task.subject) if t.config in self._space and evidence.is_possible_trial(t)]
        past = [t for t in told if t.origin == "own"]
        self._elsewhere = [t for t in told if t.origin != "own"]  # of the same problem, measured by somebody else
        self.id = self._resumed(past) or run_id()  # of this run, in every fact that it adds
        past = [t for t in past if t.run == self.id or not (plan.again and isinstance(t.outcome, Failure))]
        for trial in past:
            self._learn(trial)
        self._older = [t for t in past if t.run != self.id]
        self._before = {self._space.places(config) for config in (self._default, *(t.config for t in self._older))}
        self._spent = len({self._space.places(t.config) for t in past if t.run == self.id})
        self._proposals: list[Proposal] = []
        self._pinned: set[Places] = set()  # the first seeds, which stay in until the final
        self._watchers = (
            signs.RunSigns(store, task.subject, task.hardware.name, self.id),
            journal.RunJournal(task.subject, self.id),
        )

    def go(self) -> Verdict:
        """Search until the budget is spent, then let the best meet the default; return the stored verdict."""
        try:
            failed = self.open()
            if failed is None:
                self._search()
            return self._conclude(self.final() if failed is None else failed)
        finally:
            self._end()

    def tell(self, event: events.Event) -> None:
        """Let everybody who watches this run hear of an event."""
        for watcher in self._watchers:
            watcher.hear(event)
        self._plan.listener(event)

    def _end(self) -> None:
        for watcher in self._watchers:
            watcher.end()

    def open(self) -> Verdict | None:
        """Measure and check the default; return how the run ends if that fails and nothing else says what is right."""
        self.tell(events.Started(self._task.subject, self._plan.budget, len(self.known)))
        self._evaluate([self._default], "default")
        if self._is_timed(self._default):
            self._verified.add(self._space.places(self._default))
            self._is_right(self._default, 1)
        default = self.known[self._space.places(self._default)]
        if isinstance(default, Failure) and self._task.work.check.reference is None:
            return Verdict("failed", self._default, self._default, detail=_default_fails(default))
        return None

    def asking(self) -> search.Seeded:
        """Return the search of this run, told what the store knows of this problem and of others."""
        asking = self._seeded()
        if not self._plan.measure_all:
            for prior in priors.of(self._store, self._task.subject, self._space):
                asking.tell(prior.trials, origin=prior.origin)
            if self._elsewhere:
                asking.tell(priors.summed(self._elsewhere, self._space), origin="elsewhere")
        asking.tell([*self._older, Trial(self._default, self.known[self._space.places(self._default)])])
        return asking

    def evaluate(self, config: Config, source: str, *, insist: bool = False) -> Outcome | None:
        """Return what becomes of a config, measured unless it is known; None where the time for that is over.

        With `insist` it is measured all the same: it may be the winner.
        """
        self._evaluate([config], source, insist=insist)
        return self.known.get(self._space.places(config))

    def beside_default(self, config: Config, laps: int) -> float | None:
        """Time a config and the default by turns; return the ratio of their times, or None if one of them fails."""
        taken: dict[Places, list[float]] = {}
        pair = [self._default, config]
        rng = random.Random(f"{self._plan.seed}/{len(self.known)}")
        for standing in race(self._measurer, pair, (Round(laps, inf),), rng):
            self._remember([Trial(c, outcome, "race", self.id, time.time()) for c, outcome in standing.fresh])
            for timed, outcome in standing.fresh:
                taken[self._space.places(timed)] = list(outcome.samples_s) if isinstance(outcome, Timing) else []
        default_s, config_s = (taken.get(self._space.places(one)) for one in pair)
        return lower_half_mean(config_s) / lower_half_mean(default_s) if config_s and default_s else None

    def whole(self, verdict: Verdict) -> Verdict:
        """Return a verdict with what the record wants: which run it ended, when, after how much, who proposed what."""
        proposals = tuple(self._proposals)
        return replace(verdict, evaluations=len(self.known), run=self.id, at=time.time(), proposals=proposals)

    def _resumed(self, past: Sequence[Trial]) -> str:
        """Return the id of the run that was interrupted, or nothing if the last one was concluded."""
        concluded = {verdict.run for verdict in self._store.verdicts(self._task.subject)}
        last = past[-1].run if past else ""
        return "" if last in concluded else last

    def _search(self) -> None:
        asking = self.asking()
        asked = 1
        while asked < self._plan.budget and not self.is_over():
            batch = asking.ask(min(self._batch, self._plan.budget - asked))
            if not batch:
                break
            asked += sum(config != self._default for config in batch)  # a seed may be the default, which was measured
            self._measure(batch, asking)
            asking.tell([Trial(c, self.known[self._space.places(c)]) for c in batch if self._is_known(c)])
        self._proposals = seeding.fates(self._proposals, asking, self._space)

    def is_over(self) -> bool:
        """Return whether no further config may be begun: the time is up, or somebody wants to go on."""
        self.is_stopped = self.is_stopped or self._plan.stop()
        return self.is_stopped or time.monotonic() > self._deadline

    def _seeded(self) -> search.Seeded:
        """Return the search that begins with what users propose, what won elsewhere, and what heuristics propose."""
        task, plan = self._task, self._plan
        sources = task.sources if plan.heuristics and not plan.measure_all else ()
        about = task.declaration, task.subject, task.hardware
        winners = () if plan.measure_all else priors.winners(self._store, task.subject, self._default)
        found = seeding.propose(*about, plan.seeds, sources, winners)
        self._proposals = [replace(p, fate="known") if self._is_moot(p) else p for p in found]
        if found:
            self.tell(events.Proposed(tuple(self._proposals)))
        kept = seeding.seeds_of(self._proposals)
        self._pinned = {self._space.places(seed.config) for seed in kept[:_PINS]}
        moves = seeding.moves_of(*about, sources)
        return search.Seeded(self._space, kept, self._strategy, seed=plan.seed, moves=moves)

    def _is_moot(self, proposal: Proposal) -> bool:
        """Return whether a seed was measured before this run began; what it did itself before it was killed is new."""
        return proposal.fate == "tried" and self._space.places(proposal.config) in self._before

    @property
    def _batch(self) -> int:
        """How many configs to ask at once: where they are built first, enough to keep all cores busy."""
        return _BATCH if self._task.build is None else max(_BATCH, system.cores())

    def _measure(self, batch: Sequence[Config], asking: search.Seeded) -> None:
        """Measure what is new in a batch; for a data set, everything in it as often as everything else."""
        fresh = [config for config in batch if not self._is_known(config)]
        if self._plan.measure_all and self.measured == 1:  # the default was alone when it was measured
            fresh = [self._default, *fresh]
        for source, configs in groupby(fresh, lambda c: asking.proposer(c) or self._strategy.name):
            self._evaluate(list(configs), source)
        if self._plan.measure_all:
            laps = (self._task.work.policy.steps or _COLLECT_SAMPLES) - 1
            self._race([config for config in fresh if self._is_timed(config)], (Round(laps, inf),) if laps else ())

    def _evaluate(self, configs: Sequence[Config], source: str, *, insist: bool = False) -> None:
        """Measure each config for the first time and remember it at once: a killed run never measures it again."""
        fresh = [config for config in configs if not self._is_known(config)]
        for config, broken in zip(fresh, self._build(fresh), strict=True):
            if self._is_known(self._default) and self.is_over() and not insist:
                return
            outcome = broken or self._measurer.first(config, self._best_for(config))
            self._remember([Trial(config, outcome, source, self.id, time.time())])
            self.measured += 1
            self._spent += 1
            self._tell_evaluated(config, outcome, source)

    def _best_for(self, config: Config) -> float:
        """Return the time that a first launch is measured by; a cold launch alone must not discredit a seed."""
        is_spared = self._plan.measure_all or self._space.places(config) in self._pinned
        return inf if is_spared else self._best_s()

    def _tell_evaluated(self, config: Config, outcome: Outcome, source: str) -> None:
        default_s = self._times.get(self._space.places(self._default), inf)
        self.tell(events.Evaluated(config, outcome, source, self._spent, self._plan.budget, self._best_s(), default_s))

    def _build(self, configs: Sequence[Config]) -> list[Failure | None]:
        """Build configs ahead on all cores while nothing is being timed; return what failed."""
        if self._task.build is None or not configs:
            return [None] * len(configs)
        self.tell(events.Building(len(configs)))
        # What is left when somebody wants to go on will not be measured either.
        return built(self._task.build, configs, lambda: self._plan.stop() and self._is_known(self._default))

    def _is_right(self, config: Config, repeats: int) -> bool:
        wrong = self._measurer.verify(config, repeats)
        if wrong is not None:
            self._remember([Trial(config, wrong, "check", self.id, time.time())])
        return wrong is None

    def _race(self, runners: Sequence[Config], rounds: Sequence[Round]) -> Sequence[Gap]:
        """Race configs, remember every round, and return who may still win, best first."""
        order: Sequence[Gap] = [Gap(config, 0.0, inf) for config in runners]
        rng = random.Random(f"{self._plan.seed}/{len(self.known)}")
        qualifying_s = [self._times[self._space.places(config)] for config in runners]
        seeded = sum(self._space.places(config) in self._pinned for config in runners)
        for standing in race(self._measurer, runners, rounds, rng, qualifying_s, seeded):
            at = time.time()
            self._remember([Trial(config, outcome, "race", self.id, at) for config, outcome in standing.fresh])
            order = standing.order
        return order

    def final(self) -> Verdict:
        """Let everybody who may be the best race, until the winner proves right and has met the default in pairs."""
        while runners := self._runners():
            # Who does not want to wait gets the likely winner: as nothing is concluded, a short race loses nothing.
            challenger = self._challenger(self._race(runners, ROUNDS[:_HASTY] if self.is_stopped else ROUNDS))
            verdict = self._meet(challenger) if challenger is not None else None
            if verdict is not None:
                return verdict
        return Verdict("failed", self._default, self._default, detail=self._all_failed())

    def _runners(self) -> list[Config]:
        """Return the configs that may be the best, best first, each found right on all inputs."""
        while unsure := [c for c in self._entrants() if self._space.places(c) not in self._verified]:
            for config in unsure:
                self._verified.add(self._space.places(config))
                self._is_right(config, 1)
        return self._entrants()

    def _entrants(self) -> list[Config]:
        """Return who is near enough to the best: seeds of any but a hopeless time, then the others; best first."""
        best_s = self._best_s()
        limits_s = {p: (_PINNED if p in self._pinned else ENTRY) * best_s for p in self._times}
        near = [p for p in self._ranked() if self._times[p] <= limits_s[p]]
        return [self._configs[p] for p in sorted(near, key=lambda p: p not in self._pinned)]

    def _challenger(self, order: Sequence[Gap]) -> Config | None:
        """Return the winner of a race; of equals, the default or else the first in the space's order."""
        equal = [gap.config for gap in order if gap.is_tied and self._is_timed(gap.config)]
        if self._default in equal:
            return self._default
        return min(equal, key=self._space.places, default=None)

    def _meet(self, challenger: Config) -> Verdict | None:
        """Return how the challenger did against the default, or None if it turned out wrong or broke."""
        default = self.known[self._space.places(self._default)]
        if challenger == self._default:
            samples = default.samples_s if isinstance(default, Timing) else ()
            return Verdict("tie", self._default, challenger, samples, detail="the default is the fastest")
        self.tell(events.Final(challenger, self._default))
        if not self._is_right(challenger, self._task.work.check.repeats):
            return None
        source = self._sources[self._space.places(challenger)]
        if isinstance(default, Failure):
            return Verdict("win", self._default, challenger, source=source, detail=_default_fails(default))
        result = self._pairs(challenger)
        if result is None:
            return None
        return Verdict(
            "win" if result.is_win else "tie",
            self._default,
            challenger,
            result.incumbent_s,
            result.challenger_s,
            result.gain,
            result.p_value,
            source=source,
        )

    def _pairs(self, challenger: Config) -> Comparison | None:
        policy = self._task.work.policy
        for config in (self._default, challenger):
            self._measurer.sample(config, max(1, policy.warmup_steps or 1))
        try:
            return compare(lambda turns: self._pair(challenger, turns), pairs=policy.steps)
        except _Broke as broke:
            self._remember([Trial(broke.config, broke.failure, "final", self.id, time.time())])
            return None

    def _pair(self, challenger: Config, turns: int | None) -> tuple[float, float]:
        pair = self._measurer.pair(self._default, challenger, turns)
        if isinstance(pair, Failure):
            raise _Broke(challenger, pair)
        return pair

    def _conclude(self, verdict: Verdict) -> Verdict:
        whole = self.whole(verdict)
        if self.is_stopped:  # it is not over: the next process goes on with it
            self._end()
        else:
            self._store.conclude(self._task.subject, whole)
        self.tell(events.Concluded(whole))
        return whole

    def _remember(self, trials: Sequence[Trial]) -> None:
        """Learn from trials and keep them for good, but for failures that may be no config's own."""
        self._store.add(self._task.subject, [trial for trial in trials if not self._is_cut_short(trial.outcome)])
        for trial in trials:
            self._learn(trial)

    def _is_cut_short(self, outcome: Outcome) -> bool:
        """Return whether a failure may come from Ctrl-C: a compiler that a config runs hears it too, and dies of it."""
        is_doubtful = isinstance(outcome, Failure) and self._plan.stop()
        self.is_stopped = self.is_stopped or is_doubtful
        return is_doubtful

    def _learn(self, trial: Trial) -> None:
        places = self._space.places(trial.config)
        self._configs.setdefault(places, self._space.config(trial.config))
        self._sources.setdefault(places, trial.source)
        before = self.known.get(places)
        outcome = self.known[places] = trial.outcome if before is None else merged([before, trial.outcome])
        self._times.pop(places, None)
        if isinstance(outcome, Timing):
            self._times[places] = outcome.time_s

    def _is_timed(self, config: Config) -> bool:
        return self._space.places(config) in self._times

    def _is_known(self, config: Config) -> bool:
        return self._space.places(config) in self.known

    def _ranked(self) -> list[Places]:
        return sorted(self._times, key=lambda places: (self._times[places], places))

    def _best_s(self) -> float:
        return min(self._times.values(), default=inf)

    def _all_failed(self) -> str:
        kinds = Counter(o.kind for o in self.known.values() if isinstance(o, Failure))
        counts = ", ".join(f"{count} {kind}" for kind, count in kinds.most_common())
        name = self._task.declaration.name
        return f"all {len(self.known)} candidates failed ({counts}); see: tunewise trials {name} --failed"


class _Broke(Exception):
    """A finalist failed during its pairs."""

    def __init__(self, config: Config, failure: Failure) -> None:
        super().__init__(failure.detail)
        self.config, self.failure = config, failure


def _default_fails(failure: Failure) -> str:
    hint = "; if it needs threads that a fork leaves behind, use Policy(isolation='none')"
    said = f"the default itself fails ({failure.kind}: {failure.detail.strip()[:300]})"
    return said + (hint if failure.kind == "timeout" else "")
