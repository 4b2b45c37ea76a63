"""Work as a part of a forest's guess: choices are ranked by the time of what they have to do, and trees add to it."""

from math import exp, log
from typing import Any

import pytest
from msgspec.structs import replace

from tunewise.codegen import c_source, python_source
from tunewise.errors import InvalidModel
from tunewise.models import Card, Columns, Derived, Forest, Guess, Model, Number, Split, Word, Work, dump, parse
from tunewise.models.source import parse_source

PROBLEM = (Number("m", 1.0, 1000.0), Word("dtype", ("f4", "f8")))
CONFIG = (Number("tile", 4.0, 32.0),)
COLUMNS = Columns(PROBLEM, CONFIG, (Derived("tiles", (0, 2)), Derived("remainder", (0, 2))))
# Tiles of 4 begin quickly, and those of 32 do their work quickly.
WORK = Work((3, 4), ((1e-6, 1e-7, 1e-8), (2e-6, 4e-7, 2e-8)), 1.0)


def model(work: Work | None = WORK, **changed: Any) -> Model:
    trees = ((Split(1, 1, 2, words=(1,)), Guess(0.5), Guess(0.0)),)
    choices = ({"tile": 4}, {"tile": 32})
    parts = {"card": Card(decision="copy"), "choices": choices, "columns": COLUMNS, "body": Forest(trees, work=work)}
    return Model(**{**parts, **changed})


def test_a_guess_is_the_time_of_the_work_and_what_trees_add() -> None:
    tile_4, tile_32 = model().guesses([100.0, 1.0])
    assert exp(tile_4) == pytest.approx((1e-6 + 25 * 1e-7 + 0) * exp(0.5))
    assert exp(tile_32) == pytest.approx((2e-6 + 4 * 4e-7 + 4 * 2e-8) * exp(0.5))


def test_choices_are_ranked_by_it() -> None:
    assert model().rank({"m": 8, "dtype": "f4"}) == [0, 1]
    assert model().rank({"m": 1000, "dtype": "f4"}) == [1, 0]
    assert model(work=None).rank({"m": 1000, "dtype": "f4"}) == [0, 1]


def test_a_share_of_it_counts_for_less() -> None:
    whole, half = (model(replace(WORK, share=share)).guesses([1000.0, 0.0]) for share in (1.0, 0.5))
    assert half[0] - half[1] == pytest.approx((whole[0] - whole[1]) / 2)


def test_it_is_read_back_equal() -> None:
    assert parse(dump(model())) == model()


def test_generated_code_reads_like_it() -> None:
    text = python_source(model())
    assert "    (1, 32.0, 2e-06, 4e-07, 2e-08),\n" in text
    assert "    time = r0 + part3 * r1 + part4 * r2\n    return 2.718281828459045 ** total * time ** 1.0\n" in text
    assert parse_source(text).rank({"m": 1000, "dtype": "f4"})[0] == {"tile": 32}
    assert "return pow(2.718281828459045, total) * pow(time, 1.0);" in c_source(model())


def test_features_that_are_called_like_rates_and_times_get_other_names() -> None:
    renamed = Columns((Number("time", 1.0, 1000.0), Word("r1", ("f4", "f8"))), CONFIG, COLUMNS.derived)
    code = parse_source(python_source(model(columns=renamed)))
    assert code.rank({"time": 1000, "r1": "f4"})[0] == {"tile": 32}


UNSOUND = {
    "a column that is not there": replace(WORK, amounts=(3, 9)),
    "a column before the first": replace(WORK, amounts=(3, -1)),
    "a word": replace(WORK, amounts=(3, 1)),
    "a choice without rates": replace(WORK, rates=WORK.rates[:1]),
    "a rate too few": replace(WORK, rates=(WORK.rates[0], (1e-6, 1e-7))),
    "a rate too many": replace(WORK, rates=(WORK.rates[0], (1e-6, 1e-7, 1e-7, 1e-7))),
    "a negative rate": replace(WORK, rates=(WORK.rates[0], (1e-6, -1e-7, 1e-8))),
    "no number": replace(WORK, rates=(WORK.rates[0], (1e-6, float("nan"), 1e-8))),
    "nothing that is done once": replace(WORK, rates=(WORK.rates[0], (0.0, 1e-7, 1e-8))),
    "times without end": replace(WORK, rates=(WORK.rates[0], (1e-6, 1e79, 1e79))),
    "a share of nothing": replace(WORK, share=0.0),
    "more than all": replace(WORK, share=1.5),
    "a share that is no number": replace(WORK, share=float("nan")),
    "more amounts than anything has": Work((3,) * 501, ((1e-6, *[0.0] * 501),) * 2, 1.0),
}


@pytest.mark.parametrize("fault", UNSOUND)
def test_unsound_work_is_refused(fault: str) -> None:
    with pytest.raises(InvalidModel):
        model(UNSOUND[fault]).check()


def test_an_amount_that_may_be_negative_is_refused() -> None:
    below = Columns(PROBLEM, CONFIG, (*COLUMNS.derived, Derived("difference", (2, 0))))
    with pytest.raises(InvalidModel, match="column 5"):
        model(replace(WORK, amounts=(3, 5)), columns=below).check()


@pytest.mark.parametrize("body", [Forest((), is_order=True, work=WORK), Forest(((Guess(300.0),),) * 2, work=WORK)])
def test_trees_that_cannot_be_added_to_a_time_are_refused(body: Forest) -> None:
    with pytest.raises(InvalidModel):
        model(body=body).check()


def test_the_longest_time_that_is_allowed_has_a_logarithm() -> None:
    extreme = replace(WORK, rates=((1e-80, 0.0, 0.0), (1e-80, 1e77, 0.0)))
    for guess in (500.0, -500.0):
        found = model(body=Forest(((Guess(guess),),), work=extreme))
        found.check()
        wanted = [guess + log(1e-80), guess + log(1e77 * 32)]
        assert found.guesses([1000.0, 0.0]) == pytest.approx(wanted, rel=1e-6)
