"""Seeds made usable: completed from the default, repaired where the space says how, dropped with a reason otherwise."""

from collections.abc import Iterable, Mapping
from typing import Any

from tunewise.decision import Config, Declaration


def usable(declaration: Declaration, seeds: Iterable[Any]) -> tuple[list[Config], list[tuple[Any, str]]]:
    """Return the seeds as legal configs in rank order, each once, and those that had to be dropped with the reason."""
    kept: list[Config] = []
    dropped: list[tuple[Any, str]] = []
    for seed in seeds:
        found = _legal(declaration, seed)
        if isinstance(found, str):
            dropped.append((seed, found))
        elif found not in kept:
            kept.append(found)
    return kept, dropped


def _legal(declaration: Declaration, seed: Any) -> Config | str:
    space = declaration.space
    if not isinstance(seed, Mapping):
        return f"a seed is a config such as {declaration.default}, not {type(seed).__name__}"
    whole = {**declaration.default, **seed}
    reason = space.why_not(whole)
    if reason is None:
        return space.config(whole)
    return space.repair(whole) or reason
