"""Tables: rules in a JSON file that say which configs to use when; the most specific one that fits answers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from tunewise.decision import Config, Scalar, canonical
from tunewise.heuristics.base import Heuristic
from tunewise.heuristics.table_conditions import Condition, Narrowness, OneOf, narrowness

MOST = 16  # configs that a table ranks for one problem


@dataclass(frozen=True)
class Rule:
    """Configs, best first, for the problems that meet every condition; parts of configs will do.

    `time_s` is what the first of them took where somebody measured it, and `versions` what it was measured with: both
    are kept for people and for exports, and decide nothing.
    """

    when: Mapping[str, Condition]
    configs: tuple[Config, ...]
    time_s: float | None = None
    versions: Mapping[str, str] = field(default_factory=dict)

    def fits(self, features: Mapping[str, object], apart_from: str | None = None) -> bool:
        """Return whether a problem meets every condition, that of one feature apart."""
        return all(
            name in features and condition.holds(features[name])
            for name, condition in self.when.items()
            if name != apart_from
        )

    @cached_property
    def narrowness(self) -> Narrowness:
        """How specific the rule is; of several that fit, the largest answers."""
        return narrowness(self.when.values())

    def __str__(self) -> str:
        return ", ".join(f"{name}{condition}" for name, condition in self.when.items()) or "every problem"


@dataclass(frozen=True)
class Table:
    """The rules for one decision. `hardware` holds facts, such as its name, that must be equal for it to be asked.

    With `nearest`, a feature, it answers like vLLM: among the rules that fit in all else, the one whose number is
    nearest, however far that is.
    """

    decision: str
    rules: tuple[Rule, ...]
    nearest: str | None = None
    hardware: Mapping[str, Scalar] = field(default_factory=dict)
    name: str = ""
    about: str = ""
    version: str = ""

    @cached_property
    def asked(self) -> tuple[int, ...]:
        """The numbers of the rules in the order they are asked: the most specific first, else as in the file."""
        numbers = range(len(self.rules))
        return tuple(sorted(numbers, key=lambda number: self.rules[number].narrowness, reverse=True))

    def fitting(self, features: Mapping[str, object]) -> list[int]:
        """Return the numbers of the rules that may answer a problem, the first one first."""
        if self.nearest is None:
            return [number for number in self.asked if self.rules[number].fits(features)]
        value = features.get(self.nearest)
        if not isinstance(value, int | float):
            return []
        far = {n: abs(self.number(n) - value) for n, rule in enumerate(self.rules) if rule.fits(features, self.nearest)}
        return sorted(far, key=lambda number: (far[number], _widest_last(self.rules[number])))

    def rank(self, features: Mapping[str, object]) -> list[Config]:
        """Return the configs for a problem's features, best first and each once; empty where no rule fits."""
        found: dict[str, Config] = {}
        for number in self.fitting(features):
            for config in self.rules[number].configs:
                found.setdefault(canonical.encode(config), config)
            if len(found) >= MOST:
                break
        return list(found.values())[:MOST]

    def why(self, features: Mapping[str, object]) -> str:
        """Return which rule answers a problem, and how it fits."""
        number, *_ = self.fitting(features)
        if self.nearest is None:
            return f"rule {number + 1} of {len(self.rules)}: {self.rules[number]}"
        listed, asked = self.number(number), features[self.nearest]
        if listed == asked:
            return f"rule {number + 1} of {len(self.rules)} has {self.nearest}={listed}"
        return f"nearest {self.nearest}: {listed} for {self.nearest}={asked}, as vLLM does"

    def number(self, number: int) -> float:
        """Return the number that a rule of a nearest table stands for."""
        condition = self.rules[number].when[self.nearest or ""]
        exact = condition.exact if isinstance(condition, OneOf) else None
        assert isinstance(exact, int | float), "the reader lets no other rule into a nearest table"
        return exact

    @property
    def features(self) -> tuple[str, ...]:
        """The features without which no rule fits."""
        named = [set(rule.when) for rule in self.rules]
        return tuple(sorted(set.intersection(*named))) if named else ()

    def heuristic(self, file: str) -> Heuristic:
        """Return the table as the ladder asks it, under the name of its file."""
        fence = {f"hardware.{name}": value for name, value in self.hardware.items()}
        count = f"{len(self.rules)} rule{'s' if len(self.rules) != 1 else ''}"
        about = f"{self.about or self.name or 'a table'} ({count})"
        return Heuristic(file, self.decision, self.rank, fence, about, self.features, "table", self.why)


def _widest_last(rule: Rule) -> Sequence[float]:
    return [-count for count in rule.narrowness]
