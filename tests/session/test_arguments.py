"""Arguments by keyword: tuning takes them as a call does, and says so where a name means two things."""

import math
from typing import Any

import pytest
from loops import IN_PROCESS

import tunewise as tw
from tunewise.errors import InvalidDecision
from tunewise.session.arguments import in_places


def added(name: str = "added", **facts: Any) -> tuple[Any, list[tuple[Any, ...]]]:
    """Return a function of two lists, and what it was called with."""
    calls: list[tuple[Any, ...]] = []
    decision = tw.Decision(
        name,
        space=tw.Space({"tile": [1, 2]}),
        default={"tile": 1},
        features=lambda a, b, scale=1: {"n": len(a), "scale": scale},
        policy=IN_PROCESS,
        **facts,
    )

    @decision.implementation
    def run(a: list[int], b: list[int], scale: int = 1, *, tile: int) -> list[int]:
        calls.append((a, b, scale))
        return [x + scale * y for x, y in zip(a, b, strict=True)]

    return run, calls


def test_tuning_by_keyword_is_tuning_by_place() -> None:
    run, calls = added()
    run.tune([1], b=[2], scale=3, budget=2)
    assert {str(call) for call in calls} == {"([1], [2], 3)"}
    known = run.tune([1], [2], 3)
    assert (known.verdict, known.answer.rung) == (None, "memory")
    assert run.decide([1], b=[2], scale=3).rung == "memory"


def test_arguments_by_keyword_give_way_to_the_inputs_that_candidates_are_checked_on() -> None:
    run, calls = added(inputs=lambda problem, seed: ([seed], [7], int(problem["scale"])))
    assert run.tune([1], b=[2]).failures == {}
    with tw.mode("tune"):
        assert run([1], b=[3], scale=2) == [7]
    assert {"([1], [7], 1)", "([2], [7], 1)", "([1], [7], 2)"} <= {str(call) for call in calls}
    assert run.decide([1], b=[3], scale=2).reason.startswith(("tie", "beat"))


def test_what_a_function_writes_into_may_be_given_by_keyword() -> None:
    space, features = tw.Space({"tile": [1, 2]}), lambda a, out: {"n": len(a)}
    decision = tw.Decision("filled", space=space, default={"tile": 1}, features=features, policy=IN_PROCESS)

    @decision.implementation(writes=[1])
    def fill(a: list[int], out: list[int], *, tile: int) -> None:
        out[0] = sum(a) if tile == 1 else 7

    assert fill.tune([1, 2], out=[0]).failures == {"correctness": 1}


def test_a_task_takes_keywords_too() -> None:
    run, _ = added()
    task = run.task([1], b=[2], scale=5)
    assert (task.work.args, dict(task.subject.problem)) == (([1], [2], 5), {"n": 1, "scale": 5})


def test_a_keyword_that_is_neither_argument_nor_option_is_named() -> None:
    run, calls = added()
    for keyword in ("bugdet", "tile"):
        with pytest.raises(InvalidDecision, match=f"added: tune has no option '{keyword}'; there are again, budget, "):
            run.tune([1], [2], **{keyword: 1})
    assert calls == []


def seeded() -> Any:
    space, features = tw.Space({"tile": [1, 2]}), lambda n, seed=0: {"n": n, "seed": seed}
    decision = tw.Decision("seeded", space=space, default={"tile": 1}, features=features, policy=IN_PROCESS)

    @decision.implementation
    def run(n: int, seed: int = 0, *, tile: int) -> int:
        return n + seed

    return run


def test_a_name_that_means_two_things_is_told_with_the_way_out() -> None:
    run = seeded()
    with pytest.raises(
        InvalidDecision, match="seeded: seed is an argument of the function and an option of tune; give"
    ):
        run.tune(1, seed=3)
    run.tune(1, 5, seed=3)
    with tw.mode("tune"):
        assert run(1, seed=4) == 5
    assert [run.decide(1, seed).rung for seed in (3, 4, 5)] == ["default", "memory", "memory"]


def test_tuning_by_features_has_no_arguments_so_all_keywords_are_options() -> None:
    run = seeded()
    object.__setattr__(run.decision, "inputs", lambda problem, seed: (problem["n"], problem["seed"]))
    assert run.decision.tune({"n": 1, "seed": 2}, seed=3, budget=2).answer.rung == "memory"


def test_a_choice_takes_the_keywords_of_its_default_way() -> None:
    ways = {"first": lambda n, base=2: n**base, "second": lambda n, base=2: n**base}
    run = tw.choice("powers", ways, default="first", features=lambda n, base: {"n": n, "base": base}, policy=IN_PROCESS)
    assert run.tune(3, base=4).failures == {}
    assert run.decide(3, base=4).rung == "memory"
    with pytest.raises(InvalidDecision, match="powers: tune has no option 'bass'"):
        run.tune(3, bass=4)


def test_a_keyword_stays_one_where_ways_of_a_choice_have_other_places_for_it() -> None:
    ways = {"axis": lambda n, axis=0, kind=1: (n, axis, kind), "kind": lambda n, kind=1, axis=0: (n, axis, kind)}
    run = tw.choice("places", ways, default="axis", features=lambda n, axis: {"n": n}, policy=IN_PROCESS)
    assert run.tune(1, axis=5).failures == {}


def test_a_name_of_a_place_without_keyword_is_another_keyword() -> None:
    def function(a: int, b: int = 0, /, **more: int) -> None: ...

    assert in_places(function, (1,), {"b": 5}, ()) == ((1,), {"b": 5})


def test_a_choice_of_functions_that_tell_nothing_of_their_arguments_is_tuned_by_place() -> None:
    ways = {"max": max, "sorted": lambda values: sorted(values)[-1], "nan": lambda values: math.nan}
    run = tw.choice("largest", ways, default="max", features=lambda values: {"n": len(values)}, policy=IN_PROCESS)
    assert run.tune((1, 2)).failures == {"correctness": 1}


def some(a: int, b: int = 2, c: int = 3, /, d: int = 4, tile: int = 0, e: int = 5, *more: int, f: int = 6) -> None: ...


@pytest.mark.parametrize(
    ("args", "kwargs", "expected"),
    [
        ((1,), {}, ((1,), {})),
        ((1,), {"d": 9}, ((1, 2, 3, 9), {})),
        ((1, 0, 0), {"d": 9, "f": 7}, ((1, 0, 0, 9), {"f": 7})),
        ((1,), {"f": 7}, ((1,), {"f": 7})),
        ((1, 0, 0, 0), {"e": 8}, ((1, 0, 0, 0), {"e": 8})),
        ((), {"d": 9}, ((), {"d": 9})),
    ],
)
def test_keywords_go_to_their_places_as_far_as_there_are_any(args: Any, kwargs: Any, expected: Any) -> None:
    assert in_places(some, args, kwargs, ["tile"]) == expected
