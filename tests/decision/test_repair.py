import itertools

from hypothesis import given, settings
from hypothesis import strategies as st

from tunewise.decision import Space, integer, permutation
from tunewise.decision.repair import distance, moves

NAMES = "abcdefgh"
TIED = Space(
    {name: integer(1, 64) for name in NAMES},
    ["a * b * c * d * e * f * g * h <= 2 ** 20", *(f"{y} % {x} == 0" for x, y in itertools.pairwise(NAMES))],
)
SMALL = Space(
    {"a": integer(0, 6), "w": ["x", "y", "z"], "o": permutation("ijk"), "b": integer(0, 6)},
    ["a + b == 9", "w != 'x' or a > 4", "o[0] != 'i'"],
)


def apart(space, one, other):
    pairs = zip(space.params, space.places(one), space.places(other), strict=True)
    return sum(distance(param, place)(to) for param, place, to in pairs)


@settings(deadline=None, max_examples=60)
@given(st.integers(0, 6), st.sampled_from("xyz"), st.permutations("ijk"), st.integers(0, 6))
def test_no_legal_config_is_nearer_than_the_repaired_one(a, w, o, b):
    config = {"a": a, "w": w, "o": tuple(o), "b": b}
    repaired = SMALL.repair(config)
    nearest = min(apart(SMALL, config, other) for other in SMALL)
    assert apart(SMALL, config, repaired) == nearest
    assert repaired == next(other for other in SMALL if apart(SMALL, config, other) == nearest)


def test_the_distance_is_the_number_of_moves():
    param = Space({"o": permutation("ijkl")}).params[0]
    wave, known = {0}, {0: 0}
    for steps in itertools.count(1):
        wave = {near for place in wave for (near,) in moves((param,), (place,))} - known.keys()
        if not wave:
            break
        known |= dict.fromkeys(wave, steps)
    assert known == {place: distance(param, 0)(place) for place in range(24)}


def test_a_config_far_from_all_legal_ones_is_repaired_by_weighing_them_all():
    for value in (37, 50, 64):
        config = dict.fromkeys(NAMES, value)
        repaired = TIED.repair(config)
        assert repaired in TIED
        rows = TIED.table() - [TIED.places(config)]
        assert apart(TIED, config, repaired) == abs(rows).sum(axis=1).min()


def test_only_what_breaks_a_rule_is_moved():
    space = Space({name: integer(1, 10**6) for name in NAMES}, ["a + b <= 100", "c < d", "e % 7 == 0"])
    config = {"a": 60, "b": 41, "c": 5, "d": 6, "e": 13, "f": 1, "g": 10**6, "h": 3}
    assert space.repair(config) == {**config, "a": 59, "e": 14}


def test_neighbors_exist_in_a_tied_space_of_ten_to_the_14():
    config = {**dict.fromkeys(NAMES, 1), "h": 8}
    assert TIED.neighbors(config) == [{**config, "h": 7}, {**config, "h": 9}, {**config, "g": 2}]
