import itertools
import random

import pytest
from hypothesis import given, reject, settings
from hypothesis import strategies as st
from scipy.stats import chisquare

from tunewise.decision import Space, integer, permutation, pow2
from tunewise.decision.sampling import sampler
from tunewise.errors import InvalidRule, InvalidSpace

NAMES = "abcdefgh"
CHAIN = [f"{y} % {x} == 0" for x, y in itertools.pairwise("cfahbegd")]
PRODUCT = "a * b * c * d * e * f * g * h <= 2 ** 20"

values = st.one_of(
    st.lists(st.integers(-4, 40), min_size=1, max_size=5, unique=True),
    st.lists(st.sampled_from([-1.5, 0.1, 0.2, 0.5, 3]), min_size=1, max_size=3, unique=True),
    st.just(pow2(1, 16)),
    st.just(["x", 1, None]),
    st.just(permutation("xyz")),
)
texts = st.sampled_from(
    [
        *("a * b * c * d <= 64", "a + b + c + d == 12", "a * b * c + d <= 30", "a - b + c - d > 3", "a < b < c < d"),
        *("sum((a, b, c, d)) % 3 == 1", "max(a, b, c) - min(b, c, d) <= 4", "(a * b + c) * (b * d + c) <= 200"),
        *("b % a == 0 and c % b == 0", "a * b * c * d % 8 == 0", "not a + b + c > d", "a * b // c <= d", "a == 'x'"),
        *("(a + b + c) / d <= 4", "abs(a - b - c - d) < 5", "a * b > 4 or 8 // (c + d) == 1", "a ** 2 + b ** 2 > c"),
        *("c > 0 and 1 < 2 < d", "(a if b > 1 else c) < d", "a & b | c < 9", "d in (a, b, 'x')", "log2(a * b) > c"),
    ]
)


@settings(deadline=None, max_examples=300)
@given(st.tuples(values, values, values, values), st.lists(texts, min_size=1, max_size=4), st.permutations("abcd"))
def test_what_is_drawn_by_rank_is_exactly_what_iteration_yields(lists, rules, order):
    space = Space(dict(zip(order, lists, strict=True)), rules)
    try:
        expected = [space.places(config) for config in space]
    except InvalidRule:
        reject()
    known = sampler(space.params, space.rules)
    columns = known.rows()
    rows = sorted(zip(*(columns[name].tolist() for name in space.names), strict=True))
    assert len(rows) == known.count
    if known.rest:
        assert set(expected) <= set(rows)
    else:
        assert rows == expected
        assert all(len({*map(str, map(part.values, range(part.count)))}) == part.count for part in known.lattices)


@pytest.mark.parametrize(
    ("params", "rules"),
    [
        ({name: integer(1, 64) for name in NAMES}, [PRODUCT, *CHAIN]),
        ({name: pow2(1, 1024) for name in NAMES} | {"z": integer(1, 10**6)}, [PRODUCT, *CHAIN, "z > h"]),
        ({name: integer(1, 40) for name in NAMES}, [PRODUCT.replace("<= 2 ** 20", "== 2 ** 20")]),
        ({name: integer(1, 40) for name in NAMES}, ["a + b + c + d + e + f + g + h == 24", PRODUCT]),
        ({name: integer(1, 40) for name in NAMES}, ["a < b < c < d < e < f < g < h"]),
        ({name: integer(1, 40) for name in NAMES}, ["sum((a, b, c, d)) == 11 and max(e, f, g, h) == 2"]),
        ({name: [i / 10 for i in range(1, 41)] for name in NAMES}, ["a + b + c + d + e + f + g + h <= 1.45"]),
        (
            {name: integer(1, 40) for name in NAMES},
            ["a + b + c + d <= 9", "e * f * g * h <= 9", lambda a, b, c, d, e, f, g, h: (a + b) % 2 == (g + h) % 2],
        ),
    ],
    ids=["divisors", "powers", "exact product", "sum and product", "increasing", "and", "floats", "function"],
)
def test_a_thousand_samples_come_from_ten_to_the_12_points_and_more_tied_together(params, rules):
    space = Space(params, rules)
    sample = space.sample(1000, 3)
    assert len({space.places(config) for config in sample}) == 1000
    assert all(config in space for config in sample)
    assert sample == Space(params, rules).sample(1000, 3)


def test_more_is_asked_than_there_is_among_ten_to_the_14():
    space = Space({name: integer(1, 64) for name in NAMES}, [PRODUCT.replace("20", "10"), *CHAIN])
    sample = space.sample(5000, 1)
    assert len({space.places(config) for config in sample}) == len(sample) == space.count() < 5000


def uniform(space, draws=100):
    """Return the p-value of a chi-square test on first draws; small where they are not uniform."""
    counts = dict.fromkeys(map(tuple, space.table().tolist()), 0)
    rng = random.Random(7)
    for _ in range(len(counts) * draws):
        counts[space.places(space.sample(1, rng)[0])] += 1
    return chisquare(list(counts.values())).pvalue


@pytest.mark.parametrize(
    "rules",
    [
        ["a * b * c * d * e * f * g * h <= 4"],
        ["a + b + c + d + e + f + g + h == 11"],
        ["a < b < c < d < e < f < g < h <= 10"],
        ["a + b + c + d + e + f + g + h <= 10", lambda a, b, c, d, e, f, g, h: a >= b],
    ],
)
def test_draws_from_ten_to_the_12_tied_together_are_uniform(rules):
    space = Space({name: integer(1, 40) for name in NAMES}, rules)
    assert 30 < len(space.table()) < 500
    assert uniform(space) > 1e-4


def test_counts_beyond_64_bits_are_exact():
    names = [f"p{i}" for i in range(30)]
    space = Space({name: integer(1, 100) for name in names}, [" + ".join(names) + " >= 31"])
    assert space.count() == 100**30 - 1
    assert len(space.sample(10)) == 10


def test_a_rule_nobody_can_meet_by_trial_is_named():
    space = Space(
        {name: integer(1, 100) for name in NAMES}, [lambda a, b, c, d, e, f, g, h: a + b == c * d * e * f * g * h * 50]
    )
    with pytest.raises(InvalidSpace, match=r"no legal config was found by trial.*'<lambda>'"):
        space.sample(1)


def test_a_tied_space_that_nothing_satisfies_is_empty():
    space = Space({name: integer(1, 64) for name in NAMES}, ["a + b + c + d + e + f + g + h < 8"])
    assert space.count() == 0
    assert space.sample(3) == []
    assert space.repair(dict.fromkeys(NAMES, 1)) is None
