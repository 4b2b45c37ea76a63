"""Declarations: the facts of a decision, validated once."""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tunewise.decision.check import Args, Check
from tunewise.decision.policy import Policy
from tunewise.decision.problem import Feature, Problem
from tunewise.decision.space import Config, Space
from tunewise.errors import InvalidDecision, InvalidProblem

Derived = Callable[..., Feature]
MAX_NAME = 200


@dataclass(frozen=True, kw_only=True)
class Declaration:
    """A named choice: a space of configs, features, a default, and how inputs are made and results checked."""

    name: str
    space: Space
    default: Config
    features: Callable[..., Mapping[str, Any]] | None = None
    derived: Mapping[str, Derived] = field(default_factory=dict)
    inputs: Callable[..., Args] | None = None  # (problem, seed) -> the arguments of one call
    check: Check = field(default_factory=Check)
    policy: Policy = field(default_factory=Policy)
    backend: str = "python"
    device: str = "cpu"
    libraries: tuple[str, ...] = ()  # distributions whose version must match, such as ("numpy",)
    variables: tuple[str, ...] = ()  # environment variables whose value must match
    version: str = ""  # change it to void what was measured before
    near: float = 1.25  # a remembered problem this close in every number may answer; 1 turns that off

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name.strip() or len(self.name) > MAX_NAME:
            raise InvalidDecision(f"decision name {self.name!r} is not a word of 1 to {MAX_NAME} characters")
        if not isinstance(self.space, Space):
            raise InvalidDecision(f"{self.name}: space={self.space!r} is not a tunewise.Space")
        if not isinstance(self.default, Mapping):
            raise InvalidDecision(f"{self.name}: default={self.default!r} is not a config such as {{'tile': 8}}")
        reason = self.space.why_not(self.default)
        if reason is not None:
            raise InvalidDecision(f"{self.name}: the default is not in the space: {reason}")
        if self.near < 1:
            raise InvalidDecision(f"{self.name}: near={self.near!r} is a factor of at least 1")
        object.__setattr__(self, "default", self.space.config(self.default))

    def derive(self, problem: Problem, config: Config | None = None) -> dict[str, Feature]:
        """Return the problem's features and all derived ones that `problem` (and `config`, if given) can tell.

        Training and serving both call this, so they cannot disagree. A derived feature is a function of the problem,
        or of (problem, config).
        """
        row: dict[str, Feature] = dict(problem)
        for name, function in self.derived.items():
            wants_config = len(inspect.signature(function).parameters) > 1
            if wants_config and config is None:
                continue
            value = function(problem, config) if wants_config else function(problem)
            row[name] = Problem({name: value})[name]
        return row

    def problem(self, features: Mapping[str, Any]) -> Problem:
        """Return features as a problem, with the decision named in the error if they are not one."""
        try:
            return Problem(features)
        except InvalidProblem as error:
            raise InvalidProblem(f"{self.name}: {error}") from None
