"""From measurements to a sample that trees are grown on: portfolio, teacher, and many answered problems."""

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from tunewise.formats.dataset import DataSet, Floats, Numbers
from tunewise.learn.columns import Frame, derivations, expand, frame, worth
from tunewise.learn.comparing import comparisons
from tunewise.learn.growing import Grown, Limits, grow
from tunewise.learn.law import Law
from tunewise.learn.options import Training
from tunewise.learn.pairs import settings_of, tiles_of
from tunewise.learn.portfolio import cover
from tunewise.learn.questions import Sample
from tunewise.learn.synthetic import around
from tunewise.learn.teacher import Teacher, Teaching, named_in
from tunewise.models import Derived

Kind = Literal["plain", "derived"]  # of trees: whether they ask for a problem's features alone
KINDS: tuple[Kind, ...] = get_args(Kind)

_DRAWN = 0.75  # the share of all weight that drawn problems have
_LEAST_BY_LAW = 0.25  # of a measured problem and those drawn near it: what a law says holds where few of them are, too


@dataclass(frozen=True)
class Study:
    """What was made of some data: the choices worth having, and problems with what these cost there."""

    portfolio: Numbers  # numbers of the data's configs
    problems: Frame  # the measured ones first
    measured: int
    costs: Floats  # of the portfolio, on those problems
    weights: Floats
    offered: tuple[Derived, ...]  # what a tree may derive from a problem
    worth: Floats  # of every column, inputs first: so much of what a question saves counts; nothing: it is not asked
    tolerance: float  # what a question must save where it is asked
    by_law: bool = False  # a law taught it: what that says is no noise, and holds where nothing was measured

    def derived(self, kind: Kind) -> tuple[Derived, ...]:
        """Return the columns that a tree of some kind may derive."""
        return () if kind == "plain" else self.offered

    def tree(self, kind: Kind, limits: Limits) -> Grown:
        """Return a tree grown on everything known."""
        table = expand(self.problems, derived := self.derived(kind))
        words = np.concatenate([self.problems.words, np.zeros(len(derived), dtype=np.bool_)])
        measured = len(table) if self.by_law else self.measured
        sample = Sample(table, words, self.costs, self.weights, self.worth[: table.shape[1]], measured)
        return grow(sample, limits, _LEAST_BY_LAW if self.by_law else 1.0)


def study(data: DataSet, weights: Floats, options: Training, teaching: Teaching) -> Study:
    """Return what can be learned from: the measured problems, and thousands that were drawn between them.

    A tree grown on a few hundred noisy problems splits on noise. The teacher averages the noise away, and its answers
    for drawn problems show a tree where the borders run.
    """
    teacher = teaching(data, weights, options)
    known = frame(data, teacher.margin)
    is_lawful = teacher.law is not None
    tiles = tiles_of(data, teacher.choices) if is_lawful else ()
    count = max(teacher.answers_for_few, 2 * len(known)) - len(known)
    drawn, origin = around(known, count, options.seed, tiles, by_law=is_lawful)
    every = Frame(known.inputs, np.concatenate([known.values, drawn.values]), known.whole)
    few = max(teacher.answers - len(known), len(known))
    portfolio = _portfolio(data, teacher, every, _shares(weights, origin[:few]), options)
    shares = _shares(weights, origin)
    costs = teacher.guess(every, np.searchsorted(teacher.choices, portfolio))
    offered = _offered(every, data, portfolio, costs, teacher.law)
    tolerance = 0.0 if is_lawful else options.tolerance
    return Study(portfolio, every, len(known), costs, shares, *offered, tolerance, is_lawful)


def _shares(weights: Floats, origin: Numbers) -> Floats:
    """Return how much problems count, measured ones first: those drawn near one count so much together."""
    near = np.bincount(origin, minlength=len(weights))
    return np.concatenate([weights * (1 - _DRAWN), (weights / np.maximum(near, 1))[origin] * _DRAWN])


def _portfolio(data: DataSet, teacher: Teacher, every: Frame, shares: Floats, options: Training) -> Numbers:
    """Return the numbers of the few choices that lose least on the first problems: those that have a share.

    The default is one of them, beyond their limit if need be: a program falls back on it anyway.
    """
    some = Frame(every.inputs, every.values[: len(shares)], every.whole)
    lost = teacher.guess(some, np.arange(len(teacher.choices)))
    always = np.searchsorted(teacher.choices, named_in(data, options)).tolist()
    free = None if data.default is None else int(np.searchsorted(teacher.choices, data.default))
    return teacher.choices[cover(lost, shares, options.portfolio, always, free)]


def _offered(
    known: Frame, data: DataSet, portfolio: Numbers, lost: Floats, law: Law | None
) -> tuple[tuple[Derived, ...], Floats]:
    """Return what a tree may derive and what its columns are worth.

    Where a law is known, that is what it expects of one choice over what it expects of another: to say by remainders
    and products which of two is faster would take a tree many questions. Elsewhere it is remainders.
    """
    if law is not None:
        derived, asked = comparisons(known, law, settings_of(data)[1][portfolio], lost)
        if asked:
            first = len(known.inputs)
            columns = np.arange(first + len(derived))
            return derived, np.where((columns < first) | np.isin(columns, asked), 1.0, 0.0)
    derived = derivations(known, "remainders", tiles_of(data, portfolio))
    return derived, worth(known, derived)
