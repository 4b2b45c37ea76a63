"""The ranker: a small forest that guesses how long a config takes on a problem, and so ranks the configs."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from msgspec import structs

from tunewise.errors import InvalidData, InvalidModel
from tunewise.formats.dataset import DataSet, Floats
from tunewise.learn.boosting import Objective, Plan, guesses
from tunewise.learn.columns import needed
from tunewise.learn.derived import Formulas, matrix
from tunewise.learn.forests import from_lightgbm, renumbered, used
from tunewise.learn.keeping import Loss, Offer, boosted_on, folds_of, lost, offer, smallest, together
from tunewise.learn.lawful import lawful
from tunewise.learn.options import Training
from tunewise.learn.pairs import Pairs, contenders, pairs, settings_of
from tunewise.learn.portfolio import cover
from tunewise.learn.regret import expected
from tunewise.learn.teacher import always_in, by_parameters, named_in, teaching_for
from tunewise.learn.tree import sampled, weights_of
from tunewise.models import Body, Card, Columns, Forest, Model

_MOST_ROWS = 200_000  # to learn from, and fewer to choose columns by: more add minutes and hardly any knowledge
_ROWS_TO_CHOOSE = 16_000


@dataclass(frozen=True)
class Budget:
    """What may be spent: choices to rank, and what cross-validation chooses from."""

    choices: int
    columns: tuple[int, ...]  # how many of the columns that help most; inputs alone are tried always
    trees: tuple[int, ...]  # of each booster
    boosters: int
    finish: int = 0  # trees, see Plan
    objectives: tuple[Objective, ...] = ("regression",)


@dataclass(frozen=True)
class Way:
    """One way to boost; without a number of columns it looks at the inputs alone.

    By law, boosted trees learn what the law of how work makes time misses.
    """

    plan: Plan
    columns: int | None
    by_law: bool = False

    @property
    def size(self) -> int:
        """How much there is to evaluate, in no unit."""
        return (self.plan.trees + self.plan.finish) * self.plan.boosters + (self.columns or 0)

    def numbers(self, table: Pairs, offered: Offer) -> list[int]:
        """Return the columns to look at."""
        return list(range(len(table.inputs))) if self.columns is None else offered.best(self.columns)


class RankerLearner:
    """Ranks the configs that may win by a small forest, quick enough to be asked in plain Python."""

    name = "ranker"
    budget = Budget(choices=64, columns=(200,), trees=(120,), boosters=2, finish=60)

    def fit(self, data: DataSet, options: Training) -> Model:
        """Return a model whose body is a forest over problem and config; raises MissingPart without LightGBM."""
        check_leafless(self.name, options)
        table = pairs(data, options, _MOST_ROWS)
        sample = table.sampled(_ROWS_TO_CHOOSE, options.seed)
        way, loss = choose_way(sample, self.budget, options, may_be_lawful=teaching_for(data) is by_parameters)
        chosen = ranked_choices(data, table, options, self.budget.choices)
        settings = settings_of(data)[1][chosen]
        columns, forest = grown(table, offer(sample, options.seed), way, options.seed, settings)
        return Made(self.name, columns, forest, scores_of(loss, options)).model(data, chosen)


@dataclass(frozen=True)
class Made:
    """What a learner has made of a table, before it is known which choices are ranked."""

    learner: str
    columns: Columns
    body: Body
    scores: dict[str, float]

    def model(self, data: DataSet, chosen: list[int]) -> Model:
        """Return the model that ranks some configs, by their numbers: of equal guesses the first of them first."""
        return Model(
            card=Card(decision=data.decision, learner=self.learner, scores=self.scores),
            choices=tuple(dict(data.configs[number]) for number in chosen),  # type: ignore[arg-type]
            default=chosen.index(data.default) if data.default in chosen else None,
            columns=self.columns,
            body=self.body,
        )


def ranked_choices(data: DataSet, table: Pairs, options: Training, most: int) -> list[int]:
    """Return the numbers of the configs that a model ranks: those that may win, the best on the whole first.

    Where the options say how many are ranked, it is so many of them that together lose least. The default is one only
    if it earns a place: a program falls back on it anyway.
    """
    most = most if options.contenders is None else options.contenders
    chosen = contenders(table, most, always_in(data, options))
    if options.ranking is not None:
        some = sampled(data, options.seed)
        always = np.flatnonzero(np.isin(chosen, named_in(data, options))).tolist()
        places = cover(expected(some)[:, chosen], weights_of(some, options), options.ranking, always)
        chosen = chosen[places]
    return [int(number) for number in chosen]


def scores_of(loss: Loss | None, options: Training) -> dict[str, float]:
    """Return what a card says of a loss: nothing if all configs were ranked for it, and fewer will be."""
    return {} if loss is None or options.ranking is not None else loss.scores


def check_leafless(name: str, options: Training) -> None:
    """Raise InvalidData for options that only a tree with choices in its leaves can follow."""
    if options.unsafe is not None:
        way = "use the learner tree, or leave it out"
        raise InvalidData(f"unsafe is about the leaves of a tree, and the learner {name} has none; {way}")


def choose_way(table: Pairs, budget: Budget, options: Training, *, may_be_lawful: bool) -> tuple[Way, Loss | None]:
    """Return the smallest way whose loss on held-out problems is within tolerance of the best, and that loss."""
    ways = _ways(budget, may_be_lawful=may_be_lawful)
    losses: list[list[Loss]] = []
    for known, held_out in folds_of(table, options.seed):
        offered = offer(known, options.seed)
        losses.append(_losses(known, held_out, offered, ways, options.seed))
    if not losses:
        return ways[0], None
    every = [together(folds) for folds in zip(*losses, strict=True)]
    place = smallest([(way.size, loss.mean) for way, loss in zip(ways, every, strict=True)], options.tolerance)
    return ways[place], every[place]


def grown(table: Pairs, offered: Offer, way: Way, seed: int, settings: Floats) -> tuple[Columns, Forest]:
    """Return a forest learned from the whole table, and the columns that it asks about.

    `settings` has the parameters of the configs that it is to rank, a row each. Where sizes are so large that the time
    of work has no bounds, a law is done without.
    """
    numbers = way.numbers(table, offered)
    known = lawful(table, seed) if way.by_law else None
    boosters = boosted_on(table, offered.derived, numbers, way.plan, seed, None if known is None else known.told)
    formulas = Formulas(table.inputs)
    for one in offered.derived:
        formulas.keep(one)
    every = Columns(table.problem_inputs, table.config_inputs, offered.derived)
    whole = from_lightgbm(boosters, numbers, every, way.plan.scale)
    work = None if known is None else known.work(formulas, settings)
    whole = structs.replace(whole, is_order=way.plan.objective == "lambdarank", work=work)
    columns, places = needed(table.problem_inputs, table.config_inputs, formulas.derived, used(whole))
    forest = renumbered(whole, places)
    if work is not None and not _is_sound(forest, columns, len(settings)):
        return grown(table, offered, replace(way, by_law=False), seed, settings)
    return columns, forest


def _is_sound(forest: Forest, columns: Columns, choices: int) -> bool:
    try:
        columns.check()
        forest.check(columns, choices)
    except InvalidModel:
        return False
    return True


def _ways(budget: Budget, *, may_be_lawful: bool) -> list[Way]:
    usual = Plan(boosters=budget.boosters, finish=budget.finish)
    plans = [replace(usual, objective=objective) for objective in budget.objectives]
    ways = [
        Way(replace(plan, trees=trees), columns)
        for plan in plans
        for columns in (None, *budget.columns)
        for trees in sorted(budget.trees)
    ]
    timed = [way for way in ways if way.columns is not None and way.plan.objective == "regression"]
    return [*ways, *(replace(way, by_law=True) for way in timed if may_be_lawful)]


def _differ_in_trees(one: Way, other: Way) -> bool:
    return (one.columns, one.plan.objective, one.by_law) == (other.columns, other.plan.objective, other.by_law)


def _losses(known: Pairs, held_out: Pairs, offered: Offer, ways: Sequence[Way], seed: int) -> list[Loss]:
    """Return what every way loses; ways that differ in their number of trees are grown once."""
    losses: dict[Way, Loss] = {}
    law = lawful(known, seed) if any(way.by_law for way in ways) else None
    for way in reversed(ways):  # the one of most trees comes first
        if way in losses:
            continue
        numbers = way.numbers(known, offered)
        told, tells = (law.told, law.tells(held_out.values)) if law is not None and way.by_law else (None, 0.0)
        boosters = boosted_on(known, offered.derived, numbers, way.plan, seed, told)
        asked = matrix(held_out.values, offered.derived, numbers)
        for other in ways:
            if other == way or (not way.plan.finish and _differ_in_trees(way, other)):
                losses[other] = lost(held_out, tells + guesses(boosters, asked, way.plan, other.plan.trees))
    return [losses[way] for way in ways]
