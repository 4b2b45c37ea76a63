import random

import pytest

from tunewise.decision import Space, permutation, pow2
from tunewise.errors import InvalidSpace

CONFIGS = [
    {"tile": 16, "way": "b", "on": True, "share": 0.5},
    {"tile": 8, "way": "a", "on": False, "share": 0.5},
    {"tile": 64, "way": "b", "on": True, "share": 0.25},
    {"tile": 8, "way": "b", "on": True, "share": 0.25},
]
SPACE = Space.of(CONFIGS)


def test_it_holds_exactly_the_configs_given():
    assert SPACE.count() == 4
    assert all(config in SPACE for config in CONFIGS)
    assert {"tile": 64, "way": "a", "on": True, "share": 0.5} not in SPACE
    assert SPACE.why_not({**CONFIGS[0], "way": "a"}) == "it is not one of 4 recorded configs"
    assert SPACE.why_not({**CONFIGS[0], "tile": 9}) == "tile=9 is not one of (8, 16, 64)"


def test_numbers_are_ordered_by_size_and_words_as_they_came():
    values = {param.name: tuple(param.values) for param in SPACE.params}
    assert values == {"tile": (8, 16, 64), "way": ("b", "a"), "on": (False, True), "share": (0.25, 0.5)}


def test_a_given_order_stands_and_may_hold_more_values():
    space = Space.of(CONFIGS, {"way": ["a", "b", "c"], "tile": pow2(8, 128)})
    assert tuple(space.params[0].values) == (8, 16, 32, 64, 128)
    assert tuple(space.params[1].values) == ("a", "b", "c")
    assert space.count() == 4


def test_iteration_and_table_come_in_the_spaces_order():
    places = [SPACE.places(config) for config in SPACE]
    assert places == sorted(SPACE.places(config) for config in CONFIGS)
    assert [tuple(row) for row in SPACE.table().tolist()] == places
    assert SPACE.table(3) is None


def test_repeated_configs_count_once():
    assert Space.of([*CONFIGS, *CONFIGS]) == SPACE
    assert Space.of([*CONFIGS, *CONFIGS]).count() == 4
    assert Space.of(CONFIGS[:3], {p.name: p for p in SPACE.params}) != SPACE


def test_samples_are_distinct_and_of_the_list():
    for n in (0, 1, 3, 4, 99):
        sample = SPACE.sample(n, 5)
        assert len({SPACE.places(config) for config in sample}) == len(sample) == min(n, 4)
    assert SPACE.sample(3, 5) == SPACE.sample(3, random.Random(5))
    assert {SPACE.places(SPACE.sample(1, seed)[0]) for seed in range(60)} == set(map(SPACE.places, CONFIGS))


def test_neighbors_are_of_the_list():
    assert SPACE.neighbors(CONFIGS[3]) == []
    space = Space.of([{"a": 1, "b": 1}, {"a": 2, "b": 1}, {"a": 3, "b": 1}, {"a": 1, "b": 2}])
    assert space.neighbors({"a": 1, "b": 1}) == [{"a": 1, "b": 2}, {"a": 2, "b": 1}]


def test_repair_gives_the_listed_config_with_the_fewest_moves():
    assert SPACE.repair({"tile": 60, "way": "b", "on": False, "share": 0.3}) == CONFIGS[2]
    assert SPACE.repair(CONFIGS[1]) == CONFIGS[1]
    assert SPACE.repair({"tile": 60, "way": "z", "on": False, "share": 0.3}) is None


def test_orders_can_be_listed():
    configs = [{"order": ["i", "j", "k"], "n": 1}, {"order": ["k", "j", "i"], "n": 1}]
    space = Space.of(configs, {"order": permutation("ijk")})
    assert space.count() == 2
    assert configs[0] in space
    assert space.repair({"order": ["k", "i", "j"], "n": 1}) == {"order": ("k", "j", "i"), "n": 1}


def test_true_is_not_one():
    space = Space.of([{"a": 1, "b": "x"}, {"a": True, "b": "y"}])
    assert {"a": 1, "b": "x"} in space
    assert {"a": True, "b": "x"} not in space


@pytest.mark.parametrize(
    ("configs", "order", "text"),
    [
        ([], None, "at least one config"),
        ({"a": 1}, None, "at least one config"),
        ([3], None, "not a mapping"),
        ([{"a": 1}, {"b": 1}], None, "config 1 has not the parameters a"),
        ([{"a": 1}, 3], None, "config 1 has not the parameters a"),
        ([{"a": 1}], {"a": [2, 3]}, "a=1 is recorded, but not among the values"),
        ([{"a": [1, 2]}], None, "a recorded value of a is a list, .*; give the values of a in"),
        ([{"a": 1}, {"a": 1.0}], None, "twice"),
    ],
    ids=str,
)
def test_what_is_no_list_of_configs_is_refused(configs, order, text):
    with pytest.raises(InvalidSpace, match=text):
        Space.of(configs, order)


def test_a_long_list_is_a_space_at_once():
    rng = random.Random(1)
    configs = [{f"p{i}": rng.randrange(8) for i in range(15)} for _ in range(5000)]
    space = Space.of(configs)
    assert space.count() == len({tuple(config.values()) for config in configs})
    assert len(space.table()) == space.count()
    assert space.repair(dict.fromkeys(configs[0], 3)) in space
