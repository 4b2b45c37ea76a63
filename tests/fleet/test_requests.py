"""Requests: what ranks compare of what they ask, and how they tell a difference."""

from typing import Any

import pytest

import tunewise as tw
from tunewise.fleet.boards import FileBoard
from tunewise.fleet.requests import Asked, Requests

SPACE = tw.Space({"tile": [8, 16, 32]})


def declared(**facts: Any) -> tw.Decision:
    return tw.Decision("asked", **{"space": SPACE, "default": {"tile": 8}, **facts})


def asked(requests: Requests, features: Any = None, **facts: Any) -> Asked:
    decision = declared(**facts)
    return requests.asked(decision, decision.subject(decision.problem(features or {"n": 1})))


@pytest.fixture
def of_two(tmp_path: Any) -> tuple[Requests, Requests]:
    return tuple(Requests(FileBoard(tmp_path), rank, 2, limit_s=0.1) for rank in range(2))  # type: ignore[return-value]


def test_an_answer_is_found_by_the_decision_and_the_problem_alone(of_two: tuple[Requests, Requests]) -> None:
    one, other = of_two
    assert asked(one).key == asked(other, policy=tw.Policy(clock="wall"), version="2").key
    assert asked(one).key != asked(one, {"n": 2}).key


def test_a_decision_that_is_declared_anew_is_another_one(of_two: tuple[Requests, Requests]) -> None:
    one, other = of_two
    threads = {"policy": tw.Policy(threads=2)}
    assert asked(one).key != asked(one, **threads).key
    assert (asked(other).key, asked(other, **threads).key) == (asked(one).key, asked(one, **threads).key)


def differences(of_two: tuple[Requests, Requests], ours: dict[str, Any], theirs: dict[str, Any]) -> list[str]:
    one, other = of_two
    one.difference(asked(one, **ours))  # in vain: the other one has not asked yet
    said = other.difference(asked(other, **theirs))
    assert one.difference(asked(one, **ours)) == said
    return said


@pytest.mark.parametrize(
    ("facts", "parts"),
    [
        ({"space": tw.Space({"tile": [8, 16]})}, ["space.tile"]),
        ({"space": tw.Space({"tile": [8, 16, 32]}, ["tile > 4"])}, ["space.rules"]),
        ({"default": {"tile": 16}}, ["default"]),
        ({"policy": tw.Policy(clock="wall", threads=2)}, ["policy.clock", "policy.threads"]),
        ({"check": tw.Check(atol=0.5)}, ["check.atol"]),
        ({"buckets": {"n": "pow2"}}, ["buckets.n"]),
        ({"features": {"n": 1, "m": 1}}, ["features"]),
        ({"version": "2"}, ["version"]),
        ({"libraries": ["msgspec"]}, ["library.msgspec"]),
        ({"variables": ["HOME"]}, ["variable.HOME"]),
    ],
)
def test_what_differs_is_named(of_two: tuple[Requests, Requests], facts: dict[str, Any], parts: list[str]) -> None:
    assert differences(of_two, {}, facts) == parts


@pytest.mark.parametrize(
    "facts",
    [
        {"space": tw.Space({"tile": [32, 16, 8]})},
        {"policy": tw.Policy(timeout_s=1.0)},
        {"device": "cpu", "near": 2},
        {"features": {"n": 7}},
    ],
)
def test_what_makes_no_difference_is_not_compared(of_two: tuple[Requests, Requests], facts: dict[str, Any]) -> None:
    assert differences(of_two, {}, facts) == []


def test_values_that_are_too_many_to_list_differ_by_their_number(of_two: tuple[Requests, Requests]) -> None:
    ours, theirs = ({"space": tw.Space({"tile": range(8, most)})} for most in (10_000, 10_001))
    assert differences(of_two, ours, theirs) == ["space.tile"]
    one, _ = of_two
    assert one.described(asked(one, **ours), ["space.tile"]).startswith("space.tile is 9992 values, 8, 9, ")


def test_a_request_that_cannot_be_read_differs(of_two: tuple[Requests, Requests]) -> None:
    one, _ = of_two
    question = asked(one)
    assert one._board is not None
    one._board.publish(f"{question.place}/1", "not JSON")
    assert "tunewise" in one.difference(question)


def test_values_are_told_in_order(of_two: tuple[Requests, Requests]) -> None:
    facts = {"space": tw.Space({"tile": [16, 2, "b", 8.5, None, "a"]}), "default": {"tile": 2}}
    assert asked(of_two[0], **facts).parts["space.tile"] == "2, 8.5, 16, 'a', 'b', None"


def test_many_ranks_are_named_in_short(tmp_path: Any) -> None:
    ranks = [Requests(FileBoard(tmp_path), rank, 6, limit_s=0.01) for rank in range(6)]
    for rank, one in enumerate(ranks):
        question = asked(one, version="2" if rank in (1, 2, 5) else "1")
        names = one.difference(question)
    assert one.described(question, names) == "version is 1 on ranks 0, 3-4 and 2 on ranks 1-2, 5"
