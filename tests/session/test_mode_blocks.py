"""Blocks and switches: what they ask of a tuning run, which one governs, and what they refuse."""

import itertools
import re
from typing import Any

import pytest
from loops import Loop

import tunewise as tw
from tunewise.errors import InvalidPolicy, InvalidSetting, MeasureWarning
from tunewise.session import context
from tunewise.session.recall import trials


def tried(name: str = "loop") -> set[Any]:
    return {measured.trial.config["steps"] for measured in trials(name)}


@pytest.mark.parametrize(
    ("bounds", "said"),
    [
        ({"accept": ["memory"]}, "accept=\\['memory'\\] is not a rung that can be accepted; there are: learned"),
        ({"accept": "near"}, "accept='near' is a word; give a list of rungs, such as accept=\\['near'\\]"),
        ({"accept": None}, "accept=None is not a list of rungs"),
        ({"accept": [["near"]]}, "accept=\\[\\['near'\\]\\] is not a list of rungs"),
        ({"budget": 0}, "budget=0 is not a number of evaluations"),
        ({"budget": True}, "budget=True is not a number of evaluations"),
        ({"budget": 1.0}, "budget=1.0 is not a number of evaluations"),
        ({"seconds": 0}, "seconds=0 is not a positive number of seconds"),
        ({"seconds": float("nan")}, "seconds=nan is not"),
        ({"seconds": 10**400}, "seconds=1000.* is not a positive number of seconds"),
        ({"total_seconds": -1}, "total_seconds=-1 is not a positive number of seconds"),
        ({"total_seconds": "30"}, "total_seconds='30' is not"),
        ({"total_seconds": [30]}, "total_seconds=\\[30\\] is not"),
        ({"thorough": 1}, "thorough=1 is neither True nor False"),
        ({"background": "yes"}, "background='yes' is neither True nor False"),
    ],
)
def test_a_block_refuses_values_that_make_no_sense(bounds: dict[str, Any], said: str) -> None:
    with tw.mode("tune", budget=1, seconds=1):  # equal to some of them, as Python sees it, and no excuse
        pass
    with pytest.raises(InvalidSetting, match=said), tw.mode("tune", **bounds):
        pass


@pytest.mark.parametrize("steps", [0, -3, 2.5, True, [9]])
def test_a_number_of_steps_that_makes_no_sense_is_refused(steps: Any) -> None:
    said = re.escape(f"steps={steps} is not a whole number")
    with pytest.raises(InvalidPolicy, match=said), tw.mode("tune", steps=steps):
        pass


def test_fewer_than_five_steps_warn_every_time() -> None:
    for _ in range(2):
        with pytest.warns(MeasureWarning, match="steps=4 is too few"), tw.mode("tune", steps=4):
            pass


def test_blocks_with_the_same_words_are_one_frame() -> None:
    frames = []
    for _ in range(2):
        with tw.mode("tune", accept=["near", "learned"], budget=7):
            frames.append(context.FRAME.get())
    assert frames[0] is frames[1] is not None


def test_budget_bounds_each_run_of_a_block() -> None:
    it = Loop()
    with tw.mode("tune", budget=1):
        it.loop(8)
    assert tried() == {4}


def test_steps_of_a_block_are_an_effort_and_the_answer_is_filed_as_usual() -> None:
    it = Loop()
    with tw.mode("tune", warmup_steps=1, steps=6):
        it.loop(8)
    verdict = context.current_store().verdicts(it.decision.subject(it.decision.problem({"n": 8})))[-1]
    assert len(verdict.challenger_s) == 6
    assert it.rung == "memory"


def test_a_switch_governs_where_no_block_does() -> None:
    position = [context.frame("tune", budget=2)]
    it = Loop(switch=lambda: position[0])
    it.loop(8)
    assert it.rung == "memory"
    with tw.mode("off"):
        assert it.decision.mode_in_force() == "off"
        assert it.decision.decide({"n": 8}).rung == "default"
    assert it.decision.mode_in_force() == "tune"


def test_a_switch_that_says_nothing_leaves_it_to_the_decision_and_the_environment() -> None:
    assert Loop(switch=lambda: None, mode="replay").decision.mode_in_force() == "replay"
    assert Loop("other", switch=lambda: None).decision.mode_in_force() == "use"


def test_a_switch_that_is_turned_counts_from_the_next_call_on() -> None:
    positions = itertools.cycle([context.frame("off"), context.frame("use")])
    position = [next(positions)]
    it = Loop(switch=lambda: position[0])
    it.loop.tune(8)
    for rung in ("default", "memory", "default"):
        assert it.rung == rung
        assert it.rung == rung
        position[0] = next(positions)
        it.decision.forget()


def test_within_a_bucket_nothing_is_tuned_twice() -> None:
    it = Loop(buckets={"n": [10, 100]})
    with tw.mode("tune"):
        for n in (3, 7, 10, 3):
            it.loop(n)
    assert [dict(subject.problem) for subject in context.current_store().subjects("loop")] == [{"n": 10}]
    spent = sum(it.calls.values())
    with tw.mode("tune"):
        it.loop(9)
    assert sum(it.calls.values()) == spent + 1


def test_values_of_a_bucket_share_its_answer_and_those_of_others_do_not() -> None:
    it = Loop(buckets={"n": [10, 100]}, near=1)
    it.loop.tune(3)
    rungs = {n: [it.decision.decide({"n": n}).rung for _ in range(3)][-1] for n in (1, 3, 10, 11, 100)}
    assert rungs == {1: "memory", 3: "memory", 10: "memory", 11: "default", 100: "default"}


def test_the_second_question_about_a_raw_value_sorts_it_into_no_bucket_again() -> None:
    sorted_ = []

    def bucket(n: int) -> int:
        sorted_.append(n)
        return 10

    it = Loop(buckets={"n": bucket})
    it.loop.tune(3)
    it.decision.decide({"n": 3})
    sorted_.clear()
    it.decision.decide({"n": 3})
    assert sorted_ == []


def test_inputs_are_made_for_the_value_that_stands_for_a_bucket() -> None:
    it = Loop(buckets={"n": "pow2"})
    assert it.decision.make_inputs({"n": 5}) == (8,)
