"""Columns are called what they work out, and long formulas stand by number in those that are made of them."""

from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace

from tunewise.errors import InvalidModel
from tunewise.models import Columns, Derived, Number

SIZES = tuple(Number(name, 1.0, 1000.0) for name in ("height", "width", "channels"))
WORK = Derived("product", (0, 1, 2), by=0.125)
EDGE = Derived("remainder", (0,), by=6.0)
SLOW = Derived("product", (4, 1, 2), by=0.5)
TIME = Derived("sum", (3, 5), by=12.0)
OTHER = Derived("sum", (3,), by=80.0)
COMPARED = Derived("ratio", (6, 7))


def test_a_short_formula_is_spelled_out() -> None:
    names = Columns(SIZES, (), (WORK, EDGE, OTHER)).names
    assert names[3:] == ("height * width * channels * 0.125", "height % 6", "(height * width * channels * 0.125) + 80")


def test_a_long_formula_stands_by_number_and_is_told_apart() -> None:
    columns = Columns(SIZES, (), (WORK, EDGE, SLOW, TIME, OTHER, COMPARED))
    assert columns.names[-1] == "[6] / ((height * width * channels * 0.125) + 80)"
    assert columns.parts([6, 7]) == {
        "[6]": columns.names[6],
        "[7]": columns.names[7],
    }  # asked about, both are long
    assert columns.parts([8]) == {"[6]": columns.names[6], "[8]": columns.names[8]}
    assert [columns.brief[number] for number in (0, 3, 6, 8)] == ["height", columns.names[3], "[6]", "[8]"]
    assert columns.names[6].startswith("(height * width * channels * 0.125) + ((height % 6) * width")


def test_the_time_of_a_choice_goes_by_the_number_of_the_choice() -> None:
    times = (replace(TIME, about=1), replace(OTHER, about="default"))
    columns = Columns(SIZES, (), (WORK, EDGE, SLOW, *times, COMPARED))
    assert columns.names[-1] == "time[1] / time[default]"
    assert columns.parts([8]) == {"time[1]": columns.names[6], "time[default]": columns.names[7]}


@pytest.mark.parametrize("about", [(0, 0), (2, 1), (-1, 1), ("default", "default")])
def test_a_time_is_of_one_choice_that_there_is_and_no_other_time_is_of_it(about: tuple[Any, Any]) -> None:
    one, other = about
    columns = Columns(SIZES, (), (WORK, replace(OTHER, about=one), replace(OTHER, about=other)))
    with pytest.raises(InvalidModel, match="not about one each of 2 choices"):
        columns.check_about(2)
    Columns(SIZES, (), (WORK, replace(OTHER, about=1), replace(OTHER, about="default"))).check_about(2)


def test_formulas_of_formulas_stay_short_however_many_there_are() -> None:
    doubled = tuple(Derived("sum", (number, number), by=1.0) for number in range(2, 60))
    assert max(map(len, Columns(SIZES, (), doubled).names)) < 300


def test_what_nothing_asked_is_made_of_is_no_part() -> None:
    assert Columns(SIZES, (), (WORK, EDGE, SLOW, TIME)).parts([0, 3, 4]) == {}


def test_whole_pieces_are_a_quotient_rounded_down() -> None:
    one = Derived("whole", (0, 1))
    assert Columns(SIZES, (), (one,)).names[3] == "height // width"
    assert [one.value([height, 3.0]) for height in (2.0, 3.0, 8.0)] == [0.0, 1.0, 2.0]
    assert Columns(SIZES, (), (one,)).bounds[3][0] == 0.0  # an amount of work is never negative


@pytest.mark.parametrize(("height", "window", "places"), [(10.0, 3.0, 8.0), (3.0, 3.0, 1.0), (2.0, 5.0, 1.0)])
def test_places_of_a_window_are_never_less_than_one(height: float, window: float, places: float) -> None:
    one = Derived("windows", (0, 1))
    assert Columns(SIZES, (), (one,)).names[3] == "max(height - width + 1, 1)"
    assert one.value([height, window]) == places
    assert one.value([np.array([height, 7.0]), np.array([window, 2.0])]).tolist() == [places, 6.0]  # type: ignore[attr-defined, list-item]
    Columns(SIZES, (), (one, Derived("ratio", (0, 3)))).check()  # they can be divided by
