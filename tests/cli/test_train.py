"""`tunewise train` and `tunewise validate`: measurements in, a model out, and an honest word about it."""

import importlib.util
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import Result

from tunewise import models
from tunewise.codegen import python_source


def csv_of(count: int, seed: int) -> str:
    """Return measurements of two choices: `small` is best up to n = 100, `large` beyond."""
    chance = np.random.default_rng(seed)
    lines = ["pid,f_n,f_dtype,choice,is_default,t0,t1"]
    for number, n in enumerate(np.unique(np.exp(chance.uniform(0, 9.2, count)).round(2))):
        for choice, factor in (("small", 1 if n <= 100 else 3), ("large", 3 if n <= 100 else 1)):
            lines.append(f"{number},{n},f4,{choice},{int(choice == 'small')},{factor * 1e-3},{factor * 1.01e-3}")
    return "\n".join(lines) + "\n"


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("data")
    (folder / "known.csv").write_text(csv_of(40, seed=0))
    (folder / "unseen.csv").write_text(csv_of(60, seed=1))
    return folder


@pytest.fixture
def model(cli: Callable[..., Result], files: Path) -> Path:
    path = files / "model.json"
    if not path.exists():
        assert cli("train", files / "known.csv", "--out", path, "--name", "grow").exit_code == 0
    return path


def test_training_writes_a_model_and_tells_its_held_out_regret(asked: Callable[..., Any], files: Path) -> None:
    out, drawing = files / "told.json", files / "told.dot"
    said = asked("train", files / "known.csv", "--out", out, "--ranking", "1", "--save-dot", drawing)
    learned = models.load(out)
    assert (said["decision"], said["learner"], said["default"]) == ("known", "tree", {"choice": "small"})
    assert said["scores"]["regret"] < said["scores"]["default_regret"]
    assert drawing.read_text().startswith("digraph")
    assert learned.choose({"n": 5000, "dtype": "f4"}) == {"choice": "large"}
    assert len(learned.rank({"n": 5000, "dtype": "f4"})) == 1


def test_training_shows_a_table(cli: Callable[..., Result], files: Path) -> None:
    result = cli("train", files / "known.csv", "--out", files / "shown.json", "--learner", "tree")
    assert result.exit_code == 0
    assert "held-out regret of" in result.stdout
    assert "learned from" in result.stderr


def test_a_model_is_judged_on_problems_it_has_not_seen(asked: Callable[..., Any], files: Path, model: Path) -> None:
    said = asked("validate", model, files / "unseen.csv")
    assert said["problems"] == 60
    assert set(said["regret"]) == {"geomean", "p95", "max"}
    assert said["regret"]["geomean"] < 1.05 < said["best_single_regret"]["geomean"] < said["default_regret"]["geomean"]
    assert said["coverage"] > 0.9


def test_generated_code_is_judged_like_its_model(asked: Callable[..., Any], files: Path, model: Path) -> None:
    code = files / "model.py"
    code.write_text(python_source(models.load(model)))
    unseen = files / "unseen.csv"
    assert asked("validate", code, unseen) == asked("validate", model, unseen)


def test_the_fallback_can_be_named(asked: Callable[..., Any], files: Path, model: Path) -> None:
    small, large = (
        asked("validate", model, files / "unseen.csv", "--default", name)["default_regret"]
        for name in ("small", "large")
    )
    assert small["geomean"] != large["geomean"]


def test_validation_shows_the_worst_problems(cli: Callable[..., Result], files: Path, model: Path) -> None:
    result = cli("validate", model, files / "unseen.csv")
    assert result.exit_code == 0
    assert "60 problems" in result.stdout
    assert "best single choice" in result.stdout


def test_a_default_that_is_not_in_the_data_is_one_sentence(cli: Callable[..., Result], files: Path) -> None:
    result = cli("train", files / "known.csv", "--out", files / "none.json", "--default", "huge")
    assert result.exit_code == 1
    assert "huge" in result.stderr
    assert not (files / "none.json").exists()


def test_data_without_the_features_of_a_model_are_one_sentence(
    cli: Callable[..., Result], files: Path, model: Path
) -> None:
    (files / "other.csv").write_text((files / "unseen.csv").read_text().replace("f_n,", "f_size,"))
    code = files / "grow.py"
    code.write_text(python_source(models.load(model)))
    for judged in (model, code):
        result = cli("validate", judged, files / "other.csv")
        assert result.exit_code == 1
        assert "asks for n, and the data have size, dtype: is it of another decision?" in result.stderr


def test_data_without_any_choice_of_a_model_are_one_sentence(
    cli: Callable[..., Result], files: Path, model: Path
) -> None:
    (files / "renamed.csv").write_text("f_n,f_dtype,choice,t0\n5,f4,others,1e-3\n9,f4,more,1e-3\n")
    result = cli("validate", model, files / "renamed.csv")
    assert result.exit_code == 1
    assert "and the data have such as choice=others: is it of another decision?" in result.stderr


@pytest.fixture
def ranker(cli: Callable[..., Result], files: Path) -> Path:
    path = files / "ranker.json"
    if not path.exists():
        assert cli("train", files / "known.csv", "--out", path, "--learner", "ranker").exit_code == 0
    return path


def test_errors_of_predicted_times_are_told(asked: Callable[..., Any], files: Path, ranker: Path, model: Path) -> None:
    said = asked("validate", ranker, files / "unseen.csv", "--worst", "3", "--by", "dtype")
    times = said["prediction"]
    assert times["is_centred"] is True
    assert times["rows"] == 120
    assert times["rmse_log"] == pytest.approx(times["mse_log"] ** 0.5)
    assert times["by"]["dtype"]["f4"]["rmse_ms"] == pytest.approx(times["rmse_ms"])
    assert len(times["worst"]) == len(said["worst"]) == 3
    assert set(times["worst"][0]) == {"decision", "problem", "config", "predicted_s", "actual_s"}
    assert asked("validate", model, files / "unseen.csv")["prediction"] is None  # a tree knows no times


def test_a_model_that_knows_none_of_the_problems_is_judged_by_the_default(
    cli: Callable[..., Result], asked: Callable[..., Any], files: Path, ranker: Path
) -> None:
    strange = files / "strange.csv"
    strange.write_text((files / "unseen.csv").read_text().replace(",f4,", ",f8,"))
    said = asked("validate", ranker, strange)
    assert (said["coverage"], said["prediction"]) == (0.0, None)
    assert said["regret"] == said["default_regret"]
    assert "knows none of the measured rows" in cli("validate", ranker, strange, "--by", "dtype").stderr


def test_errors_of_predicted_times_are_shown(cli: Callable[..., Result], files: Path, ranker: Path) -> None:
    result = cli("validate", ranker, files / "unseen.csv", "--worst", "2", "--by", "dtype")
    assert result.exit_code == 0
    assert "RMSE of log" in result.stdout
    assert "dtype=f4" in result.stdout
    assert "natural logarithm of seconds; known up to a factor" in result.stdout
    assert result.stdout.count(", took ") == 2


def test_errors_by_feature_of_what_predicts_no_times_are_one_sentence(
    cli: Callable[..., Result], files: Path, model: Path
) -> None:
    code = files / "by.py"
    code.write_text(python_source(models.load(model)))
    for judged in (model, code):
        result = cli("validate", judged, files / "unseen.csv", "--by", "dtype")
        assert result.exit_code == 1
        assert "predicts no times" in result.stderr


@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="PyTorch is not installed")
def test_a_net_is_trained_as_told_and_tells_how_it_gets_on(cli: Callable[..., Result], files: Path) -> None:
    out = files / "net.json"
    options = ("--learner", "net", "--epochs", "2", "--batch-size", "64", "--learning-rate", "0.01")
    result = cli("train", files / "known.csv", "--out", out, *options)
    assert result.exit_code == 0
    assert "net: epoch " in result.stderr
    assert "regret on problems held out" in result.stderr
    assert isinstance(models.load(out).body, models.Net)


def test_a_net_that_should_be_drawn_is_refused_before_it_is_trained(cli: Callable[..., Result], files: Path) -> None:
    out = files / "drawn.json"
    result = cli("train", files / "known.csv", "--out", out, "--learner", "net", "--save-dot", files / "net.dot")
    assert result.exit_code == 2
    assert "leave out --save-dot" in result.stderr
    assert not out.exists()


@pytest.mark.parametrize("words", [["--epochs", "3"], ["--batch-size", "8", "--learner", "tree"]])
def test_what_only_a_net_can_follow_is_refused_for_others(
    cli: Callable[..., Result], files: Path, words: list[str]
) -> None:
    out = files / "vain.json"
    result = cli("train", files / "known.csv", "--out", out, *words)
    assert result.exit_code == 2
    assert f"{words[0]} is for nets: give --learner net too" in result.stderr
    assert not out.exists()


DEVICE = ["--fence", 'hardware.kind=cpu,hardware.capability="9.0"']


@pytest.mark.parametrize(
    ("words", "fence"), [(DEVICE, {"hardware.kind": "cpu", "hardware.capability": "9.0"}), (["--no-fence"], {})]
)
def test_a_model_is_fenced_as_asked(
    cli: Callable[..., Result], files: Path, tmp_path: Path, words: list[str], fence: dict[str, Any]
) -> None:
    assert cli("train", files / "known.csv", "--out", tmp_path / "m.json", *words).exit_code == 0
    assert models.load(tmp_path / "m.json").card.fence == fence


def test_a_fence_and_none_are_not_both_given(cli: Callable[..., Result], files: Path, tmp_path: Path) -> None:
    result = cli("train", files / "known.csv", "--out", tmp_path / "m.json", *DEVICE, "--no-fence")
    assert result.exit_code == 2
    assert "not both" in result.stderr


def test_the_way_out_that_autoheuristic_is_refused_with_is_one(
    cli: Callable[..., Result], files: Path, tmp_path: Path
) -> None:
    known, out = files / "known.csv", tmp_path / "m.json"
    cli("train", known, "--out", out, *DEVICE)
    refused = cli("generate", out, "--lang", "autoheuristic")
    assert refused.exit_code == 1
    assert "--no-fence" in str(refused.exception) + refused.stderr
    assert "hardware.kind=cuda" in str(refused.exception) + refused.stderr
    for words in (["--no-fence"], ["--fence", "hardware.kind=cuda"]):
        cli("train", known, "--out", out, *words)
        assert cli("generate", out, "--lang", "autoheuristic").exit_code == 0


def test_validation_on_data_that_a_model_has_seen_says_so(
    cli: Callable[..., Result], asked: Callable[..., Any], files: Path, model: Path
) -> None:
    assert asked("validate", model, files / "known.csv")["is_seen"]
    assert "warning: the model was learned from these very data" in cli("validate", model, files / "known.csv").stderr


def test_validation_tells_how_often_an_unmeasured_config_was_chosen(
    cli: Callable[..., Result], files: Path, model: Path
) -> None:
    few = files / "few.csv"
    few.write_text("f_n,f_dtype,choice,is_default,t0\n3,f4,small,1,1e-3\n5000,f4,small,1,3e-3\n")
    result = cli("validate", model, few, "--decision", "grow")
    assert "1 by a config never measured there and taken as the default; noise floor unknown" in result.stdout
    assert "warning" not in result.stderr
