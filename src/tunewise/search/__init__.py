"""Search: which config next. Pure ask/tell objects; a new strategy is one new file and one line here."""

from itertools import islice

from tunewise.decision import Space
from tunewise.errors import NotFound
from tunewise.search.annealing import SimulatedAnnealing
from tunewise.search.base import Strategy
from tunewise.search.evolution import DifferentialEvolution
from tunewise.search.genetic import Genetic
from tunewise.search.optuna import OptunaCmaEs, OptunaRandom, OptunaTpe
from tunewise.search.seeded import Seed, Seeded
from tunewise.search.simple import Exhaustive, LocalSearch, RandomSearch

STRATEGIES: tuple[type[Strategy], ...] = (
    Exhaustive,
    RandomSearch,
    LocalSearch,
    SimulatedAnnealing,
    Genetic,
    DifferentialEvolution,
    OptunaTpe,
    OptunaRandom,
    OptunaCmaEs,
)
AUTO = "auto"
WITHOUT = {f"auto without {part}": part for part in ("powers", "first", "squash", "around", "doubt", "turns", "singly")}
_FEW = 16  # configs that are listed rather than modelled, where the budget covers them

__all__ = [
    "AUTO",
    "Exhaustive",
    "LocalSearch",
    "RandomSearch",
    "STRATEGIES",
    "Seed",
    "Seeded",
    "Strategy",
    "WITHOUT",
    "make",
]


def make(name: str, space: Space, *, seed: int = 0, budget: int | None = None) -> Strategy:
    """Return the strategy called `name`; `auto` without numpy is `local`, or everything where the budget allows."""
    if name == AUTO or name in WITHOUT:
        return _auto(name, space, seed, budget)
    for strategy in STRATEGIES:
        if strategy.name == name:
            return strategy(space, seed=seed)
    known = ", ".join([AUTO, *(strategy.name for strategy in STRATEGIES)])
    raise NotFound(f"strategy {name!r} is not one of {known}")


def _auto(name: str, space: Space, seed: int, budget: int | None) -> Strategy:
    most = _FEW if budget is None else min(_FEW, budget)
    if len(list(islice(iter(space), most + 1))) <= most:
        return Exhaustive(space, seed=seed)
    try:
        from tunewise.search.auto import Auto, Parts
    except ImportError:  # the extra `tune` is not installed
        return _plain(space, seed, budget)
    return Auto(space, seed=seed, parts=Parts(**{part: False for key, part in WITHOUT.items() if key == name}))


def _plain(space: Space, seed: int, budget: int | None) -> Strategy:
    is_covered = budget is None or len(list(islice(iter(space), budget + 1))) <= budget
    return Exhaustive(space, seed=seed) if is_covered else LocalSearch(space, seed=seed)
