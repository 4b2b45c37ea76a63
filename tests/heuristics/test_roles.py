"""Roles and sizes: one rule for all spellings, and blocks that are not larger than what they cover."""

import pytest

from tunewise.decision import Space, integer
from tunewise.heuristics import roles
from tunewise.heuristics.matching import at_most, ceil_div, clamped, pow2_at_least, pow2_at_most, round_up


def cast(**params):
    return roles.cast(Space(params), roles.TILE)


@pytest.mark.parametrize("name", ["BLOCK_M", "BLOCK_SIZE_M", "block_m", "blockM", "TILE_M"])
def test_capitals_and_underscores_do_not_count(name):
    assert cast(**{name: [16, 32]}).config(m=32, n=64) == {name: 32}


def test_of_two_parameters_for_a_role_the_usual_spelling_is_meant():
    assert cast(tile_m=[1, 2], BLOCK_M=[1, 2]).config(m=2) == {"BLOCK_M": 2}


def test_only_roles_that_somebody_plays_are_there():
    played = cast(BLOCK_M=[16, 32], other=[1])
    assert "m" in played
    assert played.has("m")
    assert not played.has("m", "n")
    assert played.numbers("n") == []
    assert not played.offers("n", 16)


def test_values_are_chosen_among_those_of_the_space():
    played = cast(BLOCK_M=[64, 16, 32])
    assert [played.at_most("m", limit) for limit in (100, 63, 1)] == [64, 32, 16]
    assert [played.at_least("m", limit) for limit in (100, 33, 1)] == [64, 64, 16]
    assert played.offers("m", 32)
    assert not played.offers("m", 48)


def test_a_range_too_long_to_list_is_asked_for_its_powers_of_two():
    played = roles.cast(Space({"programs": integer(1, 10**12)}), roles.ROWS)
    assert played.at_most("programs", 1000) == 512


def test_switches_are_spelled_as_the_space_spells_them():
    spelled = {}
    for name, values in (("pack_a", [False, True]), ("PACKB", [0, 1])):
        spelled |= roles.cast(Space({name: values}), roles.REGISTERS).config(pack_a=True, pack_b=True)
    assert [(name, type(value)) for name, value in spelled.items()] == [("pack_a", bool), ("PACKB", int)]


@pytest.mark.parametrize(("size", "above", "below"), [(1, 1, 1), (2, 2, 2), (3, 4, 2), (64, 64, 64), (65, 128, 64)])
def test_powers_of_two_around_a_size(size, above, below):
    assert (pow2_at_least(size), pow2_at_most(size)) == (above, below)


@pytest.mark.parametrize(
    ("block", "dimension", "least", "expected"),
    [(128, 1000, 16, 128), (128, 40, 16, 64), (128, 3, 16, 16), (64, 1, 1, 1)],
)
def test_a_block_is_cut_to_what_covers_its_dimension(block, dimension, least, expected):
    assert clamped(block, dimension, least) == expected


def test_steps_cover_a_size():
    assert (ceil_div(9, 4), round_up(9, 4), round_up(8, 4)) == (3, 12, 8)
    assert at_most([2, 8, 32], 16) == 8
    assert at_most([2, 8, 32], 1) == 2
