import random
import statistics

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tunewise.decision import (
    Environment,
    Failure,
    Part,
    Policy,
    Problem,
    Subject,
    Timing,
    Verdict,
    lower_half_mean,
    merged,
)

ENV = Environment((Part("hardware.name", "X", "must"), Part("libc", "a", "warn"), Part("python.patch", "3", "ignore")))
POLICY = tuple(Policy().key.items())


def subject(features, decision="gemm", policy=POLICY, environment=ENV):
    return Subject(decision, Problem(features), policy, environment)


words = st.text(st.sampled_from('ab.m"\\{}:,=\x00é'), min_size=1, max_size=4)
problems = st.dictionaries(words, st.integers(-3, 3) | st.floats(-2, 2) | words, max_size=4)


def assert_no_collision(a, b):
    ours, theirs = subject(a), subject(b)
    assert (ours.digest == theirs.digest) == (Problem(a) == Problem(b))
    assert bool(ours.difference(theirs)) == (ours.digest != theirs.digest)


@settings(deadline=None, max_examples=300)
@given(problems, problems)
def test_distinct_problems_have_distinct_keys(a, b):
    assert_no_collision(a, b)


@pytest.mark.full
@settings(deadline=None, max_examples=10_000)
@given(problems, problems)
def test_ten_thousand_distinct_problems_have_distinct_keys(a, b):
    assert_no_collision(a, b)


def test_no_two_of_ten_thousand_problems_share_a_key():
    rng = random.Random(5)
    values = [0, 1, -1, 2, 10, 0.5, 1e300, "1", "0.5", "", "a", 'a":1', "null"]
    names = ["m", "n", "m.n", "m:", '"', "problem.m", "é", "policy"]
    made = [{name: rng.choice(values) for name in rng.sample(names, rng.randrange(6))} for _ in range(10_000)]
    distinct = {Problem(features) for features in made}
    assert len(distinct) > 5_000
    assert len({subject(problem).digest for problem in distinct}) == len(distinct)


def test_a_feature_cannot_forge_another_part():
    forged = [
        {"clock": "wall"},
        {"policy.clock": "wall"},
        {"x.y": 1},
        {"x": 1},
        {"hardware.name": "Y"},
        {"decision": "other"},
        {"m": 1, "policy.m": 2},
    ]
    assert len({subject(features).digest for features in forged}) == len(forged)
    for features in forged:
        parts = subject(features).parts
        assert (parts["decision"], parts["policy.clock"], parts["hardware.name"]) == ("gemm", "cpu", "X")


def test_a_feature_and_a_policy_of_one_name_are_two_parts():
    assert subject({"threads": 2}).difference(subject({})) == {"problem.threads": (2, None)}


@pytest.mark.parametrize(
    ("other", "part"),
    [
        (subject({"m": 1}, decision="conv"), "decision"),
        (subject({"m": 2}), "problem.m"),
        (subject({"m": 1}, policy=tuple(Policy(clock="wall").key.items())), "policy.clock"),
        (subject({"m": 1}, policy=tuple(Policy(steps=7).key.items())), "policy.steps"),
        (subject({"m": 1}, environment=Environment((Part("hardware.name", "Y", "must"),))), "hardware.name"),
    ],
    ids=["decision", "problem", "clock", "steps", "hardware"],
)
def test_a_part_that_differs_changes_the_key_and_is_named(other, part):
    ours = subject({"m": 1})
    assert ours.digest != other.digest
    assert list(ours.difference(other)) == [part]


def test_parts_that_warn_or_are_ignored_do_not_enter_the_key():
    other = Environment((Part("hardware.name", "X", "must"), Part("libc", "b", "warn")))
    assert subject({"m": 1}).digest == subject({"m": 1}, environment=other).digest
    assert subject({"m": 1}).difference(subject({"m": 1}, environment=other)) == {}


def test_a_part_that_is_none_differs_from_one_that_is_missing():
    with_none = subject({}, environment=Environment((Part("library.x", None, "must"),)))
    without = subject({}, environment=Environment(()))
    assert with_none.digest != without.digest
    assert with_none.difference(without) == {"library.x": (None, None)}


def test_a_part_read_back_from_json_is_the_same_part():
    tuples = subject({}, environment=Environment((Part("flags", ("-O2", "-g"), "must"),)))
    lists = subject({}, environment=Environment((Part("flags", ["-O2", "-g"], "must"),)))
    assert tuples.difference(lists) == {}
    assert tuples.digest == lists.digest


def test_a_subject_is_a_key():
    assert len({subject({"m": 1}), subject({"m": 1.0}), subject({"m": 2})}) == 2


@settings(deadline=None, max_examples=100)
@given(st.lists(st.floats(1e-9, 10), min_size=1, max_size=20))
def test_the_time_is_the_mean_of_the_lower_half(samples):
    time_s = Timing(tuple(samples)).time_s
    assert min(samples) * (1 - 1e-12) <= time_s <= statistics.median_low(samples) * (1 + 1e-12)
    assert time_s == lower_half_mean(list(reversed(samples)))


def test_the_slower_half_does_not_count():
    assert Timing((1.0, 900.0)).time_s == 1.0
    assert Timing((1.0, 3.0, 900.0, 900.0)).time_s == 2.0


def test_the_middle_one_of_an_odd_number_does_not_count():
    assert Timing((1.0, 3.0, 900.0)).time_s == 1.0
    assert Timing((1.0, 2.0, 3.0, 900.0, 900.0, 900.0, 900.0)).time_s == 2.0


def test_no_samples_have_no_time():
    with pytest.raises(ValueError, match="never timed"):
        lower_half_mean([])


def test_several_outcomes_become_one():
    assert merged([Timing((1.0,), 5.0), Timing((2.0, 3.0))]) == Timing((1.0, 2.0, 3.0), 5.0)
    assert merged([Timing((1.0,)), Failure("crash", "x"), Failure("timeout")]) == Failure("crash", "x")


def test_a_challenger_is_the_winner_only_if_it_won():
    pair = {"incumbent": {"a": 1}, "challenger": {"a": 2}, "incumbent_s": (2.0, 9.0), "challenger_s": (1.0, 9.0)}
    assert (Verdict("win", **pair).winner, Verdict("win", **pair).time_s) == ({"a": 2}, 1.0)
    assert (Verdict("tie", **pair).winner, Verdict("tie", **pair).time_s) == ({"a": 1}, 2.0)
    assert Verdict("failed", {"a": 1}, {"a": 2}).time_s is None
