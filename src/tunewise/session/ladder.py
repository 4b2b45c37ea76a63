"""The ladder: pins, memory, tables, rules, models, a near match, the default; each rung answers or says why not."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from tunewise import settings
from tunewise.decision import Answer, Config, Declaration, Problem, Rung, Subject, Verdict
from tunewise.escaping import one_line
from tunewise.heuristics import Expert, Heuristic
from tunewise.session import evidence, pins, priors, shelf
from tunewise.session.learned import answered, why_nobody, why_nothing_learned
from tunewise.session.seeding import promoted
from tunewise.settings import Mode
from tunewise.store import Remembered, Store

_RUNGS: dict[Mode, tuple[Rung, ...]] = {
    "use": ("pin", "memory", "table", "promoted", "learned", "near", "default"),
    "tune": ("pin", "memory", "table", "promoted", "learned", "near", "default"),
    "collect": ("pin", "memory", "table", "promoted", "learned", "near", "default"),
    "replay": ("pin", "memory", "default"),
    "off": ("default",),
}
_SHOWN_PARTS = 6
_NEAR = (1, 64)  # near problems that are looked at: the nearest almost always has an answer
_COMPARED = 32  # others that `explain` compares a problem with, of the nearest ones and of the last ones


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
        asked = one_line(f"{self.decision}({self.problem}) -> {show(self.answer.config)} [{self.answer.rung}]")
        return f"{asked}\n{climbed}"


@dataclass(frozen=True, slots=True)
class Question:
    """Everything a rung may look at. `heuristics` gives those that may know the decision.

    `experts` gives the rules of thumb that are asked. Both are called only when needed.
    """

    declaration: Declaration
    subject: Subject
    pins: Sequence[Pin]
    store: Store
    heuristics: Callable[[], Sequence[Heuristic]] = tuple
    experts: Callable[[], Sequence[Expert]] = tuple


def climb(question: Question, mode: Mode) -> Answer:
    """Return the first answer on the ladder of a mode."""
    answers = (_ASK[rung](question) for rung in _RUNGS[mode])
    return next(answer for answer in answers if answer is not None)


def explain(question: Question, mode: Mode) -> Explanation:
    """Return the first answer on the ladder of a mode, and what every rung up to it said."""
    steps: list[Step] = []
    for rung in _RUNGS[mode]:
        answer = _ASK[rung](question)
        steps.append(Step(rung, one_line(_WHY_NOT[rung](question)) if answer is None else answer.reason))
        if answer is not None:
            return Explanation(question.subject.decision, question.subject.problem, mode, answer, tuple(steps))
    raise AssertionError("the default always answers")


def show(config: Mapping[str, object]) -> str:
    """Return a config as people write it: `tile_m=16 unroll=2`."""
    return " ".join(f"{name}={value}" for name, value in config.items())


def remembered(question: Question) -> Answer | None:
    """Return the answer of exact memory, or None if there is none."""
    verdict = in_force(question.store.verdicts(question.subject), question.declaration)
    return None if verdict is None else _answer_of(verdict, question)


def in_force(verdicts: Sequence[Verdict], declaration: Declaration) -> Verdict | None:
    """Return the verdict that answers, or None: the latest of this home that holds, or else the latest of others.

    A winner that is no longer in the space does not hold, a tie or failure of what was the default then does not, and
    neither does a verdict that its samples do not show, or of an origin that is not trusted.
    """
    for verdict in evidence.answering(verdicts):
        is_past = (verdict.ending, verdict.origin) != ("win", "own") and verdict.incumbent != declaration.default
        if verdict.winner in declaration.space and not is_past:
            return verdict
    return None


def _pinned(question: Question) -> Answer | None:
    for pin in reversed(question.pins):
        if pin.applies(question.subject.problem):
            scope = ", ".join(f"{name}={value}" for name, value in pin.when.items()) or "every problem"
            return Answer(pin.config, "pin", "pin", f"pinned for {scope}", 1.0)
    return pins.answered(question.declaration, question.subject)


def _table(question: Question) -> Answer | None:
    return answered(question.declaration, question.subject, _tables(question))


def _learned(question: Question) -> Answer | None:
    return answered(question.declaration, question.subject, _models(question))


def _tables(question: Question) -> list[Heuristic]:
    return [heuristic for heuristic in question.heuristics() if heuristic.kind == "table"]


def _models(question: Question) -> list[Heuristic]:
    return [one for one in question.heuristics() if one.kind != "table" and not one.only_seeds]


def _promoted(question: Question) -> Answer | None:
    for name, said in _of_promoted(question):
        if not isinstance(said, str):
            return Answer(said, "promoted", name, "a rule of thumb that replaces the default here")
    return None


def _of_promoted(question: Question) -> Iterator[tuple[str, Config | str]]:
    """Yield what each promoted rule of thumb says: a config, or why it has none."""
    for expert in question.experts():
        if shelf.is_promoted(expert):
            hardware = question.declaration.hardware()
            yield shelf.name_of(expert), promoted(question.declaration, question.subject, hardware, expert)


def _near(question: Question) -> Answer | None:
    ratio, declaration = question.declaration.near, question.declaration
    if ratio <= 1:
        return None
    for limit in _NEAR:
        found = question.store.near(question.subject, ratio, limit)
        for one in found:
            verdict = in_force(one.verdicts, declaration)
            if verdict is not None and verdict.ending != "failed":
                reason = f"tuned for the near problem {one.subject.problem}"
                config = declaration.space.config(verdict.winner)
                return Answer(config, "near", f"run {verdict.run[:8]}", reason, 0.5, verdict.time_s)
        if len(found) < limit:
            return None
    return None


def _default(question: Question) -> Answer:
    return Answer(question.declaration.default, "default", "declaration", "the declared default")


_ASK: dict[Rung, Callable[[Question], Answer | None]] = {
    "pin": _pinned,
    "memory": remembered,
    "table": _table,
    "promoted": _promoted,
    "learned": _learned,
    "near": _near,
    "default": _default,
}


def _answer_of(verdict: Verdict, question: Question) -> Answer:
    config = question.declaration.space.config(verdict.winner)
    reasons = {
        "win": f"beat the default {verdict.gain:.2f}x in {len(verdict.challenger_s)} pairs (p={verdict.p_value:.2g})",
        "tie": "tie: nothing beat the default beyond the noise",
        "failed": f"the last tuning run failed: {verdict.detail}",
    }
    confidence = {"win": 1 - verdict.p_value, "tie": 0.99, "failed": None}[verdict.ending]
    why = reasons[verdict.ending]
    if verdict.ending == "win" and not verdict.challenger_s:
        why, confidence = f"the fastest that ran; {verdict.detail}", None
    by = f"proposed by {verdict.source}" if verdict.source in {p.by for p in verdict.proposals} else ""
    reason = "; ".join(filter(None, [why, by, f"{verdict.evaluations} configs tried", unlike(question)]))
    return Answer(config, "memory", f"run {verdict.run[:8]}", reason, confidence, verdict.time_s)


def unlike(question: Question) -> str:
    """Return in words which parts that only warn were different when the answer was measured; empty if none was."""
    then = question.store.recorded(question.subject)
    if then is None or then.environment.warn == question.subject.environment.warn:
        return ""
    now, before = question.subject.environment.warn, then.environment.warn
    parts = {name: (now.get(name), before.get(name)) for name in now if now.get(name) != before.get(name)}
    return f"measured with another {_parts(parts)}" if parts else ""


def _why_unknown(question: Question) -> str:
    verdicts = question.store.verdicts(question.subject)
    if verdicts:
        reason = evidence.why_not(verdicts[-1], settings.current().trust)
        if reason is not None:
            return f"the remembered verdict does not answer: {reason}{_begun_with(question)}"
        return "the remembered winner is no longer in the space, or what was tuned against is no longer the default"
    trials = question.store.trials(question.subject)
    if trials:
        tried = len({show(trial.config) for trial in trials})
        return f"a tuning run is unfinished after {tried} configs; tune again to resume it"
    kin = question.store.kin(question.subject, _COMPARED)
    others = [one.subject for one in kin if one.verdicts]
    if not others:
        return f"nothing is remembered of {question.subject.decision}"
    closest = min(others, key=lambda other: len(question.subject.difference(other)))
    parts = question.subject.difference(closest)
    which = "remembered" if len(kin) < _COMPARED else "that were compared, the nearest and the last remembered,"
    return f"the closest of {len(others)} {which} differs in {_parts(parts)}{_begun_with(question, kin)}"


def _begun_with(question: Question, kin: Sequence[Remembered] | None = None) -> str:
    """Return in words what a tuning run would try first because it won elsewhere; empty if there is nothing."""
    declaration = question.declaration
    for winner in priors.winners(question.store, question.subject, declaration.default, known=kin):
        if winner.config in declaration.space:
            return f"; tuning would first try {show(winner.config)}, from {winner.by}"
    return ""


def _why_not_learned(question: Question) -> str:
    models = _models(question)
    if not models:
        return why_nothing_learned(question.declaration)
    return why_nobody(question.declaration, question.subject, models)


def _why_not_promoted(question: Question) -> str:
    return "; ".join(f"{name} {said}" for name, said in _of_promoted(question)) or "no rule of thumb is promoted"


def _why_not_near(question: Question) -> str:
    limit = question.declaration.near
    return f"no remembered problem is within {limit:g}x of every number" if limit > 1 else "near matches are off"


_WHY_NOT: dict[Rung, Callable[[Question], str]] = {
    "pin": lambda question: (
        pins.why_none(question.declaration, question.subject) or "nothing is pinned for this problem"
    ),
    "memory": _why_unknown,
    "table": lambda question: why_nobody(question.declaration, question.subject, _tables(question)) or "no table",
    "promoted": _why_not_promoted,
    "learned": _why_not_learned,
    "near": _why_not_near,
    "default": lambda question: "",
}


def _parts(parts: Mapping[str, tuple[object, object]]) -> str:
    shown = [
        f"{shelf.shown(name)} (now {shelf.shown(repr(ours))}, then {shelf.shown(repr(theirs))})"
        for name, (ours, theirs) in list(parts.items())[:_SHOWN_PARTS]
    ]
    more = len(parts) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more > 0 else "")
