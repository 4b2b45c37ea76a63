import ast

import pytest

from tunewise.decision.columns import book
from tunewise.decision.lattice import build
from tunewise.decision.params import integer, named
from tunewise.decision.residual import Facts, conjuncts, plan
from tunewise.decision.rules import rule

NAMES = ("a", "b", "c", "d")
V = range(1, 10)
PARAMS = tuple(named(name, integer(1, 9)) for name in NAMES)


def kept(text, params=PARAMS):
    return [sorted(step.kept) for step in plan(params, [rule(text, NAMES)])]


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        ("a * b * c * d <= 9", [["a"], ["(a * b)"], ["((a * b) * c)"], []]),
        ("d * (a - 1) + b < c", [["(a - 1)"], ["(a - 1)", "b"], ["(a - 1)", "b", "c"], []]),
        ("max(a, b, c, d) < 5", [["a"], ["(max(a, b))"], ["(max((max(a, b)), c))"], []]),
        ("a / b + c / d < 5", [["a"], ["(a / b)"], ["(a / b)", "c"], []]),
        ("a == 1 or b == 2 or c == d", [["(a == 1)"], ["(a == 1)", "(b == 2)"], ["(a == 1)", "(b == 2)", "c"], []]),
    ],
)
def test_only_what_later_parameters_can_tell_apart_is_kept(text, columns):
    assert kept(text) == columns


def test_floats_are_not_regrouped():
    params = [named(name, [0.1, 0.2, 0.7]) for name in NAMES]
    assert kept("d + a + b + c < 1", params)[1] == ["a", "b"]


def test_what_may_fail_is_computed_where_it_stands():
    params = [named(name, integer(0, 3)) for name in NAMES]
    assert kept("c > 1 or a // b == 2 or d > 1", params)[1] == ["a", "b"]


def test_a_function_keeps_all_it_reads():
    steps = plan(PARAMS, [rule(lambda a, c, d: True, NAMES)])
    assert [sorted(step.kept) for step in steps] == [["a"], ["a"], ["a", "c"], []]


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("a < b < c", ["a < b", "b < c"]),
        ("a < b and c < d and 1 < 2", ["a < b", "c < d"]),
        ("a < b and b < a", ["a < b and b < a"]),
        ("a < b or c < d", ["a < b or c < d"]),
        ("a < b and c < 1 < 0", ["a < b and c < 1 < 0"]),
        ("a != 'x' and b < 2", ["a != 'x' and b < 2"]),
    ],
)
def test_rules_over_numbers_are_taken_apart_where_the_parts_read_less(text, parts):
    found = conjuncts(rule(text, NAMES), Facts.about(PARAMS))
    assert [ast.unparse(part.tree) for part in found] == parts


def test_states_with_one_running_value_are_one():
    lattice = build(PARAMS, [rule("a + b + c + d == 20", NAMES)])
    assert [len(level.starts) - 1 for level in lattice.levels] == [1, 9, 17, 9]
    assert lattice.count == sum(a + b + c + d == 20 for a in V for b in V for c in V for d in V)


def test_a_book_has_numbers_only_where_64_bits_hold_them_exactly():
    assert book([1, 2, True]).numbers.tolist() == [1, 2, 1]
    assert book([0.5, 2**53]).numbers.tolist() == [0.5, 2.0**53]
    for values in (["x", 1], [None], [0.5, 2**53 + 1], [2**63], range(2**63, 2**63 + 2)):
        assert book(values).numbers is None
