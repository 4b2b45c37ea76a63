import ast

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tunewise.decision.bounds import hopeless
from tunewise.decision.columns import Column, book
from tunewise.decision.rules import rule

VALUES = {"a": (1, 2, 3, 9), "b": (1, 4, 6), "c": (-2, 1, 5)}
BOOKS = {name: book(values) for name, values in VALUES.items()}


def doomed(text):
    """Return for each value of `a` whether nothing can make the rule true any more."""
    column = Column(np.arange(4), BOOKS["a"])
    tree = ast.parse(text, mode="eval").body
    return np.broadcast_to(hopeless(tree, {"a": column}, BOOKS), (4,)).tolist()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a * b <= 8", [False, False, False, True]),
        ("a * b >= 13", [True, True, False, False]),
        ("a + b + c == 0", [False, True, True, True]),
        ("a - b * 2 > 7.5", [True, True, True, True]),
        ("b == 4 and a > 2.5", [True, True, False, False]),
        ("c == 9 or a == 2", [True, False, True, True]),
        ("1 < a * b < 2", [False, False, True, True]),
        ("'x' == a or a * b > 99", [False] * 4),
        ("a % b == 1", [False] * 4),
    ],
)
def test_rows_without_hope_are_found(text, expected):
    assert doomed(text) == expected


terms = st.recursive(
    st.sampled_from(["a", "b", "c", "2", "7", "-3", "0.5"]),
    lambda parts: (
        st.builds(
            lambda x, op, y: f"({x} {op} {y})", parts, st.sampled_from(["+", "-", "*", "/", "//", "%", "**"]), parts
        )
        | st.builds(lambda f, x, y: f"{f}({x}, {y})", st.sampled_from(["min", "max"]), parts, parts)
    ),
    max_leaves=5,
)
claims = st.builds(lambda x, op, y: f"{x} {op} {y}", terms, st.sampled_from(["<", "<=", "==", "!=", ">=", ">"]), terms)
texts = claims | st.builds(lambda x, op, y: f"not ({x} {op} {y})", claims, st.sampled_from(["and", "or"]), claims)


@settings(deadline=None, max_examples=400)
@given(texts)
def test_no_row_is_given_up_that_could_become_legal(text):
    checked = rule(text, VALUES)
    can_hold = [
        any(checked.holds({"a": a, "b": b, "c": c}) for b in VALUES["b"] for c in VALUES["c"]) for a in VALUES["a"]
    ]
    assert not any(lost and possible for lost, possible in zip(doomed(text), can_hold, strict=True))
