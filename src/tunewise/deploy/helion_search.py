"""Our search for a Helion kernel: seeds first, then our strategy, every result remembered, the default met at last."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import inf
from typing import Any

from tunewise import search
from tunewise.decision import Config, Failure, Outcome, Places, Proposal, Timing, Trial, Verdict, merged
from tunewise.decision.origin import run_id
from tunewise.decision.trial import Ending
from tunewise.deploy import helion_memory as memory
from tunewise.deploy.helion_problem import Call
from tunewise.errors import InvalidConfig, InvalidSetting
from tunewise.eventlog import logger
from tunewise.measure.compare import Comparison, compare
from tunewise.session import seeding, shelf
from tunewise.session.context import current_store

Benchmark = Callable[[list[Any]], Sequence[Any]]  # Helion's own: its configs in, its results out

_IDLE = 20  # configs asked for each one measured, before a search in which they are all the same gives up
_FINALISTS, _WITHIN, _LAPS = 3, 1.15, 2  # how many may win, how near they are, and how often they are timed again
_CLEAR = 1.1  # a gain that is believed where there is no time for pairs
_PAIRS = ((10.0, 1), (2.0, 3), (0.0, 7))  # how many show a gain of so much
_log = logger("tunewise.helion")


@dataclass(frozen=True, slots=True)
class Budget:
    """How much to spend on a call: configs, and how many in a row may bring nothing before it is enough."""

    evaluations: int = 100
    patience: int | None = 25  # half of it while a config leads that memory or a heuristic proposed
    gain: float = 1.02  # over the best so far; less is noise, and no reason to go on
    seed: int = 0
    batch: int = 4  # asked at once; of more, the later ones would be asked without knowing how the others did

    def __post_init__(self) -> None:
        for name in ("evaluations", "patience", "batch"):
            value = getattr(self, name)
            if not (name == "patience" and value is None) and (type(value) is not int or value < 1):
                raise InvalidSetting(f"{name}={value!r} is not a number of configs of at least 1")
        if not isinstance(self.gain, int | float) or not 1 <= self.gain < inf:
            raise InvalidSetting(f"gain={self.gain!r} is not a factor of at least 1")


@dataclass(frozen=True, slots=True)
class Seeds:
    """Configs of Helion's to try first: what the user gave, and what Helion's own heuristics propose."""

    given: Sequence[Any] = ()
    theirs: Sequence[Any] = ()


class Hunt:
    """One search. What it knows is in the store, so a killed one goes on where it stopped."""

    def __init__(
        self,
        call: Call,
        benchmark: Benchmark,
        budget: Budget,
        *,
        seeds: Seeds | None = None,
        is_over: Callable[[], bool] = lambda: False,
    ) -> None:
        self._call, self._space, self._knobs = call, call.knobs.space, call.knobs
        self._benchmark, self._budget, self._is_over = benchmark, budget, is_over
        self._seeds = seeds or Seeds()
        self._outcomes: dict[Places, Outcome] = {}
        self._configs: dict[Places, Config] = {}
        self._sources: dict[Places, str] = {}
        self._proposals: list[Proposal] = []
        self.measured = 0  # configs measured by this very hunt
        self._in_vain = 0
        self.run, self._spent = "", 0
        self._is_theirs = False

    def go(self) -> Any:
        """Return the best helion.Config: the default, unless another one beat it in pairs.

        Raises what Helion's benchmark raises. Trouble of ours ends the search early, with a line in the log.
        """
        try:
            return self._go()
        except Exception as error:
            if self._is_theirs:
                raise
            _log.warning("%s: the search ends early: %s: %s", self._call.name, type(error).__name__, error)
            times = self._times()
            best = min(times, key=lambda places: times[places], default=None)
            return self._knobs.helion(self._knobs.default if best is None else self._configs[best])

    def _go(self) -> Any:
        self.run, self._spent = _resumed(self._call)
        for one in memory.known(self._call):
            self._learn(one.config, one.outcome, "")
        asking = self._asking()
        self._measure([self._knobs.default], asking)
        asking.tell([Trial(self._configs[places], outcome) for places, outcome in self._outcomes.items()])
        self._search(asking)
        self._proposals = seeding.fates(self._proposals, asking, self._space)
        return self._final()

    def _asking(self) -> search.Seeded:
        call, budget = self._call, self._budget
        strategy = search.make(search.AUTO, self._space, seed=budget.seed, budget=budget.evaluations)
        given, theirs = self._usable(self._seeds.given), self._usable(self._seeds.theirs)
        self._proposals = [self._settled(proposal) for proposal in memory.proposals(call, given, theirs)]
        sources = shelf.sources_for(call.declaration)
        moves = seeding.moves_of(call.declaration, call.subject, call.hardware, sources)
        kept = seeding.seeds_of(self._proposals)
        asking = search.Seeded(self._space, kept, strategy, seed=budget.seed, moves=moves)
        for origin, trials in memory.donors(call):
            asking.tell(trials, origin=origin)
        return asking

    def _usable(self, seeds: Sequence[Any]) -> list[Config]:
        """Return Helion's configs as ours; one that is not of this kernel is left out."""
        found: list[Config] = []
        for seed in seeds:
            try:
                found.append(self._knobs.ours(seed))
            except InvalidConfig as error:
                _log.info("a seed is left out: %s", error)
        return found

    def _settled(self, proposal: Proposal) -> Proposal:
        """Return a proposal of what Helion makes of it."""
        if proposal.fate == "dropped":
            return proposal
        try:
            return replace(proposal, config=self._knobs.settled(proposal.config)[0])
        except InvalidConfig as error:
            return replace(proposal, fate="dropped", detail=str(error))

    def _search(self, asking: search.Seeded) -> None:
        asked = 0
        while not self._is_enough() and asked < _IDLE * self._budget.evaluations:
            batch = asking.ask(min(self._budget.batch, self._left()))
            if not batch:
                return
            asked += len(batch)
            self._measure(batch, asking)

    def _is_enough(self) -> bool:
        return self._left() < 1 or self._is_over()

    def _left(self) -> int:
        """Return how many configs are to be measured yet, unless one of them is better than all before."""
        left, patience = self._budget.evaluations - self._spent, self._budget.patience
        if patience is None:
            return left
        return min(left, (max(1, patience // 2) if self._is_foreseen() else patience) - self._in_vain)

    def _is_foreseen(self) -> bool:
        """Return whether nothing is better than what was proposed: then less has to be tried to believe it."""
        times, limit_s = self._times(), self._best_s() * self._budget.gain
        proposed = {self._space.places(p.config) for p in self._proposals if p.fate in ("tried", "known")}
        return any(times[places] <= limit_s for places in proposed & times.keys())

    def _measure(self, batch: Sequence[Config], asking: search.Seeded) -> None:
        """Measure what Helion makes of each config, where that is new, and tell the search of all."""
        fresh: dict[Places, tuple[Config, Any, str]] = {}
        settled: list[tuple[Config, Places]] = []
        for config in batch:
            try:
                real, made = self._knobs.settled(config)
            except InvalidConfig as error:
                asking.tell([Trial(config, Failure("constraints", str(error)))])
                continue
            places = self._space.places(real)
            settled.append((config, places))
            if places not in self._outcomes:
                fresh.setdefault(places, (real, made, self._proposer(config, asking)))
        self._run(list(fresh.values()))
        asking.tell([Trial(config, self._outcomes[places]) for config, places in settled if places in self._outcomes])

    def _proposer(self, config: Config, asking: search.Seeded) -> str:
        return asking.proposer(config) or ("default" if config == self._knobs.default else asking.name)

    def _run(self, fresh: Sequence[tuple[Config, Any, str]]) -> None:
        if not fresh:
            return
        results = self._timed([made for _, made, _ in fresh])
        sources = [source for _, _, source in fresh]
        memory.record(self._call, results, sources, self.run)
        for (config, _, source), result in zip(fresh, results, strict=True):
            best_s = self._best_s()
            outcome = memory.outcome_of(result)
            self._learn(config, outcome, source)
            self.measured += 1
            self._spent += 1
            is_better = isinstance(outcome, Timing) and outcome.time_s * self._budget.gain < best_s
            self._in_vain = 0 if is_better else self._in_vain + 1

    def _timed(self, configs: list[Any]) -> Sequence[Any]:
        self._is_theirs = True  # what is raised meanwhile is Helion's to explain
        results = self._benchmark(configs)
        self._is_theirs = False
        return results

    def _learn(self, config: Config, outcome: Outcome, source: str) -> None:
        places = self._space.places(config)
        before = self._outcomes.get(places)
        self._outcomes[places] = outcome if before is None else merged([before, outcome])
        self._configs.setdefault(places, config)
        self._sources.setdefault(places, source)

    def _times(self) -> dict[Places, float]:
        return {places: o.time_s for places, o in self._outcomes.items() if isinstance(o, Timing)}

    def _best_s(self) -> float:
        return min(self._times().values(), default=inf)

    def _final(self) -> Any:
        """Time the finalists again, let the best meet the default in pairs, and remember how that ended."""
        default = self._space.places(self._settled_default())
        for _ in range(_LAPS):
            finalists = self._finalists()
            if len(finalists) > 1 and not self._is_over():
                self._again(finalists)
        times = self._times()
        if not times:  # whatever is wrong, the user sees it when the default runs
            return self._knobs.helion(self._knobs.default)
        best = min(times, key=lambda places: (times[places], places))
        verdict = self._verdict(default, best, self._met(default, best))
        memory.conclude(self._call, verdict)
        return self._knobs.helion(verdict.winner)

    def _settled_default(self) -> Config:
        return self._knobs.settled(self._knobs.default)[0]

    def _finalists(self) -> list[Places]:
        times, best_s = self._times(), self._best_s()
        near = sorted((time_s, places) for places, time_s in times.items() if time_s <= _WITHIN * best_s)
        return [places for _, places in near[:_FINALISTS]]

    def _again(self, finalists: Sequence[Places]) -> list[float]:
        """Return the seconds of configs timed once more, one after the other; infinite where one fails now."""
        results = self._timed([self._knobs.helion(self._configs[places]) for places in finalists])
        memory.record(self._call, results, ["final"] * len(results), self.run)
        for places, result in zip(finalists, results, strict=True):
            self._learn(self._configs[places], memory.outcome_of(result), "final")
        outcomes = [memory.outcome_of(result) for result in results]
        return [outcome.time_s if isinstance(outcome, Timing) else inf for outcome in outcomes]

    def _met(self, default: Places, best: Places) -> Comparison | None:
        """Return how the best did against the default in pairs; None where there is nothing to compare."""
        times = self._times()
        if best == default or default not in times or self._is_over():
            return None
        pairs = next(count for gain, count in _PAIRS if times[default] >= gain * times[best])

        def pair(turns: int | None) -> tuple[float, float]:
            ours, theirs = self._again([default, best])
            return (ours, theirs) if max(ours, theirs) < inf else (1.0, 1.0)  # a failure decides nothing

        return compare(pair, pairs=pairs)

    def _verdict(self, default: Places, best: Places, met: Comparison | None) -> Verdict:
        about = replace(
            self._ending(default, best, met),
            evaluations=len(self._outcomes),
            run=self.run,
            source=self._sources[best],
            at=time.time(),
        )
        return replace(about, proposals=tuple(self._proposals))

    def _ending(self, default: Places, best: Places, met: Comparison | None) -> Verdict:
        incumbent, challenger = self._knobs.default, self._configs[best]
        if best == default:
            return Verdict("tie", incumbent, incumbent, self._samples(default), detail="the default is the fastest")
        if met is not None:
            ending: Ending = "win" if met.is_win else "tie"
            samples = met.incumbent_s, met.challenger_s
            return Verdict(ending, incumbent, challenger, *samples, met.gain, met.p_value)
        times = self._times()
        if default not in times:
            return Verdict("win", incumbent, challenger, detail="the default fails")
        is_clear = times[default] >= _CLEAR * times[best]
        return Verdict("win" if is_clear else "tie", incumbent, challenger, detail="there was no time for a final")

    def _samples(self, places: Places) -> tuple[float, ...]:
        outcome = self._outcomes[places]
        return outcome.samples_s if isinstance(outcome, Timing) else ()


def _resumed(call: Call) -> tuple[str, int]:
    """Return the id of the run that was interrupted and what it has spent, or a new one's."""
    store = current_store()
    past = [trial for trial in store.trials(call.subject) if trial.origin == "own"]
    last = past[-1].run if past else ""
    if not last or last in {verdict.run for verdict in store.verdicts(call.subject)}:
        return run_id(), 0
    return last, len({str(sorted(trial.config.items())) for trial in past if trial.run == last})
