"""Problems: what a decision is asked about, as named numbers and words."""

import math
import operator
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tunewise.errors import InvalidProblem

Feature = int | float | str


@dataclass(frozen=True, init=False, repr=False)
class Problem(Mapping[str, Feature]):
    """Named features, numeric (int, float) or categorical (str), in alphabetical order.

    Features that Python calls equal are the same feature: True and 1.0 become 1. So a problem can be looked up by its
    values alone.
    """

    features: tuple[tuple[str, Feature], ...]

    def __init__(self, features: Mapping[str, Any]) -> None:
        if not isinstance(features, Mapping):
            kind = type(features).__name__
            raise InvalidProblem(
                f"features must be a dict such as {{'m': 64, 'dtype': 'float32'}}, not {kind} {_short(features)}"
            )
        named = ((_name(name), _feature(name, value)) for name, value in features.items())
        object.__setattr__(self, "features", tuple(sorted(named)))

    def __getitem__(self, name: str) -> Feature:
        for known, value in self.features:
            if known == name:
                return value
        raise KeyError(name)

    def __iter__(self) -> Iterator[str]:
        return (name for name, _ in self.features)

    def __len__(self) -> int:
        return len(self.features)

    def __repr__(self) -> str:
        return f"Problem({self})"

    def __str__(self) -> str:
        return ", ".join(f"{name}={value}" for name, value in self.features)

    @property
    def numeric(self) -> dict[str, int | float]:
        """The features that are numbers."""
        return {name: value for name, value in self.features if not isinstance(value, str)}

    @property
    def categorical(self) -> dict[str, str]:
        """The features that are words."""
        return {name: value for name, value in self.features if isinstance(value, str)}


def _name(name: object) -> str:
    if not isinstance(name, str) or not name:
        raise InvalidProblem(f"feature name {name!r} is not a word")
    return name


def _feature(name: object, value: Any) -> Feature:
    if isinstance(value, str):
        return value
    if isinstance(value, float) or (
        hasattr(value, "dtype") and hasattr(value, "item") and getattr(value, "ndim", 1) == 0
    ):
        value = value.item() if hasattr(value, "item") else value
        if isinstance(value, str):
            return value
        if isinstance(value, float):
            if not math.isfinite(value):
                raise InvalidProblem(f"feature {name}={value!r} is not a finite number")
            return int(value) if value.is_integer() and abs(value) < 2**53 else float(value)
    try:
        return int(operator.index(value))
    except TypeError:
        pass
    kind = type(value).__name__
    raise InvalidProblem(
        f"feature {name}={_short(value)} is a {kind}: use a number or a word, such as str(...) or len(...)"
    )


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
