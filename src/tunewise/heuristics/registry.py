"""The expert heuristics that ship, by the backend they are for: adding one is a class and a line here."""

from collections.abc import Mapping

from tunewise.heuristics.expert import Expert

BY_BACKEND: Mapping[str, tuple[type[Expert], ...]] = {}


def experts_of(backend: str) -> tuple[Expert, ...]:
    """Return the shipped heuristics for the decisions of a backend, in the order they are asked."""
    return tuple(expert() for expert in BY_BACKEND.get(backend, ()))
