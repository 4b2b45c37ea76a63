"""`tunewise table`: tables are checked rule by rule, and made of what is remembered with their price told."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from tunewise.heuristics.table_reading import load_table

Cli = Callable[..., Result]
Asked = Callable[..., Any]


def put(path: Path, *rules: Any, decision: str = "toy") -> Path:
    path.write_text(json.dumps({"decision": decision, "rules": list(rules)}))
    return path


GOOD = {"when": {"n": 1}, "configs": [{"work": 1}]}


def test_a_sound_table_is_told_to_be_so(cli: Cli, asked: Asked, tmp_path: Path) -> None:
    file = put(tmp_path / "t.json", GOOD)
    assert f"{file}: 1 rule for toy, all sound" in cli("table", "check", file).output
    told = {"file": str(file), "decision": "toy", "rules": 1, "error": None, "remarks": []}
    assert asked("table", "check", file)["tables"] == [told]


def test_a_rule_that_never_answers_is_told_and_is_no_fault(cli: Cli, tmp_path: Path) -> None:
    result = cli("table", "check", put(tmp_path / "t.json", GOOD, GOOD))
    assert result.exit_code == 0
    assert "rule 2: never answers first" in result.output


def test_a_config_outside_the_space_of_a_target_is_a_fault(cli: Cli, tmp_path: Path, toy: str) -> None:
    file = put(tmp_path / "t.json", GOOD, {"configs": [{"work": 3}]})
    result = cli("table", "check", file, "--target", toy)
    assert result.exit_code == 1
    assert "rule 2: config 1: work=3 is not one of" in result.output
    assert cli("table", "check", file).exit_code == 0


def test_a_built_in_decision_is_known_without_a_target(cli: Cli, tmp_path: Path) -> None:
    result = cli("table", "check", put(tmp_path / "t.json", {"configs": [{"choice": "odd"}]}, decision="isin"))
    assert result.exit_code == 1
    assert "choice='odd' is not one of" in result.output


def test_a_malformed_table_does_not_hide_the_others(cli: Cli, tmp_path: Path) -> None:
    bad, good = tmp_path / "bad.json", put(tmp_path / "good.json", GOOD)
    bad.write_text('{"decision": "toy", "rules": [{"configs": []}]}')
    result = cli("table", "check", bad, good, tmp_path / "missing.json")
    assert result.exit_code == 1
    assert "bad.json is no sound table: rule 1: `configs`" in result.output
    assert "good.json: 1 rule for toy, all sound" in result.output
    assert "missing.json cannot be read" in result.output


def test_a_table_is_built_of_what_was_tuned_and_answers(cli: Cli, asked: Asked, tmp_path: Path, toy: str) -> None:
    problems = [word for n in (100, 200, 400) for word in ("--problem", f"n={n}")]
    asked("collect", toy, *problems)
    told = asked("table", "build", "toy", "--out", tmp_path / "t.json", "--tolerance", 0.5)
    assert told["problems"] == 3
    assert 1 <= told["rules"] <= 3
    assert 1.0 <= told["regret"] <= told["worst"] <= 1.5
    table = load_table(tmp_path / "t.json")
    assert table.hardware.keys() == {"name"}
    assert table.rank({"n": 150})
    assert not table.rank({"n": 500})
    assert cli("table", "check", tmp_path / "t.json", "--target", toy).exit_code == 0
    said = cli("table", "build", "toy", "--out", tmp_path / "t.json", "--max-rules", 1).output
    assert "1 rule for 3 problems written" in said
    assert "regret on these problems" in said


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["nothing", "--out", "x.json"], "nothing is remembered of 'nothing'"),
        (["convolution_kernel", "--out", "x.json", "--device", "odd"], "never measured on 'odd'"),
        (["convolution_kernel", "--out", "/dev/null/x.json"], "cannot be written"),
    ],
)
def test_what_cannot_be_built_is_one_sentence(cli: Cli, words: list[str], said: str) -> None:
    assert cli("import", Path(__file__).parents[1] / "data" / "convolution.json").exit_code == 0
    result = cli("table", "build", *words)
    assert result.exit_code == 1
    assert said in result.output
    assert len(result.output.strip().splitlines()) == 1


def test_a_table_is_for_one_device(cli: Cli, asked: Asked, tmp_path: Path) -> None:
    cache = Path(__file__).parents[1] / "data" / "convolution.json"
    other = tmp_path / "other.json"
    other.write_text(json.dumps({**json.loads(cache.read_text()), "device_name": "another"}))
    asked("import", cache, other)
    result = cli("table", "build", "convolution_kernel", "--out", tmp_path / "t.json")
    assert "was measured on NVIDIA RTX A4000, another; name one of them with --device" in result.output
    told = asked("table", "build", "convolution_kernel", "--out", tmp_path / "t.json", "--device", "another")
    assert (told["rules"], told["regret"]) == (1, 1.0)
    assert load_table(tmp_path / "t.json").hardware == {"name": "another"}
