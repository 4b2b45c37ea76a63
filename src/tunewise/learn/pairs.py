"""Measurements as a table of (problem, config) pairs: what a regression learns from, and what its ranking costs."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from tunewise.errors import InvalidData
from tunewise.formats.dataset import TIMED, DataSet, Flags, Floats, Numbers, Rows
from tunewise.learn.columns import frame
from tunewise.learn.options import Training
from tunewise.learn.regret import FAILED, quick_s, with_times
from tunewise.models import Input, Number, Word

_REACH = 3  # margins: how tiles fit is known farther out than where a size alone would be trusted
_LARGEST_TILE = 256  # what is larger is kept in a cache, not run through at once: its last piece may well be a part
_EMPHASIS = 2.0  # a config twice as slow as the best counts a quarter: only the order of the fast ones is ever used


@dataclass(frozen=True, eq=False)
class Pairs:
    """A row for every problem and config that met, ordered by problem: the inputs of both, and what became of it."""

    problem_inputs: tuple[Input, ...]
    config_inputs: tuple[Input, ...]
    values: Floats  # a row a pair, a column an input
    whole: tuple[bool, ...]  # which inputs hold whole numbers only
    problem: Numbers  # counted through from 0
    config: Numbers
    cost: Floats  # log of time / best time of the problem, by lower quartiles
    regret: Floats  # the same by the times that answers are judged by
    weight: Floats
    share: Floats  # how much the row's problem counts: one, unless the options say otherwise
    log_best: Floats  # log of the seconds of the best config of the problem, by lower quartiles
    ran: Flags  # which rows have a time

    def __len__(self) -> int:
        return len(self.problem)

    @property
    def inputs(self) -> tuple[Input, ...]:
        """The columns of `values`."""
        return (*self.problem_inputs, *self.config_inputs)

    @property
    def sizes(self) -> Numbers:
        """How many rows every problem has."""
        return np.bincount(self.problem).astype(np.int64)

    @property
    def target(self) -> Floats:
        """What to learn: the log of the time over the typical time of the fast configs of the same problem."""
        centred: Floats = self.cost - self._typical[self.problem]
        return centred

    @property
    def level(self) -> Floats:
        """What the target is relative to: the log of the typical seconds of the fast configs, one a problem."""
        level: Floats = self._typical + self.log_best[self.first]
        return level

    @property
    def first(self) -> Numbers:
        """The first row of every problem."""
        sizes = self.sizes
        return np.cumsum(sizes) - sizes

    @property
    def _typical(self) -> Floats:
        sums = np.bincount(self.problem, weights=self.weight * self.cost)
        typical: Floats = sums / np.bincount(self.problem, weights=self.weight)
        return typical

    def take(self, problems: Flags) -> "Pairs":
        """Return the rows of the problems that are flagged, which are counted anew."""
        kept = self.of(problems[self.problem])
        return replace(kept, problem=(np.cumsum(problems) - 1)[kept.problem])

    def of(self, rows: Flags) -> "Pairs":
        """Return the rows that are flagged; problems keep their numbers."""
        return replace(
            self,
            values=self.values[rows],
            problem=self.problem[rows],
            config=self.config[rows],
            cost=self.cost[rows],
            regret=self.regret[rows],
            weight=self.weight[rows],
            share=self.share[rows],
            log_best=self.log_best[rows],
            ran=self.ran[rows],
        )

    def sampled(self, rows: int, seed: int) -> "Pairs":
        """Return about so many rows, of whole problems drawn at random; at least one problem."""
        if len(self) <= rows:
            return self
        sizes = self.sizes
        order = np.random.default_rng(seed).permutation(len(sizes))
        chosen = np.zeros(len(sizes), dtype=np.bool_)
        chosen[order[np.cumsum(sizes[order]) <= rows]] = True
        chosen[order[0]] = True
        return self.take(chosen)


def pairs(data: DataSet, options: Training, most_rows: int, seconds: Callable[[Rows], Floats] = quick_s) -> Pairs:
    """Return the table of a data set, of as many whole problems as have about `most_rows` rows together.

    `seconds` says what a row's time is to whoever learns from it; lower quartiles unless something else is given.
    What failed is there as twice as slow as the slowest, so that it is avoided; what was never tried is not there.
    Raises InvalidData where nothing ran, or the configs have no parameter that a regression can look at.
    """
    known = with_times(_thinned(data, options.seed, most_rows))
    problems = frame(known, reach(options))
    config_inputs, settings = settings_of(known)
    order = np.argsort(known.rows.problem, kind="stable")
    rows = known.rows.take(order)
    best_s, cost = _costs(rows, seconds(rows))
    share = _weights(known, options)[rows.problem]
    weight = np.exp(-_EMPHASIS * cost) * share
    weight[rows.status != TIMED] = weight.mean()
    return Pairs(
        problems.inputs,
        config_inputs,
        np.concatenate([problems.values[rows.problem], settings[rows.config]], axis=1),
        (*problems.whole, *((column == np.round(column)).all() for column in settings.T)),
        rows.problem,
        rows.config,
        cost,
        _costs(rows, rows.time_s)[1],
        weight,
        share,
        np.log(best_s)[rows.problem],
        rows.status == TIMED,
    )


def reach(options: Training) -> float:
    """Return how many times beyond the sizes seen it is known how tiles fit."""
    return options.margin**_REACH


def crossed(problems: Floats, settings: Floats) -> Floats:
    """Return the inputs of every problem with every config, a row a pair, ordered by problem."""
    return np.concatenate(
        [np.repeat(problems, len(settings), axis=0), np.tile(settings, (len(problems), 1))],
        axis=1,
    )


def contenders(table: Pairs, limit: int, always: list[int]) -> Numbers:
    """Return the numbers of at most `limit` configs that may win, the best on the whole first; `always` are in.

    A config earns one point on a problem that it wins, and half a point where it is 19 % slower.
    """
    points = np.bincount(table.config, weights=np.exp(-4.0 * table.cost))
    order = [int(n) for n in np.argsort(-points, kind="stable") if points[n] > 0.5]
    others = [number for number in order if number not in always]
    chosen = {*always, *others[: max(limit - len(always), 0 if always else 1)]}
    ranked = [number for number in order if number in chosen]
    return np.array([*ranked, *(number for number in always if number not in ranked)], dtype=np.int64)


def top_costs(table: Pairs, costs: Floats, guesses: Floats, k: int) -> Floats:
    """Return for every problem what the best of the `k` rows whose guess is least costs."""
    order = np.lexsort((guesses, table.problem))
    sizes = table.sizes
    place = np.arange(len(order)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    cost = np.where(place < k, costs[order], np.inf)
    least: Floats = np.minimum.reduceat(cost, np.cumsum(sizes) - sizes)
    return least


def settings_of(data: DataSet) -> tuple[tuple[Input, ...], Floats]:
    """Return the parameters that tell configs apart, and their values, a row a config; raises InvalidData without."""
    names = dict.fromkeys(name for config in data.configs for name in config)
    found = [_setting(name, [config.get(name) for config in data.configs]) for name in names]
    told = [one for one in found if one is not None]
    if len(data.configs) == 1:
        raise InvalidData(f"{data.decision}: there is one config only, and nothing to rank; give data of others too")
    if not told:
        trouble = f"the {len(data.configs)} configs have no number or word to tell them apart"
        raise InvalidData(f"{data.decision}: {trouble}; use the learner tree")
    return tuple(column for column, _ in told), np.array([values for _, values in told]).T


def tiles_of(data: DataSet, configs: Numbers) -> tuple[float, ...]:
    """Return the whole numbers that some configs have as parameters and that a size may be a multiple of, ascending."""
    values = [value for number in configs for value in data.configs[number].values()]
    tiles = [float(value) for value in values if isinstance(value, int | float) and 2 < value <= _LARGEST_TILE]
    return tuple(sorted({tile for tile in tiles if tile.is_integer()}))


def _thinned(data: DataSet, seed: int, most_rows: int) -> DataSet:
    share = most_rows / max(len(data.rows), 1)
    if share >= 1:
        return data
    count = max(int(len(data) * share), 1)
    return data.take(np.sort(np.random.default_rng(seed).choice(len(data), count, replace=False)))


def _costs(rows: Rows, time_s: Floats) -> tuple[Floats, Floats]:
    """Return the best time of every problem, and the log of time / best time of every row."""
    time = np.where(rows.status == TIMED, time_s, np.nan)
    best = np.full(int(rows.problem[-1]) + 1, np.inf)
    np.fmin.at(best, rows.problem, time)
    cost = np.log(time) - np.log(best)[rows.problem]
    charged: Floats = np.where(np.isnan(cost), np.nanmax(cost) + FAILED, cost)
    return best, charged


def _weights(data: DataSet, options: Training) -> Floats:
    if options.weights is None:
        return np.ones(len(data))
    weights = np.asarray(options.weights(data), dtype=np.float64)
    scaled: Floats = weights / weights.mean()
    return scaled


def _setting(name: str, values: list[object]) -> tuple[Input, list[float]] | None:
    if len({(type(value), value) for value in values}) < 2:
        return None
    if all(isinstance(value, str) for value in values):
        words = tuple(dict.fromkeys(str(value) for value in values))
        return Word(name, words), [float(words.index(str(value))) for value in values]
    if not all(isinstance(value, int | float) for value in values):
        return None
    numbers = [float(value) for value in values]  # type: ignore[arg-type]
    return Number(name, min(numbers), max(numbers)), numbers
