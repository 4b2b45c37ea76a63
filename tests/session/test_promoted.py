"""Rules of thumb that replace the default: fenced, reported when they break, and asked only where they are."""

from collections.abc import Sequence
from typing import Any, ClassVar

import pytest
from seeded_runs import SPACE, rule

import tunewise as tw
from tunewise.decision import Config, detect
from tunewise.heuristics import Case, Expert, On
from tunewise.session import asking


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


def test_a_promoted_rule_may_have_more_seeds_than_the_one_that_answers(
    promotable: tw.Decision, caplog: pytest.LogCaptureFixture
) -> None:
    tw.load_heuristic(rule({"a": 5}, {"a": 6}, is_promoted=True, name="two-seeds"))
    try:
        assert dict(promotable.decide({"n": 1}).config) == {"a": 5, "b": 0}
    finally:
        tw.drop_heuristics()
    assert caplog.text == ""


def test_a_question_starts_no_thread_for_a_rule_that_is_not_promoted(
    promotable: tw.Decision, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Any] = []
    monkeypatch.setattr(asking, "ask", lambda *question: asked.append(question))
    tw.load_heuristic(rule({"a": 5}, decision="promotable"))
    try:
        promotable.decide({"n": 1})
        promotable.explain({"n": 2})
    finally:
        tw.drop_heuristics()
    assert asked == []


class Moody(Expert):
    """Says nothing of itself without breaking, once it is loaded."""

    name = "moody"
    is_loaded = False

    @property
    def backend(self) -> str:  # type: ignore[override]
        return str(1 / 0) if self.is_loaded else ""

    @property
    def is_promoted(self) -> bool:  # type: ignore[override]
        raise RuntimeError("who knows")


@pytest.mark.parametrize("is_loaded", [True, False])
def test_a_rule_that_breaks_when_it_tells_of_itself_is_reported_and_the_default_answers(
    is_loaded: bool, promotable: tw.Decision, caplog: pytest.LogCaptureFixture
) -> None:
    (moody,) = tw.load_heuristic(type("Moody", (Moody,), {}))
    moody.is_loaded = is_loaded  # type: ignore[union-attr]
    try:
        assert promotable.decide({"n": 1}).rung == "default"
        assert promotable.explain({"n": 1}).answer.rung == "default"
    finally:
        tw.drop_heuristics()
    assert caplog.text.count("heuristic moody broke with") == 1
