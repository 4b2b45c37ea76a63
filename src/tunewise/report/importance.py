"""Which columns a model owes its regret to: the share of all regret saved that questions about each column save."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from tunewise.decision import Config, canonical
from tunewise.formats.dataset import DataSet, Flags, Floats, Numbers
from tunewise.learn.regret import charged
from tunewise.models import Model, Split, Tree

_MOST_SPLIT, _MOST_SHUFFLED = 4000, 100  # problems looked at: more change no share that people could see
_SHUFFLES = 3


@dataclass(frozen=True, slots=True)
class Share:
    """A column, and its share of the regret that is saved."""

    name: str
    share: float


@dataclass(frozen=True, slots=True)
class Importance:
    """All columns that matter, the most important first, and how that was found out."""

    method: Literal["splits", "shuffling"]
    shares: tuple[Share, ...]


def importance(model: Model, data: DataSet) -> Importance:
    """Return the share of each column: by the splits of a tree, by shuffling a feature for any other body.

    Empty where the model saves nothing, or knows none of the problems.
    """
    if isinstance(model.body, Tree):
        return Importance("splits", _shares(_by_splits(model, model.body, _some(data, _MOST_SPLIT))))
    return Importance("shuffling", _shares(_by_shuffling(model, _some(data, _MOST_SHUFFLED))))


def costs_of(choices: Iterable[Config], data: DataSet) -> Floats:
    """Return the log regret of every choice (columns) on every problem (rows); one not in the data is the worst."""
    known = {canonical.encode(dict(config)): number for number, config in enumerate(data.configs)}
    places = [known.get(canonical.encode(dict(choice)), -1) for choice in choices]
    costs = charged(data)
    found: Floats = np.column_stack([costs, costs.max(axis=1)])[:, places]
    return found


def _some(data: DataSet, most: int) -> DataSet:
    timed = np.flatnonzero(np.isfinite(data.best_s))
    if len(timed) <= most:
        return data.take(timed)
    return data.take(timed[np.linspace(0, len(timed) - 1, most).astype(np.int64)])


def _by_splits(model: Model, tree: Tree, data: DataSet) -> dict[str, float]:
    """Return what is saved at the splits of each column: the loss of one answer for all less that of one a side."""
    costs, names = costs_of(model.choices, data), model.columns.names
    saved: dict[str, float] = {}
    reached = {0: _known(model, data)}
    for number, node in enumerate(tree.nodes):
        if isinstance(node, Split):
            rows, problems = reached[number]
            is_low = _is_low(node, rows)
            reached[node.low], reached[node.high] = (rows[is_low], problems[is_low]), (rows[~is_low], problems[~is_low])
            both = _loss(costs[problems[is_low]]) + _loss(costs[problems[~is_low]])
            saved[names[node.column]] = saved.get(names[node.column], 0.0) + _loss(costs[problems]) - both
    return saved


def _known(model: Model, data: DataSet) -> tuple[Floats, Numbers]:
    """Return the rows of the problems that the model knows something of, and their numbers."""
    rows, problems = [], []
    for problem, features in enumerate(_features(data)):
        known = model.columns.known(features)
        if known is not None:
            rows.append(model.columns.row(known))
            problems.append(problem)
    width = len(model.columns.names)
    return np.array(rows, dtype=np.float64).reshape(-1, width), np.array(problems, dtype=np.int64)


def _is_low(split: Split, rows: Floats) -> Flags:
    values = rows[:, split.column]
    is_low: Flags = np.isin(values, split.words) if split.words else values <= split.threshold
    return is_low


def _loss(costs: Floats) -> float:
    """Return what the best single answer for some problems costs them all together."""
    return float(costs.sum(axis=0).min()) if len(costs) else 0.0


def _by_shuffling(model: Model, data: DataSet) -> dict[str, float]:
    """Return how much the regret rises where a feature is another problem's: the mean of a few shuffles."""
    costs, rows = costs_of(model.choices, data), list(_features(data))
    fallback = costs_of([data.configs[data.default]], data)[:, 0] if data.default is not None else costs.mean(1)
    before = _chosen_loss(model, rows, costs, fallback)
    chance = np.random.default_rng(0)
    saved: dict[str, float] = {}
    for name in data.names:
        rises = []
        for _ in range(_SHUFFLES):
            given = [rows[other][name] for other in chance.permutation(len(rows))]
            shuffled = [{**row, name: value} for row, value in zip(rows, given, strict=True)]
            rises.append(_chosen_loss(model, shuffled, costs, fallback) - before)
        saved[name] = max(0.0, float(np.mean(rises)))
    return saved


def _chosen_loss(model: Model, rows: Sequence[Mapping[str, object]], costs: Floats, fallback: Floats) -> float:
    """Return the loss of what the model chooses, and of the fallback where it abstains."""
    total = 0.0
    for number, row in enumerate(rows):
        ranking = model.rank(row)
        total += float(costs[number, ranking[0]] if ranking else fallback[number])
    return total


def _features(data: DataSet) -> Iterator[dict[str, object]]:
    for number in range(len(data)):
        yield {column.name: column.at(number) for column in data.features}


def _shares(saved: Mapping[str, float]) -> tuple[Share, ...]:
    total = sum(saved.values())
    if total <= 0:
        return ()
    ranked = sorted(saved.items(), key=lambda item: (-item[1], item[0]))
    return tuple(Share(name, value / total) for name, value in ranked if value > 0.0005 * total)
