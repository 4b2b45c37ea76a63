"""Questions that compare choices: the seconds a law expects of one over those of another, as formulas of the sizes."""

from itertools import combinations
from math import prod

import numpy as np
from msgspec import structs

from tunewise.formats.dataset import Floats
from tunewise.learn.columns import Frame
from tunewise.learn.derived import Cut, Formulas
from tunewise.learn.law import Law
from tunewise.learn.pairs import crossed
from tunewise.learn.rates import few_rates, short
from tunewise.learn.work import Amount, Ledger, Pieces, amounts
from tunewise.models import Derived, Number

_MOST_COMPARED = 12  # choices; two by two, more would be hundreds of columns
_EMPHASIS = 2.0  # where a choice is twice as slow as the best, what it takes there counts a quarter
_NANO = 1e9
_LEAST = 1e-3  # nanoseconds: no choice takes none, so that any can be divided by
_DIGITS = 3  # of a rate
_MOST_ADDED = 7  # at once, besides a constant


def comparisons(known: Frame, law: Law, settings: Floats, lost: Floats) -> tuple[tuple[Derived, ...], tuple[int, ...]]:
    """Return columns that compare choices two by two, after all they are made of, and the numbers of the former.

    `settings` has the parameters of the choices, a row each, and `lost` the log regret that a teacher guesses of every
    choice on every problem. Where they are many, there is nothing to compare.
    """
    formulas = Formulas(known.inputs)
    if len(settings) > _MOST_COMPARED:
        return (), ()
    level = law.log_seconds(crossed(known.values, settings)).reshape(lost.shape) - lost
    expected = lost + level.mean(axis=1, keepdims=True)
    weight = np.exp(-_EMPHASIS * lost)
    found = (
        _nanoseconds(formulas, known, law, setting, expected[:, number], weight[:, number])
        for number, setting in enumerate(settings)
    )
    times = [formulas.keep(structs.replace(time, about=number), False) for number, time in enumerate(found)]
    asked = [formulas.add("ratio", one, other) for one, other in combinations(times, 2)]
    return tuple(formulas.derived), tuple(asked)


def _nanoseconds(
    formulas: Formulas, known: Frame, law: Law, setting: Floats, expected: Floats, weight: Floats
) -> Derived:
    """Return the column that has the nanoseconds of one choice: its work at rates of its own.

    A law's rates are those of all configs. For the few that are compared, rates that explain what the teacher expects
    of each tell more, and a handful of amounts does.
    """
    first = len(known.inputs)
    every = amounts(formulas, law.sizes, {cut.size: _pieces(known, cut, setting) for cut in law.cuts})
    counted = Ledger(first, tuple(formulas.derived), tuple(every)).counted(known.values)
    rates = few_rates(counted, expected, weight) * _NANO
    terms = [
        _term(formulas, amount, short(rate, _DIGITS))
        for amount, rate in zip(every, rates, strict=True)
        if amount and rate
    ]
    terms = terms or [_term(formulas, (law.sizes[0].of,), 0.0)]
    while len(terms) > _MOST_ADDED:
        terms = [*terms[_MOST_ADDED + 1 :], formulas.keep(Derived("sum", tuple(terms[: _MOST_ADDED + 1])), False)]
    once = max(short(rates[every.index(())], _DIGITS), _LEAST)
    return Derived("sum", tuple(terms), by=once)


def _pieces(known: Frame, cut: Cut, setting: Floats) -> Pieces:
    """Return what a choice cuts a size into; a block that is larger than any size cuts nothing."""
    first = len(known.inputs)
    tile = float(prod(setting[number - first] for number in cut.parameters))
    block = None if cut.block is None else float(setting[cut.block - first])
    size = known.inputs[cut.size.of]
    is_cut = block is not None and isinstance(size, Number) and block < size.high
    return Pieces(tile, block if is_cut else None)


def _term(formulas: Formulas, amount: Amount, rate: float) -> int:
    return formulas.keep(Derived("product", amount, by=rate), is_offered=False)
