"""Trees over tiled kernels ask which of two choices a law expects to be faster, in formulas that any model can hold."""

import numpy as np
from tiled import tiled

from tunewise.codegen import python_source
from tunewise.learn.columns import frame, needed, worked_out
from tunewise.learn.comparing import comparisons
from tunewise.learn.derived import Cut, Size
from tunewise.learn.law import Law, law_of
from tunewise.learn.options import Training
from tunewise.learn.pairs import crossed, pairs, settings_of
from tunewise.learn.regret import charged, fastest_s
from tunewise.learn.training import train
from tunewise.learn.validate import validate
from tunewise.models import Split, Tree
from tunewise.models.source import parse_source

DATA = tiled(16)
SETTINGS = settings_of(DATA)[1]
KNOWN = frame(tiled(200, seed=3), 8.0)


def law() -> Law:
    found = law_of(pairs(DATA, Training(), 10**6, fastest_s), (Cut(Size(0), (2,)), Cut(Size(1), (3,))))
    assert found is not None
    return found


def guessed(choices: list[int]) -> np.ndarray:
    times = law().log_seconds(crossed(KNOWN.values, SETTINGS[choices])).reshape(len(KNOWN), -1)
    return times - times.min(axis=1, keepdims=True)


def test_a_comparison_says_what_the_teacher_thinks_of_two_choices() -> None:
    lost = guessed([0, 9, 20])
    derived, asked = comparisons(KNOWN, law(), SETTINGS[[0, 9, 20]], lost)
    columns = worked_out(KNOWN.values, derived)
    for number, (one, other) in zip(asked, [(0, 1), (0, 2), (1, 2)], strict=True):
        off = np.log(columns[number]) - (lost[:, one] - lost[:, other])
        assert np.median(np.abs(off)) < 0.05


def test_models_can_hold_comparisons() -> None:
    derived, asked = comparisons(KNOWN, law(), SETTINGS[[0, 9, 20, 30]], guessed([0, 9, 20, 30]))
    columns, _ = needed(KNOWN.inputs, (), derived, asked)
    columns.check()  # nothing divides by what may be zero, and nothing has too many operands
    assert len(asked) == 6


def test_one_choice_or_very_many_are_not_compared() -> None:
    assert comparisons(KNOWN, law(), SETTINGS[[4]], guessed([4]))[1] == ()
    many = list(range(13))
    assert comparisons(KNOWN, law(), SETTINGS[many], guessed(many)) == ((), ())


def test_a_tree_that_compares_is_code_and_loses_little_on_problems_never_seen() -> None:
    model = train(DATA, Training(portfolio=6), "tree")
    assert isinstance(model.body, Tree)
    asked = {node.column for node in model.body.nodes if isinstance(node, Split)}
    derived = model.columns.derived
    first = len(model.columns.inputs)
    assert any(number >= first and derived[number - first].op == "ratio" for number in asked)
    unseen = tiled(80, seed=11)
    found = validate(parse_source(python_source(model)), unseen)
    single = np.exp(charged(unseen)[:, charged(DATA).mean(axis=0).argmin()].mean())
    assert found.regret.geomean < single
