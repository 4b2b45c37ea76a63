import random
from itertools import pairwise

from tunewise.decision.groups import split, walk
from tunewise.decision.params import integer, named
from tunewise.decision.rules import rule

NAMES = ("a", "b", "c", "d", "e")
PARAMS = tuple(named(name, integer(1, 6)) for name in NAMES)


def groups_of(*texts):
    return split(PARAMS, [rule(text, NAMES) for text in texts])


def test_rules_tie_parameters_together_in_declared_order():
    names = [tuple(p.name for p in group.params) for group in groups_of("d < a", "c < d", "e > 1")]
    assert names == [("a", "c", "d"), ("b",), ("e",)]


def test_every_rule_belongs_to_one_group():
    groups = groups_of("d < a", "c < d", "e > 1", "2 > 1", "a < 9")
    assert sorted(r.text for group in groups for r in group.rules) == ["2 > 1", "a < 9", "c < d", "d < a", "e > 1"]


def test_rules_that_read_nothing_stand_apart():
    first, *others = groups_of("2 > 1")
    assert first.params == ()
    assert first.count() == 1
    assert next(first.draws(random.Random(0))) == {}
    assert [group.count() for group in others] == [6] * 5


def test_counting_a_chain_applies_few_rules():
    calls = 0

    def counted(a, b):
        nonlocal calls
        calls += 1
        return a <= b

    links = [rule(counted, ("a", "b"))]
    names = [f"p{i}" for i in range(12)]
    params = [named(name, integer(1, 6)) for name in names]
    rules = [rule(f"{x} <= {y}", names) for x, y in pairwise(names[1:])]
    (chain,) = split([named("a", integer(1, 6)), named("b", integer(1, 6))], links)
    assert chain.count() == 21
    assert calls == 36
    alone, tied = split(params, rules)
    assert alone.count() == 6
    assert tied.count() == 4368  # multisets of 11 out of 6


def test_walking_applies_a_rule_as_soon_as_it_can_be():
    asked = []

    def early(a):
        asked.append(a)
        return a == 2

    points = list(walk(PARAMS, [rule(early, NAMES)]))
    assert len(points) == 6**4
    assert asked == [1, 2, 3, 4, 5, 6]
