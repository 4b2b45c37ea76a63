"""What heuristics propose: tried first, recorded with what became of it, and never in the way."""

import logging
import time
from collections.abc import Sequence
from typing import Any, ClassVar

import pytest

import tunewise as tw
from tunewise.decision import (
    Config,
    Declaration,
    Hardware,
    MatmulFact,
    Outcome,
    Problem,
    Proposal,
    Space,
    Subject,
    Timing,
    Trial,
    detect,
    environment,
)
from tunewise.heuristics import Case, Expert, Heuristic, On
from tunewise.measure import Replay, Work
from tunewise.session import asking
from tunewise.session.events import Evaluated, Event, Proposed
from tunewise.session.plan import Plan, Task
from tunewise.session.tune import Tuning, tune
from tunewise.store import MemoryStore, Store

SPACE = Space({"a": list(range(10)), "b": list(range(10))})
BEST = {"a": 7, "b": 3}


def valley(config: Config) -> Outcome:
    distance = abs(int(config["a"]) - 7) + abs(int(config["b"]) - 3)  # type: ignore[arg-type]
    return Timing((1.0 + distance / 10,))


def run(*sources: Any, declaration: Declaration | None = None, store: Store | None = None, **plan: Any) -> Tuning:
    known = declaration or Declaration("seeded", space=SPACE, default={"a": 0, "b": 0})
    subject = Subject(known.name, Problem({"n": 1}), (), environment(detect()))
    work = Work(lambda config: lambda: None, (), dict(known.default), known.check, policy=known.policy)
    replayed = Replay(Trial(config, valley(config)) for config in known.space)
    return tune(
        Task(known, subject, work, sources=sources), Plan(**plan), store or MemoryStore(), lambda work: replayed
    )


def rule(*seeds: Any, name: str = "rule", **attributes: Any) -> Expert:
    """Return a heuristic that always proposes the same."""
    body = {"name": name, "seeds": lambda self, problem: list(seeds), "most": max(1, len(seeds)), **attributes}
    made: Expert = type("Rule", (Expert,), body)()
    return made


def proposals(result: Tuning) -> tuple[Proposal, ...]:
    assert result.verdict is not None
    return result.verdict.proposals


def fates(result: Tuning) -> list[tuple[str, str]]:
    return [(proposal.by, proposal.fate) for proposal in proposals(result)]


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


class Raising(Expert):
    name = "raising"

    def seeds(self, problem: Case) -> Sequence[Config]:
        raise RuntimeError("no idea")


class Exiting(Expert):
    name = "exiting"

    def seeds(self, problem: Case) -> Sequence[Config]:
        raise SystemExit(3)


class Hanging(Expert):
    name = "hanging"

    def seeds(self, problem: Case) -> Sequence[Config]:
        time.sleep(10)
        return []


class Flooding(Expert):
    name = "flooding"

    def seeds(self, problem: Case) -> Sequence[Config]:
        return [{"a": n % 10, "b": n // 1000} for n in range(10_000)]


class Babbling(Expert):
    name = "babbling"

    def seeds(self, problem: Case) -> Any:
        return 42


class Mutating(Expert):
    name = "mutating"

    def seeds(self, problem: Case) -> Sequence[Config]:
        problem["n"] = 99  # type: ignore[index]
        return [BEST]


class Deep(Expert):
    name = "deep"

    def seeds(self, problem: Case) -> Sequence[Config]:
        problem.default["a"] = 5  # type: ignore[index]
        return [BEST]


@pytest.mark.parametrize("kind", [Raising, Exiting, Hanging, Flooding, Babbling, Mutating, Deep])
def test_a_heuristic_that_misbehaves_is_reported_once_and_tuning_completes(
    kind: type[Expert], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(asking, "ANSWER_S", 0.2)
    for _ in range(3):
        result = run(kind(), rule(BEST, name="healthy"), budget=10)
        assert result.answer.config == BEST
        assert len([p for p in proposals(result) if p.by == kind.name]) <= 1
    assert [kind.name in record.message for record in caplog.records if record.levelno == logging.WARNING] == [True]


def test_garbage_among_the_seeds_is_dropped_one_by_one() -> None:
    result = run(rule(None, "x", {"a": None}, {1: 2}, {"a": object()}, {"a": float("nan")}, BEST), budget=10)
    assert fates(result)[-1] == ("rule", "tried")
    assert [fate for _, fate in fates(result)].count("dropped") >= 4
    assert result.answer.config == BEST


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


def test_moves_that_raise_are_reported_and_tuning_completes(caplog: pytest.LogCaptureFixture) -> None:
    class Stumbling(Expert):
        name = "stumbling"

        def seeds(self, problem: Case) -> Sequence[Config]:
            return []

        def neighbors(self, problem: Case, config: Config) -> Sequence[Config]:
            raise ValueError("lost")

    assert run(Stumbling(), budget=20).verdict is not None
    assert caplog.text.count("stumbling broke with ValueError: lost") == 1


def test_what_was_proposed_is_told_to_whoever_listens() -> None:
    seen: list[Event] = []
    run(rule(BEST), budget=5, listener=seen.append)
    (event,) = [e for e in seen if isinstance(e, Proposed)]
    assert [p.by for p in event.proposals] == ["rule"]


class Promoted(Expert):
    """Replaces the default of one decision."""

    name = "promoted-rule"
    decision: ClassVar[str] = "promotable"
    is_promoted = True

    def seeds(self, problem: Case) -> Sequence[Config]:
        return [{"a": 5}] if problem["n"] else []  # type: ignore[list-item]


@pytest.fixture
def promotable() -> tw.Decision:
    return tw.Decision("promotable", space=SPACE, default={"a": 0, "b": 0})


def test_a_promoted_rule_replaces_the_default_when_nothing_is_known(promotable: tw.Decision) -> None:
    assert promotable.decide({"n": 1}).rung == "default"
    tw.load_heuristic(Promoted)
    try:
        answer = promotable.decide({"n": 1})
        assert (answer.rung, answer.source, dict(answer.config)) == ("promoted", "promoted-rule", {"a": 5, "b": 0})
        assert "promoted-rule does not apply to this problem" in str(promotable.explain({"n": 0}))
        assert promotable.decide({"n": 0}).rung == "default"
    finally:
        tw.drop_heuristics()
    assert promotable.decide({"n": 1}).rung == "default"


def test_a_rule_that_is_not_promoted_answers_nothing(promotable: tw.Decision) -> None:
    tw.load_heuristic(rule({"a": 5}, decision="promotable"))
    try:
        assert promotable.decide({"n": 1}).rung == "default"
    finally:
        tw.drop_heuristics()


def test_a_promotion_is_fenced_by_hardware(promotable: tw.Decision) -> None:
    tw.load_heuristic(rule({"a": 5}, is_promoted=True, hardware=On(names=("H100",)), name="for-h100"))
    try:
        assert promotable.decide({"n": 1}).rung == "default"
        assert f"for-h100 is for H100, not {detect().name}" in str(promotable.explain({"n": 1}))
    finally:
        tw.drop_heuristics()


def test_a_rule_holds_on_newer_devices_that_run_code_for_older_ones() -> None:
    newer = Hardware("cuda", "some", "10.0", 148, 1, compatible=("9.0", "8.0"))
    assert On(capabilities=("9.0",)).why_not(newer) is None
    assert On(capabilities=("12.0",)).why_not(newer) == "is for 12.0, not 10.0"
