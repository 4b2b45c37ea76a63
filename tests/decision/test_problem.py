import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tunewise.decision import Problem, canonical
from tunewise.decision.canonical import MAX_RECORD_BYTES
from tunewise.decision.problem import MAX_FEATURES, MAX_NAME, MAX_WORD
from tunewise.errors import InvalidProblem

words = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
numbers = st.integers(-(2**63), 2**64 - 1) | st.floats(allow_nan=False, allow_infinity=False) | st.booleans()
features = st.dictionaries(words.filter(bool), numbers | words, max_size=6)


@settings(deadline=None, max_examples=300)
@given(features)
def test_a_problem_survives_json(given_):
    problem = Problem(given_)
    assert Problem(canonical.decode(canonical.encode(dict(problem)))) == problem


@settings(deadline=None, max_examples=300)
@given(features, features)
def test_problems_are_equal_exactly_when_their_json_is(a, b):
    ours, theirs = Problem(a), Problem(b)
    same_text = canonical.encode(dict(ours)) == canonical.encode(dict(theirs))
    assert (ours == theirs) == same_text
    assert (dict(a) == dict(b)) == same_text


@pytest.mark.parametrize("ten", [10, 10.0, np.int32(10), np.float32(10), np.array(10), np.uint64(10)], ids=repr)
def test_every_ten_is_the_same_ten(ten):
    problem = Problem({"m": ten})
    assert problem == Problem({"m": 10})
    assert type(problem["m"]) is int


@pytest.mark.parametrize("value", [1e16, 2.0**63, -(2.0**63), 2.0**53 + 2])
def test_a_large_whole_float_is_the_whole_number(value):
    assert canonical.encode(dict(Problem({"m": value}))) == canonical.encode(dict(Problem({"m": int(value)})))


def test_true_is_one_and_minus_zero_is_zero():
    assert Problem({"a": True, "b": -0.0, "c": np.bool_(False)}).features == (("a", 1), ("b", 0), ("c", 0))
    assert math.copysign(1, Problem({"b": -0.0})["b"]) == 1


def test_numpy_words_become_words():
    problem = Problem({np.str_("dtype"): np.str_("float32")})
    assert [(type(n), type(v)) for n, v in problem.items()] == [(str, str)]


def test_features_are_in_alphabetical_order_and_split_by_kind():
    problem = Problem({"n": 2, "dtype": "f32", "m": 0.5})
    assert list(problem) == ["dtype", "m", "n"]
    assert problem.numeric == {"m": 0.5, "n": 2}
    assert problem.categorical == {"dtype": "f32"}
    assert str(problem) == "dtype=f32, m=0.5, n=2"


def test_no_features_are_a_problem_too():
    assert len(Problem({})) == 0


def test_an_unknown_feature_is_a_key_error():
    with pytest.raises(KeyError):
        Problem({"m": 1})["n"]


class Dtype:
    """Looks like torch.float32: no number, no word."""

    def __repr__(self):
        return "torch.float32"


class Meta:
    """Looks like a tensor without data."""

    dtype, ndim = "float32", 0

    def item(self):
        raise NotImplementedError("no data")


@pytest.mark.parametrize(
    "value",
    [
        *(None, [1, 2], (1,), {}, {1}, b"x", 1j, object(), Dtype(), Meta(), np.zeros(3), np.datetime64("2020-01-01")),
        *(float("nan"), float("inf"), -float("inf"), np.float64("nan"), 2**64, -(2**63) - 1, "\ud800", "x" * 1001),
    ],
    ids=lambda v: repr(v)[:20],
)
def test_what_is_no_number_or_word_is_refused_by_name(value):
    with pytest.raises(InvalidProblem, match=r"^feature m="):
        Problem({"m": value})


def test_the_message_for_an_object_says_what_to_do():
    with pytest.raises(InvalidProblem, match=r"feature dtype=torch.float32 is a Dtype, .*str\(\.\.\.\)"):
        Problem({"dtype": Dtype()})


@pytest.mark.parametrize("name", [1, "", None, ("a",), "x" * (MAX_NAME + 1), "\udfff"], ids=lambda n: repr(n)[:20])
def test_a_feature_name_must_be_a_word(name):
    with pytest.raises(InvalidProblem, match="feature name"):
        Problem({name: 1})


@pytest.mark.parametrize("given_", [[("m", 1)], None, 3, "m", range(10**9)], ids=repr)
def test_features_must_be_a_mapping(given_):
    with pytest.raises(InvalidProblem, match="must be a dict"):
        Problem(given_)


def test_a_long_list_is_shown_short():
    with pytest.raises(InvalidProblem) as caught:
        Problem(list(range(100_000)))
    assert len(str(caught.value)) < 200


def test_the_largest_problem_fits_a_record():
    worst = {chr(1) * (MAX_NAME - 3) + f"{i:03}": chr(1) * MAX_WORD for i in range(MAX_FEATURES)}
    assert len(canonical.encode(dict(Problem(worst)))) < MAX_RECORD_BYTES
    with pytest.raises(InvalidProblem, match="features"):
        Problem({**worst, "one more": 1})


def test_equal_problems_are_one_key():
    assert len({Problem({"a": 1, "b": 2}), Problem({"b": 2.0, "a": True})}) == 1
