import itertools
import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare

from tunewise.decision import Param, Space, boolean, canonical, integer, permutation, pow2
from tunewise.errors import InvalidConfig, InvalidRule, InvalidSpace

GEMM = Space(
    {
        "tile_m": pow2(8, 64),
        "order": permutation("ijk"),
        "tile_n": pow2(8, 64),
        "unroll": [1, 2, 4],
        "pack": boolean(),
        "way": ["a", "b", "c"],
        "pad": [None, 1, 2],
    },
    rules=["tile_m * tile_n <= 1024", "unroll <= tile_n // 8", lambda pack, way: pack or way != "c", "order[0] != 'k'"],
)
EMPTY = Space({"a": [1, 2], "b": integer(0, 10**12)}, rules=["a > 5"])

values = st.one_of(
    st.lists(st.integers(-4, 9), min_size=1, max_size=5, unique=True),
    st.lists(st.sampled_from([1, 2.5, 4]), min_size=1, max_size=3, unique=True),
    st.just(boolean()),
    st.builds(integer, st.integers(0, 3), st.integers(3, 6), st.integers(1, 3)),
    st.just(pow2(1, 8)),
)
texts = st.sampled_from(
    ["a < b", "a * b <= 8", "b % 2 == 0", "c != a", "a + b + c < 9", "1 < 0", "2 > 1", "a <= b <= c", "d or a > 1"]
)
spaces = st.builds(
    lambda a, b, c, d, rules: Space({"a": a, "b": b, "c": c, "d": d}, rules=rules),
    values,
    values,
    values,
    values,
    st.lists(texts, max_size=3, unique=True),
)


def brute(space):
    product = itertools.product(*(param.values for param in space.params))
    configs = [dict(zip(space.names, point, strict=True)) for point in product]
    return [config for config in configs if all(r.holds(config) for r in space.rules)]


@settings(deadline=None, max_examples=150)
@given(spaces)
def test_a_space_holds_exactly_what_its_rules_allow_in_declared_order(space):
    expected = brute(space)
    assert list(space) == expected
    assert space.count() == len(expected)
    assert all(config in space for config in expected)


@settings(deadline=None, max_examples=100)
@given(spaces, st.integers(0, 40), st.integers(0, 5))
def test_a_sample_is_legal_distinct_and_as_large_as_it_can_be(space, n, seed):
    sample = space.sample(n, seed)
    places = [space.places(config) for config in sample]
    assert len(set(places)) == len(sample) == min(n, space.count())
    assert all(config in space for config in sample)
    assert sample == space.sample(n, seed)


@settings(deadline=None, max_examples=100)
@given(spaces, st.data())
def test_repair_gives_the_nearest_legal_config_and_keeps_a_legal_one(space, data):
    config = {param.name: data.draw(st.sampled_from(list(param.values))) for param in space.params}
    repaired = space.repair(config)
    if space.count() == 0:
        assert repaired is None
    else:
        assert repaired in space
        assert space.repair(repaired) == repaired
        if config in space:
            assert repaired == config


@settings(deadline=None, max_examples=60)
@given(spaces)
def test_neighbors_are_legal_go_both_ways_and_come_in_order(space):
    for config in itertools.islice(space, 20):
        near = space.neighbors(config)
        assert all(other in space and config in space.neighbors(other) for other in near)
        assert config not in near
        places = [space.places(other) for other in near]
        assert places == sorted(set(places))


@settings(deadline=None, max_examples=60)
@given(spaces)
def test_encodings_have_one_length_lie_in_the_unit_cube_and_differ(space):
    rows = [tuple(space.encode(config)) for config in space]
    assert len({len(row) for row in rows}) <= 1
    assert all(0 <= x <= 1 for row in rows for x in row)
    assert len(set(rows)) == len(rows)


@settings(deadline=None, max_examples=60)
@given(spaces)
def test_every_config_survives_json(space):
    for config in itertools.islice(space, 10):
        back = space.config(canonical.decode(canonical.encode(config)))
        assert canonical.encode(back) == canonical.encode(config)


def test_the_large_example_counts_itself():
    assert GEMM.count() == len(list(GEMM)) == len(GEMM.sample(10**6)) > 1000


@pytest.mark.parametrize(
    "rules",
    [[], ["a <= b"], ["a + b + c == 6"], ["a == b", "c > 1"], ["a * 100 + b * 10 + c in (111, 123, 444)"]],
    ids=str,
)
def test_samples_are_uniform(rules):
    space = Space({"a": integer(1, 5), "b": [1, 2, 3, 4], "c": [1, 2, 3, 4]}, rules)
    counts = dict.fromkeys(map(space.places, space), 0)
    rng = random.Random(7)
    for _ in range(len(counts) * 100):
        counts[space.places(space.sample(1, rng)[0])] += 1
    assert len(counts) == 1 or chisquare(list(counts.values())).pvalue > 1e-4


def test_samples_are_uniform_where_trial_would_hardly_ever_hit():
    space = Space({name: integer(1, 40) for name in "abcd"}, ["a == b", "b == c", "c + d == 12"])
    counts = dict.fromkeys(map(space.places, space), 0)
    rng = random.Random(7)
    for _ in range(len(counts) * 100):
        counts[space.places(space.sample(1, rng)[0])] += 1
    assert chisquare(list(counts.values())).pvalue > 1e-4


def test_first_draws_without_replacement_are_uniform_too():
    space = Space({"a": [1, 2, 3], "b": [1, 2]}, ["a != b"])
    counts = dict.fromkeys(map(space.places, space), 0)
    for seed in range(800):
        for config in space.sample(3, seed):
            counts[space.places(config)] += 1
    assert chisquare(list(counts.values())).pvalue > 1e-4


def test_a_space_of_ten_to_the_72_is_sampled_at_once():
    space = Space({name: integer(1, 10**12) for name in "abcdef"}, ["a < b", "c % 2 == 0"])
    sample = space.sample(1000, 3)
    assert len({space.places(config) for config in sample}) == 1000
    assert all(c["a"] < c["b"] and c["c"] % 2 == 0 for c in sample)


def test_tied_parameters_of_ten_to_the_12_are_counted_and_sampled_without_listing():
    space = Space({name: integer(1, 100) for name in "abcdef"}, ["a <= b", "b <= c", "c <= d", "d <= e", "e <= f"])
    assert space.count() == 1_609_344_100  # multisets of 6 out of 100
    sample = space.sample(200, 1)
    assert len(sample) == 200
    assert all(list(config.values()) == sorted(config.values()) for config in sample)


def test_the_order_of_declaration_does_not_change_the_count():
    tied = ["a * c <= 30", "b + e == 20", "d < a", "e > c"]
    names = "abcde"
    counts = {Space({n: integer(1, 20) for n in order}, tied).count() for order in (names, names[::-1], "cabed")}
    assert len(counts) == 1


def test_independent_huge_parameters_are_counted_by_multiplying():
    space = Space(
        {"a": integer(1, 10**12), "b": integer(1, 10**12), "c": permutation(range(20)), "d": [1, 2]}, ["d > 1"]
    )
    assert space.count() == 10**24 * 2432902008176640000


def test_a_rule_that_reads_nothing_costs_nothing():
    huge = {"a": integer(1, 10**12), "b": integer(1, 10**12)}
    assert Space(huge, ["2 > 1"]).count() == 10**24
    assert Space(huge, ["1 > 2"]).count() == 0
    assert Space(huge, [lambda: False]).sample(5) == []
    assert list(Space(huge, ["1 > 2"])) == []
    assert len(Space(huge, ["2 > 1"]).sample(5)) == 5


def test_iteration_over_a_huge_space_begins_at_once():
    space = Space({"a": integer(1, 10**12), "b": integer(1, 10**12)}, ["a + b > 10"])
    assert next(iter(space)) == {"a": 1, "b": 10}


def test_a_space_that_nothing_satisfies_is_empty_and_says_so():
    assert EMPTY.count() == 0
    assert EMPTY.sample(5) == []
    assert list(Space({"a": [1], "b": [2]}, ["a > b"])) == []
    assert EMPTY.repair({"a": 1, "b": 2}) is None


def test_nothing_asked_is_nothing_sampled():
    assert GEMM.sample(0) == []
    assert GEMM.sample(-3) == []


def test_samples_do_not_depend_on_what_was_asked_before():
    tight = {name: integer(1, 60) for name in "abcd"}, ["a == b", "b == c", "c + d == 12"]
    fresh, used = Space(*tight), Space(*tight)
    used.count()
    assert len(used.sample(8, 5)) == len(fresh.sample(8, 5)) == 8
    assert fresh.sample(5, 9) == used.sample(5, 9)


def test_one_value_is_a_space():
    space = Space({"a": [7]})
    assert space.count() == 1
    assert space.sample(3) == [{"a": 7}]
    assert space.neighbors({"a": 7}) == []
    assert space.encode({"a": 7}) == [0.0]


def test_configs_are_put_in_the_order_of_the_space():
    space = Space({"b": [1], "a": [2]})
    assert list(space.config({"a": 2, "b": 1})) == ["b", "a"]


def test_numpy_numbers_in_a_config_become_plain():
    config = Space({"a": [1, 2], "f": [0.5]}).config({"a": np.int64(2), "f": np.float64(0.5)})
    assert [(type(v), v) for v in config.values()] == [(int, 2), (float, 0.5)]


@pytest.mark.parametrize(
    ("config", "reason"),
    [
        ({"a": 3, "b": "x"}, "a=3 is not one of (1, 2)"),
        ({"a": 1.0, "b": "x"}, "a=1.0 is not one of (1, 2)"),
        ({"a": True, "b": "x"}, "a=True is not one of (1, 2)"),
        ({"a": 1}, "parameter 'b' is missing"),
        ({"a": 1, "b": "x", "tyle": 3}, "unknown parameter 'tyle'; did you mean 'tile'?"),
        ({"a": 1, "b": "x", 3: 3}, "unknown parameter 3; the space has a, b, tile"),
        ({"a": 2, "b": "x", "tile": 5}, "rule 'a < 2' does not hold"),
        ({"a": [], "b": "x", "tile": 5}, "a=[] is not one of (1, 2)"),
        ({"a": 1, "b": "x", "tile": 50}, "tile=50 is not one of (0, 1, ... 40: 41 values)"),
        ([("a", 1)], "config [('a', 1)] is not a mapping of names to values"),
    ],
    ids=str,
)
def test_the_reason_against_a_config_names_the_thing_and_the_value(config, reason):
    space = Space({"a": [1, 2], "b": ["x", "y"], "tile": integer(0, 40)}, ["a < 2"])
    assert space.why_not(config) == reason
    assert config not in space
    with pytest.raises(InvalidConfig) as caught:
        space.config(config)
    assert str(caught.value) == reason


@pytest.mark.parametrize("config", [{}, {"a": 1}, {"a": 9, "b": 2}])
def test_places_of_what_is_no_config_are_refused(config):
    with pytest.raises(InvalidConfig):
        Space({"a": [1], "b": [2]}).places(config)


@pytest.mark.parametrize("params", [{}, None, [("a", [1])], "a", {"a": []}, {"a": 3}, {"a b": [1]}, {3: [1]}], ids=repr)
def test_a_space_needs_named_parameters_with_values(params):
    with pytest.raises(InvalidSpace):
        Space(params)


@pytest.mark.parametrize("rules", ["a < 3", 3, None, lambda a: True])
def test_rules_must_be_a_list(rules):
    with pytest.raises(InvalidSpace, match="not a list"):
        Space({"a": [1]}, rules)


def test_a_rule_with_a_slip_is_refused_when_the_space_is_made():
    with pytest.raises(InvalidRule, match="did you mean 'tile_m'"):
        Space({"tile_m": [1]}, ["tile_n < 3"])


def test_repair_clamps_to_the_scale():
    space = Space({"n": pow2(8, 64), "f": [0.5, 1.5]})
    assert space.repair({"n": 1000, "f": 0.1}) == {"n": 64, "f": 0.5}
    assert space.repair({"n": 33.0, "f": 1}) == {"n": 32, "f": 0.5}
    assert space.repair({"n": np.int64(9), "f": np.float64(9)}) == {"n": 8, "f": 1.5}


def test_repair_makes_the_fewest_moves():
    space = Space({"a": integer(0, 100), "b": integer(0, 100)}, ["a + b <= 60", "a % 4 == 0"])
    repaired = space.repair({"a": 37, "b": 25})
    assert repaired == {"a": 36, "b": 24}


@pytest.mark.parametrize("config", [{"a": 1}, {"a": 1, "w": "x", "z": 1}, {"a": 1, "w": "q"}, {"a": "1", "w": "x"}])
def test_what_has_no_nearest_legal_config_is_not_repaired(config):
    assert Space({"a": [1, 2], "w": ["x", "y"]}).repair(config) is None


def test_a_word_that_is_not_in_the_list_is_not_taken_for_none():
    assert Space({"a": [None, "x"]}).repair({"a": "y"}) is None
    assert Space({"a": [None, "x"]}).repair({"a": None}) == {"a": None}


def test_repair_looks_at_all_values_of_a_long_list_of_words():
    words = [f"w{i}" for i in range(19_000)]
    space = Space({"a": words}, ["a == 'w18999'"])
    assert space.repair({"a": "w0"}) == {"a": "w18999"}


def test_repair_gives_up_where_nothing_is_near():
    space = Space({"a": integer(0, 10**12), "b": integer(0, 10**12)}, ["a > 10 ** 9"])
    assert space.repair({"a": 0, "b": 0}) is None


def test_a_partial_config_is_completed_from_another():
    assert Space({"a": [1, 2], "b": [3]}).complete({"a": 2}, {"a": 1, "b": 3}) == {"a": 2, "b": 3}


def test_spaces_are_equal_when_they_allow_the_same_in_the_same_words():
    def make(limit):
        return Space({"a": pow2(1, 8), "b": [1, 2]}, ["a > b", lambda a: a < limit])

    assert make(3) == make(3)
    assert hash(make(3)) == hash(make(3))
    assert make(3) != make(4)


def test_a_parameter_can_serve_two_spaces_under_two_names():
    tile = pow2(1, 4)
    space = Space({"m": tile, "n": tile})
    assert space.names == ("m", "n")
    assert isinstance(space.params[0], Param)
    assert tile.name == ""


def test_a_parameter_that_is_called_like_a_function_can_be_used_in_rules():
    assert Space({"min": [1, 2, 3], "max": [2]}, ["min(min, max) == min"]).count() == 2
