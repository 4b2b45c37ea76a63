"""Declarations: the facts of a decision, validated once."""

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from functools import cached_property
from typing import Any

from tunewise.decision.buckets import Bucket, bucketed
from tunewise.decision.buckets import check as check_buckets
from tunewise.decision.check import Args, Check
from tunewise.decision.facts import Fact
from tunewise.decision.hardware import Hardware, detect
from tunewise.decision.policy import Policy
from tunewise.decision.problem import Feature, Problem
from tunewise.decision.space import Config, Space
from tunewise.errors import InvalidDecision, InvalidProblem

Derived = Callable[..., Feature]
MAX_NAME = 200
CHOICE = "choice"  # the one parameter of a plain list of choices


@dataclass(frozen=True, eq=False)
class Declaration:
    """A named choice: a space of configs, features, a default, and how inputs are made and results checked."""

    name: str
    _: KW_ONLY
    space: Space
    default: Config
    features: Callable[..., Mapping[str, Any]] | None = None
    derived: Mapping[str, Derived] = field(default_factory=dict)
    facts: Callable[[Problem], Fact | Sequence[Fact] | None] | None = None  # such as a MatmulFact, for rules of thumb
    inputs: Callable[..., Args] | None = None  # (problem, seed) -> the arguments of one call
    check: Check = field(default_factory=Check)
    policy: Policy = field(default_factory=Policy)
    backend: str = "python"
    device: str = "cpu"
    libraries: tuple[str, ...] = ()  # distributions whose version must match, such as ("numpy",)
    variables: tuple[str, ...] = ()  # environment variables whose value must match
    version: str = ""  # change it to void what was measured before
    buckets: Mapping[str, Bucket] = field(default_factory=dict)  # values that count as one: {"tokens": "pow2"}
    near: float = 1.25  # a remembered problem this close in every number may answer; 1 turns that off

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name.strip() or len(self.name) > MAX_NAME:
            raise InvalidDecision(f"decision name {self.name!r} is not a word of 1 to {MAX_NAME} characters")
        self._check_types()
        reason = self.space.why_not(self.default)
        if reason is not None:
            raise InvalidDecision(f"{self.name}: the default is not in the space: {reason}")
        if not isinstance(self.near, int | float) or not 1 <= self.near < float("inf"):
            raise InvalidDecision(f"{self.name}: near={self.near!r} is not a factor of at least 1")
        object.__setattr__(self, "default", self.space.config(self.default))
        object.__setattr__(self, "libraries", self._words("libraries"))
        object.__setattr__(self, "variables", self._words("variables"))
        check_buckets(self.name, self.buckets)
        object.__setattr__(self, "buckets", dict(self.buckets))
        object.__setattr__(self, "derived", dict(self.derived))

    def derive(self, problem: Problem, config: Config | None = None) -> dict[str, Feature]:
        """Return the problem's features and all derived ones that `problem` (and `config`, if given) can tell.

        Training and serving both call this, so they cannot disagree. A derived feature is a function of the problem,
        or of (problem, config). Raises InvalidProblem, with its name, where one breaks or is not a number or a word.
        """
        row: dict[str, Feature] = dict(problem)
        for name, function in self.derived.items():
            if name in problem:
                raise InvalidProblem(f"{self.name}: {name!r} is both a feature and a derived feature; rename one")
            if name in self._of_both and config is None:
                continue
            given = (problem, config) if name in self._of_both else (problem,)
            try:
                row[name] = Problem({name: function(*given)})[name]
            except InvalidProblem as error:
                raise InvalidProblem(f"{self.name}: derived {error}") from None
            except Exception as error:
                reason = f"{type(error).__name__}: {error}"
                raise InvalidProblem(f"{self.name}: derived feature {name!r} broke on {problem}: {reason}") from error
        return row

    def hardware(self) -> Hardware:
        """Return the device that the decision is about."""
        return detect(self.device)

    def facts_of(self, problem: Problem) -> tuple[Fact, ...]:
        """Return what the decision publishes of a problem; raises InvalidProblem where its function breaks."""
        if self.facts is None:
            return ()
        try:
            found = self.facts(problem)
            named = (found,) if isinstance(found, Fact) else tuple(found or ())
        except Exception as error:  # the user's function
            reason = f"{type(error).__name__}: {error}"
            raise InvalidProblem(f"{self.name}: facts broke on {problem}: {reason}") from error
        for fact in named:
            if not isinstance(fact, Fact):
                raise InvalidProblem(f"{self.name}: facts gave a {type(fact).__name__}, not a MatmulFact or the like")
        return named

    def problem(self, features: Mapping[str, Any]) -> Problem:
        """Return features as a problem, by their buckets, with the decision named in the error if they are not one."""
        try:
            is_sorted = self.buckets and isinstance(features, Mapping)
            return Problem(bucketed(features, self.buckets) if is_sorted else features)
        except InvalidProblem as error:
            raise InvalidProblem(f"{self.name}: {error}") from None

    @cached_property
    def _of_both(self) -> frozenset[str]:
        """The derived features that want the config too: a second argument that is needed, or is called `config`."""
        return frozenset(name for name, function in self.derived.items() if _wants_config(function))

    def _check_types(self) -> None:
        for name, kind in (("space", Space), ("check", Check), ("policy", Policy)):
            if not isinstance(getattr(self, name), kind):
                raise InvalidDecision(f"{self.name}: {name}={getattr(self, name)!r} is not a tunewise.{kind.__name__}")
        for name in ("backend", "device", "version"):
            if not isinstance(getattr(self, name), str):
                raise InvalidDecision(f"{self.name}: {name}={getattr(self, name)!r} is not a word")
        for name in ("features", "inputs", "facts"):
            if getattr(self, name) is not None and not callable(getattr(self, name)):
                raise InvalidDecision(f"{self.name}: {name}={getattr(self, name)!r} is not a function")
        if not isinstance(self.default, Mapping):
            raise InvalidDecision(f"{self.name}: default={self.default!r} is not a config such as {{'tile': 8}}")
        if not isinstance(self.derived, Mapping) or not all(callable(function) for function in self.derived.values()):
            raise InvalidDecision(f"{self.name}: derived={self.derived!r} does not map names to functions")

    def _words(self, field_name: str) -> tuple[str, ...]:
        words = getattr(self, field_name)
        if (
            isinstance(words, str)
            or not isinstance(words, Iterable)
            or not all(isinstance(word, str) and word for word in words)
        ):
            raise InvalidDecision(f"{self.name}: {field_name}={words!r} is not a list of names such as ['numpy']")
        return tuple(words)


def _wants_config(function: Derived) -> bool:
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):  # a builtin: it knows no config
        return False
    positional = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    return len(positional) > 1 and (positional[1].default is inspect.Parameter.empty or positional[1].name == "config")
