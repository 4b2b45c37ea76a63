"""Answers over time: other threads, other environments, other defaults, and what is measured again."""

import os
import signal
import threading
from typing import Any, ClassVar

import pytest
from loops import IN_PROCESS, Loop, burn

import tunewise as tw
from tunewise.decision import hardware
from tunewise.errors import (
    EnvironmentWarning,
    FailedInputs,
    InvalidDecision,
    InvalidProblem,
    InvalidSetting,
    MeasureWarning,
    MissingPart,
)
from tunewise.session import context
from tunewise.session import decision as decision_module
from tunewise.session.ladder import climb


def test_tuning_by_features_needs_inputs() -> None:
    it = Loop(inputs=None)
    with pytest.raises(MissingPart, match="loop has no inputs: declare inputs="):
        it.decision.tune({"n": 8})


def test_inputs_that_make_another_problem_are_refused() -> None:
    it = Loop(inputs=lambda problem, seed: (problem["n"] + 1,))
    with pytest.raises(InvalidProblem, match="inputs for \\(n=8\\) make arguments of the problem \\(n=9\\)"):
        it.decision.tune({"n": 8})


def test_an_unknown_option_of_tune_is_named() -> None:
    with pytest.raises(InvalidDecision, match="loop: tune has no option 'bugdet'"):
        Loop().loop.tune(8, bugdet=3)


def test_a_decision_without_an_implementation_says_so() -> None:
    decision = tw.Decision("bare", space=tw.Space({"x": [1]}), default={"x": 1}, inputs=lambda problem, seed: (1,))
    with pytest.raises(MissingPart, match="bare has no implementation"):
        decision.tune({"n": 1})


def test_collect_by_problems_measures_all_of_them() -> None:
    results = Loop().decision.collect([{"n": 1}, {"n": 100}])
    assert [r.evaluations for r in results] == [2, 2]


def test_collect_passes_over_a_problem_whose_inputs_cannot_be_made() -> None:
    it = Loop(inputs=lambda problem, seed: (problem["n"] // (problem["n"] < 50),))
    with pytest.warns(MeasureWarning, match="inputs fails for \\(n=100\\) with ZeroDivisionError"):
        results = it.decision.collect([{"n": 100}, {"n": 1}])
    assert [r.evaluations for r in results] == [0, 2]
    with pytest.raises(FailedInputs), pytest.warns(MeasureWarning):
        it.decision.collect([{"n": 100}])


def test_a_choice_picks_the_fastest_way() -> None:
    ways = {"slow": lambda n: burn(5), "fast": lambda n: burn(1)}
    run = tw.choice("ways", ways, default="slow", features=lambda n: {"n": n}, policy=IN_PROCESS)
    assert run.tune(3).answer.config == {"choice": "fast"}


def test_a_choice_needs_functions_and_a_known_default() -> None:
    with pytest.raises(InvalidDecision, match="choices must map names to functions"):
        tw.choice("none", {}, default="x")
    with pytest.raises(InvalidDecision, match="choice='x' is not one of"):
        tw.choice("unknown", {"a": print}, default="x")


def test_changing_a_choice_s_function_voids_its_memory() -> None:
    def declare(steps: int) -> Any:
        ways = {"slow": lambda n: burn(8), "fast": lambda n: burn(steps)}
        return tw.choice("changing", ways, default="slow", features=lambda n: {"n": n}, policy=IN_PROCESS)

    declare(1).tune(3)
    assert declare(1).decide(3).rung == "memory"
    assert "source" in str(declare(2).explain(3))


def test_in_place_functions_are_timed_on_fresh_arguments() -> None:
    np = pytest.importorskip("numpy")
    values = np.random.default_rng(0).random(2000)
    seen_sorted = []

    def sort(array: Any, *, kind: str) -> None:
        seen_sorted.append(bool((array[:-1] <= array[1:]).all()))
        array.sort(kind=kind)

    decision = tw.Decision(
        "inplace",
        space=tw.Space({"kind": ["quicksort", "heapsort"]}),
        default={"kind": "quicksort"},
        features=lambda array: {"n": array.size},
        policy=IN_PROCESS,
    )
    decision.implementation(sort).tune(values)
    assert not any(seen_sorted)
    assert not (values[:-1] <= values[1:]).all()


def test_a_mode_that_does_not_exist_is_refused_wherever_it_is_given() -> None:
    space, default = tw.Space({"x": [1, 2]}), {"x": 1}
    with pytest.raises(InvalidSetting, match="mode 'turbo'"):
        tw.Decision("fast", space=space, default=default, mode="turbo")  # type: ignore[arg-type]
    decision = tw.Decision("fast", space=space, default=default)
    for ask in (decision.decide, decision.explain):
        with pytest.raises(InvalidSetting, match="mode 'turbo'"):
            ask({"n": 1}, mode="turbo")  # type: ignore[operator]


def test_a_result_that_differs_from_call_to_call_cannot_be_checked_and_says_so() -> None:
    drawn = iter(range(10_000))

    def draw(n: int, *, steps: int) -> float:
        return next(drawn) + 0.5

    decision = tw.Decision(
        "drawn", space=tw.Space({"steps": [1, 4]}), default={"steps": 4}, features=lambda n: {"n": n}
    )
    with pytest.warns(tw.TunewiseWarning, match=r"differs from call to call.*check=NO_CHECK"):
        answer = decision.implementation(draw).tune(8).answer
    assert answer.config == {"steps": 4}


def test_an_answer_measured_under_another_kernel_release_warns_once(monkeypatch: pytest.MonkeyPatch) -> None:
    it = Loop()
    it.loop.tune(8)
    monkeypatch.setattr(hardware.platform, "release", lambda: "99.9-next")
    it.decision.forget()
    with pytest.warns(
        EnvironmentWarning, match=r"loop: the answer was measured with another os.release \(now '99.9-next'"
    ):
        assert it.rung == "memory"
    it.decision.forget()
    assert it.rung == "memory"
    assert "measured with another os.release" in str(it.loop.explain(8))


def test_one_decision_serves_many_threads() -> None:
    it = Loop()
    it.loop.tune(8)
    answers: list[tw.Answer] = []
    threads = [threading.Thread(target=lambda: answers.append(it.decision.decide({"n": 8}))) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {answer.rung for answer in answers} == {"memory"}
    assert len(answers) == 16


def test_two_threads_tune_a_problem_once() -> None:
    it = Loop()
    results: list[tw.Tuning] = []
    threads = [threading.Thread(target=lambda: results.append(it.loop.tune(8))) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(result.measured for result in results) == [0, 2]


class ForgettingPolicy(tw.Policy):
    """Stands for another thread that forgets everything at the worst moment."""

    of: ClassVar[list[tw.Decision]] = []

    @property
    def key(self) -> dict[str, Any]:
        for decision in self.of:
            decision.forget()
        return super().key


def test_forgetting_in_another_thread_does_not_break_a_question() -> None:
    decision = tw.Decision("moment", space=tw.Space({"x": [1]}), default={"x": 1}, policy=ForgettingPolicy())
    ForgettingPolicy.of = [decision]
    try:
        assert decision.decide({"n": 1}).rung == "default"
    finally:
        ForgettingPolicy.of = []


def test_an_answer_from_before_a_tuning_is_not_kept_after_it(monkeypatch: pytest.MonkeyPatch) -> None:
    it = Loop()

    def climb_slowly(*question: Any) -> tw.Answer:
        answer = climb(*question)
        monkeypatch.undo()
        it.loop.tune(8)  # as another thread would, while this one was looking
        return answer

    monkeypatch.setattr(decision_module, "climb", climb_slowly)
    store = context.current_store()
    assert it.rung == "default"
    assert it.rung == "memory"
    assert store.misses("loop") == []


def test_a_candidate_that_makes_decisions_does_not_tune_them_while_it_is_timed() -> None:
    inner = Loop("inner")
    modes: list[str] = []

    def outer(n: int) -> int:
        modes.append(inner.decision.mode_in_force())
        return inner.loop(n)

    decide = tw.choice(
        "outer",
        {"one": outer, "two": lambda n: outer(n)},
        features=lambda n: {"n": n},
        default="one",
        policy=IN_PROCESS,
    )
    with tw.mode("tune"):
        decide(8)
    assert set(modes[:-1]) == {"use"}
    assert modes[-1] == "tune"
    assert inner.rung == "memory"


def test_a_forked_child_can_ask_while_a_thread_of_its_parent_counts_a_miss() -> None:
    it = Loop()
    it.loop(8)
    with it.decision._own.misses._lock:
        child = os.fork()
        if child == 0:
            signal.alarm(20)
            os._exit(0 if it.rung == "default" else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_collect_mode_completes_a_problem_that_is_already_tuned_and_does_so_once() -> None:
    it = Loop()
    it.loop.tune(8, budget=1)
    with tw.mode("collect"):
        it.loop(8)
        spent = sum(it.calls.values())
        it.loop(8)
    assert sum(it.calls.values()) == spent + 1
    assert set(it.calls) == {1, 4}


def test_a_tie_with_a_former_default_is_no_answer() -> None:
    def declare(default: int) -> Any:
        decision = tw.Decision(
            "former",
            space=tw.Space({"steps": [3, 4]}),
            default={"steps": default},
            features=lambda n: {"n": n},
            policy=IN_PROCESS,
        )

        @decision.implementation
        def loop(n: int, *, steps: int) -> None:
            burn(2)

        return loop

    assert "tie" in declare(4).tune(8).answer.reason
    assert declare(4).decide(8).rung == "memory"
    assert declare(3).decide(8).rung == "default"
