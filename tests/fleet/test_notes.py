"""Notes: what ranks publish survives the way through text, and nonsense is nothing."""

import pytest

import tunewise as tw
from tunewise.decision import Answer, Failure, Timing, Verdict
from tunewise.fleet import notes
from tunewise.fleet.boards import MOST_BYTES


def declared(**facts: object) -> tw.Decision:
    space = {"space": tw.Space({"tile": [8, 16, 32]}), "default": {"tile": 8}, **facts}
    return tw.Decision("noted", features=lambda n: {"n": n}, near=1, **space)  # type: ignore[arg-type]


def test_an_answer_survives_with_its_verdict() -> None:
    verdict = Verdict("win", {"tile": 8}, {"tile": 16}, (2.0,), (1.0,), 2.0, 0.001, evaluations=3, run="r")
    answer = Answer({"tile": 16}, "memory", "run r", "because", 0.9, 1.0)
    standing = notes.read(notes.write(notes.standing_of(answer, "3", verdict, "digest")), notes.Standing)
    assert standing is not None
    assert standing.config == {"tile": 16}
    assert (standing.rung, standing.by, standing.subject) == ("memory", "3", "digest")
    assert notes.verdict_in(standing, declared().space) == verdict


def test_a_verdict_that_says_something_else_than_its_answer_is_none() -> None:
    verdict = Verdict("win", {"tile": 8}, {"tile": 16}, run="r")
    standing = notes.standing_of(Answer({"tile": 32}, "memory", "", ""), "0", verdict)
    assert notes.verdict_in(standing, declared().space) is None


def test_results_survive_in_the_scale_of_who_reads_them() -> None:
    for outcome, ratio in ((Timing((3.0,)), 1.5), (Failure("crash", "signal 11"), None)):
        result = notes.read(notes.write(notes.result_of(outcome, ratio)), notes.Result)
        assert result is not None
        assert notes.outcome_of(result, 2.0) == outcome
    broken_later = notes.result_of(Timing((3.0,)), None)
    assert isinstance(notes.outcome_of(broken_later, 1.0), Failure)


@pytest.mark.parametrize(
    "text",
    ["", "null", "[]", "{}", '{"config": 1}', '{"config": {}, "rung": "pin"}', '{"config": {}, "more": 1}', "\ufffd"],
)
def test_nonsense_is_nothing(text: str) -> None:
    assert notes.read(text, notes.Standing) is None


def test_a_text_that_is_too_long_is_nothing() -> None:
    assert notes.read('{"config": {}, "reason": "' + "x" * MOST_BYTES + '"}', notes.Standing) is None


def test_a_list_that_is_too_long_is_cut() -> None:
    long = [notes.Candidate({"name": "x" * 1000}, str(number)) for number in range(500)]
    cut = notes.fitting(long)
    assert 0 < len(cut.configs) < 500
    assert notes.read(notes.write(cut), notes.Candidates) == cut


@pytest.mark.parametrize("config", [{}, {"tile": 9}, {"tile": [8]}, {"tile": {}}, {"other": 8}, {"tile": 8, "more": 1}])
def test_a_config_that_is_not_of_the_space_is_none(config: dict[str, object]) -> None:
    assert notes.config_in(declared().space, config) is None  # type: ignore[arg-type]
