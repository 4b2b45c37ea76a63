"""Search: which config next. Pure ask/tell objects; a new strategy is one new file and one line here."""

from itertools import islice

from tunewise.decision import Space
from tunewise.errors import NotFound
from tunewise.search.base import Strategy
from tunewise.search.seeded import Seeded
from tunewise.search.simple import Exhaustive, LocalSearch, RandomSearch

STRATEGIES: tuple[type[Strategy], ...] = (Exhaustive, RandomSearch, LocalSearch)
AUTO = "auto"

__all__ = ["AUTO", "Exhaustive", "LocalSearch", "RandomSearch", "STRATEGIES", "Seeded", "Strategy", "make"]


def make(name: str, space: Space, *, seed: int = 0, budget: int | None = None) -> Strategy:
    """Return the strategy called `name`; `auto` tries everything where the budget allows and searches otherwise."""
    if name == AUTO:
        is_small = budget is None or len(list(islice(iter(space), budget + 1))) <= budget
        return Exhaustive(space, seed=seed) if is_small else LocalSearch(space, seed=seed)
    for strategy in STRATEGIES:
        if strategy.name == name:
            return strategy(space, seed=seed)
    known = ", ".join([AUTO, *(strategy.name for strategy in STRATEGIES)])
    raise NotFound(f"strategy {name!r} is not one of {known}")
