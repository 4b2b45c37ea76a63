"""A table answers with its most specific rule, with the nearest where it says so, and refuses what is malformed."""

import json
import logging
from pathlib import Path
from typing import Any

import pytest

import tunewise as tw
from tunewise.errors import InvalidFile, NotFound
from tunewise.heuristics import load_path, load_places
from tunewise.heuristics.table import MOST, Table
from tunewise.heuristics.table_reading import MAX_BYTES, MAX_RULES, dump, load_table, parse

A, B, C = {"tile": 1}, {"tile": 2}, {"tile": 4}


def rule(config: dict[str, Any], **when: Any) -> dict[str, Any]:
    return {"when": when, "configs": [config]}


def table(*rules: dict[str, Any], **fields: Any) -> Table:
    return parse(json.dumps({"decision": "gemm", "rules": list(rules), **fields}))


def first(found: Table, **features: Any) -> Any:
    return next(iter(found.rank(features)), None)


@pytest.mark.parametrize(
    ("when", "inside", "outside"),
    [
        (64, [64, 64.0], [65, "64"]),
        ("float32", ["float32"], ["float64", 32]),
        (True, [1], [0, "true"]),
        ([16, 32, "any"], [16, 32, "any"], [64, "16"]),
        ({"min": 8, "max": 64}, [8, 9.5, 64], [7.9, 65, "8"]),
        ({"min": 8}, [8, 10**9], [7, "x"]),
        ({"max": 64}, [-5, 64], [65]),
        ({"bucket": 64}, [33, 64, 32.5], [32, 65, "64"]),
        ({"bucket": 1}, [1, 0.75], [0, 0.5, 2]),
    ],
)
def test_a_condition_holds_for_these_values_and_not_for_those(when: Any, inside: list[Any], outside: list[Any]) -> None:
    found = table(rule(A, m=when))
    assert [first(found, m=value) for value in inside] == [A] * len(inside)
    assert [first(found, m=value) for value in outside] == [None] * len(outside)


def test_a_feature_that_is_not_named_may_be_anything_and_one_that_is_must_be_there() -> None:
    found = table(rule(A, m=1))
    assert first(found, m=1, n=5, dtype="x") == A
    assert first(found, n=5) is None


@pytest.mark.parametrize(
    ("specific", "general"),
    [
        ({"m": 64}, {}),
        ({"m": 64}, {"m": [64, 128]}),
        ({"m": [64, 128]}, {"m": {"min": 1, "max": 1000}}),
        ({"m": {"bucket": 64}}, {"m": {"min": 33, "max": 64}}),
        ({"m": {"min": 1, "max": 1000}}, {"m": {"min": 1}}),
        ({"m": 64, "n": {"min": 1}}, {"m": 64}),
        ({"m": 64}, {"m": {"min": 1, "max": 64}, "n": {"min": 1, "max": 64}}),
        ({"m": {"min": 60, "max": 70}}, {"m": {"min": 1, "max": 1000}}),
        ({"m": [64, 128]}, {"m": [64, 128, 256]}),
    ],
)
def test_the_more_specific_rule_answers_wherever_it_stands(specific: Any, general: Any) -> None:
    for rules in ([rule(A, **specific), rule(B, **general)], [rule(B, **general), rule(A, **specific)]):
        assert table(*rules).rank({"m": 64, "n": 8}) == [A, B]


def test_of_equally_specific_rules_the_first_in_the_file_answers() -> None:
    assert first(table(rule(A, m=1), rule(B, n=1)), m=1, n=1) == A
    assert first(table(rule(B, n=1), rule(A, m=1)), m=1, n=1) == B


def test_configs_are_ranked_each_once_and_not_without_end() -> None:
    found = table({"when": {"m": 1}, "configs": [B, A]}, {"configs": [A, C]})
    assert found.rank({"m": 1}) == [B, A, C]
    many = table({"configs": [{"tile": n} for n in range(60)]})
    assert len(many.rank({})) == MOST


NEAREST = (rule(A, M=1, E=8), rule(B, M=64, E=8), rule(C, M=64, E=16), rule(C, M=1024, E=8))


@pytest.mark.parametrize(("m", "config"), [(1, A), (2, A), (32, A), (33, B), (70, B), (10**6, C), (-5, A)])
def test_a_nearest_table_answers_with_the_nearest_number_however_far(m: int, config: dict[str, int]) -> None:
    assert first(table(*NEAREST, nearest="M"), M=m, E=8) == config


def test_a_nearest_table_bends_no_other_feature() -> None:
    found = table(*NEAREST, nearest="M")
    assert first(found, M=64, E=9) is None
    assert first(found, E=8) is None
    assert first(found, M="64", E=8) is None


def test_without_nearest_there_is_none() -> None:
    assert first(table(*NEAREST), M=70, E=8) is None


def test_the_reason_names_the_rule_or_the_nearest_number() -> None:
    found = table(*NEAREST, nearest="M")
    assert found.why({"M": 70, "E": 8}) == "nearest M: 64 for M=70, as vLLM does"
    assert found.why({"M": 64, "E": 8}) == "rule 2 of 4 has M=64"
    plain = table(rule(A, m={"min": 1, "max": 64}, dtype=["a", "b"]), rule(B))
    assert plain.why({"m": 3, "dtype": "a"}) == "rule 1 of 2: m from 1 to 64, dtype in a, b"
    assert plain.why({}) == "rule 2 of 2: every problem"


BAD = [
    ("[]", "it is a list, not an object"),
    ("{", "not JSON"),
    ({"rules": [rule(A)]}, "`decision` is missing"),
    ({"decision": "g"}, "`rules` is not a list"),
    ({"decision": "g", "rules": []}, "`rules` is not a list"),
    ({"decision": "g", "rules": [rule(A)], "nearset": "M"}, "has a field 'nearset'"),
    ({"decision": "g", "rules": [rule(A), 3]}, "rule 2 is a number"),
    ({"decision": "g", "rules": [{"when": {}, "configs": []}]}, "rule 1: `configs`"),
    ({"decision": "g", "rules": [{"if": {}, "configs": [A]}]}, "rule 1 has a field 'if'"),
    ({"decision": "g", "rules": [{"configs": [A, "x"]}]}, "rule 1, config 2 is a text"),
    ({"decision": "g", "rules": [{"configs": [{}]}]}, "rule 1, config 1: a config has 1 to"),
    ({"decision": "g", "rules": [{"configs": [{"t": {"a": 1}}]}]}, "rule 1, config 1, t: a value is a dict"),
    ({"decision": "g", "rules": [rule(A), rule(A, m={"min": 2, "max": 1})]}, "rule 2, m: min=2 is more than max=1"),
    ({"decision": "g", "rules": [rule(A, m={"from": 1})]}, "rule 1, m: write a value"),
    ({"decision": "g", "rules": [rule(A, m={"bucket": 48})]}, "rule 1, m: a bucket is a power of two"),
    ({"decision": "g", "rules": [rule(A, m={"min": "1"})]}, "rule 1, m: min='1' is not a number"),
    ({"decision": "g", "rules": [rule(A, m=[])]}, "rule 1, m: a set has 1 to"),
    ({"decision": "g", "rules": [rule(A, m=None)]}, "rule 1, m: feature m=None"),
    ({"decision": "g", "rules": [rule(A, m=[[1]])]}, "rule 1, m: feature m=[1]"),
    (
        {"decision": "g", "nearest": "M", "rules": [rule(A, M=1), rule(A)]},
        "rule 2, M: in a table that answers the nearest",
    ),
    (
        {"decision": "g", "nearest": "M", "rules": [rule(A, M={"min": 1})]},
        "rule 1, M: in a table that answers the nearest",
    ),
    ({"decision": "g", "hardware": {"name": ["a"]}, "rules": [rule(A)]}, "hardware, name"),
    ({"decision": "g", "rules": [{**rule(A), "time_s": -1}]}, "rule 1: time_s=-1"),
    ({"decision": "g", "rules": [{**rule(A), "versions": {"x": 1}}]}, "rule 1, versions, x"),
    ({"decision": "g", "rules": [rule(A)] * (MAX_RULES + 1)}, f"more than the {MAX_RULES}"),
]


@pytest.mark.parametrize(("document", "said"), BAD, ids=[said for _, said in BAD])
def test_what_is_malformed_is_one_sentence_with_the_place(tmp_path: Path, document: Any, said: str) -> None:
    file = tmp_path / "gemm.json"
    file.write_text(document if isinstance(document, str) else json.dumps(document))
    with pytest.raises(InvalidFile) as caught:
        load_table(file)
    assert said in str(caught.value)
    assert str(file) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_table_that_is_not_there_or_too_large_is_refused(tmp_path: Path) -> None:
    with pytest.raises(NotFound):
        load_table(tmp_path / "gemm.json")
    (tmp_path / "gemm.json").write_bytes(b" " * (MAX_BYTES + 1))
    with pytest.raises(InvalidFile, match="more than"):
        load_table(tmp_path / "gemm.json")


def test_what_is_written_reads_back_equal() -> None:
    rules = [
        {**rule({"tile": 1, "order": [0, 1], "way": None}, m={"min": 1.5, "max": 64}, d=["a", 2]), "time_s": 1e-6},
        {"when": {"m": {"bucket": 8}, "n": {"max": 3}, "k": 7}, "configs": [A, B], "versions": {"triton": "3"}},
    ]
    found = table(*rules, name="n", about="a", version="1", hardware={"name": "H100", "cores": 132})
    assert parse(dump(found)) == found
    assert len(dump(found).splitlines()) == 11  # a rule is a line


def saved(path: Path, found: Table) -> Path:
    path.write_bytes(dump(found))
    return path


def test_a_table_file_becomes_a_heuristic_with_its_fence(tmp_path: Path) -> None:
    found = table(rule(A, m=1), rule(B, m=2, n=1), hardware={"name": "H100"}, about="mine")
    (heuristic,) = load_path(saved(tmp_path / "t.json", found))
    assert (heuristic.name, heuristic.decision, heuristic.kind) == ("t.json", "gemm", "table")
    assert heuristic.features == ("m",)
    assert heuristic.about == "mine (2 rules)"
    assert heuristic.choose({"m": 1}) == A
    assert heuristic.why_elsewhere({"hardware.name": "A100"}) is not None
    assert heuristic.why_elsewhere({"hardware.name": "H100"}) is None


def test_a_bad_table_of_a_directory_is_named_and_left_out(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    saved(tmp_path / "good.json", table(rule(A)))
    (tmp_path / "bad.json").write_text('{"decision": "g", "rules": [1]}')
    with caplog.at_level(logging.WARNING):
        assert [heuristic.name for heuristic in load_places([tmp_path])] == ["good.json"]
    assert "rule 1 is a number" in caplog.text


def test_a_decision_is_answered_by_a_table_with_its_reason_and_completed_from_the_default(tmp_path: Path) -> None:
    decision = tw.Decision(
        "tabled", space=tw.Space({"tile": [1, 2, 4], "unroll": [1, 8]}), default={"tile": 1, "unroll": 8}
    )
    found = parse(json.dumps({"decision": "tabled", "rules": [rule(B, m={"min": 1, "max": 64})]}))
    tw.load_heuristic(saved(tmp_path / "t.json", found))
    try:
        answer = decision.decide({"m": 5})
        assert answer.config == {"tile": 2, "unroll": 8}
        assert answer.source == "t.json"
        assert answer.reason == "rule 1 of 1: m from 1 to 64"
        assert decision.decide({"m": 65}).config == {"tile": 1, "unroll": 8}
        assert "t.json has nothing for this problem" in str(decision.explain({"m": 65}))
    finally:
        tw.drop_heuristics()
