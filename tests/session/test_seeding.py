"""What heuristics propose: tried first, recorded with what became of it, and never in the way."""

from collections.abc import Sequence
from typing import Any

import pytest
from seeded_runs import BEST, SPACE, fates, proposals, rule, run

from tunewise.decision import Config, Declaration, Hardware, MatmulFact, Problem, detect
from tunewise.errors import InvalidProblem, InvalidSetting
from tunewise.heuristics import Case, Expert, Heuristic, On
from tunewise.session.events import Evaluated, Event, Proposed
from tunewise.store import MemoryStore


def test_the_first_guess_of_each_comes_before_anybodys_second() -> None:
    seen: list[Event] = []
    one, two = rule({"a": 7}, {"a": 6}, name="one"), rule({"b": 3}, {"b": 2}, name="two")
    run(one, two, budget=12, strategy="random", listener=seen.append, seeds=[{"a": 1}])
    tried = [(e.source, e.config) for e in seen if isinstance(e, Evaluated)][:6]
    assert tried == [
        ("default", {"a": 0, "b": 0}),
        ("seed", {"a": 1, "b": 0}),
        ("one", {"a": 7, "b": 0}),
        ("two", {"a": 0, "b": 3}),
        ("one", {"a": 6, "b": 0}),
        ("two", {"a": 0, "b": 2}),
    ]


def test_the_verdict_says_who_proposed_the_winner_and_what_became_of_every_seed() -> None:
    result = run(rule(BEST, name="right"), rule({"a": 99, "b": 3}, {"c": 1}, {"a": 0}, BEST, name="wrong"), budget=20)
    assert result.verdict is not None
    assert (result.answer.config, result.verdict.source) == (BEST, "right")
    assert fates(result) == [
        ("right", "tried"),
        ("wrong", "tried"),
        ("wrong", "dropped"),
        ("wrong", "known"),
        ("wrong", "repeated"),
    ]
    clamped, dropped, known, repeated = proposals(result)[1:]
    assert clamped.config == {"a": 9, "b": 3}
    assert clamped.detail.startswith("repaired: a=99")
    assert "unknown parameter 'c'" in dropped.detail
    assert known.config == {"a": 0, "b": 0}
    assert repeated.detail == "proposed by right before"


def test_proposals_survive_the_store() -> None:
    store = MemoryStore()
    result = run(rule(BEST, {"c": 1}), store=store, budget=20)
    (subject,) = store.subjects("seeded")
    assert store.verdicts(subject)[0].proposals == proposals(result)


def test_seeds_of_a_proposer_that_was_wrong_are_skipped_and_say_so() -> None:
    far = [{"a": 9, "b": 9}, {"a": 9, "b": 8}, {"a": 9, "b": 7}]
    slow = Declaration("seeded", space=SPACE, default={"a": 7, "b": 4})
    result = run(rule(*far), declaration=slow, budget=30, strategy="random")
    assert fates(result) == [("rule", "tried"), ("rule", "skipped"), ("rule", "skipped")]
    assert "times the best of others" in proposals(result)[1].detail


def test_a_seed_stays_in_until_the_final_although_others_are_faster() -> None:
    store = MemoryStore()
    run(rule({"a": 0, "b": 3}), store=store, budget=100)
    (subject,) = store.subjects("seeded")
    raced = [t.config for t in store.trials(subject) if t.source == "race"]
    assert {"a": 0, "b": 3} in raced
    assert {"a": 0, "b": 2} not in raced


def test_of_many_seeds_only_the_first_ones_are_sure_of_their_place() -> None:
    store = MemoryStore()
    run(seeds=[{"a": 0, "b": b} for b in range(10)] + [{"a": 1, "b": 9}], store=store, budget=100)
    (subject,) = store.subjects("seeded")
    raced = [t.config for t in store.trials(subject) if t.source == "race"]
    assert {"a": 0, "b": 7} in raced
    assert {"a": 1, "b": 9} not in raced


def test_heuristics_of_other_hardware_are_not_asked() -> None:
    elsewhere = rule(BEST, hardware=On(kinds=("cuda",)))
    assert fates(run(elsewhere, budget=10)) == []


def test_heuristics_can_be_left_out() -> None:
    assert fates(run(rule(BEST), budget=10, heuristics=False)) == []


def test_a_data_set_is_collected_without_them() -> None:
    assert fates(run(rule(BEST), budget=10, measure_all=True)) == []


def test_a_rule_may_propose_as_many_as_it_declares_and_never_more_than_nine() -> None:
    many = [{"a": a} for a in range(1, 10)] + [{"b": b} for b in range(1, 10)]
    assert len(proposals(run(rule(*many, most=3), budget=5))) == 3
    assert len(proposals(run(rule(*many, most=1000, name="greedy"), budget=5))) == 9


def test_tables_and_models_propose_too() -> None:
    table = Heuristic("t.json", "seeded", lambda features: [{"a": a} for a in range(1, 6)], kind="table")
    model = Heuristic("m.json", "seeded", lambda features: [{"b": b} for b in range(1, 9)])
    found = [(p.by, p.kind) for p in proposals(run(table, model, budget=5))]
    assert found.count(("t.json", "table")) == 5
    assert found.count(("m.json", "learned")) == 3


def test_a_model_of_other_hardware_proposes_nothing() -> None:
    model = Heuristic("m.json", "seeded", lambda features: [BEST], fence={"hardware.kind": "cuda"})
    assert fates(run(model, budget=5)) == []


def test_a_case_knows_problem_facts_device_and_space() -> None:
    seen: list[Case] = []

    class Curious(Expert):
        name = "curious"

        def seeds(self, problem: Case) -> Sequence[Config]:
            seen.append(problem)
            return []

    known = Declaration(
        "seeded",
        space=SPACE,
        default={"a": 0, "b": 0},
        derived={"twice": lambda problem: 2 * problem["n"]},
        facts=lambda problem: MatmulFact(8, 8, int(problem["n"])),
    )
    run(Curious(), declaration=known, budget=2)
    (case,) = seen
    assert dict(case) == {"n": 1, "twice": 2}
    assert case.fact(MatmulFact) == MatmulFact(8, 8, 1)
    assert (case.hardware, case.space, dict(case.default)) == (detect(), SPACE, {"a": 0, "b": 0})


def test_facts_that_break_cost_the_heuristics_and_not_the_run(caplog: pytest.LogCaptureFixture) -> None:
    broken = Declaration("factless", space=SPACE, default={"a": 0, "b": 0}, facts=lambda problem: 1 / 0)  # type: ignore[arg-type,return-value]
    result = run(rule(BEST), declaration=broken, budget=5)
    assert fates(result) == []
    assert "factless: facts broke on n=1: ZeroDivisionError" in caplog.text


def test_a_problem_may_have_no_facts() -> None:
    silent = Declaration("silent", space=SPACE, default={"a": 0, "b": 0}, facts=lambda problem: None)
    assert silent.facts_of(Problem({"n": 1})) == ()


def test_facts_that_are_none_are_named() -> None:
    wrong = Declaration("wrong", space=SPACE, default={"a": 0, "b": 0}, facts=lambda problem: 5)  # type: ignore[arg-type,return-value]
    with pytest.raises(InvalidProblem, match="wrong: facts broke on n=1: TypeError"):
        wrong.facts_of(Problem({"n": 1}))


def test_more_seeds_than_a_verdict_keeps_are_no_reason_to_lose_it() -> None:
    result = run(budget=3, seeds=[{"a": 1}] * 20_000)
    assert result.verdict is not None
    assert len(result.verdict.proposals) == 100


@pytest.mark.parametrize("seeds", [{"a": 1}, "a=1", 5, None])
def test_seeds_that_are_no_list_are_refused(seeds: Any) -> None:
    with pytest.raises(InvalidSetting, match="is not a list of configs"):
        run(seeds=seeds)


def test_moves_of_a_heuristic_are_tried_and_carry_its_name() -> None:
    class Mover(Expert):
        name = "mover"

        def seeds(self, problem: Case) -> Sequence[Config]:
            return []

        def neighbors(self, problem: Case, config: Config) -> Sequence[Config]:
            return [BEST]

    result = run(Mover(), budget=20, strategy="random")
    assert result.verdict is not None
    assert (result.answer.config, result.verdict.source) == (BEST, "mover")


def test_what_was_proposed_is_told_to_whoever_listens() -> None:
    seen: list[Event] = []
    run(rule(BEST), budget=5, listener=seen.append)
    (event,) = [e for e in seen if isinstance(e, Proposed)]
    assert [p.by for p in event.proposals] == ["rule"]


def test_a_rule_holds_on_newer_devices_that_run_code_for_older_ones() -> None:
    newer = Hardware("cuda", "some", "10.0", 148, 1, compatible=("9.0", "8.0"))
    assert On(capabilities=("9.0",)).why_not(newer) is None
    assert On(capabilities=("12.0",)).why_not(newer) == "is for 12.0, not 10.0"


@pytest.mark.parametrize("wrong", [{"names": "H100"}, {"kinds": None}, {"capabilities": (9.0,)}])
def test_devices_are_several_words(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidSetting, match="is not several words"):
        On(**wrong)


def test_a_killed_run_goes_on_with_the_same_seeds_and_sources() -> None:
    class Killed(BaseException):
        pass

    def kill(event: Event) -> None:
        if isinstance(event, Evaluated) and event.done == 4:
            raise Killed

    one = rule({"a": 7}, {"a": 6}, {"a": 5}, name="one")
    plan: dict[str, Any] = {"budget": 12, "strategy": "random", "seeds": [{"b": 1}]}
    whole, resumed = MemoryStore(), MemoryStore()
    expected = run(one, store=whole, **plan)
    with pytest.raises(Killed):
        run(one, store=resumed, **plan, listener=kill)
    result = run(one, store=resumed, **plan)
    assert proposals(result) == proposals(expected)
    assert {fate for _, fate in fates(result)} == {"tried"}
    sources = [
        [(t.config, t.source) for t in store.trials(subject) if t.source not in ("race", "check")]
        for store in (whole, resumed)
        for subject in store.subjects("seeded")
    ]
    assert sources[0] == sources[1]


def test_a_seed_is_not_lost_with_the_bad_name_of_whoever_proposed_it_first() -> None:
    near = Declaration("seeded", space=SPACE, default={"a": 7, "b": 5})
    wrong = rule({"a": 0, "b": 9}, BEST, name="wrong")
    right = rule({"a": 7, "b": 4}, {"a": 6, "b": 4}, BEST, name="right")
    result = run(wrong, right, declaration=near, budget=8, strategy="random")
    assert result.verdict is not None
    assert (result.answer.config, result.verdict.source) == (BEST, "right")
    assert [(p.by, p.fate) for p in proposals(result) if p.config == BEST] == [("wrong", "skipped"), ("right", "tried")]
