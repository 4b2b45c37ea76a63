"""What an AutoHeuristic is asked about: features, operations that add to them, and the device."""

import functools
import math
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from tunewise.decision import Feature, Hardware, Problem, detect, environment
from tunewise.errors import InvalidProblem


@dataclass(frozen=True, slots=True)
class AHFeature:
    """A named feature: a number, or one of some words where it is categorical."""

    name: str
    value: Any
    is_categorical: bool = False

    @property
    def plain(self) -> Feature:
        """The value as models and logs know it: a word if it is categorical, otherwise a number."""
        plain = Problem({self.name: str(self.value) if self.is_categorical else self.value})[self.name]
        if isinstance(plain, str) and not self.is_categorical:
            raise InvalidProblem(f"feature {self.name}={plain!r} is a word: add it with is_categorical=True")
        return plain


@dataclass(frozen=True, slots=True)
class AHOperation:
    """A feature worked out from the others, whenever it is needed: it is never stored.

    `func` gets what a log keeps of the others, so that it says the same in training and in use: a word that spells a
    switch, a number or None is that.
    """

    name: str
    func: Callable[[Any], Any]
    is_categorical: bool = False

    def apply_operation(self, data: Any) -> None:
        """Add the feature to a mapping of features."""
        data[self.name] = self.func(data)


class AHContext:
    """The features of one problem, in the order they were added."""

    def __init__(self) -> None:
        self.features: list[AHFeature] = []
        self.context_dict: dict[str, Any] = {}

    def add_feature(self, name: str, value: Any, is_categorical: bool = False) -> None:
        """Add a feature. Raises InvalidProblem for a name that is there already."""
        if any(feature.name == name for feature in self.features):
            raise InvalidProblem(f"feature {name!r} is added twice; rename one")
        self.features.append(AHFeature(name, value, is_categorical))
        self.context_dict[name] = value

    def get_value(self, name: str) -> Any:
        """Return the value of a feature."""
        return self.context_dict[name]

    def get_numerical_and_categorical_features(self) -> tuple[list[str], list[str]]:
        """Return the names of the features that are numbers, and of those that are words."""
        numbers = [feature.name for feature in self.features if not feature.is_categorical]
        return numbers, [feature.name for feature in self.features if feature.is_categorical]

    def apply_operations(self, operations: Iterable[AHOperation]) -> None:
        """Add what the operations work out to the values, one after another."""
        for operation in operations:
            operation.apply_operation(self.context_dict)

    def plain(self, operations: Iterable[AHOperation] = ()) -> dict[str, Feature]:
        """Return all features as models know them, with those that operations add; an operation sees earlier ones."""
        known = {feature.name: feature.plain for feature in self.features}
        return {**known, **_worked_out(operations, known)}


@dataclass(frozen=True, slots=True)
class AHMetadata:
    """The device, the choices and the name; `device_capa` and `shared_memory` are None where the device has none."""

    shared_memory: int | None
    device_capa: tuple[int, ...] | None
    choices: tuple[str, ...]
    name: str
    hardware: Mapping[str, int | str] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Return what the first line of a log says of the device and the decision."""
        capability = None if self.device_capa is None else list(self.device_capa)
        said = {"shared_memory": self.shared_memory, "device_capa": capability, "name": self.name}
        return {**said, "hardware": dict(self.hardware)}


def metadata(device: str, choices: Iterable[str], name: str) -> AHMetadata:
    """Return what is known of a device: `cpu`, or a torch device such as `cuda:0` if torch is imported already."""
    found = detect(device)
    facts: dict[str, int | str] = {
        "hardware.kind": found.kind,
        "hardware.name": found.name,
        "hardware.capability": found.capability,
    }
    return AHMetadata(_shared_memory(found, device), _capability(found), tuple(choices), name, facts)


@functools.cache
def facts_of_device(device: str) -> dict[str, object]:
    """Return all facts of a device and its surroundings by name: what fences are compared with."""
    found = detect(device)
    parts = {part.name: part.value for part in environment(found).parts}
    return {**parts, "hardware.shared_memory": _shared_memory(found, device)}


def add_features(operations: Iterable[AHOperation]) -> dict[str, Callable[[Mapping[str, Any]], Feature]]:
    """Return operations as the `add_features` of a training run, so that training and use cannot disagree."""
    every = tuple(operations)
    return {one.name: functools.partial(_last_of, every[: place + 1]) for place, one in enumerate(every)}


def _last_of(operations: Sequence[AHOperation], data: Mapping[str, Feature]) -> Feature:
    return _worked_out(operations, data)[operations[-1].name]


def _worked_out(operations: Iterable[AHOperation], known: Mapping[str, Feature]) -> dict[str, Feature]:
    """Return what operations add to features, as models know it; an operation sees what earlier ones returned."""
    data: dict[str, Any] = {name: _spelled(value) for name, value in known.items()}
    added = {}
    for operation in operations:
        operation.apply_operation(data)
        added[operation.name] = AHFeature(operation.name, data[operation.name], operation.is_categorical).plain
    return added


def _spelled(value: Feature) -> Any:
    """Return what a word spells; a log has only the spelling of what a program may give as a category."""
    if not isinstance(value, str):
        return value
    for kind in (int, float):
        with suppress(ValueError):
            number = kind(value)
            if str(number) == value and math.isfinite(number):
                return number
    return {"True": True, "False": False, "None": None}.get(value, value)


def _capability(hardware: Hardware) -> tuple[int, ...] | None:
    parts = hardware.capability.split(".")
    return tuple(map(int, parts)) if all(part.isdecimal() for part in parts) else None


def _shared_memory(hardware: Hardware, device: str) -> int | None:
    if hardware.kind != "cuda":
        return None
    properties = sys.modules["torch"].cuda.get_device_properties(device)
    return getattr(properties, "shared_memory_per_block_optin", None)
