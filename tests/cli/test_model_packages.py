"""Packages of models on the command line: packed, installed, activated, shown with why they do not answer."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

Asked = Callable[..., Any]
Cli = Callable[..., Result]


@pytest.fixture
def packed(asked: Asked, tmp_path: Path) -> Path:
    asked("models", "pack", "isin", "--name", "mine", "--out", tmp_path / "mine")
    return tmp_path / "mine"


def row(asked: Asked, name: str = "mine") -> dict[str, Any]:
    (found,) = [row for row in asked("models", "list")["models"] if row["name"] == name]
    return found


def test_a_package_goes_from_a_directory_to_an_answer(asked: Asked, packed: Path) -> None:
    assert asked("models", "install", packed)["is_active"] is False
    assert row(asked)["state"] == "installed"
    assert asked("models", "activate", "mine")["is_active"] is True
    assert row(asked)["state"] == "active"
    assert asked("models", "deactivate", "mine")["is_active"] is False


def test_installing_says_how_to_go_on(cli: Cli, packed: Path) -> None:
    done = cli("models", "install", packed)
    assert "mine 1.0 installed: 1 model in " in done.stdout
    assert "run: tunewise models activate mine" in done.stderr


def test_the_list_says_why_a_package_does_not_answer_here(asked: Asked, cli: Cli, tmp_path: Path) -> None:
    words = ("models", "pack", "isin", "--name", "mine", "--out", tmp_path / "p", "--requires", "torch<1.0")
    asked(*words)
    asked("models", "install", tmp_path / "p")
    here = row(asked)["here"]
    assert here.startswith(("needs torch <1.0", "is for "))
    assert "does not answer here: it " in cli("models", "activate", "mine").stderr


def test_a_package_is_shown_with_its_manifest_and_its_models(asked: Asked, cli: Cli, packed: Path) -> None:
    asked("models", "install", packed)
    told = asked("models", "show", "mine")["package"]
    assert list(told["files"]) == ["isin_model.json"]
    shown = cli("models", "show", "mine").stdout
    assert "requires" in shown
    assert "choice=table" in shown or "table" in shown


def test_a_wheel_is_named_as_pip_wants_it(asked: Asked, tmp_path: Path) -> None:
    words = ("models", "pack", "isin", "--name", "my-isin", "--package-version", "2.1", "--wheel", "--out", tmp_path)
    made = asked(*words)["package"]
    assert Path(made).name == "tunewise_model_my_isin-2.1-py3-none-any.whl"
    assert asked("models", "install", made)["name"] == "my-isin"


def test_removing_says_first_what_would_go(asked: Asked, cli: Cli, packed: Path) -> None:
    asked("models", "install", packed)
    assert "would be removed; add --yes" in cli("models", "remove", "mine").stdout
    assert row(asked)["state"] == "installed"
    assert asked("models", "remove", "mine", "--yes")["is_done"] is True
    assert not [one for one in asked("models", "list")["models"] if one["name"] == "mine"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("install", "nowhere"), "there is no directory, wheel or installed package 'nowhere'"),
        (("activate", "nowhere"), "no model package 'nowhere' is installed"),
        (("pack", "nowhere.json", "--name", "a", "--out", "a"), "nowhere.json cannot be read"),
        (("pack", "isin", "--name", "A", "--out", "a"), "'A' is not a name of a package"),
    ],
)
def test_trouble_is_one_sentence(cli: Cli, words: tuple[str, ...], said: str) -> None:
    result = cli("models", *words)
    assert result.exit_code == 1
    assert said in result.stderr
    assert result.stderr.count("\n") == 1


def test_a_range_that_is_none_is_a_usage_error(cli: Cli, tmp_path: Path) -> None:
    result = cli("models", "pack", "isin", "--name", "a", "--out", tmp_path / "a", "--requires", "torch")
    assert result.exit_code == 2
    assert "such as torch>=2.6,<2.14" in result.stderr
