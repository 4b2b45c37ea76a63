"""`heuristics` and `learn`: what proposals were worth, and seeds from everything remembered."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from click.testing import Result

import tunewise as tw
from tunewise.heuristics import Heuristic
from tunewise.heuristics.registry import BY_BACKEND

Cli = Callable[..., Result]
Asked = Callable[..., Any]


def test_without_a_decision_the_shipped_rules_are_listed(asked: Asked) -> None:
    found = {(row["backend"], row["name"]) for row in asked("heuristics")["heuristics"]}
    assert found == {(backend, expert.name) for backend, experts in BY_BACKEND.items() for expert in experts}


def test_proposals_of_a_tuning_run_are_shown_with_who_won(cli: Cli, asked: Asked, toy: str) -> None:
    tw.load_heuristic(Heuristic("hint", "toy", lambda features: [{"work": 1}], kind="table"))
    try:
        asked("tune", toy, "--problem", "n=2000")
    finally:
        tw.drop_heuristics()
    shown = asked("heuristics", "toy", "--runs")
    (row,) = shown["heuristics"]
    assert (row["name"], row["kind"], row["runs"], row["proposed"]) == ("hint", "table", 1, 1)
    (run,) = shown["runs"]
    assert run["problem"]["n"] == 2000
    assert run["proposals"][0]["config"]["work"] == 1
    assert "hint" in cli("heuristics", "toy").stdout
    assert "tried" in cli("heuristics", "toy", "--runs").stdout


def test_a_decision_that_heard_no_proposals_says_so(cli: Cli, asked: Asked, toy: str) -> None:
    asked("tune", toy, "--problem", "n=300", "--budget", 1)
    result = cli("heuristics", "toy")
    assert (result.exit_code, result.stdout) == (0, "")
    assert "0 tuning runs of toy heard proposals" in result.stderr


def test_learned_seeds_are_tried_first_by_the_next_run_and_answer_nothing(asked: Asked, toy: str, home: Path) -> None:
    for n in (500, 2000, 8000):
        asked("tune", toy, "--problem", f"n={n}")
    (model,) = asked("learn", "--seeds", "toy")["models"]
    assert (model["decision"], model["problems"]) == ("toy", 3)
    assert Path(model["model"]) == home / "heuristics" / "toy.seeds.json"
    assert asked("explain", toy, "--problem", "n=4000")["explanations"][0]["answer"]["rung"] in ("near", "default")
    asked("tune", toy, "--problem", "n=4000")
    rows = asked("heuristics", "toy")["heuristics"]
    (row,) = [row for row in rows if row["kind"] != "memory"]
    assert (row["name"], row["kind"], row["runs"]) == ("toy.seeds.json", "learned", 1)


def test_seeds_are_not_learned_from_a_single_problem(cli: Cli, asked: Asked, toy: str, home: Path) -> None:
    asked("tune", toy, "--problem", "n=500")
    result = cli("learn", "--seeds", "toy")
    assert result.exit_code != 0
    assert "tune another one first" in result.stderr
    assert not (home / "heuristics").exists()


def test_a_decision_nobody_tuned_is_named_with_the_one_that_may_be_meant(cli: Cli, asked: Asked, toy: str) -> None:
    asked("tune", toy, "--problem", "n=500")
    result = cli("learn", "--seeds", "toi")
    assert result.exit_code != 0
    assert "did you mean 'toy'?" in result.stderr


def test_every_run_is_shown_only_of_a_decision(cli: Cli) -> None:
    result = cli("heuristics", "--runs")
    assert result.exit_code != 0
    assert "--runs needs a decision" in result.stderr


def test_a_place_for_models_that_cannot_be_made_is_named(cli: Cli, asked: Asked, toy: str, tmp_path: Path) -> None:
    asked("tune", toy, "--problem", "n=500", "--problem", "n=2000")
    (tmp_path / "file").touch()
    result = cli("learn", "--seeds", "toy", "--out", str(tmp_path / "file" / "models"))
    assert result.exit_code != 0
    assert "file/models cannot be made: Not a directory; choose another place with --out" in result.stderr


def test_a_table_that_is_in_force_is_named_although_nothing_was_tuned(cli: Cli, asked: Asked, home: Path) -> None:
    place = home / "heuristics" / "moe.json"
    place.parent.mkdir(parents=True)
    place.write_text('{"decision": "moe", "rules": [{"when": {}, "configs": [{"tile": 1}]}]}')
    tw.refresh()
    assert asked("heuristics", "moe")["in_force"] == {"moe.json": "table"}
    assert "0 tuning runs of moe heard proposals; in force: moe.json (table)" in cli("heuristics", "moe").stderr
