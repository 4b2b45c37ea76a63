"""Implementations of every kind: methods, classes, functions that take too little or work later, and in a pool."""

import copy
import functools
import itertools
import multiprocessing
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest

import tunewise as tw
from tunewise.errors import InvalidDecision

QUICK = tw.Policy(isolation="none", min_sample_s=1e-5)
_numbers = itertools.count()


def declared(name: str = "", **facts: Any) -> tw.Decision:
    usual: dict[str, Any] = {
        "space": tw.Space({"tile": [8, 16], "unroll": [1, 2]}),
        "default": {"tile": 8, "unroll": 1},
        "features": lambda n: {"n": n},
        "policy": QUICK,
    }
    return tw.Decision(name or f"kind{next(_numbers)}", **{**usual, **facts})


@declared("doubled").implementation
def doubled(n: int, *, tile: int, unroll: int) -> int:
    """Return twice as much."""
    return 2 * n


class Scaled:
    """Has a method that is tuned."""

    def __init__(self, factor: int) -> None:
        self.factor = factor

    @declared("times", features=lambda self, n: {"n": n}).implementation
    def times(self, n: int, *, tile: int, unroll: int) -> int:
        """Return so many times as much."""
        return self.factor * n


twofold = tw.choice("twofold", {"sum": lambda n: n + n, "product": lambda n: 2 * n}, default="sum", policy=QUICK)


def test_a_tuned_function_goes_to_other_processes_by_its_name() -> None:
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        assert pool.map(doubled, [1, 2, 3]) == [2, 4, 6]


@pytest.mark.parametrize("made", [doubled, twofold], ids=["implementation", "choice"])
def test_a_copy_of_a_tuned_function_is_the_function(made: Any) -> None:
    assert copy.copy(made) is made
    assert copy.deepcopy({"made": made})["made"] is made


def test_a_method_is_called_tuned_and_explained_on_its_object() -> None:
    scaled = Scaled(3)
    assert scaled.times(5) == 15
    assert Scaled.times(scaled, 5) == 15
    assert scaled.times.tune(5, budget=2).answer.rung == "memory"
    assert scaled.times.decide(n=5).rung == "memory"
    assert scaled.times.explain(5).answer.rung == "memory"
    assert scaled.times.task(5).work.args == (scaled, 5)
    assert scaled.times.decision is Scaled.times.decision


def without_unroll(n: int, *, tile: int) -> int:
    return n


@pytest.mark.parametrize("function", [without_unroll, functools.partial(without_unroll), sorted])
def test_a_function_that_does_not_take_a_parameter_is_refused_where_it_is_declared(
    function: Callable[..., Any],
) -> None:
    with pytest.raises(InvalidDecision, match=r"does not take .*unroll of the space; write def .*\*, tile, unroll\)"):
        declared().implementation(function)


@pytest.mark.parametrize(
    "function",
    [
        lambda n, tile, unroll: n,
        lambda n, **config: n,
        functools.partial(lambda extra, n, *, tile, unroll: n, 1),
        functools.wraps(without_unroll)(lambda *args, **kwargs: args[0]),
        max,  # tells nothing about what it takes
    ],
)
def test_a_function_that_may_take_the_parameters_is_none_to_refuse(function: Callable[..., Any]) -> None:
    declared().implementation(function)


def generator(n: int, *, tile: int, unroll: int) -> Iterator[int]:
    yield from range(n)


async def coroutine(n: int, *, tile: int, unroll: int) -> int:
    return n


async def asynchronous(n: int, *, tile: int, unroll: int) -> AsyncIterator[int]:
    yield n


@pytest.mark.parametrize("function", [generator, coroutine, asynchronous])
def test_a_function_that_works_later_is_used_but_never_timed(function: Callable[..., Any]) -> None:
    made = declared().implementation(function)
    with pytest.raises(InvalidDecision, match="whose calls do their work later"):
        made.tune(3)


def test_a_generator_is_called_with_the_answer() -> None:
    assert list(declared().implementation(generator)(3)) == [0, 1, 2]


def test_a_seed_that_cannot_be_tried_is_told_and_the_others_are_tried() -> None:
    made = declared().implementation(lambda n, *, tile, unroll: n)
    with pytest.warns(tw.TunewiseWarning, match="a seed is left out: unknown parameter 'tiel'; did you mean 'tile'"):
        tuning = made.tune(3, budget=2, seeds=[{"tiel": 16}, {"tile": 16}])
    assert tuning.verdict is not None
    assert [proposal.fate for proposal in tuning.verdict.proposals] == ["dropped", "tried"]


async def later(n: int) -> int:
    return n


def test_a_way_of_a_choice_that_works_later_is_not_timed() -> None:
    run = tw.choice("waits", {"now": lambda n: n, "later": later}, default="now", features=lambda n: {"n": n})
    with pytest.raises(InvalidDecision, match="waits: later is a coroutine function"):
        run.task(1)


def test_a_method_is_known_by_its_object_and_function() -> None:
    class Holder:
        @declared().implementation
        def go(self, n: int, *, tile: int, unroll: int) -> int:
            """Go."""
            return n

    one, other = Holder(), Holder()
    assert one.go == one.go
    assert one.go != other.go
    assert len({one.go, one.go, other.go}) == 2
    assert (one.go.__name__, one.go.__doc__) == ("go", "Go.")
