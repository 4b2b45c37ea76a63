"""The user's API: declaring, calling, modes, pins, misses and explanations."""

import gc
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import tunewise as tw
from tunewise.decision import hardware
from tunewise.errors import (
    DuplicateDecision,
    EnvironmentWarning,
    InvalidConfig,
    InvalidDecision,
    InvalidProblem,
    InvalidSetting,
    MissingPart,
)
from tunewise.session import context

IN_PROCESS = tw.Policy(isolation="none", min_sample_s=1e-5)


def burn(steps: int) -> None:
    end = time.process_time() + steps * 2e-5
    while time.process_time() < end:
        pass


class Loop:
    """A decision over two step counts, with a record of every config that ran."""

    def __init__(self, name: str = "loop", **facts: Any) -> None:
        self.calls: Counter[int] = Counter()
        facts = {"features": lambda n: {"n": n}, "inputs": lambda problem, seed: (problem["n"],), **facts}
        self.decision = tw.Decision(
            name, space=tw.Space({"steps": [1, 4]}), default={"steps": 4}, policy=IN_PROCESS, **facts
        )

        @self.decision.implementation
        def loop(n: int, *, steps: int) -> int:
            self.calls[steps] += 1
            burn(steps)
            return n

        self.loop = loop

    @property
    def rung(self) -> str:
        return self.decision.decide({"n": 8}).rung


def test_a_call_runs_the_default_until_something_is_known() -> None:
    it = Loop()
    assert it.loop(8) == 8
    assert it.calls == {4: 1}


def test_a_tuned_problem_is_answered_from_memory_on_every_call() -> None:
    it = Loop()
    result = it.loop.tune(8)
    assert result.answer.config == {"steps": 1}
    it.calls.clear()
    assert it.loop(8) == 8
    assert it.calls == {1: 1}


def test_use_mode_never_measures() -> None:
    it = Loop()
    for _ in range(5):
        it.loop(8)
    assert sum(it.calls.values()) == 5
    assert context.current_store().subjects("loop") == []


def test_tune_mode_tunes_each_new_problem_once() -> None:
    it = Loop()
    with tw.mode("tune"):
        it.loop(8)
        spent = sum(it.calls.values())
        it.loop(8)
        assert sum(it.calls.values()) == spent + 1
        it.loop(100)
        assert sum(it.calls.values()) > spent + 10
    assert it.rung == "memory"


def test_tune_mode_may_accept_a_near_match() -> None:
    it = Loop()
    it.loop.tune(8)
    it.calls.clear()
    with tw.mode("tune", accept=["near"]):
        it.loop(9)
    assert sum(it.calls.values()) == 1


def test_collect_mode_measures_every_config() -> None:
    it = Loop()
    with tw.mode("collect"):
        it.loop(8)
    subject = context.current_store().subjects("loop")[0]
    configs = {t.config["steps"] for t in context.current_store().trials(subject)}
    assert configs == {1, 4}


def test_off_is_always_the_default_and_replay_knows_no_near_match() -> None:
    it = Loop()
    it.loop.tune(8)
    with tw.mode("off"):
        assert it.decision.decide({"n": 8}).rung == "default"
    with tw.mode("replay"):
        assert it.decision.decide({"n": 8}).rung == "memory"
        assert it.decision.decide({"n": 9}).rung == "default"
    assert it.decision.decide({"n": 9}).rung == "near"


def test_the_innermost_block_wins_over_the_decision_and_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TUNEWISE_MODE", "off")
    tw.configure()
    free, own = Loop("free"), Loop("own", mode="replay")
    assert free.decision.mode_in_force() == "off"
    assert own.decision.mode_in_force() == "replay"
    with tw.mode("tune"), tw.mode("use"):
        assert own.decision.mode_in_force() == "use"
    assert own.decision.explain({"n": 1}, mode="off").mode == "off"


def test_the_environment_can_name_single_decisions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TUNEWISE_MODE", "off")
    monkeypatch.setenv("TUNEWISE_COLLECT", "x, loop")
    monkeypatch.setenv("TUNEWISE_USE", "other")
    tw.configure()
    assert Loop().decision.mode_in_force() == "collect"
    assert Loop("other").decision.mode_in_force() == "use"
    assert Loop("third").decision.mode_in_force() == "off"


def test_a_mode_that_does_not_exist_is_refused() -> None:
    with (
        pytest.raises(InvalidSetting, match="mode 'turbo' is not one of use, tune, collect, replay, off"),
        tw.mode("turbo"),
    ):  # type: ignore[arg-type]
        pass


def test_a_miss_is_counted_and_kept_until_the_problem_is_tuned() -> None:
    it = Loop()
    for _ in range(5):
        it.loop(8)
    it.loop(1000)
    tw.refresh()
    misses = context.current_store().misses("loop")
    assert [(m.problem["n"], m.count) for m in misses] == [(8, 5), (1000, 1)]
    it.loop.tune(8)
    assert [m.problem["n"] for m in context.current_store().misses("loop")] == [1000]


def test_explaining_is_not_a_miss() -> None:
    it = Loop()
    it.loop.explain(8)
    assert context.current_store().misses("loop") == []


def test_memory_survives_the_process(home: Path) -> None:
    it = Loop()
    it.loop.tune(8)
    tw.configure()  # closes the store and forgets every answer
    assert it.rung == "memory"


def test_a_pin_wins_over_memory_where_its_features_match() -> None:
    it = Loop()
    it.loop.tune(8)
    it.decision.pin({"steps": 4}, n=8)
    assert it.rung == "pin"
    assert it.decision.decide({"n": 9}).rung == "near"
    it.decision.unpin()
    assert it.rung == "memory"


def test_a_pin_outside_the_space_is_refused() -> None:
    with pytest.raises(InvalidConfig, match="steps=2 is not one of"):
        Loop().decision.pin({"steps": 2})


def test_an_explicit_keyword_beats_the_answer() -> None:
    it = Loop()
    it.loop(8, steps=1)
    assert it.calls == {1: 1}


def test_explain_names_every_rung_and_the_part_that_differs() -> None:
    it = Loop()
    it.loop.tune(8)
    text = str(it.loop.explain(64))
    assert "the closest of 1 remembered differs in problem.n (now 64, then 8)" in text
    assert "the declared default" in text
    assert "beat the default" in str(it.loop.explain(8))


def test_features_in_another_order_are_the_same_problem() -> None:
    decision = tw.Decision("pair", space=tw.Space({"x": [1, 2]}), default={"x": 1})
    decision.pin({"x": 2}, m=1, n=2)
    assert decision.decide({"m": 1, "n": 2}).config["x"] == 2
    assert decision.decide({"n": 2, "m": 1}).config["x"] == 2
    assert decision.decide({"n": 1, "m": 2}).config["x"] == 1


def test_an_answer_cannot_be_changed_by_who_gets_it() -> None:
    it = Loop()
    it.loop.tune(8)
    with pytest.raises(TypeError):
        it.decision.decide({"n": 8}).config["steps"] = 4  # type: ignore[index]


def test_features_that_return_a_list_are_told_off_by_name() -> None:
    it = Loop(features=lambda n: [n])
    with pytest.raises(InvalidProblem, match="loop: features must be a dict"):
        it.loop(8)


def test_a_default_outside_the_space_is_refused() -> None:
    with pytest.raises(InvalidDecision, match="bad: the default is not in the space: steps=3 is not one of \\(1, 4\\)"):
        tw.Decision("bad", space=tw.Space({"steps": [1, 4]}), default={"steps": 3})


def test_two_decisions_with_one_name_are_refused_while_both_live() -> None:
    space = tw.Space({"x": [1]})
    first = tw.Decision("twice", space=space, default={"x": 1})
    with pytest.raises(DuplicateDecision, match=r"two decisions are named 'twice' .*test_decision.py.*rename one"):
        tw.Decision("twice", space=space, default={"x": 1})
    del first
    gc.collect()
    assert tw.Decision("twice", space=space, default={"x": 1}).name == "twice"


def test_the_same_line_may_declare_again() -> None:
    made = [tw.Decision("line", space=tw.Space({"x": [1]}), default={"x": 1}) for _ in range(2)]
    assert len(made) == 2


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
