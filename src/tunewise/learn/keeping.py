"""Which derived columns a ranking keeps: those that help on problems that were held out, and no more than that."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tunewise.formats.dataset import Flags, Floats, Numbers
from tunewise.learn.boosting import Plan, boosted, gains
from tunewise.learn.derived import Cut, Formulas, combined, cuts, grids, matrix, simple
from tunewise.learn.pairs import Pairs, top_costs
from tunewise.models import Derived, Word

_FIRST_LOOK = Plan(trees=60, leaves=15, step=0.12)
_FOREMOST, _GRIDS = 7, 12  # how many sizes and parameters are combined, and how many fits
_FOLDS = 3


@dataclass(frozen=True)
class Offer:
    """Columns to choose from, most helpful first; inputs count as columns."""

    derived: tuple[Derived, ...]
    ranked: tuple[int, ...]

    def best(self, count: int) -> list[int]:
        """Return the numbers of the most helpful columns, in ascending order."""
        return sorted(self.ranked[:count])


def offer(table: Pairs, seed: int) -> Offer:
    """Return all columns that may help, ranked by how much they did in a first look at the data."""
    formulas, fits = simple(table)
    first = _look(table, formulas, seed)
    if fits:
        fits += combined(formulas, fits, first, _FOREMOST)
        second = _look(table, formulas, seed)
        grids(formulas, fits, second, _GRIDS)
        first = _look(table, formulas, seed)
    shown = [*range(len(table.inputs)), *formulas.offered]
    ranked = sorted(shown, key=lambda number: -first[number])
    return Offer(tuple(formulas.derived), tuple(number for number in ranked if first[number] > 0) or (0,))


def cuts_of(table: Pairs, seed: int) -> tuple[Cut, ...]:
    """Return which parameters cut which sizes, by how much it helps to know how they fit.

    Failures are left out: that large tiles fail says nothing of what they cut.
    """
    known = table.of(table.ran)
    formulas, fits = simple(known)
    if not fits:
        return ()
    fits += combined(formulas, fits, _look(known, formulas, seed), _FOREMOST)
    return cuts(formulas, fits, _look(known, formulas, seed))


def boosted_on(
    table: Pairs,
    derived: Sequence[Derived],
    numbers: Sequence[int],
    plan: Plan,
    seed: int,
    told: Floats | None = None,
) -> list[Any]:
    """Return boosters that learned from some of a table's columns, besides what was `told` of each row."""
    words: Flags = np.array([n < len(table.inputs) and isinstance(table.inputs[n], Word) for n in numbers])
    return boosted(matrix(table.values, derived, numbers), words, table, plan, seed, told)


def folds_of(table: Pairs, seed: int, count: int = _FOLDS) -> Iterator[tuple[Pairs, Pairs]]:
    """Yield the rows to learn from and those of the problems held out; none where there is but one problem."""
    problems = len(table.sizes)
    fold: Numbers = np.random.default_rng(seed).permutation(problems) % min(count, problems)
    if problems > 1:
        for number in range(min(count, problems)):
            yield table.take(fold != number), table.take(fold == number)


@dataclass(frozen=True)
class Loss:
    """What a ranking loses on problems that were held out: log regrets, one for every problem."""

    first: Floats  # of its first choice, by lower quartiles
    three: Floats  # of the best of its first three
    judged: Floats  # of its first choice, by the times that answers are judged by

    @property
    def mean(self) -> float:
        """The one number that rankings are compared by."""
        return float((self.first.mean() + self.three.mean()) / 2)

    @property
    def scores(self) -> dict[str, float]:
        """What a card says of it."""
        regrets = np.exp(self.judged)
        geomean = float(np.exp(self.judged.mean()))
        return {"regret": geomean, "p95": float(np.quantile(regrets, 0.95)), "problems": float(len(regrets))}


def lost(held_out: Pairs, guesses: Floats) -> Loss:
    """Return what a ranking by guesses loses."""
    every = [(held_out.cost, 1), (held_out.cost, 3), (held_out.regret, 1)]
    return Loss(*(top_costs(held_out, costs, guesses, k) for costs, k in every))


def together(losses: Sequence[Loss]) -> Loss:
    """Return the losses of all folds as one."""
    parts = [(loss.first, loss.three, loss.judged) for loss in losses]
    return Loss(*(np.concatenate(part) for part in zip(*parts, strict=True)))


def smallest(scores: Sequence[tuple[float, float]], tolerance: float) -> int:
    """Return the place of the smallest of (size, loss) whose loss is within tolerance of the least."""
    least = min(loss for _, loss in scores)
    good = [place for place, (_, loss) in enumerate(scores) if loss <= least + tolerance]
    return min(good, key=lambda place: (scores[place][0], scores[place][1]))


def _look(table: Pairs, formulas: Formulas, seed: int) -> list[float]:
    shown = [*range(len(table.inputs)), *formulas.offered]
    boosters = boosted_on(table, formulas.derived, shown, _FIRST_LOOK, seed)
    return gains(boosters, shown, len(table.inputs) + len(formulas.derived))
