"""The models that come with tunewise, as the command line shows them."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from msgspec.structs import replace

from tunewise import models
from tunewise.models import Card, Columns, Forest, Guess, Leaf, Model, Number, Split, Tree, Work

Asked = Callable[..., Any]
Cli = Callable[..., Result]

MODEL = Model(
    card=Card(decision="toy", scores={"regret": 1.05}),
    choices=({"choice": "direct"}, {"choice": "fft"}),
    default=0,
    columns=Columns((Number("n", 1.0, 1000.0),)),
    body=Tree((Split(0, 1, 2, threshold=64.0), Leaf((0, 1), support=3), Leaf((1, 0), 5, 1.02, 1.9))),
)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    models.save(MODEL, tmp_path / "toy.json")
    return tmp_path / "toy.json"


def test_every_shipped_model_is_listed_with_a_reason_where_it_does_not_answer(asked: Asked) -> None:
    rows = asked("models", "list")["models"]
    assert {row["name"] for row in rows} >= {"gemm", "isin"}
    assert all(row["here"] == "answers" or row["here"].startswith("is for ") for row in rows)


def test_a_shipped_model_is_shown_with_its_data(asked: Asked) -> None:
    shown = asked("models", "show", "isin")["model"]
    assert Path(shown["data"]).is_file()
    assert shown["fence"]["hardware.name"]
    assert {"choice": "auto"} in shown["choices"]


def test_a_model_that_does_not_exist_is_named_with_the_one_that_may_be_meant(cli: Cli) -> None:
    result = cli("models", "show", "isinn")
    assert result.exit_code == 1
    assert "no model or package is named 'isinn'; did you mean 'isin'?" in result.stderr


def test_explain_shows_the_tree_of_a_model(cli: Cli, file: Path) -> None:
    shown = cli("explain", "--model", file).stdout
    assert "n ≤ 64?" in shown
    assert "fft (5 problems, regret 1.02 (default 1.90))" in shown
    assert "1 to 1000" in shown


@pytest.mark.parametrize(
    ("work", "said"),
    [
        (None, "a forest of 2 trees\n"),
        (
            Work((0,), ((1.0, 1.0), (1.0, 2.0)), 0.5),
            "a forest of 2 trees, which adds to the time of 1 amount of work\n",
        ),
    ],
)
def test_explain_says_what_a_forest_adds_to(cli: Cli, tmp_path: Path, work: Work | None, said: str) -> None:
    forest = Forest(((Guess(0.0),), (Guess(1.0),)), work=work)
    models.save(replace(MODEL, body=forest), tmp_path / "forest.json")
    assert said in cli("explain", "--model", tmp_path / "forest.json").stdout


def test_explain_says_what_a_model_answers(asked: Asked, cli: Cli, file: Path) -> None:
    said = asked("explain", "--model", file, "--problem", "n=100", "--problem", "n=5000")["answers"]
    assert [one["ranking"] for one in said] == [[{"choice": "fft"}, {"choice": "direct"}], []]
    told = cli("explain", "--model", file, "--problem", "n=5000").stdout
    assert told.splitlines()[0] == "n=5000 -> abstains: the default is the answer"


@pytest.mark.parametrize(
    ("problem", "reason"),
    [
        ("n=100", "n ≤ 64: no; 5 problems, regret 1.02 (default 1.90)"),
        ("n=5000", "beyond what it was learned from: n=5000 is not between 1 and 1000"),
        ("m=5", "beyond what it was learned from: n is missing"),
    ],
)
def test_explain_says_why_a_model_answers_or_abstains(
    asked: Asked, cli: Cli, file: Path, problem: str, reason: str
) -> None:
    assert asked("explain", "--model", file, "--problem", problem)["answers"][0]["reason"] == reason
    assert reason in cli("explain", "--model", file, "--problem", problem).stdout


def test_explain_wants_a_target_or_a_model(cli: Cli, file: Path) -> None:
    for words in (("explain",), ("explain", "isin", "--model", file)):
        result = cli(*words)
        assert result.exit_code == 2
        assert "Name a TARGET or a --model, and not both." in result.stderr


def test_a_model_that_is_none_is_one_sentence(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "bad.json").write_text("{}")
    result = cli("explain", "--model", tmp_path / "bad.json")
    assert result.exit_code == 1
    assert result.stderr.count("\n") == 1
    assert "bad.json: not a model" in result.stderr
