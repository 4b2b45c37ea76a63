"""A law of what configs cost: seconds as a sum of amounts of work, each at a rate that follows from the parameters.

Trees over sizes and tiles must see every corner of a space. A law has a form that kernels have: it needs tens of
problems to know the rates, and then tells of sizes that fit their tiles like none that was measured.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations_with_replacement

import numpy as np

from tunewise.formats.dataset import Flags, Floats, Numbers
from tunewise.learn.derived import Cut, Formulas, Size, matrix, sizes_of
from tunewise.learn.pairs import Pairs
from tunewise.learn.rates import rates_of, typical
from tunewise.learn.work import Ledger, ledger
from tunewise.models import Input, Word

_MOST_SIZES = 6  # amounts of more are products of more columns than a model may have
_MOST_SQUARED = 16  # parameters whose products two by two are looked at too
_STIFF, _FREE = 2.0, 0.04  # how hard it is for rates to follow parameters, and for a rate to be another one
_LOYAL = 4.0  # how hard it is for a config's rates to be others than its parameters say
_TWOFOLD = 2.0  # deviations of products that count as one: it takes more to follow two parameters at once
_ALIKE = 1e-9  # keeps a deviation of nothing from dividing
_LEVEL = 0.3  # of a problem's rows: how hard it is for all times of a problem to be off together
_STRAY = 0.3  # of log seconds: what is farther off than this is as likely spoiled as wrong
_LEAST_SHARE = 0.01  # of the typical time, that every amount begins with
_STEPS = 100  # of the descent
_MOST_ROWS, _SEED = 20_000, 0  # to learn from; more add seconds and hardly any knowledge
_NOTHING = -1e3  # the logarithm of an amount that a row has none of
_FOLDS = 4


@dataclass(frozen=True, eq=False)
class Traits:
    """What rates follow: the logarithms of parameters and their products two by two, in deviations; words as flags."""

    inputs: tuple[Input, ...]
    means: Floats
    deviations: Floats
    twofold_means: Floats
    twofold_deviations: Floats

    def of(self, settings: Floats) -> Floats:
        """Return the traits of configs, a row each; the first is one for all."""
        single = (_single(self.inputs, settings) - self.means) / self.deviations
        twofold = (_twofold(single) - self.twofold_means) / self.twofold_deviations
        return np.concatenate([np.ones((len(single), 1)), single, twofold], axis=1)


@dataclass(frozen=True, eq=False)
class Law:
    """How long configs take: the amounts that are counted, and how their rates follow from a config's traits."""

    sizes: tuple[Size, ...]
    cuts: tuple[Cut, ...]
    counted: Ledger
    traits: Traits
    slopes: Floats  # a row an amount, a column a trait
    settings: Floats  # of the configs that it was learned from, a row each
    own: Floats  # of those configs: what their traits do not tell of the logarithms of their rates

    def log_seconds(self, values: Floats) -> Floats:
        """Return the logarithm of the seconds of every row of inputs, those of the problem first."""
        settings, place = np.unique(values[:, self._first :], axis=0, return_inverse=True)
        return _log_sum(_logs(self.counted.counted(values)) + self.log_rates(settings)[place.reshape(-1)])[0]

    def log_rates(self, settings: Floats) -> Floats:
        """Return the logarithm of the seconds that one of each amount takes, a row a config."""
        places = [self._places.get(tuple(setting), -1) for setting in settings.tolist()]
        own = np.concatenate([self.own, np.zeros((1, len(self.slopes)))])  # the last is of configs that it never saw
        rates: Floats = self.traits.of(settings) @ self.slopes.T + own[places]
        return rates

    @cached_property
    def _places(self) -> dict[tuple[float, ...], int]:
        return {tuple(setting): place for place, setting in enumerate(self.settings.tolist())}

    @property
    def _first(self) -> int:
        return self.counted.inputs - len(self.traits.inputs)


def law_of(table: Pairs, cuts: tuple[Cut, ...]) -> Law | None:
    """Return the law that explains a table best; None where problems have no sizes that work could follow."""
    if not table.ran.any():
        return None
    known = table.sampled(_MOST_ROWS, _SEED)
    known = known.of(known.ran)
    sizes = _sizes(known, cuts)
    if not sizes:
        return None
    counted = ledger(known.inputs, sizes, cuts)
    _, first, place = np.unique(known.config, return_index=True, return_inverse=True)
    settings = known.values[first, len(known.problem_inputs) :]
    traits = _traits(known.config_inputs, settings)
    amounts = counted.counted(known.values)
    is_met: Flags = np.any(amounts > 0, axis=0)  # of what no problem has, nobody knows what it costs
    counted, amounts = counted.of(is_met), amounts[:, is_met]
    weight = known.weight / known.weight.mean()
    log_seconds = known.cost + known.log_best
    least = _LEAST_SHARE / typical(amounts, log_seconds)
    start = np.log(np.maximum(rates_of(amounts, log_seconds, weight), least))
    descent = _Descent(_logs(amounts), traits.of(settings), place.reshape(-1), known, weight, start)
    slopes, own = descent.found()
    return Law(sizes, cuts, counted, traits, slopes, settings, own)


def _sizes(table: Pairs, cuts: tuple[Cut, ...]) -> tuple[Size, ...]:
    """Return the sizes that work is the product of; one is there twice where times grow with its square.

    Of a size that is cut, it is what is cut that counts: places of a window, where tiles cut these.
    """
    seen = {cut.size.of: cut.size for cut in cuts}
    sizes = tuple(seen.get(number, Size(number)) for number in sizes_of(table))
    if not 0 < len(sizes) <= _MOST_SIZES:
        return ()
    _, first = np.unique(table.problem, return_index=True)
    formulas = Formulas(table.inputs)
    numbers = [formulas.size(size) for size in sizes]
    powers = _powers(np.log(matrix(table.values[first], formulas.derived, numbers)), table.log_best[first])
    more = [size for size, power in zip(sizes, powers, strict=True) for _ in range(1, round(power))]
    return (*sizes, *more)[:_MOST_SIZES]


def _powers(logs: Floats, log_seconds: Floats) -> Floats:
    """Return with which power of every size times grow; one, where there is little to tell it by."""
    around, off = logs - logs.mean(axis=0), log_seconds - log_seconds.mean()
    missing = around.T @ (off - around.sum(axis=1))
    powers: Floats = 1 + np.linalg.solve(around.T @ around + np.eye(logs.shape[1]), missing)
    return powers


def held_out(table: Pairs, cuts: tuple[Cut, ...], seed: int) -> Floats | None:
    """Return what laws that did not see a row's problem say of it; None where there can be none."""
    problems = len(table.sizes)
    if problems < _FOLDS:
        return None
    fold: Numbers = np.random.default_rng(seed).permutation(problems) % _FOLDS
    said = np.zeros(len(table))
    for number in range(_FOLDS):
        law = law_of(table.take(fold != number), cuts)
        if law is None:
            return None
        out = fold[table.problem] == number
        said[out] = law.log_seconds(table.values[out])
    return said


def trust(table: Pairs, said: Floats) -> float:
    """Return how much of what laws said of differences between configs is true: from nothing, 0, to all of it, 1."""
    one, other = replace(table, cost=said).target, table.target
    explained, total = float((table.weight * one * other).sum()), float((table.weight * one * one).sum())
    is_told = total > _ALIKE * float(table.weight.sum())
    return min(max(explained / total, 0.0), 1.0) if is_told else 0.0


class _Descent:
    """The way downhill to the slopes, and to what is every config's own, that explain times best."""

    def __init__(
        self, logs: Floats, traits: Floats, place: Numbers, table: Pairs, weight: Floats, start: Floats
    ) -> None:
        from scipy.sparse import csr_array

        self._logs, self._traits, self._place, self._weight, self._start = logs, traits, place, weight, start
        self._problem, self._problems = table.problem, len(table.sizes)
        self._seconds = table.cost + table.log_best
        rows = np.arange(len(place))
        self._per_config = csr_array((np.ones(len(place)), (place, rows)), shape=(len(traits), len(place)))
        self._stiffness = np.full((logs.shape[1], traits.shape[1]), _STIFF)
        self._stiffness[:, 0] = _FREE
        self._level = _LEVEL * len(place) / max(self._problems, 1)

    def found(self) -> tuple[Floats, Floats]:
        """Return the slopes, an amount a row, and what is every config's own, a config a row."""
        from scipy.optimize import minimize

        begin = np.zeros(self._stiffness.shape)
        begin[:, 0] = self._start
        given = np.concatenate([begin.ravel(), np.zeros(len(self._traits) * len(begin) + self._problems)])
        options = {"maxiter": _STEPS, "maxcor": 20}
        slopes, own, _ = self._parts(minimize(self._loss, given, jac=True, method="L-BFGS-B", options=options).x)
        return slopes, own

    def _parts(self, given: Floats) -> tuple[Floats, Floats, Floats]:
        """Return slopes, what is every config's own, and the level of every problem."""
        slopes, own, levels = np.split(given, [self._stiffness.size, len(given) - self._problems])
        return slopes.reshape(self._stiffness.shape), own.reshape(len(self._traits), -1), levels

    def _loss(self, given: Floats) -> tuple[float, Floats]:
        """Return how badly times are explained, and how that changes with every number that is given.

        What is far off counts by its distance, not by its square: a neighbour may have spoiled it.
        """
        slopes, own, levels = self._parts(given)
        guessed, shares = _log_sum(self._logs + (self._traits @ slopes.T + own)[self._place])
        off = guessed + levels[self._problem] - self._seconds
        far = np.sqrt(1 + (off / _STRAY) ** 2)
        pull = self._weight * off / far
        moved = slopes.copy()
        moved[:, 0] -= self._start
        loss = float((self._weight * _STRAY**2 * (far - 1)).sum())
        loss += 0.5 * float(
            (self._stiffness * moved**2).sum() + _LOYAL * (own**2).sum() + self._level * (levels**2).sum()
        )
        by_rate = self._per_config @ (pull[:, None] * shares)
        by_slope = by_rate.T @ self._traits + self._stiffness * moved
        by_level = np.bincount(self._problem, weights=pull, minlength=self._problems) + self._level * levels
        return loss, np.concatenate([by_slope.ravel(), (by_rate + _LOYAL * own).ravel(), by_level])


def _logs(amounts: Floats) -> Floats:
    return np.log(amounts, out=np.full_like(amounts, _NOTHING), where=amounts > 0)


def _log_sum(logs: Floats) -> tuple[Floats, Floats]:
    """Return the logarithm of the sum of every row's amounts, and the share of each in it."""
    most = logs.max(axis=1, keepdims=True)
    parts = np.exp(logs - most)
    total = parts.sum(axis=1, keepdims=True)
    return (most + np.log(total))[:, 0], parts / total


def _traits(inputs: tuple[Input, ...], settings: Floats) -> Traits:
    single = _single(inputs, settings)
    means, deviations = single.mean(axis=0), single.std(axis=0) + _ALIKE
    twofold = _twofold((single - means) / deviations)
    return Traits(inputs, means, deviations, twofold.mean(axis=0), _TWOFOLD * twofold.std(axis=0) + _ALIKE)


def _single(inputs: tuple[Input, ...], settings: Floats) -> Floats:
    """Return parameters by their orders of magnitude where they have no sign, and a flag for every word."""
    columns: list[Floats] = []
    for column, values in zip(inputs, settings.T, strict=True):
        if isinstance(column, Word):
            columns += [(values == word).astype(np.float64) for word in range(len(column.words))]
        else:
            columns.append(np.log1p(values) if column.low >= 0 else values)
    return np.stack(columns, axis=1)


def _twofold(single: Floats) -> Floats:
    count = single.shape[1] if single.shape[1] <= _MOST_SQUARED else 0
    found = [single[:, one] * single[:, other] for one, other in combinations_with_replacement(range(count), 2)]
    return np.stack(found, axis=1) if found else np.zeros((len(single), 0))
