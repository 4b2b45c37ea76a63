from collections.abc import Callable
from typing import Any

from click.testing import Result

Asked = Callable[..., Any]
Cli = Callable[..., Result]


def problems(document: Any) -> list[dict[str, Any]]:
    return [row["problem"] for row in document["tunings"]]


def test_a_grid_collects_every_combination(asked: Asked, toy: str) -> None:
    assert problems(asked("collect", toy, "--grid", "n=1:2:3")) == [{"n": 1}, {"n": 2}, {"n": 3}]


def test_drawn_problems_are_the_same_again_and_not_measured_twice(asked: Asked, toy: str) -> None:
    words = ("collect", toy, "--log-uniform", "n=1:50")
    first = asked(*words, "--num-problems", 2)
    more = asked(*words, "--num-problems", 3)
    assert problems(more)[:2] == problems(first)
    assert [row["measured"] for row in more["tunings"]] == [0, 0, 6]


def test_normal_sizes_are_multiples(asked: Asked, toy: str) -> None:
    words = ("--log-normal", "n=3:0.5", "--multiple-of", 8, "--num-problems", 3, "--draw-seed", 5)
    assert all(problem["n"] % 8 == 0 for problem in problems(asked("collect", toy, *words)))


def test_one_of_is_drawn_beside_sizes(asked: Asked) -> None:
    words = ("--log-uniform", "n=10:200", "--one-of", "dtype=int64:float32,order=random", "--num-problems", 4)
    found = problems(asked("collect", "sort", *words))
    assert {problem["order"] for problem in found} == {"random"}
    assert {problem["dtype"] for problem in found} <= {"int64", "float32"}


def test_bounds_that_are_none_are_named_with_an_example(cli: Cli, toy: str) -> None:
    result = cli("collect", toy, "--log-uniform", "n=100")
    assert result.exit_code == 1
    assert "--log-uniform n=100 is not two numbers; write --log-uniform n=16:4096" in result.stderr


def test_a_feature_the_decision_does_not_have_is_named(cli: Cli, toy: str) -> None:
    result = cli("collect", toy, "--grid", "size=1:2")
    assert result.exit_code == 1
    assert "does not know size" in result.stderr
