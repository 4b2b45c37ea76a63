"""What users hold in their hands: a decision, which remembers what was found out about it."""

import functools
import inspect
import sys
import threading
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from operator import itemgetter
from types import MappingProxyType
from typing import Any, overload

from tunewise import settings
from tunewise.decision import (
    CHOICE,
    Answer,
    Args,
    Config,
    Declaration,
    Environment,
    Feature,
    Problem,
    Space,
    Subject,
    environment,
)
from tunewise.decision.source import fingerprint
from tunewise.errors import (
    EnvironmentWarning,
    FailedInputs,
    InvalidConfig,
    InvalidDecision,
    InvalidProblem,
    MeasureWarning,
    MissingPart,
)
from tunewise.session import agreeing, context, determinism, functions, journal, registry, shelf, signs, traced
from tunewise.session.implementation import Implementation
from tunewise.session.ladder import Explanation, Pin, Question, climb, explain, unlike
from tunewise.session.misses import Misses
from tunewise.session.tune import Tuning
from tunewise.settings import MEASURING, Mode, parse_mode
from tunewise.store import are_near, renew_in_children

_MAX_HOT = 100_000  # answers kept at hand; beyond that, beginning anew costs less than choosing
_DETERMINISTIC = "deterministic"  # where answers are looked up while PyTorch is to be deterministic
_WARM = ("table", "promoted", "learned")  # rungs whose answers are kept at hand: they change with what is loaded
_frame: Callable[[], context.Frame | None] = context.FRAME.get
_now: Callable[[], object] = context.FRAME.get  # the same, for a comparison with a mode that only None can pass


@dataclass(slots=True, eq=False)
class _Hot:
    """Answers at hand. Replaced as a whole, so that no thread and no signal finds a part of it of before."""

    width: int  # how many features there are
    pick: Callable[[Mapping[str, Any]], Any]  # their values
    answers: dict[Any, Answer]  # by these values
    names: frozenset[str]


_NOTHING_HOT = _Hot(-1, tuple, {}, frozenset({""}))  # no problem has that many features, nor that name


class _Own:
    """What a decision gathers while it lives: answers at hand, pins, misses and its implementation."""

    def __init__(self) -> None:
        self.hot = _NOTHING_HOT
        self.framed: dict[tuple[Any, Problem], Answer] = {}  # the same inside `with mode(...)` blocks
        self.pins: list[Pin] = []
        self.misses = Misses()
        self.bound: Implementation | None = None
        self.facts: Mapping[str, Any] | None = None
        self.environment: Environment | None = None
        self.complete: set[tuple[object, ...]] = set()  # tuned as asked, as far as this process knows; see `calling`
        self.stopped: dict[tuple[object, ...], Answer] = {}  # somebody did not want to wait for more than this
        self.asked: set[tuple[object, ...]] = set()  # of the background
        self.has_warned = False
        self.epoch = 0  # how often everything was forgotten: an answer looked up before that is not kept after it
        self.lock = threading.RLock()
        renew_in_children(self)

    def renew(self) -> None:
        """Begin a forked child with a lock of its own; what the background does for its parent, it does for it only."""
        self.lock, self.asked = threading.RLock(), set()


@dataclass(frozen=True, eq=False)
class Decision(Declaration):
    """A named choice that remembers. Declare it once, give it an `implementation`, and ask, tune or explain it."""

    mode: Mode | None = field(default=None, kw_only=True)
    switch: Callable[[], context.Frame | None] | None = field(default=None, kw_only=True)  # of a library: see Autotuner

    _own: _Own = field(init=False, repr=False, default_factory=_Own)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.mode is not None:
            parse_mode(self.mode)
        object.__setattr__(self, "default", MappingProxyType(dict(self.default)))
        registry.register(self)
        context.remember_to_forget(self)

    @overload
    def implementation(self, function: Callable[..., Any]) -> Implementation: ...
    @overload
    def implementation(
        self,
        *,
        build: Callable[[Config], object] | None = None,
        load: Callable[[Config], object] | None = None,
        facts: Callable[[], Mapping[str, Any]] | None = None,
        writes: Sequence[int] = (),
    ) -> Callable[[Callable[..., Any]], Implementation]: ...
    def implementation(
        self,
        function: Callable[..., Any] | None = None,
        *,
        build: Callable[[Config], object] | None = None,
        load: Callable[[Config], object] | None = None,
        facts: Callable[[], Mapping[str, Any]] | None = None,
        writes: Sequence[int] = (),
    ) -> Any:
        """Decorate the function that does the work: the problem as arguments, the config as keywords.

        `build` compiles a config ahead of time, in parallel with others; `load` loads what was built into the process
        that will run it. `facts` adds versions and hashes that must match, and `writes` gives the places of arguments
        the function writes its result into.
        """
        if function is None:
            return functools.partial(self._bind, build=build, load=load, facts=facts, writes=tuple(writes))
        return self._bind(function, build=build, load=load, facts=facts, writes=tuple(writes))

    def decide(self, features: Mapping[str, Any], *, mode: Mode | None = None) -> Answer:
        """Return the answer for a problem given by its features. Never measures."""
        # The hot path: a question asked before, in no `with mode(...)` block and with no mode given, is one look-up.
        hot = self._own.hot
        try:
            if _now() is mode and len(features) == hot.width and not determinism.flag():
                return hot.answers[hot.pick(features)]
        except (KeyError, TypeError):
            pass
        return self._look_up(features, mode)

    def explain(self, features: Mapping[str, Any], *, mode: Mode | None = None) -> Explanation:
        """Return the answer with what every rung of the ladder said. Counts as no question: a miss is not recorded."""
        problem, chosen = self.problem(features), self.mode_in_force(mode)
        return explain(self._question(problem), chosen)

    def tune(self, features: Mapping[str, Any], **plan: Any) -> Tuning:
        """Tune a problem given by its features; the decision's `inputs` make the arguments. Takes what `Plan` takes."""
        made, args = self.bound(), self.make_inputs(features)
        return made._tune(args, {}, made._features(args, {}), made._planned(plan))

    def collect(self, problems: Iterable[Mapping[str, Any]], *, budget: int = 1000, **plan: Any) -> list[Tuning]:
        """Measure every config (at most `budget`) on every problem, none dropped early, for a data set.

        A problem whose inputs cannot be made is passed over with a warning, and its `Tuning` measured nothing; raises
        FailedInputs where that is so of all.
        """
        found: list[Tuning] = []
        failed: list[FailedInputs] = []
        for problem in problems:
            try:
                found.append(self.tune(problem, budget=budget, measure_all=True, **plan))
            except FailedInputs as error:
                failed.append(error)
                warnings.warn(str(error), MeasureWarning, stacklevel=2)
                found.append(Tuning(Answer(self.default, "default", "declaration", str(error))))
        if failed and len(failed) == len(found):
            raise failed[0]
        return found

    def pin(self, config: Mapping[str, Any], **when: Feature) -> None:
        """Insist on a config, for all problems or for those with the given features. The latest pin wins."""
        if not isinstance(config, Mapping):
            raise InvalidConfig(f"{self.name}: {config!r} is not a config such as {{'tile': 8}}")
        try:
            Problem(when)  # not by buckets: these want all features, and a pin may name some
        except InvalidProblem as error:
            raise InvalidProblem(f"{self.name}: {error}") from None
        whole = self.space.config({**self.default, **config})
        self._own.pins.append(Pin(MappingProxyType(whole), when))
        self.forget()

    @property
    def pins(self) -> tuple[Pin, ...]:
        """The configs somebody insists on; the latest one that applies wins."""
        return tuple(self._own.pins)

    def unpin(self) -> None:
        """Drop all pins."""
        self._own.pins.clear()
        self.forget()

    def forget(self) -> None:
        """Drop the answers kept in memory, so that the next question looks into the store again."""
        own = self._own
        with own.lock:
            own.epoch += 1
            own.hot = replace(own.hot, answers={})
            own.framed = {}
            own.environment = None
        own.misses.flush()

    def _look_again(self, features: Mapping[str, Any]) -> None:
        """Drop the answers that tuning a problem changed, and look it up at once: the next call must not wait."""
        self._tuned(features)
        self.decide(features)

    def _tuned(self, features: Mapping[str, Any]) -> None:
        """Drop the answers that a new verdict on a problem may change: of this problem, and of those it is near to."""
        own, problem = self._own, self.problem(features)
        with own.lock:
            own.epoch += 1
            own.framed = {key: answer for key, answer in own.framed.items() if key[1] != problem}
            if self.buckets:  # other values of the same bucket are this problem too
                own.hot = replace(own.hot, answers={})
            with suppress(KeyError, TypeError):
                del own.hot.answers[own.hot.pick(features)]
        own.misses.drop(problem)
        own.misses.flush(lambda other: are_near(problem, other, self.near))

    def mode_in_force(self, asked: Mode | None = None) -> Mode:
        """Return the mode that counts here: that asked for, the innermost block's, the decision's, the environment's.

        Last comes `use`. Where PyTorch is to be deterministic, all but `off` is `replay`.
        """
        chosen = parse_mode(asked) if asked is not None else self._usual_mode()
        return "replay" if chosen != "off" and determinism.is_on() else chosen

    def _usual_mode(self) -> Mode:
        frame = self.frame()
        return frame.mode if frame is not None else self.mode or settings.current().mode_of(self.name) or "use"

    def frame(self) -> context.Frame | None:
        """Return what governs this decision here: the innermost block, or the switch of its library."""
        block = _frame()
        return self.switch() if block is None and self.switch is not None else block

    def follow(self, switch: Callable[[], context.Frame | None]) -> None:
        """Let the switch of a library govern this decision from now on."""
        object.__setattr__(self, "switch", switch)
        self.forget()

    def subject(self, problem: Problem) -> Subject:
        """Return what a measurement of this problem, here and now, is about."""
        # Another thread may forget at any moment: what was read once is used from here on.
        own, here = self._own, self._own.environment
        if here is None:
            machine, facts = self.hardware(), self._facts()
            here = environment(machine, libraries=self.libraries, variables=self.variables, must=facts)
            own.environment = here
        return Subject(self.name, problem, tuple(sorted(self.policy.key.items())), here)

    def bound(self) -> Implementation:
        """Return the function that does the work; raises MissingPart if none was given."""
        if self._own.bound is None:
            raise MissingPart(
                f"{self.name} has no implementation: decorate a function with @{self.name}.implementation"
            )
        return self._own.bound

    def make_inputs(self, features: Mapping[str, Any]) -> Args:
        """Return arguments for a problem; raises MissingPart if the decision does not say how to make them."""
        problem = self.problem(features)
        if self.inputs is None:
            raise MissingPart(
                f"{self.name} has no inputs: declare inputs=lambda problem, seed: (...) to tune it by features"
            )
        with functions.making_inputs(self.name, problem):
            args = self.inputs(problem, 0)
        args = args if isinstance(args, tuple) else (args,)
        if self.features is not None:
            made = self.problem(self.features(*args))
            if made != problem:
                raise InvalidProblem(f"{self.name}: inputs for ({problem}) make arguments of the problem ({made})")
        return args

    def _bind(self, function: Callable[..., Any], **options: Any) -> Implementation:
        if not callable(function):
            raise InvalidDecision(f"{self.name}: {function!r} is not a function")
        functions.check_takes(self.name, function, self.space.names)
        bound = Implementation(self, function, **options)
        self._own.bound, self._own.facts = bound, None
        self.forget()
        return bound

    def _facts(self) -> Mapping[str, Any]:
        own, facts = self._own, self._own.facts
        if facts is None:
            version = {"version": self.version} if self.version else {}
            own.facts = facts = {**version, **(own.bound.facts() if own.bound else {})}
        return facts

    def _question(self, problem: Problem) -> Question:
        store = context.hasty_store()
        return Question(
            self,
            self.subject(problem),
            tuple(self._own.pins),
            store,
            heuristics=lambda: shelf.heuristics_for(self.name),
            experts=lambda: shelf.experts_for(self),
        )

    def _look_up(self, features: Mapping[str, Any], mode: Mode | None) -> Answer:
        if agreeing.is_new_group():  # answers of before are this process's own
            context.refresh()
        problem, chosen = self.problem(features), self.mode_in_force(mode)
        own, key = self._own, (self._where(), problem)
        seen = own.framed.get(key) or own.misses.again(key) if mode is None else None
        if seen is not None:
            return seen
        epoch, question = own.epoch, self._question(problem)
        answer = _frozen(climb(question, chosen))
        self._warn_if_elsewhere(question, answer)
        self._count(answer, question)
        if chosen in MEASURING and answer.rung not in ("pin", "memory"):  # a call may still measure
            answer = agreeing.standing(question) or answer
        elif chosen != "off":
            answer = agreeing.agreed(question, answer)
        if mode is not None:
            return answer
        with own.lock:
            if epoch != own.epoch:  # somebody has just tuned: this answer may be out of date
                return answer
            is_known = answer.rung in ("pin", "memory") or chosen == "off"
            if is_known or answer.rung in _WARM:
                self._keep_hot(features, problem, answer)
            if not is_known:  # what was learned is a miss too, counted once: its answers are as warm as memory's
                own.misses.first(key, answer, question.subject, question.store)
        return answer

    def _count(self, answer: Answer, question: Question) -> None:
        if not getattr(_frame(), "is_measured", False):
            signs.looked_up(self.name, answer.rung, question.store)
            journal.answered(question.subject, answer)

    def _warn_if_elsewhere(self, question: Question, answer: Answer) -> None:
        own = self._own
        if answer.rung != "memory" or own.has_warned:
            return
        said = unlike(question)
        if said:
            own.has_warned = True
            warnings.warn(
                f"{self.name}: the answer was {said}; tune again if that matters", EnvironmentWarning, stacklevel=5
            )

    def _where(self) -> object:
        """Return what an answer depends on besides the problem; None outside all blocks, where answers are hot."""
        return (_DETERMINISTIC, _frame()) if determinism.is_on() else _frame()

    def _keep_hot(self, features: Mapping[str, Any], problem: Problem, answer: Answer) -> None:
        own, where = self._own, self._where()
        if where is not None:
            if len(own.framed) >= _MAX_HOT:
                own.framed = {}
            own.framed[where, problem] = answer
            return
        if set(problem) != own.hot.names:
            # One set of names at a time: values alone are the key.
            pick: Callable[[Mapping[str, Any]], Any] = itemgetter(*problem) if problem else tuple
            own.hot = _Hot(len(problem), pick, {}, frozenset(problem))
        if len(own.hot.answers) >= _MAX_HOT:
            own.hot = replace(own.hot, answers={})
        with suppress(TypeError):  # values that cannot be hashed, such as arrays of one number, are looked up again
            own.hot.answers[own.hot.pick(features if self.buckets else problem)] = answer


traced.instead_of(Decision.decide, traced.decide)


def choice(
    name: str,
    ways: Mapping[str, Callable[..., Any]],
    *,
    default: str,
    features: Callable[..., Mapping[str, Any]] | None = None,
    **facts: Any,
) -> Implementation:
    """Return a function that does the same thing in one of several ways, whichever is known to be best here."""
    if not isinstance(ways, Mapping) or not ways or not all(callable(way) for way in ways.values()):
        raise InvalidDecision(f"{name}: choices must map names to functions, such as {{'direct': f, 'fft': g}}")
    space = Space({CHOICE: list(ways)})
    decision = Decision(name, space=space, default={CHOICE: default}, features=features, **facts)

    def run(*args: Any, choice: str, **kwargs: Any) -> Any:
        return ways[choice](*args, **kwargs)

    run.__name__ = run.__qualname__ = name
    run.__module__ = sys._getframe(1).f_globals.get("__name__", run.__module__)
    run.ways = tuple(ways.values())  # type: ignore[attr-defined]
    with suppress(TypeError, ValueError):  # of some functions that are not written in Python nothing is known
        shown = [inspect.signature(way) for way in ways.values()]
        # Where they differ, a keyword has no place that would be right for all.
        if all(functions.takes(one) == functions.takes(shown[0]) for one in shown):
            run.__signature__ = inspect.signature(ways[default])  # type: ignore[attr-defined]
    return decision.implementation(facts=lambda: {"source": fingerprint(tuple(ways.values()))})(run)


def _frozen(answer: Answer) -> Answer:
    config = MappingProxyType(dict(answer.config))
    return Answer(config, answer.rung, answer.source, answer.reason, answer.confidence, answer.time_s)
