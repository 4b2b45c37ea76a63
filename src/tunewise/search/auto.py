"""The default search: a model from the sixth config on, good first guesses, and memory that has to earn its trust."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from math import inf

import numpy as np
from scipy.special import ndtr
from threadpoolctl import ThreadpoolController

from tunewise.decision import Config, Places, Space, Timing, Trial, Value
from tunewise.search import grounds, pool
from tunewise.search.design import FIRST, Design
from tunewise.search.features import Array, Features, Rows
from tunewise.search.prior import Donor, portfolio
from tunewise.search.targets import targets
from tunewise.search.view import View, sample

_ELITE = 8  # of the best configs, whose surroundings are candidates
_FITTED = 200  # configs that weights are fitted to
_MODELLED = 400  # configs that a model rests on when its candidates are chosen; later ones are added
_MANY = 100  # configs known
_GROWTH, _LATER_GROWTH = 1.1, 1.2  # weights are fitted again when this much more is known; less often when much is
_FRESH = 25  # configs after which new candidates are chosen
_EARLY = 12  # configs up to which donors that lead are believed without further evidence
_STUCK = (10, 0.25)  # configs asked in vain that are many: so many, and this share of all
_PICKS = 3  # configs of donors among the first ones
_DONATED = 500  # of the donors' best configs that are always candidates


@dataclass(frozen=True, slots=True)
class Parts:
    """What the search is made of, each part to be left out for comparison."""

    powers: bool = True  # the model sees how numbers sit on the powers of two
    first: bool = True  # the first configs are powers of two
    squash: bool = True  # slow configs are told apart less
    around: bool = True  # candidates around the best, where there are too many to look at all
    doubt: bool = True  # donors are believed only as far as they explain what is measured
    turns: bool = True  # every other config is proposed without the donors
    singly: bool = True  # where it is stuck, it also looks at single values, which may stand out


class Auto:
    """Expected improvement over Gaussian processes: of scales, of single values, of what was measured elsewhere."""

    name = "auto"

    def __init__(self, space: Space, *, seed: int = 0, parts: Parts | None = None) -> None:
        self._space, self._rng, self._parts = space, np.random.default_rng(seed), parts or Parts()
        self._told: dict[Places, float] = {}  # infinite where the config failed
        self._asked: set[Places] = set()
        self._pending: dict[Places, float] = {}  # asked and not told yet, with the target that is expected
        self._donors: dict[str, Donor] = {}
        self._useful: list[Donor] = []  # that have anything to say
        self._donated: dict[Places, None] = {}  # asked because donors like them
        self._views: list[View] = []
        self._pool: pool.Pool | None = None
        self._fit_at, self._turn, self._trusts = 0, 0, False
        self._best_s, self._in_vain = inf, 0  # and how many were asked since it was found

    def ask(self, n: int) -> list[Config]:
        """Return `n` configs, each chosen as if the ones before it had come out as expected."""
        # On tables this small the threads of a BLAS are slower than one. They spin on after the work, in the way of
        # what is measured next, and round in another order: a seed would not always give the same configs.
        with self._threads.limit(limits=1):
            return [self._config(places) for places in islice(iter(self._next, None), n)]

    def tell(self, trials: Sequence[Trial], *, origin: str = "") -> None:
        """Learn what became of configs here; or, with an origin, what is known of them elsewhere."""
        if origin:
            self._donors.setdefault(origin, Donor(self._space.params, self._features)).hear(trials)
            self._useful = [donor for donor in self._donors.values() if donor.is_useful]
            self._views = []
            return
        best_s = self._best_s
        for trial in trials:
            if trial.config in self._space:
                self._learn(self._space.places(trial.config), trial)
        if self._best_s < best_s and not pool.is_whole(self._grounds):
            self._pool = None  # what lies around the new best should be looked at

    def _learn(self, places: Places, trial: Trial) -> None:
        time_s = trial.outcome.time_s if isinstance(trial.outcome, Timing) else inf
        was_asked = self._pending.pop(places, None) is not None
        self._in_vain = 0 if time_s < self._best_s else self._in_vain + was_asked
        self._best_s = min(self._best_s, time_s)
        self._told[places] = time_s
        self._take(places)

    def _take(self, places: Places) -> None:
        self._asked.add(places)
        if self._pool is not None:
            self._pool.take(places)

    def _next(self) -> Places | None:
        is_first = len(self._told) + len(self._pending) < FIRST + bool(self._useful)
        found = self._first() if is_first or self._best_s == inf else self._proposed()
        places, expected = found or (self._any(), self._usual)
        if places is not None:
            self._take(places)
            self._pending[places] = expected
        return places

    def _first(self) -> tuple[Places, float] | None:
        """Return a donors' favourite while these lead, in turns with our own first configs."""
        known = [*self._told, *self._pending]
        places = None
        if len(self._donated) < _PICKS and 2 * len(self._donated) <= len(known) and self._donors_lead:
            places = next((liked for liked in self._portfolio if liked not in self._asked), None)
            self._donated.update({} if places is None else {places: None})
        if places is None:
            own = self._rows([places for places in known if places not in self._donated])
            places = self._design.next(self._features.columns(own), self._asked)
        return None if places is None else (places, self._usual)

    def _any(self) -> Places | None:
        """Return any config that was not asked: nothing better is known, or the space is nearly used up."""
        drawn = self._grounds.draw(self._grounds.size or pool.MOST, self._rng)
        return next((row for row in map(tuple, drawn.tolist()) if row not in self._asked), None)

    def _proposed(self) -> tuple[Places, float] | None:
        goals = self._targets()
        if len(goals) >= self._fit_at or not self._views:
            self._fit(goals)
        if self._pool is None or len(goals) >= self._since + _FRESH:
            self._pool = self._choose(goals)
        told, view = list(self._told), self._view()
        view.look(self._pool.rows, [*(told[which] for which in self._used), *told[self._since :], *self._pending])
        seen = np.append(goals[self._used], goals[self._since :])
        mean, deviation = view.predict(np.append(seen, list(self._pending.values())))
        gain = np.where(self._pool.is_free, _expected_gain(float(seen.min()), mean, deviation), -np.inf)
        if not self._pool.is_free.any():
            return None
        chosen = int(np.argmax(gain))
        return self._pool.places[chosen], float(mean[chosen])

    def _fit(self, goals: Array) -> None:
        """Fit the weights of all models again, and see whether donors explain what was measured."""
        donors = self._useful
        if not self._views:
            self._views = [View(self._features), *([View(self._features, donors)] if donors else [])]
        chosen = sample(goals, _FITTED, self._rng)
        self._lesson = self._rows(list(self._told))[chosen], goals[chosen]
        for view in self._views:
            view.fit(*self._lesson)
        self._is_behind = True
        is_early = bool(donors) and len(goals) < _EARLY and self._donors_lead
        self._trusts = self._views[-1].cost < self._views[0].cost or is_early or not self._parts.doubt
        growth = _GROWTH if len(goals) < _MANY else _LATER_GROWTH
        self._fit_at = max(len(goals) + 1, int(len(goals) * growth))
        self._pool = None

    def _choose(self, goals: Array) -> pool.Pool:
        """Return new candidates; from here on the models rest on a sample of what is known, and on what follows."""
        for view in (*self._views, self._singly):
            view.forget()
        self._used, self._since = sample(goals, _MODELLED, self._rng), len(goals)
        if pool.is_whole(self._grounds):
            return pool.everything(self._grounds, self._asked)
        best = self._rows(list(self._told))[np.argsort(goals, kind="stable")[: _ELITE * self._parts.around]]
        donors = self._useful
        liked = self._rows([places for donor in donors for places in donor.best(_DONATED // len(donors))])
        sizes = [len(param) for param in self._space.params]
        return pool.around(self._grounds, sizes, (best, liked), self._asked, self._rng)

    def _view(self) -> View:
        """Return the model to ask now: all that have a say in turns, but while donors lead, first of all theirs."""
        is_first = len(self._told) < _EARLY or not self._parts.turns
        views = self._views[-1:] if self._trusts and is_first else self._views[: 1 + self._trusts]
        if self._is_stuck and self._parts.singly:
            views = [*views, self._singly_fitted()]
        self._turn += 1
        return views[self._turn % len(views)]

    @property
    def _is_stuck(self) -> bool:
        many, share = _STUCK
        return self._in_vain >= max(many, share * len(self._told))

    def _singly_fitted(self) -> View:
        if self._is_behind:
            self._singly.fit(*self._lesson)
            self._is_behind = False
        return self._singly

    @cached_property
    def _singly(self) -> View:
        return View(Features(self._space.params, powers=self._parts.powers, singly=True))

    def _targets(self) -> Array:
        return targets(list(self._told.values()), squash=self._parts.squash)

    @property
    def _usual(self) -> float:
        """What to expect of a config about which no model was asked."""
        return float(np.median(self._targets())) if self._told else 0.0

    @property
    def _donors_lead(self) -> bool:
        donated_s = min((self._told.get(places, inf) for places in self._donated), default=0.0)
        first = islice(self._told.items(), FIRST + 1)  # later ones are better thanks to the donors, if these are right
        return donated_s <= min((time_s for places, time_s in first if places not in self._donated), default=inf)

    @property
    def _portfolio(self) -> list[Places]:
        donors = self._useful
        best = self._grounds.legal(self._rows([places for donor in donors for places in donor.best(_DONATED)]))
        return portfolio(donors, list(map(tuple, best.tolist()))) if len(best) else []

    @cached_property
    def _threads(self) -> ThreadpoolController:
        return ThreadpoolController()

    @cached_property
    def _grounds(self) -> grounds.Grounds:
        return grounds.of(self._space)

    @cached_property
    def _features(self) -> Features:
        return Features(self._space.params, powers=self._parts.powers)

    @cached_property
    def _design(self) -> Design:
        return Design(self._grounds, self._features, self._rng, powers=self._parts.first)

    def _rows(self, places: Sequence[Places]) -> Rows:
        return np.array(places, np.int64).reshape(len(places), len(self._space.params))

    def _config(self, places: Places) -> dict[str, Value]:
        return {param.name: param.values[place] for param, place in zip(self._space.params, places, strict=True)}


def _expected_gain(best: float, mean: Array, deviation: Array) -> Array:
    """Return the logarithm of the expected improvement; where it is nought, the nearest to improving still leads."""
    steps = (best - mean) / deviation
    gain = deviation * (steps * ndtr(steps) + np.exp(-0.5 * steps * steps) / np.sqrt(2.0 * np.pi))
    return np.asarray(np.log(np.maximum(gain, 1e-300)) + 1e-9 * steps)
