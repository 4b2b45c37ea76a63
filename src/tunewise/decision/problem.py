"""Problems: what a decision is asked about, as named numbers and words."""

import reprlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tunewise.decision import canonical
from tunewise.errors import InvalidProblem

Feature = int | float | str

# Bounds that keep every problem, however it is escaped, inside one record of the store.
MAX_FEATURES, MAX_NAME, MAX_WORD = 128, 200, 1000


@dataclass(frozen=True, init=False, repr=False)
class Problem(Mapping[str, Feature]):
    """Named features, numeric (int, float) or categorical (str), in alphabetical order.

    Features that Python calls equal are the same feature: True and 1.0 become 1. So a problem can be looked up by its
    values alone, and equal problems have equal canonical JSON.
    """

    features: tuple[tuple[str, Feature], ...]

    def __init__(self, features: Mapping[str, Any]) -> None:
        if not isinstance(features, Mapping):
            kind = type(features).__name__
            raise InvalidProblem(
                f"features must be a dict such as {{'m': 64, 'dtype': 'float32'}}, not {kind} {reprlib.repr(features)}"
            )
        if len(features) > MAX_FEATURES:
            raise InvalidProblem(f"{len(features)} features are more than the {MAX_FEATURES} a problem may have")
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
    try:
        plain = canonical.scalar(name) if isinstance(name, str) else None
    except ValueError as error:
        raise InvalidProblem(f"feature name {name!r} {error}") from None
    if not isinstance(plain, str) or not 0 < len(plain) <= MAX_NAME:
        raise InvalidProblem(f"feature name {reprlib.repr(name)} is not a word of 1 to {MAX_NAME} characters")
    return plain


def _feature(name: object, value: Any) -> Feature:
    try:
        plain = canonical.scalar(value)
        if plain is None:
            raise ValueError("is a NoneType, not a number or a word")
    except ValueError as error:
        hint = "; use a number or a word, such as len(...) or str(...)" if "not a number" in str(error) else ""
        raise InvalidProblem(f"feature {name}={reprlib.repr(value)} {error}{hint}") from None
    if isinstance(plain, str):
        if len(plain) > MAX_WORD:
            raise InvalidProblem(
                f"feature {name}={reprlib.repr(plain)} is longer than {MAX_WORD} characters; use a digest"
            )
        return plain
    is_whole = isinstance(plain, int) or (plain.is_integer() and canonical.INT_MIN <= plain <= canonical.INT_MAX)
    return int(plain) if is_whole else plain
