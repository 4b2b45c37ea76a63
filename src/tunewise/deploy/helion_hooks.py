"""The classes that Helion calls: our search, our cache and our heuristic, each made when Helion is there.

None of them raises for trouble of ours: what cannot be answered is Helion's to tune, with a line in the log.
"""

import functools
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from math import inf
from types import SimpleNamespace
from typing import Any

from tunewise import system
from tunewise.deploy import helion_memory as memory
from tunewise.deploy.helion_guard import or_none
from tunewise.deploy.helion_listening import Ear
from tunewise.deploy.helion_problem import Call, call_in, single_call
from tunewise.deploy.helion_search import Budget, Hunt, Seeds
from tunewise.eventlog import logger
from tunewise.session import context

NAME = "tunewise"
_EFFORTS: Mapping[str, Budget] = {"quick": Budget(40, 12), "full": Budget(200, 50)}
_MOST_JOBS = 16  # compiled at once; of more, too many are chosen without knowing how the others did
_SEEDS = 5  # configs that our heuristic proposes to a search of Helion's
_log = logger("tunewise.helion")


def call_or_none(bound: Any, args: Sequence[Any]) -> Call | None:
    """Return the call that is ours to answer; None where it is not, or tunewise is off."""
    return or_none("the call is not understood", lambda: memory.unless_off(single_call(bound, args)))


def seeds_for(call: Call, most: int = _SEEDS) -> list[Any]:
    """Return up to `most` configs to try first, as helion.Config, best guesses first; none where tunewise is off."""
    if memory.unless_off(call) is None:
        return []
    tried = [proposal.config for proposal in memory.proposals(call) if proposal.fate == "tried"]
    made: list[Any] = []
    for config in tried:
        one = call.knobs.helion(config)
        if one not in made:
            made.append(one)
    return made[:most]


@functools.cache
def search_class() -> type[Any]:
    """Return the class for `helion.autotuner.search_algorithms`."""
    from helion.autotuner.base_search import BaseSearch

    class TunewiseSearch(BaseSearch):  # type: ignore[misc]
        """Seeds first, then our strategy; every result goes into our store."""

        records_itself = True

        def __init__(self, kernel: Any, args: Sequence[Any], budget: Budget | None = None, **ignored: Any) -> None:
            super().__init__(kernel, args)
            self.budget = budget or _EFFORTS.get(str(self.settings.autotune_effort), Budget())
            self.hunt: Hunt | None = None

        def _autotune(self) -> Any:
            call = call_or_none(self.kernel, self.args)
            given = or_none("the user's seeds cannot be read", lambda: list(self._autotune_seed_configs())) or []
            theirs = list(getattr(self.config_spec, "compiler_seed_configs", ()))
            if call is None:
                first = [self.config_spec.default_config(), *given, *theirs]
                return min(self.benchmark_batch(first), key=lambda result: float(result.perf)).config
            compiled_at_once = replace(self.budget, batch=max(self.budget.batch, _jobs(self.settings)))
            their_limit = getattr(self, "_autotune_budget_exceeded", lambda: False)
            bounded = or_none("the mode's budget does not count", lambda: _in_force(compiled_at_once, their_limit))
            budget, is_over = bounded or (compiled_at_once, their_limit)
            self.hunt = Hunt(call, self.benchmark_batch, budget, seeds=Seeds(given, theirs), is_over=is_over)
            return self.hunt.go()

    return TunewiseSearch


def _jobs(settings: Any) -> int:
    """Return how many configs Helion compiles at once ahead of timing them; 1 where it does not."""
    if not getattr(settings, "autotune_precompile", None):
        return 1
    return min(_MOST_JOBS, getattr(settings, "autotune_precompile_jobs", None) or system.cores())


def _in_force(budget: Budget, is_over: Callable[[], bool]) -> tuple[Budget, Callable[[], bool]]:
    """Return how much to spend, where a `with tunewise.mode(...)` block bounds it."""
    frame = context.FRAME.get()
    if frame is None:
        return budget, is_over
    deadline = time.monotonic() + frame.seconds if frame.seconds is not None else inf
    bounded = budget if frame.budget is None else replace(budget, evaluations=frame.budget)
    return bounded, lambda: is_over() or time.monotonic() > deadline


@functools.cache
def cache_class() -> type[Any]:
    """Return the class for `helion.autotuner.cache_classes`."""
    from helion.autotuner.base_cache import AutotuneCacheBase

    class TunewiseCache(AutotuneCacheBase):  # type: ignore[misc]
        """Answers from our memory, tables and models; what it cannot answer is tuned, and remembered."""

        def __init__(self, autotuner: Any, *, autotuner_factory: Callable[[], Any] | None = None) -> None:
            super().__init__(autotuner, autotuner_factory=autotuner_factory)
            self.call = call_or_none(self.kernel, self.args)
            self.ear: Ear | None = None
            if self.call is not None and not getattr(autotuner, "records_itself", False):
                self.ear = ear = Ear(self.call)
                ear.attach(autotuner)
                if autotuner_factory is not None:  # which makes the searches where the best of several counts
                    self._autotuner_factory = lambda: ear.attach(autotuner_factory())

        def get(self) -> Any:
            call = self.call
            return None if call is None else or_none("the memory cannot be asked", lambda: _answer(call))

        def put(self, config: Any) -> None:
            if self.ear is not None:
                self.ear.conclude(self.autotuner, config)

        def _get_cache_info_message(self) -> str:
            return "tunewise remembers it: see `tunewise best` and `tunewise trials`."

        def _get_cache_key(self) -> Any:
            return SimpleNamespace(**(self.call.subject.parts if self.call is not None else {}))

        def _list_cache_entries(self) -> Sequence[tuple[str, Any]]:
            return ()

    return TunewiseCache


def _answer(call: Call) -> Any:
    found = memory.answer(call)
    if found is None:
        return None
    _log.info("%s(%s) is answered by %s: %s", call.name, call.subject.problem, found.source, found.reason)
    return call.knobs.helion(found.config)


@functools.cache
def heuristic_class(backend: str, promote: bool = False) -> type[Any]:
    """Return the class for `HEURISTICS_BY_BACKEND[backend]`; with `promote` its first seed becomes the default."""
    from helion._compiler.autotuner_heuristics.registry import AutotunerHeuristic

    def get_seed_configs(cls: Any, env: Any, device_ir: Any, *more: Any) -> list[Any]:
        return or_none("there are no seeds", lambda: seeds_for(call_in(env, device_ir))) or []

    def get_seed_config(cls: Any, env: Any, device_ir: Any, *more: Any) -> Any:
        return next(iter(cls.get_seed_configs(env, device_ir)), None)

    body = {
        "__doc__": "Proposes what our memory, tables and models know of a kernel.",
        "name": NAME,
        "backend": backend,
        "promote_seed_to_default": promote,
        "is_eligible": classmethod(lambda cls, env, device_ir, *more: True),
        "get_seed_configs": classmethod(get_seed_configs),
        "get_seed_config": classmethod(get_seed_config),
    }
    return type("TunewiseHeuristic", (AutotunerHeuristic,), body)
