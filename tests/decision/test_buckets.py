"""Buckets: which value stands for which, and what is refused."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tunewise.decision import Declaration, Space
from tunewise.decision.buckets import bucketed
from tunewise.errors import InvalidDecision, InvalidProblem


def declared(**buckets: Any) -> Declaration:
    return Declaration("d", space=Space({"x": [1]}), default={"x": 1}, buckets=buckets)


@pytest.mark.parametrize(("value", "edge"), [(1, 128), (128, 128), (129, 512), (512.0, 512), (2048, 2048), (9e9, 2048)])
def test_a_value_counts_as_the_first_edge_that_is_not_smaller_or_the_last(value: float, edge: int) -> None:
    assert declared(n=[128, 512, 2048]).problem({"n": value})["n"] == edge


@pytest.mark.parametrize(("value", "power"), [(0, 1), (1, 1), (2, 2), (2.5, 4), (3, 4), (1024, 1024), (1025, 2048)])
def test_pow2_is_the_next_power_of_two(value: float, power: int) -> None:
    assert declared(n="pow2").problem({"n": value})["n"] == power


@given(st.integers(1, 1 << 62))
def test_the_next_power_of_two_is_less_than_twice_the_value_and_stands_for_itself(value: int) -> None:
    edge = declared(n="pow2").problem({"n": value})["n"]
    assert isinstance(edge, int)
    assert value <= edge < 2 * value
    assert declared(n="pow2").problem({"n": edge})["n"] == edge


def test_a_function_says_what_stands_for_a_value_and_other_features_stay() -> None:
    problem = declared(n=lambda n: "small" if n < 10 else "large").problem({"n": 9, "m": 9})
    assert dict(problem) == {"n": "small", "m": 9}


@pytest.mark.parametrize(
    "bucket",
    ["pow3", [], [3, 2], [1, 1], ["a"], [True, 2], [float("nan")], [1, float("inf")], [1, 2**63], b"ab", 7, None],
)
def test_buckets_that_make_no_sense_are_refused_with_the_decision_and_the_feature(bucket: Any) -> None:
    with pytest.raises(InvalidDecision, match="d: the buckets of 'n' are"):
        declared(n=bucket)


def test_buckets_that_are_no_mapping_are_refused() -> None:
    with pytest.raises(InvalidDecision, match="does not map features to buckets"):
        Declaration("d", space=Space({"x": [1]}), default={"x": 1}, buckets=["pow2"])  # type: ignore[arg-type]


@pytest.mark.parametrize("bucket", ["pow2", [1, 2]])
@pytest.mark.parametrize("value", ["12", float("nan"), None, [1]])
def test_what_is_not_a_number_has_no_bucket(bucket: Any, value: Any) -> None:
    with pytest.raises(InvalidProblem, match=r"d: n=.* has no bucket: it is not a number"):
        declared(n=bucket).problem({"n": value})


def test_a_function_that_breaks_is_told_with_the_value() -> None:
    with pytest.raises(InvalidProblem, match="d: n=0 has no bucket: ZeroDivisionError"):
        declared(n=lambda n: 1 // n).problem({"n": 0})


def test_a_bucket_of_a_feature_that_is_not_there_is_told() -> None:
    with pytest.raises(InvalidProblem, match="d: there are buckets of 'tokens', and the features are token"):
        declared(tokens="pow2").problem({"token": 1})


def test_features_that_are_no_mapping_are_told_off_as_without_buckets() -> None:
    with pytest.raises(InvalidProblem, match="d: features must be a dict"):
        declared(n="pow2").problem([1])  # type: ignore[arg-type]


def test_infinity_is_in_the_last_bucket() -> None:
    assert bucketed({"n": float("inf")}, {"n": [1, 2]}) == {"n": 2}
    assert bucketed({"n": float("inf")}, {"n": "pow2"}) == {"n": 1 << 62}
