"""A heuristic at hand: what it is called, which decision and hardware it is for, and how it ranks configs."""

import reprlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, get_args

from tunewise.decision import Config, Scalar
from tunewise.errors import InvalidModel
from tunewise.heuristics import versions

Kind = Literal["expert", "table", "learned"]
Ranking = Callable[[Mapping[str, object]], Sequence[Config]]


@dataclass(frozen=True, eq=False)
class Heuristic:
    """Ranks the configs of one decision for a problem. `name` is what reports call it; `about` says what it is made of.

    `fence` holds facts of the hardware, such as hardware.name, that must be equal for it to be asked, and `requires`
    ranges of versions of libraries. `features` names those it cannot do without, where it tells. `kind` says which rung
    of the ladder it stands on, and `reason` why it answers a problem as it does, where that differs from problem to
    problem.
    """

    name: str
    decision: str
    ranking: Ranking = field(repr=False)
    fence: Mapping[str, Scalar] = field(default_factory=dict)
    about: str = ""
    features: tuple[str, ...] = ()
    kind: Kind = "learned"
    reason: Callable[[Mapping[str, object]], str] | None = field(default=None, repr=False)
    fingerprint: str = ""  # of what it was read from, where it was: another model of one name has another one
    only_seeds: bool = False  # it proposes what to try first when tuning, and answers nothing
    requires: Mapping[str, str] = field(default_factory=dict)  # versions of libraries, such as {"torch": ">=2.6,<2.14"}

    def __post_init__(self) -> None:
        for fact in ("name", "decision"):
            value = getattr(self, fact)
            if not isinstance(value, str) or not value.strip():
                raise InvalidModel(f"a heuristic's {fact}={reprlib.repr(value)} is not a word, such as 'gemm'")
        if not callable(self.ranking):
            raise InvalidModel(f"heuristic {self.name!r}: its ranking is not a function of a problem's features")
        if self.kind not in get_args(Kind):
            raise InvalidModel(f"heuristic {self.name!r}: kind={self.kind!r} is not one of {', '.join(get_args(Kind))}")
        if not isinstance(self.fence, Mapping):
            raise InvalidModel(f"heuristic {self.name!r}: fence={self.fence!r} does not map facts to values")
        for library, wanted in self.requires.items():
            versions.check_range(library, wanted)

    def rank(self, features: Mapping[str, object]) -> list[Config]:
        """Return configs for a problem's features, best first; empty where the heuristic abstains."""
        return list(self.ranking(features))

    def choose(self, features: Mapping[str, object]) -> Config | None:
        """Return the best config for a problem's features, or None where the heuristic abstains."""
        return next(iter(self.ranking(features)), None)

    def why(self, features: Mapping[str, object]) -> str:
        """Return why it answers a problem as it does, as the reason of an answer."""
        return self.reason(features) if self.reason is not None else self.about or "a loaded heuristic"

    def why_silent(self, features: Mapping[str, object]) -> str:
        """Return why it ranks nothing for a problem, as the end of a sentence that begins with its name."""
        missing = [name for name in self.features if name not in features]
        if missing:
            known = ", ".join(sorted(features)) or "those given"
            return f"needs the feature {', '.join(missing)}, which is not among {known}"
        if self.kind != "learned":
            return "has nothing for this problem"
        return "abstains: the problem is beyond what it was learned from, or the default is as good there"

    def why_elsewhere(self, facts: Mapping[str, object]) -> str | None:
        """Return which fact of the hardware, or which library, keeps it out here; None where its fence is open."""
        for name, wanted in self.fence.items():
            if facts.get(name) != wanted:
                return f"is for {name}={wanted!r}, and here it is {facts.get(name)!r}"
        unfit = (versions.why_unfit(library, wanted) for library, wanted in self.requires.items())
        return next((reason for reason in unfit if reason is not None), None)
