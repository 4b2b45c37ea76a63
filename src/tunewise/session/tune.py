"""Tuning a problem once: from memory if it is known, by a run if it is not, whoever else asks at the same time."""

import time
import warnings
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from math import inf

from tunewise.decision import Answer, Failure, Verdict
from tunewise.errors import MeasureWarning
from tunewise.measure.work import Measurer, Work
from tunewise.session import context, events
from tunewise.session.ladder import Question, remembered
from tunewise.session.plan import Plan, Task
from tunewise.session.run import Run
from tunewise.store import Flight, Holder, Store

_STOPPED_S = 10.0  # that another process may be stopped before it is waited for no more
_GLANCE_S = 0.2  # between two looks at whether somebody still wants to wait for another process


@dataclass(frozen=True, slots=True)
class Tuning:
    """What a call to `tune` came to."""

    answer: Answer
    verdict: Verdict | None = None
    evaluations: int = 0  # configs whose outcome is known
    measured: int = 0  # configs measured by this very call
    failures: Mapping[str, int] = field(default_factory=dict)
    seconds: float = 0.0
    is_stopped: bool = False  # somebody did not wait for the end: nothing is concluded, the next run goes on from there


def tune(task: Task, plan: Plan, store: Store, make_measurer: Callable[[Work], Measurer]) -> Tuning:
    """Answer from memory if the problem is known; otherwise tune it, once, however many processes ask at once."""
    plan, question = widened(task, plan), question_of(task, store)
    known = settled(question, plan)
    if known is not None:
        return Tuning(known)
    flight = store.flight(task.subject)
    if not flight.acquire(0):
        plan.listener(events.Waiting(task.subject))
        holder = _holder_after(flight, plan)
        if holder is not None:
            answer = Answer(task.declaration.default, "default", "declaration", f"{holder} is tuning this")
            is_stuck = isinstance(holder, Holder)
            if is_stuck:
                told = f"{task.declaration.name}: {holder} is tuning ({task.subject.problem}); the default is used"
                warnings.warn(told, MeasureWarning, stacklevel=4)
            return Tuning(answer, is_stopped=is_stuck or plan.stop())
    try:
        known = settled(question, plan)
        if known is not None:
            return Tuning(known)
        return _run(task, plan, store, make_measurer, question)
    finally:
        flight.release()


def _holder_after(flight: Flight, plan: Plan) -> Holder | str | None:
    """Wait for our turn and return None; or return who is at work if that takes too long or nobody wants to wait.

    A process that is stopped is given some seconds to go on: it may stay so for ever.
    """
    deadline = inf if plan.wait_s is None else time.monotonic() + plan.wait_s
    working_at = time.monotonic()
    while not flight.acquire(max(0.0, min(_GLANCE_S, deadline - time.monotonic()))):
        now, holder = time.monotonic(), flight.holder()
        if holder is None or not holder.is_stopped:
            working_at = now
        elif now > working_at + _STOPPED_S:
            return holder
        if plan.stop() or now >= deadline:
            return "another process"
    return None


def widened(task: Task, plan: Plan) -> Plan:
    """Return a plan whose budget is the whole space where it is to be thorough."""
    return replace(plan, budget=task.declaration.space.count(), strategy="exhaustive") if plan.thorough else plan


def question_of(task: Task, store: Store) -> Question:
    """Return what memory is asked about a task; nobody's pins are in it."""
    return Question(task.declaration, task.subject, (), store)


def settled(question: Question, plan: Plan) -> Answer | None:
    """Return the remembered answer, or None if something is to be measured all the same."""
    known = remembered(question)
    wants_all = plan.measure_all or plan.thorough
    if known is None or plan.again or (wants_all and not _has_all(question, plan.budget)):
        return None
    return known


def _has_all(question: Question, budget: int) -> bool:
    """Return whether as many configs were measured as a data set wants; a tuning run stops before that."""
    space = question.declaration.space
    tried = {space.places(t.config) for t in question.store.trials(question.subject) if t.config in space}
    return len(tried) >= budget or len(tried) >= space.count()  # counting a huge space may take long: ask it last


def _run(task: Task, plan: Plan, store: Store, make_measurer: Callable[[Work], Measurer], question: Question) -> Tuning:
    start = time.monotonic()
    measurer = make_measurer(task.work)
    try:
        run = Run(task, plan, store, measurer)
        with context.measured():
            verdict = run.go()
    finally:
        measurer.close()
    if not run.is_stopped:
        store.forget_miss(task.subject)
    if verdict.ending == "failed" and not run.is_stopped:
        warnings.warn(f"{task.declaration.name}: {verdict.detail}", MeasureWarning, stacklevel=4)
    answer = None if run.is_stopped else remembered(question)
    if answer is None:  # nothing is concluded, or the store cannot keep it; the result stands all the same
        why = "the best so far of a search that was stopped" if run.is_stopped else "just tuned"
        answer = Answer(verdict.winner, "memory", f"run {verdict.run[:8]}", why, None, verdict.time_s)
    failures = Counter(str(o.kind) for o in run.known.values() if isinstance(o, Failure))
    seconds = time.monotonic() - start
    return Tuning(answer, verdict, len(run.known), run.measured, dict(failures), seconds, run.is_stopped)
