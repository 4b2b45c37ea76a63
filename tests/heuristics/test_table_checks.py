"""Rules that never answer and configs outside the space are found, and nothing else is."""

from dataclasses import replace
from typing import Any

import pytest

from tunewise.decision import Declaration, Space, detect, environment
from tunewise.heuristics.table import Rule, Table
from tunewise.heuristics.table_checks import remarks
from tunewise.heuristics.table_conditions import condition


def table(*whens: dict[str, Any], config: dict[str, Any] | None = None, nearest: str | None = None) -> Table:
    rules = [
        Rule({name: condition(name, raw) for name, raw in when.items()}, (config or {"tile": 1},)) for when in whens
    ]
    return Table("gemm", tuple(rules), nearest)


@pytest.mark.parametrize(
    ("whens", "unreachable"),
    [
        ([{"m": 1}, {"m": 1}], [2]),
        ([{"m": 64}, {"m": [64]}], [2]),
        ([{"m": 64}, {"m": {"min": 1}}], []),
        ([{"m": [1, 2]}, {"m": [1, 3]}], []),
        ([{"m": {"min": 1, "max": 9}}, {"m": {"min": 1, "max": 9}}], [2]),
        ([{"m": {"min": 1}}, {"n": {"min": 1}}], []),
        ([{}, {}], [2]),
        ([{}, {"m": 1}], []),
        ([{"m": {"bucket": 64}}, {"m": [40, 50]}], []),
        ([{"m": {"bucket": 64}}, {"m": {"bucket": 64}}], [2]),
    ],
)
def test_a_rule_that_another_always_comes_before_is_told(whens: list[Any], unreachable: list[int]) -> None:
    found = remarks(table(*whens))
    assert [remark.rule for remark in found] == unreachable
    assert not any(remark.is_fault for remark in found)


def test_a_repeated_number_of_a_nearest_table_is_told() -> None:
    found = remarks(table({"M": 1}, {"M": 2}, {"M": 1}, nearest="M"))
    assert [str(remark) for remark in found] == ["rule 3: never answers first: rule 1 fits wherever it does"]


def test_repeated_rules_of_a_large_table_are_found_too() -> None:
    found = remarks(table(*({"m": number // 2} for number in range(5000))))
    assert len(found) == 2500


GEMM = Declaration("gemm", space=Space({"tile": [1, 2], "way": ["a", "b"]}), default={"tile": 1, "way": "a"})


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ({"tile": 2}, None),
        ({"tile": 3}, "config 1: tile=3 is not one of"),
        ({"tyle": 1}, "config 1: gemm has no parameter 'tyle'"),
    ],
)
def test_a_config_outside_the_space_is_a_fault(config: dict[str, Any], said: str | None) -> None:
    found = remarks(table({}, config=config), GEMM)
    assert [remark.is_fault for remark in found] == ([True] if said else [])
    assert all(said is not None and said in remark.what for remark in found)


def test_a_fact_that_no_device_tells_is_told() -> None:
    (found,) = remarks(replace(table({"m": 1}), hardware={"name": "H100", "nmae": "H100"}))
    assert (found.rule, found.is_fault) == (0, False)
    assert str(found).startswith("no device tells the fact 'nmae'")


def test_every_fact_of_this_device_is_known() -> None:
    facts = environment(detect()).must
    mine = {name.removeprefix("hardware."): value for name, value in facts.items() if name.startswith("hardware.")}
    assert remarks(replace(table({"m": 1}), hardware=mine)) == []


def test_a_table_about_another_decision_is_a_fault() -> None:
    other = Declaration("conv", space=Space({"tile": [1]}), default={"tile": 1})
    (found,) = remarks(table({"m": 1}), other)
    assert (str(found), found.is_fault) == ("it is about 'gemm', and so never asked by 'conv'", True)
