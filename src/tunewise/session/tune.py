"""Tuning a problem once: from memory if it is known, by a run if it is not, whoever else asks at the same time."""

import time
import warnings
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from tunewise.decision import Answer, Failure, Verdict
from tunewise.errors import MeasureWarning
from tunewise.measure.work import Measurer, Work
from tunewise.session import context, events
from tunewise.session.ladder import Question, remembered
from tunewise.session.plan import Plan, Task
from tunewise.session.run import Run
from tunewise.store import Store


@dataclass(frozen=True, slots=True)
class Tuning:
    """What a call to `tune` came to."""

    answer: Answer
    verdict: Verdict | None = None
    evaluations: int = 0  # configs whose outcome is known
    measured: int = 0  # configs measured by this very call
    failures: Mapping[str, int] = field(default_factory=dict)
    seconds: float = 0.0


def tune(task: Task, plan: Plan, store: Store, make_measurer: Callable[[Work], Measurer]) -> Tuning:
    """Answer from memory if the problem is known; otherwise tune it, once, however many processes ask at once."""
    question = Question(task.declaration, task.subject, (), store, lambda: store.subjects(task.subject.decision))
    known = _settled(question, plan)
    if known is not None:
        return Tuning(known)
    flight = store.flight(task.subject)
    if not flight.acquire(0):
        plan.listener(events.Waiting(task.subject))
        if not flight.acquire(plan.wait_s):
            return Tuning(Answer(task.declaration.default, "default", "declaration", "another process is tuning this"))
    try:
        known = _settled(question, plan)
        if known is not None:
            return Tuning(known)
        return _run(task, plan, store, make_measurer, question)
    finally:
        flight.release()


def _settled(question: Question, plan: Plan) -> Answer | None:
    """Return the remembered answer, or None if something is to be measured all the same."""
    known = remembered(question)
    if known is None or plan.again or (plan.measure_all and not _has_all(question, plan.budget)):
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
        with context.mode("use"):  # a candidate that makes decisions of its own must not measure them meanwhile
            verdict = run.go()
    finally:
        measurer.close()
    store.forget_miss(task.subject)
    if verdict.ending == "failed":
        warnings.warn(f"{task.declaration.name}: {verdict.detail}", MeasureWarning, stacklevel=4)
    answer = remembered(question)
    if answer is None:  # the store cannot keep it; the result stands all the same
        answer = Answer(verdict.winner, "memory", f"run {verdict.run[:8]}", "just tuned", None, verdict.time_s)
    failures = Counter(str(o.kind) for o in run.known.values() if isinstance(o, Failure))
    return Tuning(answer, verdict, len(run.known), run.measured, dict(failures), time.monotonic() - start)
