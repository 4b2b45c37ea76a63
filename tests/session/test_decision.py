"""The user's API: declaring, calling, modes, pins, misses and explanations."""

import gc
from pathlib import Path
from typing import Any

import pytest
from loops import Loop

import tunewise as tw
from tunewise.errors import (
    DuplicateDecision,
    InvalidConfig,
    InvalidDecision,
    InvalidProblem,
    InvalidSetting,
)
from tunewise.session import context
from tunewise.session.recall import trials


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


def test_a_question_that_was_not_written_yet_is_no_miss_once_the_problem_is_tuned() -> None:
    it = Loop()
    for _ in range(3):  # written at 1 and 2: the third is still in memory
        it.loop(8)
    it.loop.tune(8)
    assert context.current_store().misses("loop") == []


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


def test_a_pin_needs_no_features_although_there_are_buckets_of_them() -> None:
    it = Loop(buckets={"n": [10, 100]})
    it.decision.pin({"steps": 4})
    assert it.rung == "pin"


def test_a_pin_outside_the_space_is_refused() -> None:
    with pytest.raises(InvalidConfig, match="steps=2 is not one of"):
        Loop().decision.pin({"steps": 2})


def test_an_explicit_keyword_beats_the_answer() -> None:
    it = Loop()
    it.loop(8, steps=1)
    assert it.calls == {1: 1}


def test_an_explicit_keyword_is_not_measured_for_every_config() -> None:
    it = Loop()
    with tw.mode("tune"):
        it.loop(8, steps=4)
    assert {measured.trial.config["steps"] for measured in trials("loop")} == {1, 4}
    assert it.calls[1] > 0


def test_attributes_of_the_function_do_not_replace_the_decision() -> None:
    def function(n: int, *, steps: int) -> int:
        return n

    function.decision = "somebody else's"  # type: ignore[attr-defined]
    it = Loop()
    assert it.decision.implementation(function).decision is it.decision


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


def test_features_that_cannot_be_hashed_are_answered_from_memory() -> None:
    numpy = pytest.importorskip("numpy")
    it = Loop(features=lambda n: {"n": numpy.array(n)})
    it.loop.tune(8)
    assert it.loop.decide(8).rung == "memory"


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


def test_an_edited_cell_of_a_notebook_may_declare_again() -> None:
    code = "made.append(tw.Decision('cell', space=tw.Space({'x': [1]}), default={'x': 1}))"
    names: dict[str, Any] = {"tw": tw, "made": []}
    for cell in (1, 2):
        exec(compile(code, f"/nowhere/ipykernel_1/{cell}.py", "exec"), names)
    assert len(names["made"]) == 2
