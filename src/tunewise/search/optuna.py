"""Optuna's samplers as strategies, for comparison: `optuna:tpe`, `optuna:random` and `optuna:cmaes`."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from math import inf
from typing import Any, ClassVar

from tunewise.decision import Config, Param, Places, Space, Trial
from tunewise.errors import MissingPart
from tunewise.search.tried import Tried

_MANY = 1_000  # values from which on a parameter is searched like a scale: Optuna lists categories


class _OptunaSearch:
    """Asks one of Optuna's samplers where each value stands in its parameter.

    Optuna knows no rules and asks twice: a suggestion that is known is answered at once, and one that is not legal is
    told as failed. After too many of them in a row the last one is moved to the nearest legal config.
    """

    name: str
    sampler: ClassVar[str]  # its class in optuna.samplers
    options: ClassVar[dict[str, Any]] = {}
    only_numbers: ClassVar[bool] = False
    TRIES = 30

    def __init__(self, space: Space, *, seed: int = 0) -> None:
        self._optuna = _imported(self.name)
        self._tried = Tried(space, seed)
        self._pending: dict[Places, Any] = {}
        self._distributions = {param.name: self._distribution(param) for param in space.params}
        with _quiet(self._optuna):
            sampler = getattr(self._optuna.samplers, self.sampler)(seed=seed, **self.options)
            self._study = self._optuna.create_study(sampler=sampler)

    def ask(self, n: int) -> list[Config]:
        """Return what Optuna suggests, legal and new; fewer than `n` only when the space is used up."""
        return self._tried.batch(n, self._suggested)

    def tell(self, trials: Sequence[Trial], *, origin: str = "") -> None:
        """Pass times on to Optuna; failures too, as failed trials."""
        if origin:
            return
        for places, time_s in self._tried.hear(trials):
            asked = self._pending.pop(places, None)
            if asked is not None:
                self._answer(asked, time_s)
            elif time_s < inf:
                self._study.add_trial(
                    self._optuna.trial.create_trial(
                        params=dict(zip(self._distributions, places, strict=True)),
                        distributions=self._distributions,
                        value=time_s,
                    )
                )

    def _suggested(self) -> Places | None:
        places: Places = ()
        for _ in range(self.TRIES):
            suggestion = self._study.ask(self._distributions)
            places = tuple(suggestion.params[name] for name in self._distributions)
            if not self._tried.is_new(places) or not self._tried.is_legal(places):
                self._answer(suggestion, self._tried.times.get(places, inf))
                continue
            self._pending[places] = suggestion
            return places
        legal = self._tried.legal(places)
        return legal if legal is not None and self._tried.is_new(legal) else None

    def _answer(self, suggestion: Any, time_s: float) -> None:
        if time_s < inf:
            self._study.tell(suggestion, time_s)
        else:
            self._study.tell(suggestion, state=self._optuna.trial.TrialState.FAIL)

    def _distribution(self, param: Param) -> Any:
        kinds, last = self._optuna.distributions, len(param) - 1
        if self.only_numbers or len(param) > _MANY:
            return kinds.IntDistribution(0, last)
        # Scales too: on recorded kernels TPE came twice as near to the optimum with categories as with numbers.
        return kinds.CategoricalDistribution(range(last + 1))


class OptunaTpe(_OptunaSearch):
    """Optuna's default: tree-structured Parzen estimators."""

    name = "optuna:tpe"
    sampler = "TPESampler"


class OptunaRandom(_OptunaSearch):
    """Optuna's random sampler: every value alike, where ours draws every legal config alike."""

    name = "optuna:random"
    sampler = "RandomSampler"


class OptunaCmaEs(_OptunaSearch):
    """Optuna's CMA-ES, which takes every parameter for a scale."""

    name = "optuna:cmaes"
    sampler = "CmaEsSampler"
    options: ClassVar[dict[str, Any]] = {"warn_independent_sampling": False}
    only_numbers = True


def _imported(name: str) -> Any:
    needed = ("optuna", "cmaes") if name == OptunaCmaEs.name else ("optuna",)
    try:
        return {part: import_module(part) for part in needed}["optuna"]
    except ImportError as error:
        way = f"pip install {' '.join(needed)}"
        raise MissingPart(f"strategy {name!r} needs {error.name or needed[0]}, which is not installed: {way}") from None


@contextmanager
def _quiet(optuna: Any) -> Iterator[None]:
    """Keep Optuna from announcing a study, without changing what the program has set."""
    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(max(before, optuna.logging.WARNING))
    try:
        yield
    finally:
        optuna.logging.set_verbosity(before)
