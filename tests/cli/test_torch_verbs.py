"""`tunewise torch`: what is refused, what files become, and models from data sets; nothing here is compiled."""

import json
import sys
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from tunewise.cli.app import app
from tunewise.decision import Problem, Timing
from tunewise.deploy.inductor import datafiles
from tunewise.deploy.inductor.amx import is_broken
from tunewise.deploy.inductor.learning import by_use
from tunewise.deploy.inductor.shapes import Shape, shapeset_shapes, write_shapeset
from tunewise.formats.diode_findings import write_json
from tunewise.formats.findings import Finding

pytest.importorskip("numpy")
ATEN, CPP = ({"kernel": kernel, "reg_m": 1, "reg_n": 1} for kernel in ("aten", "cpp"))


def findings(ops: tuple[str, ...], sizes: tuple[int, ...]) -> Iterator[Finding]:
    """Yield timings in which C++ is twice as fast for few rows, and half as fast for many."""
    for op, m, n, dtype in product(ops, sizes, sizes, ("float32", "bfloat16")):
        problem = Problem({"m": m, "n": n, "k": 64, "dtype": dtype, **({"b": 4} if op == "bmm" else {})})
        for config, factor in ((ATEN, 1.0), (CPP, 0.5 if m <= 64 else 2.0)):
            yield Finding(f"torch.{op}", problem, config, Timing((factor * m * n * 1e-9,)), "some CPU")


def data_file(path: Path, ops: tuple[str, ...] = ("linear", "bmm"), sizes: tuple[int, ...] = (8, 32, 100, 400)) -> Path:
    (written,) = write_json(list(findings(ops, sizes)))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(written.raw)
    return path


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("torch")
    data_file(folder / "data" / "both.json")
    data_file(folder / "unseen" / "both.json", sizes=(12, 200))
    return folder


@pytest.fixture(scope="module")
def trained(place: Path) -> Result:
    words = ("torch", "train", "--data-dir", place / "data", "--model", "tree", "--out", place / "models", "--json")
    return CliRunner().invoke(app, [str(word) for word in words], prog_name="tunewise")


@pytest.fixture
def models(place: Path, trained: Result) -> Path:
    return place / "models"


def test_every_decision_of_the_data_gets_a_model(place: Path, trained: Result) -> None:
    said = json.loads(trained.stdout)
    assert [model["decision"] for model in said["models"]] == ["torch.linear", "torch.bmm"]
    assert sorted(path.name for path in (place / "models").iterdir()) == ["torch.bmm.json", "torch.linear.json"]
    assert all(model["scores"]["regret"] < model["scores"]["default_regret"] for model in said["models"])


def test_a_deep_model_takes_epochs_batches_and_a_rate(asked: Callable[..., Any], place: Path, tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="torch is not installed")
    data_file(tmp_path / "data" / "linear.json", ("linear",))
    words = ("--model", "deep", "--epochs", "2", "--batch-size", "8", "--learning-rate", "0.01")
    said = asked("torch", "train", "--data-dir", tmp_path / "data", *words, "--out", tmp_path / "models")
    assert said["models"][0]["learner"] == "net"
    told = asked("torch", "validate", tmp_path / "models", "--data-dir", place / "unseen", "--top-n-worst", "3")
    assert told["prediction"]["rmse_log"] == pytest.approx(told["prediction"]["mse_log"] ** 0.5)
    assert set(told["prediction"]["by"]) == {"decision", "dtype"}
    assert [set(miss["problem"]) for miss in told["prediction"]["worst"]] == [{"m", "n", "k", "dtype"}] * 3


def test_only_files_with_the_extensions_named_are_read(cli: Callable[..., Result], place: Path, tmp_path: Path) -> None:
    words = ("--file-extensions", "msgpack", "--out", tmp_path)
    refused = cli("torch", "train", "--data-dir", place / "data", *words)
    assert refused.exit_code == 1
    assert "holds no file that ends with .msgpack" in refused.stderr


def test_models_are_judged_on_other_shapes_by_op_and_type(asked: Callable[..., Any], place: Path, models: Path) -> None:
    said = asked("torch", "validate", models, "--data-dir", place / "unseen")
    assert {model["decision"]: model["regret"]["geomean"] for model in said["models"]} == {
        "torch.bmm": 1.0,
        "torch.linear": 1.0,
    }
    assert set(said["models"][0]["by_category"]["dtype"]) == {"bfloat16", "float32"}
    assert set(said["models"][0]["top"]) == {"1", "3", "5", "10"}


def test_validation_shows_a_table(cli: Callable[..., Result], place: Path, models: Path) -> None:
    shown = cli("torch", "validate", models, "--data-dir", place / "unseen").stdout
    assert " ".join(shown.splitlines()[0].split()) == "regret on problems model p95 top-3 best single default"


def test_without_held_out_shapes_validation_says_how_to_get_some(cli: Callable[..., Result], models: Path) -> None:
    refused = cli("torch", "validate", models)
    assert refused.exit_code == 1
    assert "create-validation" in refused.stderr


def test_training_without_data_says_how_to_collect(cli: Callable[..., Result], tmp_path: Path) -> None:
    refused = cli("torch", "train", "--out", tmp_path / "models")
    assert (refused.exit_code, refused.stderr) == (
        1,
        "error: no product was measured yet; begin with: tunewise torch collect\n",
    )


def test_problems_count_as_often_as_they_are_used(place: Path) -> None:
    data = datafiles.read([place / "data" / "both.json"])["torch.linear"]
    used = [Shape("mm", 400, 400, 64, weight=8.0), Shape("linear", 8, 8, 64, weight=2.0)]
    weights = by_use(used)(data)
    most = [number for number in range(len(data)) if weights[number] == weights.max()]
    assert [dict(data.problem(number)) for number in most] == [{"m": 400, "n": 400, "k": 64, "dtype": "float32"}]
    assert weights.max() == pytest.approx(4 * weights.min())
    assert weights.mean() == pytest.approx(1)


def test_a_shapeset_comes_back_with_its_counts_and_layouts(tmp_path: Path) -> None:
    shapes = [Shape("bmm", 4, 5, 6, 2, "bfloat16", rhs="columns", weight=3.0), Shape("linear", 7, 8, 9, dynamic=True)]
    write_shapeset(shapes, tmp_path / "shapes.json")
    read = shapeset_shapes(tmp_path / "shapes.json")
    assert read == shapes
    assert [shape.weight for shape in read] == [3.0, 1.0]


def test_data_sets_become_msgpack_and_json_again(asked: Callable[..., Any], place: Path, tmp_path: Path) -> None:
    source, packed, back = place / "data" / "both.json", tmp_path / "data.msgpack", tmp_path / "back.json"
    assert asked("torch", "convert", source, packed) == {"file": str(packed), "rows": 128}
    asked("torch", "convert", packed, back)
    assert json.loads(back.read_text()) == json.loads(source.read_text())


def test_the_older_schema_becomes_the_newer_one(asked: Callable[..., Any], place: Path, tmp_path: Path) -> None:
    new = json.loads((place / "data" / "both.json").read_text())
    old = json.loads((place / "data" / "both.json").read_text())
    for device in old["hardware"].values():
        for operation in device["operation"].values():
            for solution in operation["solution"].values():
                for row in solution["timed_configs"]:
                    row["config"] = json.dumps(row["config"])
    (tmp_path / "old.json").write_text(json.dumps(old))
    asked("torch", "convert", tmp_path / "old.json", tmp_path / "new.json", "--new-schema")
    assert json.loads((tmp_path / "new.json").read_text()) == new


def test_a_lookup_table_says_what_it_leaves_out(asked: Callable[..., Any], tmp_path: Path) -> None:
    out = tmp_path / "table.json"
    problem = "m=64,n=64,k=64,dtype=bfloat16"
    said = asked("torch", "export", "--device", "H100", "--problem", problem, "--out", out)
    assert (said["products"], said["left_out"][0]["reason"]) == (0, "nothing is known of it")
    assert json.loads(out.read_text()) == {}


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("collect", "--shapeset", "s.json", "--script", "s.py"), 2, "give one of --random"),
        (("collect", "--random", "--log-normal"), 2, "give one of --random"),
        (("collect", "--out", "data.bin"), 2, "give --format json|msgpack|parquet"),
        (("collect", "extra"), 2, "give --script SCRIPT too"),
        (("collect", "--op", "conv"), 2, "'conv' is not one of"),
        (("collect", "--seconds", "0"), 2, "--seconds"),
        (("collect", "--min-size", "9", "--max-size", "8"), 1, "give 1 <= low <= high"),
        (("compare", "nowhere"), 1, "nowhere"),
        (("train",), 2, "--out"),
        (("convert", "nowhere.json", "x.json"), 1, "there is no file nowhere.json"),
        (("convert", "nowhere.json", "x.csv"), 1, "call it .json or .msgpack"),
        (("export", "--device", "Z80", "--out", "x.json"), 1, "Z80"),
    ],
)
def test_what_is_wrong_is_told_in_a_line(
    cli: Callable[..., Result], words: tuple[str, ...], code: int, said: str
) -> None:
    refused = cli("torch", *words)
    assert refused.exit_code == code
    assert said in refused.stderr.splitlines()[-1]


def test_without_torch_measuring_says_what_to_install(
    cli: Callable[..., Result], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    refused = cli("torch", "collect", "--num-shapes", "1")
    assert refused.exit_code == 1
    assert refused.stderr.count("\n") == 1
    assert "pip install 'tunewise[torch]'" in refused.stderr


def test_what_a_shapeset_has_beyond_the_limits_is_said(cli: Callable[..., Result], tmp_path: Path) -> None:
    write_shapeset([Shape("mm", 9000, 8, 8)], tmp_path / "large.json")
    pytest.importorskip("torch", reason="torch is not installed")
    refused = cli("torch", "collect", "--shapeset", tmp_path / "large.json")
    assert refused.exit_code == 1
    assert "1 shape beyond the limits left out, such as mm 9000 x 8 x 8 float32" in refused.stderr
    assert "no shape is there to measure" in refused.stderr


def test_a_broken_matrix_unit_is_found_in_a_child(tmp_path: Path) -> None:
    (tmp_path / "with").write_text("flags : fpu amx_tile amx_bf16")
    (tmp_path / "without").write_text("flags : fpu avx2")
    killed = "import os, signal; os.kill(os.getpid(), signal.SIGILL)"
    assert is_broken(tmp_path / "with", killed)
    assert not is_broken(tmp_path / "with", "pass")
    assert not is_broken(tmp_path / "without", killed)
    assert not is_broken(tmp_path / "nowhere", killed)
