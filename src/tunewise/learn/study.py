"""From measurements to a sample that trees are grown on: portfolio, teacher, and many answered problems."""

from dataclasses import dataclass

import numpy as np

from tunewise.formats.dataset import DataSet, Floats, Numbers
from tunewise.learn.columns import Frame, Kind, derivations, expand, frame, worth
from tunewise.learn.growing import Grown, Limits, Sample, grow
from tunewise.learn.options import Training
from tunewise.learn.pairs import tiles_of
from tunewise.learn.portfolio import cover
from tunewise.learn.synthetic import around
from tunewise.learn.teacher import Teaching, always_in
from tunewise.models import Derived

_DRAWN = 0.75  # the share of all weight that drawn problems have


@dataclass(frozen=True)
class Study:
    """What was made of some data: the choices worth having, and problems with what these cost there."""

    portfolio: Numbers  # numbers of the data's configs
    problems: Frame  # the measured ones first
    costs: Floats  # of the portfolio, on those problems
    weights: Floats
    tiles: tuple[float, ...]  # what the portfolio cuts sizes into; empty where its parameters do not say

    def derived(self, kind: Kind) -> tuple[Derived, ...]:
        """Return the columns that a tree of some kind may derive."""
        return derivations(self.problems, kind, self.tiles)

    def tree(self, kind: Kind, limits: Limits) -> Grown:
        """Return a tree grown on everything known."""
        table = expand(self.problems, derived := self.derived(kind))
        words = np.concatenate([self.problems.words, np.zeros(len(derived), dtype=np.bool_)])
        return grow(Sample(table, words, self.costs, self.weights, worth(self.problems, derived)), limits)


def study(data: DataSet, weights: Floats, options: Training, teaching: Teaching) -> Study:
    """Return what can be learned from: the measured problems, and thousands that were drawn between them.

    A tree grown on a few hundred noisy problems splits on noise. The teacher averages the noise away, and its answers
    for drawn problems show a tree where the borders run.
    """
    teacher = teaching(data, weights, options)
    known = frame(data, teacher.margin)
    drawn, origin = around(known, max(teacher.answers - len(known), len(known)), options.seed)
    shares = np.bincount(origin, minlength=len(known))
    every = np.concatenate([weights * (1 - _DRAWN), (weights / np.maximum(shares, 1))[origin] * _DRAWN])
    guessed = np.concatenate([teacher.guess(known), teacher.guess(drawn)])
    lost = guessed - guessed.min(axis=1, keepdims=True)
    places = cover(lost, every, options.portfolio, np.searchsorted(teacher.choices, always_in(data, options)).tolist())
    return Study(
        teacher.choices[places],
        Frame(known.inputs, np.concatenate([known.values, drawn.values]), known.whole),
        guessed[:, places],
        every,
        tiles_of(data, teacher.choices[places]),
    )
