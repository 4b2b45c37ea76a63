"""`tunewise store backup`, `restore` and `prune` as somebody who looks after a store calls them."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from tunewise.store import SqliteStore
from tunewise.testing.store_contract import subject, timed, won

Cli = Callable[..., Result]
Asked = Callable[..., Any]


@pytest.fixture
def filled(home: Path) -> Path:
    """A home with a few facts in it."""
    store = SqliteStore(home)
    store.add(subject(m=1), [timed(8, at=10.0), timed(16, at=10.0)])
    store.conclude(subject(m=1), won(at=10.0))
    store.miss(subject(m=2), 3)
    store.close()
    return home


def test_a_backup_is_made_checked_and_put_back_elsewhere(asked: Asked, cli: Cli, filled: Path, tmp_path: Path) -> None:
    made = asked("store", "backup", tmp_path / "b.sqlite3")
    assert (made["trials"], made["verdicts"], made["misses"]) == (2, 1, 1)
    there = ("--home", tmp_path / "there", "store")
    would = cli(*there, "restore", tmp_path / "b.sqlite3", "--dry-run")
    assert would.stdout == "3 records and 1 miss would be added, 0 records known already\n"
    assert json.loads(cli(*there, "info", "--json").stdout)["trials"] == 0
    added = cli(*there, "restore", tmp_path / "b.sqlite3")
    assert added.stdout == "3 records and 1 miss added, 0 records known already\n"
    held = json.loads(cli(*there, "info", "--json").stdout)
    assert (held["trials"], held["verdicts"], held["misses"]) == (2, 1, 1)
    again = json.loads(cli(*there, "restore", tmp_path / "b.sqlite3", "--json").stdout)
    assert (again["added"], again["known"], again["misses"], again["is_done"]) == (0, 3, 0, True)


def test_a_backup_says_what_it_wrote_and_replaces_by_force_only(cli: Cli, filled: Path, tmp_path: Path) -> None:
    first = cli("store", "backup", tmp_path / "b.sqlite3")
    assert first.stdout.startswith("2 trials, 1 verdict, 1 miss written to ")
    second = cli("store", "backup", tmp_path / "b.sqlite3")
    assert (second.exit_code, "--force" in second.stderr) == (1, True)
    assert cli("store", "backup", tmp_path / "b.sqlite3", "--force").exit_code == 0


def test_a_store_in_trouble_has_no_backup_and_leaves_no_file(cli: Cli, home: Path, tmp_path: Path) -> None:
    home.write_text("no directory")
    assert cli("store", "backup", tmp_path / "b.sqlite3").exit_code == 1
    assert not (tmp_path / "b.sqlite3").exists()


def test_what_is_no_backup_is_refused_in_one_line(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "x.sqlite3").write_text("hello")
    for file, said in (("x.sqlite3", "cannot be read"), ("y.sqlite3", "there is no file"), ("x.txt", "no file")):
        result = cli("store", "restore", tmp_path / file)
        assert result.exit_code == 1
        assert said in result.stderr


def test_old_trials_go_and_answers_stay(cli: Cli, asked: Asked, filled: Path) -> None:
    would = cli("store", "prune", "--older-than", 30)
    assert "2 trials and 1 verdict would be removed" in would.stdout
    assert "1 problem would have no answer in memory any more; --keep-answers keeps those" in would.stderr
    kept = asked("store", "prune", "--older-than", 30, "--keep-answers", "--yes")
    assert kept == {"trials": 2, "verdicts": 0, "misses": 0, "answers": 0, "is_done": True}
    held = asked("store", "info")
    assert (held["trials"], held["verdicts"], held["misses"]) == (0, 1, 1)


def test_a_decision_goes_with_its_misses(cli: Cli, asked: Asked, filled: Path) -> None:
    assert "2 trials, 1 verdict and 1 miss would be removed" in cli("store", "prune", "--decision", "gemm").stdout
    asked("store", "prune", "--decision", "gemm", "--yes")
    held = asked("store", "info")
    assert (held["trials"], held["verdicts"], held["misses"]) == (0, 0, 0)
