"""The demo: tunes, remembers, and runs without a compiler too."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from tunewise.cli.demo import CHOICES, SHAPES


def test_the_second_demo_measures_nothing(cli: Callable[..., Result], asked: Callable[..., Any]) -> None:
    first = asked("demo", "--budget", 1)
    assert [row["name"] for row in first["tunings"]] == list(SHAPES)
    assert len(SHAPES) >= 5
    assert sum(row["measured"] for row in first["tunings"]) == len(SHAPES)
    again = cli("demo", "--budget", 1)
    assert again.exit_code == 0
    assert "Nothing was measured: all of this was known" in again.stdout
    assert "-> memory" in again.stdout


def test_the_next_steps_keep_the_home_and_fit_what_is_remembered(cli: Callable[..., Result], tmp_path: Path) -> None:
    home = tmp_path / "my home"
    kept = cli("--home", home, "demo", "--budget", 1).stdout
    assert f"tunewise --home '{home}' best gemm " in kept
    forgotten = cli("demo", "--budget", 1, "--fresh").stdout
    assert " best gemm" not in forgotten
    assert "tunewise demo " in forgotten


def test_without_a_compiler_library_choices_are_tuned(
    cli: Callable[..., Result], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CC", "no-such-compiler")
    result = cli("demo", "--budget", 1, "--json")
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
    assert asked("demo", "--budget", 1, "--fresh")["tunings"][0]["measured"] == 1
    assert not (home / "store.sqlite3").exists()
    assert list(tmp_path.glob("tunewise-*")) == []
