"""The ladder: pins, exact memory, a bounded near match, the default; each rung answers or says why it declines."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import inf, log

from tunewise.decision import Answer, Config, Declaration, Problem, Rung, Subject, Verdict
from tunewise.settings import Mode, parse_mode
from tunewise.store import Store

_RUNGS: dict[Mode, tuple[Rung, ...]] = {
    "use": ("pin", "memory", "near", "default"),
    "tune": ("pin", "memory", "near", "default"),
    "collect": ("pin", "memory", "near", "default"),
    "replay": ("pin", "memory", "default"),
    "off": ("default",),
}
_SHOWN_PARTS = 6


@dataclass(frozen=True, slots=True)
class Pin:
    """A config somebody insists on, for the problems that have these features."""

    config: Config
    when: Mapping[str, object]

    def applies(self, problem: Problem) -> bool:
        """Return whether the problem has all the features the pin names."""
        return all(name in problem and problem[name] == value for name, value in self.when.items())


@dataclass(frozen=True, slots=True)
class Step:
    """What one rung said: its answer's reason, or why it declined."""

    rung: Rung
    said: str


@dataclass(frozen=True, slots=True)
class Explanation:
    """An answer with the whole climb that led to it."""

    decision: str
    problem: Problem
    mode: Mode
    answer: Answer
    steps: tuple[Step, ...]

    def __str__(self) -> str:
        climbed = "\n".join(f"  {step.rung:8} {step.said}" for step in self.steps)
        return f"{self.decision}({self.problem}) -> {show(self.answer.config)} [{self.answer.rung}]\n{climbed}"


@dataclass(frozen=True, slots=True)
class Question:
    """Everything a rung may look at."""

    declaration: Declaration
    subject: Subject
    pins: Sequence[Pin]
    store: Store


def climb(question: Question, mode: Mode) -> tuple[Answer, tuple[Step, ...]]:
    """Return the first answer on the ladder of a mode, and what every rung up to it said."""
    steps: list[Step] = []
    for rung in _RUNGS[parse_mode(mode)]:
        found = _ASK[rung](question)
        steps.append(Step(rung, found.reason if isinstance(found, Answer) else found))
        if isinstance(found, Answer):
            return found, tuple(steps)
    raise AssertionError("the default always answers")


def show(config: Mapping[str, object]) -> str:
    """Return a config as people write it: `tile_m=16 unroll=2`."""
    return " ".join(f"{name}={value}" for name, value in config.items())


def remembered(question: Question) -> Answer | str:
    """Return the answer of exact memory, or the reason there is none."""
    for verdict in reversed(question.store.verdicts(question.subject)):
        if question.declaration.space.why_not(verdict.winner) is None:
            return _answer_of(verdict, question.declaration)
    return _why_unknown(question)


def _pinned(question: Question) -> Answer | str:
    for pin in reversed(question.pins):
        if pin.applies(question.subject.problem):
            scope = ", ".join(f"{name}={value}" for name, value in pin.when.items()) or "every problem"
            return Answer(pin.config, "pin", "pin", f"pinned for {scope}", 1.0)
    return "nothing is pinned for this problem"


def _near(question: Question) -> Answer | str:
    limit = question.declaration.near
    if limit <= 1:
        return "near matches are off"
    best: tuple[float, Problem, Verdict] | None = None
    for subject in question.store.subjects(question.subject.decision):
        distance = _distance(question.subject, subject)
        if distance <= log(limit) and (best is None or distance < best[0]):
            won = [v for v in question.store.verdicts(subject) if v.winner in question.declaration.space]
            best = (distance, subject.problem, won[-1]) if won else best
    if best is None:
        return f"no remembered problem is within {limit:g}x of every number"
    _, problem, verdict = best
    config = question.declaration.space.config(verdict.winner)
    return Answer(
        config, "near", f"run {verdict.run[:8]}", f"tuned for the near problem {problem}", 0.5, verdict.time_s
    )


def _default(question: Question) -> Answer:
    return Answer(question.declaration.default, "default", "declaration", "the declared default")


_ASK = {"pin": _pinned, "memory": remembered, "near": _near, "default": _default}


def _answer_of(verdict: Verdict, declaration: Declaration) -> Answer:
    config = declaration.space.config(verdict.winner)
    reasons = {
        "win": f"beat the default {verdict.gain:.2f}x in {len(verdict.challenger_s)} pairs (p={verdict.p_value:.2g})",
        "tie": "tie: nothing beat the default beyond the noise",
        "failed": f"the last tuning run failed: {verdict.detail}",
    }
    confidence = None if verdict.ending == "failed" else 1 - verdict.p_value if verdict.ending == "win" else 0.99
    reason = f"{reasons[verdict.ending]}; {verdict.evaluations} configs tried"
    return Answer(config, "memory", f"run {verdict.run[:8]}", reason, confidence, verdict.time_s)


def _why_unknown(question: Question) -> str:
    if question.store.verdicts(question.subject):
        return "the remembered winner is no longer in the space"
    trials = question.store.trials(question.subject)
    if trials:
        return (
            f"a tuning run is unfinished after {len({show(t.config) for t in trials})} configs; tune again to resume it"
        )
    others = [s for s in question.store.subjects(question.subject.decision) if question.store.verdicts(s)]
    if not others:
        return f"nothing is remembered of {question.subject.decision}"
    closest = min(others, key=lambda other: len(question.subject.difference(other)))
    parts = question.subject.difference(closest)
    return f"the closest of {len(others)} remembered differs in {_parts(parts)}"


def _parts(parts: Mapping[str, tuple[object, object]]) -> str:
    shown = [f"{name} (now {ours!r}, then {theirs!r})" for name, (ours, theirs) in list(parts.items())[:_SHOWN_PARTS]]
    more = len(parts) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more > 0 else "")


def _distance(ours: Subject, theirs: Subject) -> float:
    """Return the largest log ratio of any number, or infinity unless all else is equal."""
    same = (ours.policy, ours.environment.must, set(ours.problem)) == (
        theirs.policy,
        theirs.environment.must,
        set(theirs.problem),
    )
    if not same or ours.problem.categorical != theirs.problem.categorical:
        return inf
    return max(_log_ratios(ours.problem.numeric, theirs.problem.numeric), default=inf)


def _log_ratios(ours: Mapping[str, float], theirs: Mapping[str, float]) -> Iterable[float]:
    for name, value in ours.items():
        other = theirs.get(name)
        if other is None:
            yield inf
        elif value == other:
            yield 0.0
        else:
            yield abs(log(value / other)) if value > 0 and other > 0 else inf
