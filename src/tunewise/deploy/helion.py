"""Helion: our memory, heuristics and search at its plug-in points, and what it measures in our store."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any

from tunewise.deploy.helion_guard import or_none
from tunewise.deploy.helion_hooks import NAME, cache_class, heuristic_class, search_class, seeds_for
from tunewise.deploy.helion_listening import listening
from tunewise.deploy.helion_problem import single_call
from tunewise.deploy.helion_search import Budget
from tunewise.errors import MissingPart

__all__ = ["Budget", "NAME", "autotuner", "install", "listen", "seed_configs", "uninstall"]


def install(*, heuristic: bool = True, promote: bool = False) -> None:
    """Put the cache and the search called `tunewise` into Helion's lists, and our heuristic into every backend's.

    Then `helion.kernel(autotune_cache="tunewise")` answers from our store, and `HELION_AUTOTUNER=tunewise` searches as
    we do. With `promote` the heuristic's first seed is also the default of kernels that are not tuned. A second call
    changes nothing; raises MissingPart where Helion is not installed.
    """
    autotuners = _helion().autotuner
    autotuners.cache_classes[NAME] = cache_class()
    autotuners.search_algorithms[NAME] = search_class()
    _drop_heuristics()
    if heuristic:
        by_backend = _heuristics()
        for backend in by_backend:
            by_backend[backend] = (*by_backend[backend], heuristic_class(backend, promote))


def uninstall() -> None:
    """Take everything out that `install` put into Helion's lists."""
    autotuners = _helion().autotuner
    autotuners.cache_classes.pop(NAME, None)
    autotuners.search_algorithms.pop(NAME, None)
    _drop_heuristics()


def seed_configs(kernel: Any, args: Sequence[Any], *, most: int = 5) -> list[Any]:
    """Return configs to try first for `helion.kernel(autotune_seed_configs=...)`, as helion.Config, best guesses first.

    `kernel` is what `helion.kernel` made, `args` the arguments of a call. Empty where nothing is known.
    """
    return or_none("there are no seeds", lambda: _seeds(kernel, args, most)) or []


def autotuner(
    budget: int = 100, *, patience: int | None = 25, gain: float = 1.02, seed: int = 0, cache: bool = True
) -> Callable[..., Any]:
    """Return an `autotuner_fn` for `helion.kernel`: our search with a budget of configs, behind our cache.

    It stops early once `patience` configs in a row brought no `gain` (None: never), and half as many will do while a
    config leads that memory or a heuristic proposed. `seed` is where all chance comes from. Without `cache` it searches
    although the answer is known, and measures no config that was measured before.
    """
    spent = Budget(budget, patience, gain, seed)

    def tunewise_autotuner(bound_kernel: Any, args: Sequence[Any], **options: Any) -> Any:
        def search() -> Any:
            return search_class()(bound_kernel, args, budget=spent)

        return cache_class()(search(), autotuner_factory=search) if cache else search()

    return tunewise_autotuner


def listen() -> AbstractContextManager[None]:
    """Return a context in which every search of Helion's is heard: what it measures and chooses goes into our store.

    Behind our cache that happens by itself; this is for kernels that keep their own.
    """
    _helion()
    return listening()


def _seeds(kernel: Any, args: Sequence[Any], most: int) -> list[Any]:
    given = kernel.normalize_args(*args) if hasattr(kernel, "normalize_args") else tuple(args)
    return seeds_for(single_call(kernel.bind(given), given), most)


def _helion() -> Any:
    try:
        import helion
        import helion.autotuner
    except ImportError as error:
        raise MissingPart(f"Helion is not installed ({error}): pip install 'tunewise[helion]'") from None
    return helion


def _heuristics() -> dict[str, tuple[Any, ...]]:
    try:
        from helion._compiler.autotuner_heuristics import HEURISTICS_BY_BACKEND
    except ImportError:  # a version that has no place for them
        return {}
    found: dict[str, tuple[Any, ...]] = HEURISTICS_BY_BACKEND
    return found


def _drop_heuristics() -> None:
    by_backend = _heuristics()
    for backend, classes in by_backend.items():
        by_backend[backend] = tuple(one for one in classes if getattr(one, "name", "") != NAME)
