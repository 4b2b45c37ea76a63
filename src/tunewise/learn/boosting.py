"""Boosted trees by LightGBM: one thread, no chance beyond the seed, and no column treated in a way we could not say."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from tunewise.errors import MissingPart
from tunewise.formats.dataset import Flags, Floats
from tunewise.learn.pairs import Pairs
from tunewise.learn.regret import WORST

Objective = Literal["regression", "lambdarank"]
_ENOUGH_COLUMNS = 12  # to choose from at every split; of many columns, a part drawn by chance is enough
_DOUBT = 0.07  # of log regret: choices that are guessed to be so close are both likely to be taken
_TYPICAL, _LEAST_BEND = 0.3, 1e-3  # log regrets among likely choices, and what keeps steps small where all is settled
_GRADES = 31  # LightGBM knows no more steps from worst to best


@dataclass(frozen=True)
class Plan:
    """How to boost: so many trees of so many leaves, each a small step, and that by so many boosters."""

    trees: int = 120
    leaves: int = 15
    step: float = 0.08
    boosters: int = 1
    objective: Objective = "regression"
    finish: int = 0  # further trees, grown on what the first choice loses: not how long all take, but which to take

    @property
    def scale(self) -> float:
        """What turns a booster's number into its part of a guess: LightGBM's ranks are the higher, the better."""
        return (-1.0 if self.objective == "lambdarank" else 1.0) / self.boosters


def is_installed() -> bool:
    """Return whether LightGBM is there and works."""
    try:
        _lightgbm()
    except MissingPart:
        return False
    return True


def boosted(matrix: Floats, words: Flags, table: Pairs, plan: Plan, seed: int, told: Floats | None = None) -> list[Any]:
    """Return LightGBM boosters, each by its own luck, whose mean guesses the target of every row.

    Where something was `told` of the cost of each row, they guess what is missing. Where the plan has a finish, as many
    more follow that are added to them, so that the choice by all loses less.
    """
    lightgbm = _lightgbm()
    is_ranking = plan.objective == "lambdarank"
    told = np.zeros(len(table)) if told is None else told
    samples = lightgbm.Dataset(
        matrix,
        label=_grades(table) if is_ranking else replace(table, cost=table.cost - told).target,
        weight=None if is_ranking else table.weight,
        group=table.sizes if is_ranking else None,
        categorical_feature=[int(number) for number in np.flatnonzero(words)],
        params=_parameters(matrix, plan, seed),
    )
    every = [_parameters(matrix, plan, seed * plan.boosters + number) for number in range(plan.boosters)]
    started = [lightgbm.train(parameters, samples, num_boost_round=plan.trees) for parameters in every]
    if not plan.finish or not any(booster.feature_importance().any() for booster in started):
        return started  # of a few rows LightGBM takes no column for useful, and has no trees to go on from
    slopes = _slopes(table)
    finished = []
    for booster, parameters in zip(started, every, strict=True):
        samples.set_init_score(booster.predict(matrix, num_threads=1) + told)
        finished.append(lightgbm.train({**parameters, "objective": slopes}, samples, num_boost_round=plan.finish))
    return started + finished


def _slopes(table: Pairs) -> Callable[[Floats, Any], tuple[Floats, Floats]]:
    """Return how what is lost changes with the guess for every row, and how that bends.

    Trees that guess all times well spend most of their questions on choices that nobody takes. What counts is the mean
    log regret of a choice that is drawn the likelier, the faster it is guessed to be.
    """
    first, sizes, regret = table.first, table.sizes, np.minimum(table.cost, WORST)

    def slopes(guessed: Floats, _: Any) -> tuple[Floats, Floats]:
        likely = np.exp((np.repeat(np.minimum.reduceat(guessed, first), sizes) - guessed) / _DOUBT)
        drawn = likely / np.repeat(np.add.reduceat(likely, first), sizes)
        mean = np.repeat(np.add.reduceat(drawn * regret, first), sizes)
        bend = _TYPICAL * drawn * (1 - drawn) / _DOUBT**2 + _LEAST_BEND
        return table.share * drawn * (mean - regret) / _DOUBT, table.share * bend

    return slopes


def guesses(boosters: Sequence[Any], matrix: Floats, plan: Plan, trees: int | None = None) -> Floats:
    """Return what boosters guess, of their first trees only if asked; the less, the faster."""
    every = [booster.predict(matrix, num_iteration=trees or plan.trees, num_threads=1) for booster in boosters]
    total: Floats = np.sum(every, axis=0) * plan.scale
    return total


def gains(boosters: Sequence[Any], numbers: Sequence[int], total: int) -> list[float]:
    """Return how much each of `total` columns helped, `numbers` being those that the boosters saw."""
    found = np.zeros(total)
    for booster in boosters:
        found[list(numbers)] += booster.feature_importance("gain")
    return [float(gain) for gain in found]


def _parameters(matrix: Floats, plan: Plan, seed: int) -> dict[str, Any]:
    return {
        "objective": plan.objective,
        "learning_rate": plan.step,
        "num_leaves": plan.leaves,
        "max_depth": 12,
        "min_data_in_leaf": max(min(10, len(matrix) // 20), 1),
        "feature_fraction": _share(matrix, 0.5),
        "feature_fraction_bynode": _share(matrix, 0.4),
        "bagging_fraction": max(0.7, min(2 / len(matrix), 1.0)),  # of a single row, a part is none
        "bagging_freq": 1,
        "max_bin": 63,
        # LightGBM's own limits for words are meant for millions of rows.
        "min_data_per_group": 5,
        "cat_smooth": 2.0,
        "cat_l2": 2.0,
        "label_gain": list(range(_GRADES + 1)),
        "lambdarank_truncation_level": 8,
        "use_missing": False,
        "boost_from_average": False,
        "seed": seed + 1,
        "deterministic": True,
        "force_row_wise": True,
        "num_threads": 1,
        "verbosity": -1,
    }


def _share(matrix: Floats, share: float) -> float:
    return float(min(max(share, _ENOUGH_COLUMNS / matrix.shape[1]), 1.0))


def _grades(table: Pairs) -> Floats:
    """Return the best as the highest grade, and what is twice as slow as half of it."""
    grades: Floats = np.round(_GRADES * np.exp(-table.cost))
    return grades


def _lightgbm() -> Any:
    try:
        import lightgbm
    except (ImportError, OSError) as error:  # OSError: its library lacks libgomp
        raise MissingPart(f"this learner needs LightGBM ({error}): pip install 'tunewise[learn]'") from None
    return lightgbm
