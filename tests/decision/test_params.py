import enum
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tunewise.decision import boolean, integer, permutation, pow2
from tunewise.decision.params import MAX_ITEMS, Permutations, named
from tunewise.errors import InvalidSpace


def test_pow2_and_integer_include_both_ends():
    assert list(pow2(8, 64)) == [8, 16, 32, 64]
    assert list(pow2(1, 1)) == [1]
    assert list(integer(3, 9, 2)) == [3, 5, 7, 9]
    assert list(integer(3, 8, 2)) == [3, 5, 7]
    assert list(boolean()) == [False, True]


@pytest.mark.parametrize("ends", [(0, 8), (3, 8), (8, 4), (8, 12), (1.0, 8), (True, 8), ("1", 8), (1, 2**64), (-8, 8)])
def test_pow2_refuses_what_is_no_power_of_two(ends):
    with pytest.raises(InvalidSpace, match="pow2"):
        pow2(*ends)


@pytest.mark.parametrize("bounds", [(3, 2), (0, 8, 0), (0, 8, -1), (0.0, 8), (0, True), (0, 10**30), (-(2**64), 0)])
def test_integer_refuses_what_is_no_range(bounds):
    with pytest.raises(InvalidSpace, match="integer"):
        integer(*bounds)


def test_a_million_million_integers_cost_nothing():
    param = named("n", integer(0, 10**12))
    assert len(param) == 10**12 + 1
    assert param.index(10**12) == 10**12
    assert param.nearest(-5) == 0
    assert param.nearest(10**400) == 10**12
    assert param.nearest(1234.6) == 1235
    assert param.nearest(float("inf")) == 10**12
    assert param.neighbors(5) == [4, 6]
    assert param.encode(10**12) == [1.0]


def test_a_plain_range_is_not_written_out():
    assert len(named("n", range(10**12))) == 10**12
    with pytest.raises(InvalidSpace, match="64 bits"):
        named("n", range(10**30))
    with pytest.raises(InvalidSpace, match="values"):
        named("n", range(10**12, 0, -1))
    with pytest.raises(InvalidSpace, match="no values"):
        named("n", range(0))


@settings(deadline=None, max_examples=200)
@given(
    st.lists(st.integers(-1000, 1000), min_size=1, max_size=8, unique=True),
    st.integers(-2000, 2000) | st.floats(-2000, 2000) | st.sampled_from([math.inf, -math.inf, 10**400]),
)
def test_the_nearest_value_of_a_list_is_the_nearest(values, wanted):
    param = named("n", sorted(values))
    nearest = param.nearest(wanted)
    assert nearest in values
    if math.isfinite(wanted if abs(wanted) < 10**300 else math.inf):
        assert abs(nearest - wanted) == min(abs(v - wanted) for v in values)


@settings(deadline=None, max_examples=200)
@given(st.integers(-50, 50), st.integers(0, 60), st.integers(1, 7), st.floats(-200, 200) | st.integers(-200, 200))
def test_the_nearest_value_of_a_range_is_the_nearest(low, width, step, wanted):
    param = named("n", integer(low, low + width, step))
    assert abs(param.nearest(wanted) - wanted) == min(abs(v - wanted) for v in param)


@pytest.mark.parametrize("wanted", ["x", None, float("nan"), True, [1], {}, object(), b"8"])
def test_there_is_no_nearest_to_what_is_no_number(wanted):
    assert named("n", [8, 16]).nearest(wanted) is None
    assert named("n", integer(0, 9)).nearest(wanted) is None


def test_words_have_no_nearest_value():
    assert named("n", ["a", "b"]).nearest("c") is None
    assert named("n", ["a", 1]).nearest(2) is None


def test_one_is_neither_true_nor_one_point_zero():
    ints, floats, bools = named("n", [0, 1]), named("n", [0.0, 1.0]), named("n", [False, True])
    assert [ints.index(v) for v in (1, 1.0, True)] == [1, None, None]
    assert [floats.index(v) for v in (1, 1.0, True)] == [None, 1, None]
    assert [bools.index(v) for v in (1, 1.0, True)] == [None, None, 1]
    assert [named("n", [1, True]).index(v) for v in (1, True)] == [0, 1]


@pytest.mark.parametrize("value", [[8], {}, {8}, object(), np.zeros(2), float("nan"), "8", "\ud800", 2**70])
def test_strange_values_have_no_place(value):
    assert named("n", [8, 16, None]).index(value) is None
    assert named("n", integer(0, 99)).index(value) is None
    assert named("n", permutation("ab")).index(value) is None


def test_numpy_numbers_have_the_place_of_the_number():
    assert named("n", [8, 16]).index(np.int64(16)) == 1
    assert named("n", [0.5]).index(np.float64(0.5)) == 0
    assert named("n", integer(0, 9)).index(np.uint8(3)) == 3


def test_numpy_values_are_kept_as_plain_numbers():
    assert [type(v) for v in named("n", list(np.arange(3)))] == [int, int, int]


def test_an_enum_value_is_kept_as_what_it_stands_for():
    class Order(enum.StrEnum):
        ROWS = "rows"

    param = named("order", list(Order))
    assert param.values == ("rows",)
    assert param.index(Order.ROWS) == param.index("rows") == 0


@pytest.mark.parametrize(
    "values",
    [
        *([], (), [1, 1], [1, 1.0], [True, True], ["a", "a"], [None, None], [float("nan")], [float("inf")], [[1]]),
        *([(1, 2)], [{}], [2**64], ["\ud800"], [b"x"], "abc", b"abc", 3, None, {1, 2}, {1: 2}, iter([1])),
    ],
    ids=lambda v: repr(v)[:20],
)
def test_a_list_that_cannot_be_a_parameter_is_refused_by_name(values):
    with pytest.raises(InvalidSpace, match=r"^tile"):
        named("tile", values)


@pytest.mark.parametrize("name", ["", "a b", "1a", "a.b", 3, None, "a-b"])
def test_a_parameter_needs_an_identifier(name):
    with pytest.raises(InvalidSpace, match="identifier"):
        named(name, [1])


def test_permutations_are_counted_ranked_and_never_listed():
    orders = Permutations(tuple("abcd"))
    assert len(orders) == 24
    assert [orders.rank(orders[i]) for i in range(24)] == list(range(24))
    assert len(set(orders)) == 24
    assert orders[-1] == ("d", "c", "b", "a")
    assert ("b", "a", "c", "d") in orders
    assert ("a", "a", "c", "d") not in orders
    assert "abcd" not in orders


def test_a_permutation_read_from_json_is_a_list():
    param = named("order", permutation("ijk"))
    assert param.index(["j", "i", "k"]) == param.index(("j", "i", "k")) == 2
    assert param.index(["j", "i"]) is None
    assert param.index(["j", "i", ["k"]]) is None
    assert param.index("jik") is None


def test_a_permutation_tells_true_from_one():
    param = named("order", permutation([1, True, 2]))
    assert param.index([True, 1, 2]) == 2
    assert param.index([1.0, True, 2]) is None
    assert all(sorted(param.encode(place)) == [0.0, 0.5, 1.0] for place in range(6))


@pytest.mark.parametrize("items", [[], "", ["a", "a"], [1, 1.0], list(range(MAX_ITEMS + 1)), [[1]], 3, [float("nan")]])
def test_a_permutation_needs_few_different_items(items):
    with pytest.raises(InvalidSpace, match="permutation"):
        permutation(items)


def test_the_longest_permutation_works():
    param = named("order", permutation(range(MAX_ITEMS)))
    last = param.values[len(param) - 1]
    assert param.index(last) == len(param) - 1
    assert len(param.neighbors(0)) == MAX_ITEMS * (MAX_ITEMS - 1) // 2


@pytest.mark.parametrize(
    "values",
    [[1, 2, 4], ["a", "b", "c"], [4, 2, 1], [1], pow2(1, 16), integer(0, 5), boolean(), permutation("abc")],
    ids=repr,
)
def test_moves_go_both_ways_and_encoding_is_in_the_unit_cube(values):
    param = named("p", values)
    assert len({len(param.encode(place)) for place in range(len(param))}) == 1
    assert len({tuple(param.encode(place)) for place in range(len(param))}) == len(param)
    for place in range(len(param)):
        assert all(0 <= x <= 1 for x in param.encode(place))
        assert place not in param.neighbors(place)
        assert all(place in param.neighbors(near) for near in param.neighbors(place))
