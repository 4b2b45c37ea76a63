"""The regret tree: one readable tree over a few choices, taught by better models, sized by cross-validation."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from msgspec import structs

from tunewise.formats.dataset import DataSet, Flags, Floats, Numbers
from tunewise.learn.columns import expand, frame, needed
from tunewise.learn.growing import Grown, Limits
from tunewise.learn.leaves import Evidence, nodes_of
from tunewise.learn.options import Training
from tunewise.learn.regret import charged
from tunewise.learn.split import fold_of, parts_of
from tunewise.learn.study import KINDS, Kind, Study, study
from tunewise.learn.teacher import Teaching, teaching_for
from tunewise.learn.validate import spread
from tunewise.models import Card, Columns, Derived, Leaf, Model, Split, Tree

_SIZES = (1, 2, 4, 8)  # that are tried besides the largest
_MOST_PROBLEMS = 2000  # to learn from; more add seconds and hardly any knowledge


@dataclass(frozen=True)
class Shape:
    """A kind of columns, a number of leaves, and what trees of that shape lost on the problems that were held out."""

    kind: Kind
    leaves: int
    lost: Floats  # log regret of every problem


class TreeLearner:
    """Grows a tree on regret, and keeps it as small as cross-validation allows."""

    name = "tree"

    def fit(self, data: DataSet, options: Training) -> Model:
        """Return a model whose body is one tree; its card has the scores of the problems that were held out."""
        known = sampled(data, options.seed)
        weights = weights_of(known, options)
        teaching = teaching_for(known)
        shape = choose_shape(known, weights, options, teaching)
        whole = study(known, weights, options, teaching)
        grown = whole.tree(shape.kind, _limits(options)).cut(shape.leaves, whole.tolerance)
        return _model(known, whole, grown, shape, options)


def sampled(data: DataSet, seed: int) -> DataSet:
    """Return at most so many problems as a tree needs."""
    if len(data) <= _MOST_PROBLEMS:
        return data
    chosen = np.random.default_rng(seed).choice(len(data), _MOST_PROBLEMS, replace=False)
    return data.take(np.sort(chosen))


def weights_of(data: DataSet, options: Training) -> Floats:
    """Return how much every problem counts: as the options say, one on average."""
    if options.weights is None:
        return np.ones(len(data))
    weights = np.asarray(options.weights(data), dtype=np.float64)
    scaled: Floats = weights / weights.mean()
    return scaled


def choose_shape(data: DataSet, weights: Floats, options: Training, teaching: Teaching) -> Shape:
    """Return the smallest shape, plainer columns first, that is surely within tolerance of the largest.

    Held-out regrets of a few dozen problems are noisy, and the least of many noisy numbers is a bad guide. So the
    largest shape is the rule, and a smaller one is taken where it loses no more, problem by problem, beyond doubt.
    """
    *smaller, largest = held_out(data, weights, options, teaching)
    for shape in smaller:
        more = shape.lost - largest.lost
        doubt = 2 * float(np.std(more) / np.sqrt(len(more)))
        if np.average(more, weights=weights) + doubt <= options.tolerance:
            return shape
    return largest


def held_out(data: DataSet, weights: Floats, options: Training, teaching: Teaching) -> list[Shape]:
    """Return all shapes, smallest first, with what they lose on every problem when it is held out."""
    sizes = [size for size in _SIZES if size < options.max_leaves] + [options.max_leaves]
    lost = {(kind, size): np.zeros(len(data)) for size in sizes for kind in KINDS}
    if parts_of(data) < 2:
        return [Shape("plain", 1, charged(data).min(axis=1))]
    count = min(options.folds, parts_of(data))
    fold = fold_of(data, count, options.seed)
    costs = charged(data)
    for number in range(count):
        out = fold == number
        for shape, firsts in _answers(data, weights, out, options, sizes, teaching):
            lost[shape][out] = costs[out][np.arange(out.sum()), firsts]
    return [Shape(kind, size, losses) for (kind, size), losses in lost.items()]


def _answers(
    data: DataSet, weights: Floats, out: Flags, options: Training, sizes: list[int], teaching: Teaching
) -> list[tuple[tuple[Kind, int], Numbers]]:
    """Return what trees of all shapes, grown without some problems, choose for these."""
    learned = study(data.take(~out), weights[~out], options, teaching)
    asked = frame(data.take(out), options.margin)
    answers = []
    for kind in KINDS:
        grown = learned.tree(kind, _limits(options))
        table, firsts = expand(asked, learned.derived(kind)), learned.portfolio[grown.first_choices()]
        ends = (grown.cut(size, learned.tolerance).places(table) for size in sizes)
        answers += [((kind, size), firsts[places]) for size, places in zip(sizes, ends, strict=True)]
    return answers


def _limits(options: Training) -> Limits:
    return Limits(options.max_depth, options.max_leaves)


def _model(data: DataSet, learned: Study, grown: Grown, shape: Shape, options: Training) -> Model:
    configs = [data.configs[number] for number in learned.portfolio]
    default = None if data.default is None else int(np.searchsorted(learned.portfolio, data.default))
    table = expand(frame(data, options.margin), learned.derived(shape.kind))
    default_lost = None if data.default is None else charged(data)[:, data.default]
    evidence = Evidence(grown.places(table), shape.lost, default_lost)

    def is_unsafe(choice: int, problems: Numbers) -> bool:
        return options.unsafe is not None and options.unsafe(configs[choice], data.take(problems))

    nodes = nodes_of(grown, evidence, default, is_unsafe)
    is_named = default is None or len(configs) <= max(options.portfolio, len(options.always_included))
    named = [choice for choice in range(len(configs)) if is_named or choice != default]
    columns, tree = _tidy(learned, shape.kind, Tree(nodes), named, options.ranking)
    fallback = {} if is_named or default is None else dict(configs[default])
    answers = np.array([bool(Tree(nodes).leaf(row).ranking) for row in table.tolist()])
    fallback_lost = charged(data).max(axis=1) if default_lost is None else default_lost
    lost = np.where(answers, shape.lost, fallback_lost)
    return Model(
        card=Card(decision=data.decision, learner="tree", scores=_scores(data, lost), fallback=fallback),
        choices=tuple(dict(configs[choice]) for choice in named),
        default=default if is_named else None,
        columns=columns,
        body=tree,
    )


def _scores(data: DataSet, lost: Floats) -> dict[str, float]:
    if parts_of(data) < 2:  # nothing was held out, so nothing is known of how it does on other problems
        return {}
    found = spread(lost)
    return {"regret": found.geomean, "p95": found.p95, "problems": float(len(data))}


def _tidy(learned: Study, kind: Kind, tree: Tree, named: Sequence[int], ranking: int | None) -> tuple[Columns, Tree]:
    """Return the columns a tree asks about and the tree with their numbers, and its rankings as they may be."""
    used = [node.column for node in tree.nodes if isinstance(node, Split)]
    derived = [_about(one, named) for one in learned.derived(kind)]
    columns, numbers = needed(learned.problems.inputs, (), derived, used)
    nodes = tuple(
        _renumbered(node, numbers) if isinstance(node, Split) else _naming(node, named, ranking) for node in tree.nodes
    )
    return columns, Tree(nodes)


def _about(derived: Derived, named: Sequence[int]) -> Derived:
    """Return a column whose choice goes by its number among those that are named; the default may be none of them."""
    if not isinstance(derived.about, int):
        return derived
    return structs.replace(derived, about=named.index(derived.about) if derived.about in named else "default")


def _renumbered(node: Split, numbers: dict[int, int]) -> Split:
    return Split(numbers[node.column], node.low, node.high, node.threshold, node.words)


def _naming(leaf: Leaf, named: Sequence[int], most: int | None) -> Leaf:
    """Return a leaf that ranks the named choices, and abstains where a default that is none of them does best."""
    abstains = not leaf.ranking or leaf.ranking[0] not in named
    ranking = () if abstains else tuple(named.index(choice) for choice in leaf.ranking if choice in named)[:most]
    return Leaf(ranking, leaf.support, leaf.regret, leaf.default_regret)
