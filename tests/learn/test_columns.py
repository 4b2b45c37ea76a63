"""Columns mean the same to a learner as to the model it makes."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from measured import measured

from tunewise.learn.columns import derivations, expand, frame, needed, smooth
from tunewise.models import Columns, Number, Word

SIZES = st.lists(st.tuples(st.integers(1, 10**6), st.integers(1, 10**4), st.floats(0, 1)), min_size=1, max_size=20)


@pytest.mark.parametrize("tiles", [(), (3.0, 48.0, 256.0)])
@given(sizes=SIZES)
def test_a_learner_works_out_the_same_doubles_as_a_model(
    tiles: tuple[float, ...], sizes: list[tuple[int, int, float]]
) -> None:
    m, n, share = zip(*sizes, strict=True)
    known = frame(measured({"m": m, "n": n, "share": share}, np.ones((len(sizes), 1))), margin=2.0)
    derived = derivations(known, "remainders", tiles)
    columns = Columns(problem=known.inputs, derived=derived)
    columns.check()
    rows = [columns.row([float(value) for value in size]) for size in sizes]
    assert np.array_equal(expand(known, derived), np.array(rows))


def test_bounds_lie_a_margin_beyond_what_was_seen() -> None:
    data = measured(
        {"n": [10.0, 100.0], "wide": [0.5, 5e7], "delta": [-1.0, 1.0], "dtype": ["a", "b"]}, np.ones((2, 1))
    )
    assert frame(data, margin=2.0).inputs == (
        Number("n", 5.0, 200.0),
        Number("wide", pytest.approx(5e-3, rel=0.01), pytest.approx(5e9, rel=0.01)),  # type: ignore[arg-type]
        Number("delta", -3.0, 3.0),
        Word("dtype", ("a", "b")),
    )


def test_bounds_are_told_in_few_digits_and_whole_where_a_feature_is() -> None:
    data = measured({"n": [3.0, 12345.0], "share": [0.1234, 1.0]}, np.ones((2, 1)))
    assert frame(data, margin=2.0).inputs == (Number("n", 1.0, 98900.0), Number("share", 0.0616, 2.0))


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=5))
def test_bounds_hold_what_was_seen_and_are_finite(values: list[float]) -> None:
    (column,) = frame(measured({"x": values}, np.ones((len(values), 1))), margin=2.0).inputs
    assert isinstance(column, Number)
    Columns(problem=(column,)).check()
    assert all(column.value(value) is not None for value in values)


def test_nothing_is_divided_by_what_may_be_zero() -> None:
    known = frame(measured({"m": [0.0, 4.0], "n": [1.0, 9.0]}, np.ones((2, 1))), margin=2.0)
    ratios = [one.of for one in derivations(known, "sizes") if one.op == "ratio"]
    assert ratios == [(0, 1)]


def test_sizes_are_cut_into_the_tiles_that_are_known_and_fit() -> None:
    known = frame(measured({"m": [50.0, 100.0], "n": [0.0, 9.0], "x": [0.5, 99.5]}, np.ones((2, 1))), margin=2.0)
    names = Columns(problem=known.inputs, derived=derivations(known, "remainders", (6.0, 64.0, 128.0))).names
    assert [name for name in names if "%" in name] == ["m % 6", "(m % 6) / m", "m % 64", "(m % 64) / m"]


def test_what_a_column_is_made_of_is_kept_with_it() -> None:
    known = frame(measured({"m": [50.0, 100.0]}, np.ones((2, 1))), margin=2.0)
    derived = derivations(known, "remainders", (6.0, 64.0))
    columns, numbers = needed(known.inputs, (), derived, [4])
    columns.check()
    assert columns.names == ("m", "m % 64", "(m % 64) / m")
    assert numbers[4] == 2


def test_only_columns_that_are_asked_about_are_kept() -> None:
    known = frame(measured({"m": [2.0, 4.0], "n": [1.0, 9.0]}, np.ones((2, 1))), margin=2.0)
    derived = derivations(known, "sizes")
    columns, numbers = needed(known.inputs, (), derived, [0, 3])
    assert columns.derived == (derived[1],)
    assert (numbers[0], numbers[3]) == (0, 2)


@pytest.mark.filterwarnings("error")
def test_a_problem_where_a_model_would_abstain_is_worked_out_without_a_word() -> None:
    known = frame(measured({"m": [1, 2], "n": [3, 4]}, np.ones((2, 1))), margin=2.0)
    asked = frame(measured({"m": [0, 2], "n": [0, 0]}, np.ones((2, 1))), margin=2.0)
    assert expand(asked, derivations(known, "sizes")).shape[0] == 2


@pytest.mark.parametrize("seen", [[1e200] * 3, [-1e200, 0.0, 1e200], [-1.5e308, 1.0, 1.7e308]])
def test_numbers_of_any_size_are_told_apart_by_the_short_floats_of_a_forest(seen: list[float]) -> None:
    known = frame(measured({"x": seen}, np.ones((3, 1))), margin=2.0)
    short = smooth(known, ()).astype(np.float32)
    assert np.isfinite(short).all()
    assert len(np.unique(short)) == len(set(seen))
