"""Listening to Helion's own searches: every config they benchmark goes into our store, and so does what they chose."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from tunewise.decision.origin import run_id
from tunewise.deploy import helion_memory as memory
from tunewise.deploy.helion_guard import or_none
from tunewise.deploy.helion_problem import Call, single_call


@dataclass(frozen=True, slots=True)
class Ear:
    """Hears the searches for one call; `run` names them in the store."""

    call: Call
    run: str = field(default_factory=run_id)

    def hear(self, search: Any, results: Any) -> None:
        """Remember results, as what a search proposed."""
        who = type(search).__name__
        or_none("results are not remembered", lambda: memory.record(self.call, results, [who] * len(results), self.run))

    def conclude(self, search: Any, config: Any) -> None:
        """Remember the config that a search chose."""
        who = type(search).__name__
        or_none("the choice is not remembered", lambda: memory.keep(self.call, config, who, self.run))

    def attach(self, search: Any) -> Any:
        """Listen to one search from now on, and return it."""
        inner = search.benchmark_batch

        def heard(*args: Any, **options: Any) -> Any:
            results = inner(*args, **options)
            self.hear(search, results)
            return results

        search.benchmark_batch = heard
        return search


@contextmanager
def listening() -> Iterator[None]:
    """Listen to every search of Helion's in this process while a block runs, whatever search and cache they use."""
    from helion.autotuner import metrics
    from helion.autotuner.base_search import BaseSearch

    inner = BaseSearch.benchmark_batch
    heard_last: list[tuple[Any, Ear]] = []

    def heard(search: Any, *args: Any, **options: Any) -> Any:
        results = inner(search, *args, **options)
        if not getattr(search, "records_itself", False) and "benchmark_batch" not in vars(search):
            _hear(search, results, heard_last)
        return results

    def chosen(figures: Any) -> None:
        config = getattr(figures, "selected_config", None)
        if heard_last and config is not None:
            search, ear = heard_last.pop()
            or_none("the choice is not remembered", lambda: ear.conclude(search, _config(config)))

    BaseSearch.benchmark_batch = heard
    metrics.register_post_autotune_hook(chosen)
    try:
        yield
    finally:
        BaseSearch.benchmark_batch = inner
        metrics.remove_post_autotune_hook(chosen)


def _hear(search: Any, results: Any, heard_last: list[tuple[Any, Ear]]) -> None:
    if not heard_last or heard_last[-1][0] is not search:
        understood = memory.unless_off
        call = or_none("the call is not understood", lambda: understood(single_call(search.kernel, search.args)))
        heard_last[:] = [] if call is None else [(search, Ear(call))]
    if heard_last:
        heard_last[-1][1].hear(search, results)


def _config(values: dict[str, Any]) -> Any:
    import helion

    return helion.Config(**values)
