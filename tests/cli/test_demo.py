"""The demo: tunes, remembers, learns, writes code and uses it, and runs without a compiler too."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from tunewise.cli.demo import CHOICES, SHAPES
from tunewise.formats.datasets import read
from tunewise.models.source import load_source
from tunewise.session import shelf

SMALL = ("demo", "--budget", 1, "--problems", 6)


def test_the_second_demo_measures_nothing(cli: Callable[..., Result], asked: Callable[..., Any]) -> None:
    first = asked(*SMALL)
    assert [row["name"] for row in first["tunings"]] == list(SHAPES)
    assert len(SHAPES) >= 5
    assert sum(row["measured"] for row in first["tunings"]) == len(SHAPES)
    again = cli(*SMALL)
    assert again.exit_code == 0, again.output
    assert "Nothing was measured: all of this was known" in again.stdout


def test_what_was_learned_is_written_as_code_that_answers(asked: Callable[..., Any], tmp_path: Path) -> None:
    told = asked("demo", "--budget", 2, "--problems", 8, "--out", tmp_path / "out")
    assert [lesson["decision"] for lesson in told["lessons"]] == ["gemm", "isin"]
    for lesson in told["lessons"]:
        assert lesson["validation"]["problems"] == lesson["held_out"] > 0
        assert load_source(lesson["files"]["code"]).decision == lesson["decision"]
        assert read([lesson["files"]["data"]]).decision == lesson["decision"]
    assert {step["rung"] for step in told["explanation"]["steps"]} >= {"pin", "memory", "learned"}
    assert all(row["default_s"] > 0 and row["tuned_s"] > 0 for row in told["unseen"])
    assert Path(told["report"]).read_text().startswith("<!DOCTYPE html>")
    in_force = [heuristic.name for heuristic in shelf.heuristics_for("gemm")]
    assert "gemm_heuristic.py" not in in_force  # what the demo loads is the demo's


def test_the_next_steps_keep_the_home_and_fit_what_is_remembered(cli: Callable[..., Result], tmp_path: Path) -> None:
    home = tmp_path / "my home"
    kept = cli("--home", home, *SMALL).stdout
    assert f"tunewise --home '{home}' best gemm " in kept
    forgotten = cli(*SMALL, "--fresh").stdout
    assert " best gemm" not in forgotten
    assert "tunewise demo " in forgotten


def test_without_a_compiler_library_choices_are_tuned(
    cli: Callable[..., Result], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CC", "no-such-compiler")
    result = cli(*SMALL, "--json")
    assert result.exit_code == 0
    assert [row["name"] for row in json.loads(result.stdout)["tunings"]] == list(CHOICES)
    told = [line for line in result.stderr.splitlines() if "no-such-compiler" in line]
    assert len(told) == 1
    assert "The demo goes on with choices between library functions" in told[0]


def test_a_fresh_demo_leaves_nothing_behind(
    asked: Callable[..., Any], home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CC", "no-such-compiler")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    assert asked(*SMALL, "--fresh")["tunings"][0]["measured"] == 1
    assert not (home / "store.sqlite3").exists()
    assert list(tmp_path.glob("tunewise-*")) == []
