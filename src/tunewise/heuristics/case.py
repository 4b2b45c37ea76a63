"""A case: what a heuristic is asked about. It reads like the problem, and knows the device, the space and the facts."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TypeVar

from tunewise.decision import Config, Fact, Feature, Hardware, Space

F = TypeVar("F", bound=Fact)


@dataclass(frozen=True, init=False)
class Case(Mapping[str, Feature]):
    """A problem with its derived features, and all that may help a rule of thumb. Nothing in it can be changed."""

    features: Mapping[str, Feature]
    hardware: Hardware
    space: Space
    default: Config
    facts: tuple[Fact, ...] = ()

    def __init__(
        self,
        features: Mapping[str, Feature],
        hardware: Hardware,
        space: Space,
        default: Config,
        facts: tuple[Fact, ...] = (),
    ) -> None:
        object.__setattr__(self, "features", MappingProxyType(dict(features)))
        object.__setattr__(self, "hardware", hardware)
        object.__setattr__(self, "space", space)
        object.__setattr__(self, "default", MappingProxyType(dict(default)))
        object.__setattr__(self, "facts", tuple(facts))

    def __getitem__(self, name: str) -> Feature:
        return self.features[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.features)

    def __len__(self) -> int:
        return len(self.features)

    def fact(self, kind: type[F]) -> F | None:
        """Return the first fact of a kind, such as MatmulFact, or None where the decision publishes none."""
        return next((fact for fact in self.facts if isinstance(fact, kind)), None)
