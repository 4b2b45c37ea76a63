"""The regression tree: one readable tree over problem and config that guesses the time of every config."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from tunewise.errors import MissingPart
from tunewise.formats.dataset import DataSet, Floats
from tunewise.learn.coding import coding
from tunewise.learn.columns import needed, worked_out
from tunewise.learn.forests import Nodes, evaluate, from_sklearn, renumbered, used
from tunewise.learn.keeping import Loss, Offer, folds_of, lost, offer, smallest, together
from tunewise.learn.options import Training
from tunewise.learn.pairs import Pairs, contenders, pairs
from tunewise.learn.ranker import Made, check_leafless, ranked_choices, scores_of
from tunewise.models import Forest, Model, Word

_MOST_ROWS, _ROWS_TO_CHOOSE = 60_000, 8_000
_LEAVES = (8, 16, 32, 64)
_COLUMNS = 24  # derived ones that the tree may choose from; it asks about few of them
_MOST_CHOICES = 64
_TIE = 1e-9  # far below any difference that was measured


class RegressionLearner:
    """Grows one tree over problem and config on centred log time, of the size that cross-validation likes best."""

    name = "regression"

    def fit(self, data: DataSet, options: Training) -> Model:
        """Return a model whose body is a forest of one tree; raises MissingPart without the extra `learn`."""
        check_leafless(self.name, options)
        table = pairs(data, options, _MOST_ROWS)
        sample = table.sampled(_ROWS_TO_CHOOSE, options.seed)
        leaves, loss = _choose(sample, options)
        offered = offer(sample, options.seed)
        forest = Forest((_grow(table, offered, leaves, options.seed),))
        columns, places = needed(table.problem_inputs, table.config_inputs, offered.derived, used(forest))
        made = Made(self.name, columns, renumbered(forest, places), scores_of(loss, options))
        return made.model(data, ranked_choices(data, table, options, _MOST_CHOICES))


def _choose(table: Pairs, options: Training) -> tuple[int, Loss | None]:
    """Return how many leaves do best, and how such trees did."""
    sizes = [leaves for leaves in _LEAVES if leaves <= 2 * options.max_leaves] or [options.max_leaves]
    losses: list[list[Loss]] = []
    for known, held_out in folds_of(table, options.seed):
        offered = offer(known, options.seed)
        trees = [_grow(known, offered, leaves, options.seed) for leaves in sizes]
        losses.append([lost(held_out, _guesses(nodes, known, held_out, offered)) for nodes in trees])
    if not losses:
        return sizes[0], None
    every = [together(folds) for folds in zip(*losses, strict=True)]
    place = smallest([(leaves, loss.mean) for leaves, loss in zip(sizes, every, strict=True)], tolerance=0.0)
    return sizes[place], every[place]


def _grow(table: Pairs, offered: Offer, leaves: int, seed: int) -> Nodes:
    columns = worked_out(table.values, offered.derived)
    words = {n: len(column.words) for n, column in enumerate(table.inputs) if isinstance(column, Word)}
    coded = coding(columns, _numbers(table, offered), words)
    grown = _regressor()(max_leaf_nodes=leaves, min_samples_leaf=min(5, len(table)), random_state=seed)
    grown.fit(coded.encode(columns), table.target, sample_weight=table.weight)
    return from_sklearn(grown.tree_, coded)


def _numbers(table: Pairs, offered: Offer) -> Sequence[int]:
    inputs = len(table.inputs)
    derived = [number for number in offered.ranked if number >= inputs][:_COLUMNS]
    return [*range(inputs), *derived]


def _guesses(nodes: Nodes, known: Pairs, asked: Pairs, offered: Offer) -> Floats:
    """Return a tree's guesses, configs that it cannot tell apart in the order of how they usually do."""
    found = evaluate(Forest((nodes,)), np.stack(worked_out(asked.values, offered.derived), axis=1))
    usual = contenders(known, _MOST_CHOICES, [])
    place = np.full(max(int(asked.config.max()), int(usual.max())) + 1, len(usual))
    place[usual] = np.arange(len(usual))
    return found + _TIE * place[asked.config]


def _regressor() -> Any:
    try:
        from sklearn.tree import DecisionTreeRegressor
    except ImportError as error:
        raise MissingPart(f"this learner needs scikit-learn ({error}): pip install 'tunewise[learn]'") from None
    return DecisionTreeRegressor
