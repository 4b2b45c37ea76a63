"""A strong, unreadable model of what every choice costs: it answers for problems that nobody measured."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tunewise.errors import InvalidData
from tunewise.formats.dataset import DataSet, Floats, Numbers
from tunewise.learn.boosting import Plan, guesses, is_installed
from tunewise.learn.columns import Frame, derivations, frame, smooth
from tunewise.learn.derived import matrix
from tunewise.learn.hooks import place_of
from tunewise.learn.keeping import boosted_on, offer
from tunewise.learn.law import Law
from tunewise.learn.lawful import lawful
from tunewise.learn.options import Training
from tunewise.learn.pairs import contenders, crossed, pairs, reach, settings_of
from tunewise.learn.portfolio import cover
from tunewise.learn.process import Process, process_of
from tunewise.learn.regret import WORST, expected, fastest_s

_TREES = 200
_FOLDS = 4  # to see how much of a guess should be whose
_COVERING, _PROMISING = 32, 64  # choices that a teacher looks at
_COLUMNS = 200  # of problem and config together, those that help most
_MOST_PAIRS, _PAIRS_TO_CHOOSE = 40_000, 5_000  # to learn from, and to choose columns by: more add seconds
_PAIRS_AT_ONCE = 12_800  # that are in memory together, with all their columns


@dataclass(frozen=True)
class Teacher:
    """The choices that a teacher looks at, in ascending order, and how it guesses their log regret for any problems.

    `guess` is asked about some of the choices, by their places; what it says is relative to the best of these.
    """

    choices: Numbers
    guess: Callable[[Frame, Numbers], Floats]
    answers: int  # how many problems it answers in a few seconds, for all choices
    answers_for_few: int  # and for a handful of these
    margin: float  # so many times beyond the sizes seen it is trusted
    law: Law | None = None  # what it knows of how work makes time


Teaching = Callable[[DataSet, Floats, Training], Teacher]


def by_choice(data: DataSet, weights: Floats, options: Training) -> Teacher:
    """Return a teacher that learned how the cost of every choice goes with the problem.

    Extremely random trees know sharp borders and what is left over of sizes; a process knows what changes smoothly.
    Each counts for as much as it should by what it says of problems that it did not see.
    """
    costs, known = expected(data), frame(data, options.margin)
    choices = cover(costs, weights, max(_COVERING, options.portfolio), always_in(data, options))
    derived, targets = derivations(known, "remainders"), _centred(np.minimum(costs[:, choices], WORST))
    columns = smooth(known, derived)
    trees = _trees(columns, targets, weights, _TREES, options.seed)
    process = process_of(smooth(known, ()), targets, weights, options.seed)
    share = 0.0 if process is None else _share(process, columns, targets, weights, options.seed)

    def guess(problems: Frame, places: Numbers) -> Floats:
        guessed = trees(smooth(problems, derived))
        if process is not None and share:
            guessed = guessed + share * (process.costs(smooth(problems, ())) - guessed)
        return _regrets(guessed[:, places])

    return Teacher(choices, guess, answers=8000, answers_for_few=8000, margin=options.margin)


def _trees(columns: Floats, targets: Floats, weights: Floats, count: int, seed: int) -> Callable[[Floats], Floats]:
    """Return what so many extremely random trees expect of rows of columns: a column a choice."""
    from sklearn.ensemble import ExtraTreesRegressor

    trees = ExtraTreesRegressor(count, random_state=seed, n_jobs=1)
    trees.fit(columns, targets.ravel() if targets.shape[1] == 1 else targets, sample_weight=weights)
    return lambda rows: np.asarray(trees.predict(rows).reshape(len(rows), -1))


def _share(process: Process, columns: Floats, targets: Floats, weights: Floats, seed: int) -> float:
    """Return how much of a guess should be the process's, the rest the trees', by problems that neither saw."""
    known = process.known
    fold = np.arange(len(known)) % min(_FOLDS, len(known))  # they come in an order by chance
    said = np.zeros_like(process.left_out)
    for number in range(int(fold.max()) + 1):
        out = known[fold == number]
        seen = np.setdiff1d(np.arange(len(targets)), out)
        said[fold == number] = _trees(columns[seen], targets[seen], weights[seen], _TREES // _FOLDS, seed)(columns[out])
    apart, missing = process.left_out - said, targets[known] - said
    weight = weights[known, None]
    square = float((weight * apart**2).sum())
    return min(max(float((weight * apart * missing).sum()) / square, 0.0), 1.0) if square else 0.0


def _centred(costs: Floats) -> Floats:
    """Return costs over the mean of all choices: unlike what they are over the best, that has no bends."""
    centred: Floats = costs - costs.mean(axis=1, keepdims=True)
    return centred


def by_parameters(data: DataSet, _: Floats, options: Training) -> Teacher:
    """Return a teacher that learned how cost goes with problem and parameters together: a law, and what it misses.

    What one choice shows on one problem then tells of choices like it on problems like it. The boosters learn what a
    law leaves unexplained on problems that it did not see, or everything where there is no law. Raises MissingPart
    without LightGBM, and InvalidData where choices have no parameters.
    """
    table, plan = pairs(data, options, _MOST_PAIRS, fastest_s), Plan(trees=80, boosters=3)
    offered = offer(table.sampled(_PAIRS_TO_CHOOSE, options.seed), options.seed)
    numbers = offered.best(_COLUMNS)
    known = lawful(table, options.seed)
    boosters = boosted_on(table, offered.derived, numbers, plan, options.seed, None if known is None else known.told)
    choices = np.sort(contenders(table, max(_PROMISING, options.portfolio), always_in(data, options)))
    settings = settings_of(data)[1][choices]

    def answered(problems: Floats, few: Floats) -> Floats:
        asked = crossed(problems, few)
        guessed = guesses(boosters, matrix(asked, offered.derived, numbers), plan)
        if known is not None:
            guessed = guessed + known.tells(asked)
        return _regrets(guessed.reshape(len(problems), -1))

    def guess(problems: Frame, places: Numbers) -> Floats:
        few = settings[places]
        at_once = max(_PAIRS_AT_ONCE // len(few), 1)
        parts = range(0, len(problems), at_once)
        return np.concatenate([answered(problems.values[part : part + at_once], few) for part in parts])

    law = None if known is None else known.law
    return Teacher(choices, guess, answers=1500, answers_for_few=6000, margin=reach(options), law=law)


def _regrets(costs: Floats) -> Floats:
    least: Floats = costs.min(axis=1, keepdims=True)
    return costs - least


def teaching_for(data: DataSet) -> Teaching:
    """Return the way of teaching that suits some data: by parameters where these tell more than a choice's own times.

    With as many problems as choices, every choice is known well enough by itself.
    """
    is_wide = len(data) < len(data.configs)
    return by_parameters if is_wide and _are_told_apart(data) and is_installed() else by_choice


def _are_told_apart(data: DataSet) -> bool:
    """Return whether all choices differ in several parameters that each of them has: a single one is but a name."""
    if len({name for config in data.configs for name in config}) < 2:
        return False
    try:
        _, settings = settings_of(data)
    except InvalidData:
        return False
    return len(np.unique(settings, axis=0)) == len(settings)


def always_in(data: DataSet, options: Training) -> list[int]:
    """Return the numbers of the configs that are always looked at: the default, and what the options name."""
    default = [] if data.default is None else [data.default]
    return list(dict.fromkeys([*default, *named_in(data, options)]))


def named_in(data: DataSet, options: Training) -> list[int]:
    """Return the numbers of the configs that the options want in every portfolio."""
    return list(dict.fromkeys(place_of(data, config, "always_included") for config in options.always_included))
