"""`tunewise report` writes one page from files or from the store, and says what it found."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from tunewise.models import Card, Columns, Leaf, Model, Number, Split, Tree, save

Cli = Callable[..., Result]
Asked = Callable[..., Any]


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """Eight problems, two choices: `short` is best up to n=10, and `long` is the default."""
    lines = ["pid,f_n,choice,is_default,t0,t1"]
    for pid, n in enumerate((1, 2, 4, 8, 16, 32, 64, 128)):
        lines += [f"{pid},{n},short,0,{n}e-6,{n}e-6", f"{pid},{n},long,1,1e-5,1e-5"]
    path = tmp_path / "way.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """A model file for that table that never errs."""
    nodes = (Split(0, 1, 2, threshold=10.0), Leaf((0, 1), support=4), Leaf((1, 0), support=4))
    path = tmp_path / "way.json"
    made = Model(
        card=Card(decision="way", learner="tree"),
        choices=({"choice": "short"}, {"choice": "long"}),
        default=1,
        columns=Columns(problem=(Number("n", 1.0, 256.0),)),
        body=Tree(nodes),
    )
    save(made, path)
    return path


def test_a_page_is_written_from_data_and_a_model(asked: Asked, tmp_path: Path, table: Path, model: Path) -> None:
    told = asked("report", table, "--model", model, "--out", tmp_path / "page.html")
    assert told["file"] == str(tmp_path / "page.html")
    assert (told["decision"], told["data"]["problems"], told["has_model"]) == ("way", 8, True)
    assert told["scores"]["regret"]["geomean"] == pytest.approx(1)
    assert told["importance"] == {"n": pytest.approx(1)}
    assert "n ≤ 10" in (tmp_path / "page.html").read_text()


def test_without_a_model_there_is_no_tree(asked: Asked, tmp_path: Path, table: Path) -> None:
    told = asked("report", table, "--out", tmp_path / "page.html")
    assert (told["has_model"], told["importance"], told["progress"]) == (False, {}, None)
    assert told["scores"]["default_regret"]["max"] == pytest.approx(10)


def test_people_see_the_ways_side_by_side(cli: Cli, tmp_path: Path, table: Path, model: Path) -> None:
    result = cli("report", table, "--model", model, "--out", tmp_path / "page.html")
    assert result.exit_code == 0, result.output
    assert [line.split()[0] for line in result.stdout.splitlines()] == ["regret", "learned", "default", "best"]
    assert "page.html" in result.stderr


def test_another_default_can_be_named(asked: Asked, tmp_path: Path, table: Path) -> None:
    told = asked("report", table, "--default", "short", "--out", tmp_path / "page.html")
    assert told["scores"]["default_regret"]["max"] == pytest.approx(12.8)


def test_the_store_gives_data_and_progress(asked: Asked, cli: Cli, tmp_path: Path, toy: str) -> None:
    assert cli("tune", toy, "--problem", "n=10", "--problem", "n=200", "--budget", "6").exit_code == 0
    told = asked("report", "--out", tmp_path / "page.html")
    assert (told["decision"], told["data"]["problems"]) == ("toy", 2)
    assert told["progress"]["problems"] == 2
    assert "Tuning progress" in (tmp_path / "page.html").read_text()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--decision", "nothing"), "nothing is remembered of 'nothing'"),
        ((), "no data is named: give DATA files or a remembered --decision"),
        (("nowhere.csv",), "nowhere.csv"),
    ],
)
def test_what_is_not_there_is_named(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, words: tuple[str, ...], said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    result = cli("report", *words)
    assert result.exit_code == 1
    assert said in result.stderr
    assert not (tmp_path / "report.html").exists()


def test_a_model_that_is_none_is_refused(cli: Cli, tmp_path: Path, table: Path) -> None:
    result = cli("report", table, "--model", table, "--out", tmp_path / "page.html")
    assert result.exit_code == 1
    assert "not a model" in result.stderr


def test_a_model_of_another_decision_is_refused(cli: Cli, tmp_path: Path, table: Path, model: Path) -> None:
    (tmp_path / "other.csv").write_text(table.read_text().replace("f_n", "f_m"))
    (tmp_path / "renamed.csv").write_text(table.read_text().replace("short", "brief").replace("long", "broad"))
    for name in ("other.csv", "renamed.csv"):
        result = cli("report", tmp_path / name, "--model", model, "--out", tmp_path / "page.html")
        assert result.exit_code == 1
        assert "is it of another decision?" in result.stderr
    assert not (tmp_path / "page.html").exists()
