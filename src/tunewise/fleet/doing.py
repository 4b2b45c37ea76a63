"""Doing one unit on this device: nothing that is stored is measured again, and nothing is done before it is stored."""

import random
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from math import inf
from typing import Any, Literal

from tunewise.decision import Config, Outcome, Timing, Trial, Verdict, canonical, merged
from tunewise.errors import TunewiseError
from tunewise.fleet.patient import Away
from tunewise.fleet.plans import FleetPlan, Unit
from tunewise.fleet.rehearsal import Target
from tunewise.measure.race import Round, race
from tunewise.measure.work import Measurer
from tunewise.search import RandomSearch
from tunewise.session import context, events
from tunewise.session.building import built
from tunewise.session.plan import Plan, Task
from tunewise.session.priors import winners
from tunewise.session.run import Run
from tunewise.session.tune import tune
from tunewise.store import Store

State = Literal["done", "failed", "busy", "stopped"]
_WAIT_S = 1.0  # for somebody else who is at the same unit; then it goes back to the queue
_BATCH = 8  # configs timed by turns and written at once
_SAMPLES = 5  # of a config in a table
_MOST_WINNERS = 9  # besides the default


@dataclass(frozen=True, slots=True)
class Report:
    """What became of a unit: `measured` configs are new in the store, `known` says that nothing was left to do."""

    unit: str
    state: State
    measured: int = 0
    known: bool = False
    why: str = ""


class Doer:
    """Does units of one plan, one after another. `stop` is asked between configs, `tell` hears of each one measured."""

    def __init__(
        self,
        plan: FleetPlan,
        targets: Sequence[Target],
        store: Store,
        *,
        stop: Callable[[], bool] = bool,
        tell: Callable[[], None] = lambda: None,
    ) -> None:
        self._plan, self._targets, self._store, self._stop, self._tell = plan, targets, store, stop, tell
        self._tables: dict[int, list[Config]] = {}
        self._measured = 0

    def do(self, unit: Unit) -> Report:
        """Return what became of a unit once all its facts are in the store; only our own mistakes raise."""
        self._measured = 0
        ways = {"tune": self._tune, "verify": self._verify, "slice": self._slice, "conclude": self._conclude}
        try:
            return replace(ways[unit.kind](unit), measured=self._measured)
        except Away as away:
            return Report(unit.id, "stopped", self._measured, why=str(away))
        except TunewiseError as error:
            return Report(unit.id, "failed", self._measured, why=f"{type(error).__name__}: {error}")

    def _tune(self, unit: Unit, **more: Any) -> Report:
        target, task = self._task(unit)
        options = {"budget": self._plan.budget, "seed": self._plan.seed, "wait_s": _WAIT_S, **more}
        plan = Plan(**options, stop=self._stop, listener=self._hear)
        tuning = tune(task, plan, self._store, target.measurer)
        if tuning.is_stopped:
            return Report(unit.id, "stopped", why="asked to stop")
        if tuning.verdict is None and tuning.answer.rung != "memory":
            return Report(unit.id, "busy", why=tuning.answer.reason)
        return _ended(unit, tuning.verdict)

    def _verify(self, unit: Unit) -> Report:
        """Let what won this problem on other machines meet the default here."""
        target = self._targets[unit.work]
        subject = target.subject(self._plan.work[unit.work].problems[unit.problem])
        won = [winner.config for winner in winners(self._store, subject, most=_MOST_WINNERS + 1, only_same=True)]
        if not won:
            return Report(unit.id, "done", known=True, why="on no other machine anything has won this problem")
        found = [dict(config) for config in won if config != target.declaration.default]
        budget = min(self._plan.budget, 1 + len(found))
        return self._tune(unit, seeds=found, heuristics=False, budget=budget)

    def _slice(self, unit: Unit) -> Report:
        target, task = self._task(unit)
        # A claim of its own: other slices of the subject are other devices' work at the same time.
        part = replace(task.subject, policy=(*task.subject.policy, ("fleet.slice", f"{unit.start}-{unit.stop}")))
        claim = self._store.flight(part)
        if not claim.acquire(_WAIT_S):
            return Report(unit.id, "busy", why="another device is measuring this slice")
        try:
            fresh = self._unknown(task, self._table(unit.work)[unit.start : unit.stop])
            if not fresh:
                return Report(unit.id, "done", known=True)
            return self._measure(unit, target, task, fresh)
        finally:
            claim.release()

    def _measure(self, unit: Unit, target: Target, task: Task, fresh: Sequence[Config]) -> Report:
        measurer, run = target.measurer(task.work), self._run_id(task)
        try:
            with context.measured():
                for batch in _batches(fresh, _BATCH):
                    if self._stop():
                        return Report(unit.id, "stopped", why="asked to stop")
                    outcomes = self._timed(task, measurer, batch)
                    pairs = zip(batch, outcomes, strict=True)
                    self._store.add(task.subject, [Trial(c, o, "fleet", run, time.time()) for c, o in pairs])
        finally:
            measurer.close()
        return Report(unit.id, "done")

    def _timed(self, task: Task, measurer: Measurer, batch: Sequence[Config]) -> list[Outcome]:
        """Return what becomes of each config: built ahead, launched, then timed by turns with the others."""
        found: dict[str, list[Outcome]] = {}
        ahead = [None] * len(batch) if task.build is None else built(task.build, batch)
        for config, broken in zip(batch, ahead, strict=True):
            found[canonical.encode(config)] = [broken or measurer.first(config)]
            self._count()
        running = [config for config in batch if isinstance(found[canonical.encode(config)][0], Timing)]
        laps = (task.work.policy.steps or _SAMPLES) - 1
        rng = random.Random(f"{self._plan.seed}/{canonical.encode(batch[0])}")
        for standing in race(measurer, running, (Round(laps, inf),), rng):
            for config, outcome in standing.fresh:
                found[canonical.encode(config)].append(outcome)
        return [merged(found[canonical.encode(config)]) for config in batch]

    def _conclude(self, unit: Unit) -> Report:
        """Let the best of a table meet the default, so that the table answers too."""
        target, task = self._task(unit)
        flight = self._store.flight(task.subject)
        if not flight.acquire(_WAIT_S):
            return Report(unit.id, "busy", why="another process is tuning this")
        try:
            run_id = self._run_id(task)
            if any(verdict.run == run_id for verdict in self._store.verdicts(task.subject)):
                return Report(unit.id, "done", known=True)
            return self._final(unit, target, task, run_id)
        finally:
            flight.release()

    def _final(self, unit: Unit, target: Target, task: Task, run_id: str) -> Report:
        measurer = target.measurer(task.work)
        try:
            with context.measured():
                plan = Plan(budget=max(1, len(self._table(unit.work))), measure_all=True, stop=self._stop)
                run = Run(task, plan, self._store, measurer)
                run.id = run_id
                verdict = run.whole(run.open() or run.final())
                if run.is_over():
                    return Report(unit.id, "stopped", why="asked to stop")
                self._store.conclude(task.subject, verdict)
                run.tell(events.Concluded(verdict))
        finally:
            measurer.close()
        return _ended(unit, verdict)

    def _task(self, unit: Unit) -> tuple[Target, Task]:
        target = self._targets[unit.work]
        return target, target.task(self._plan.work[unit.work].problems[unit.problem])

    def _table(self, work: int) -> list[Config]:
        if work not in self._tables:
            self._tables[work] = table(self._targets[work], self._plan.budget, self._plan.seed)
        return self._tables[work]

    def _unknown(self, task: Task, configs: Sequence[Config]) -> list[Config]:
        space = task.declaration.space
        known = {space.places(t.config) for t in self._store.trials(task.subject) if t.config in space}
        return [config for config in configs if space.places(config) not in known]

    def _run_id(self, task: Task) -> str:
        """Return the run that all slices of a table belong to: equal on every device and after every restart."""
        return canonical.digest([self._plan.id, task.subject.digest])[:32]

    def _hear(self, event: events.Event) -> None:
        if isinstance(event, events.Evaluated):
            self._count()

    def _count(self) -> None:
        self._measured += 1
        self._tell()


def table(target: Target, budget: int, seed: int) -> list[Config]:
    """Return the configs of a table: the whole space in its order, or `budget` of them by chance, the same anywhere."""
    space = target.declaration.space
    first: list[Config] = list(islice(iter(space), budget + 1))
    return first if len(first) <= budget else RandomSearch(space, seed=seed).ask(budget)


def _ended(unit: Unit, verdict: Verdict | None) -> Report:
    if verdict is not None and verdict.ending == "failed":
        return Report(unit.id, "failed", why=verdict.detail)
    return Report(unit.id, "done", known=verdict is None)


def _batches(configs: Sequence[Config], size: int) -> Iterator[Sequence[Config]]:
    return (configs[start : start + size] for start in range(0, len(configs), size))
