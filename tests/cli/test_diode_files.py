"""torch-diode's files on the command line: taken in, learned from, and written."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

Asked = Callable[..., Any]
Cli = Callable[..., Result]


def config(block: int) -> dict[str, Any]:
    return {"block_m": block, "block_n": 64, "block_k": 16, "group_m": 8, "num_stages": 3, "num_warps": 4, "name": "x"}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A data set of eight shapes of mm: small blocks are best for few rows."""
    solution = {}
    for m in (16, 32, 64, 128, 256, 512, 1024, 2048):
        shape = {"B": 1, "M": m, "N": 64, "K": 64, "M_dtype": "float16", "K_dtype": "float16", "out_dtype": "float16"}
        rows = [{"config": config(block), "time": abs(m - 8 * block) + 10.0} for block in (16, 64, 128)]
        solution[json.dumps(shape)] = {"timed_configs": rows}
    document = {"hardware": {"NVIDIA H100": {"operation": {"mm": {"solution": solution}}}}, "version": 1}
    (tmp_path / "mm.json").write_text(json.dumps(document))
    return tmp_path / "mm.json"


def test_a_ranker_is_trained_on_a_data_set(asked: Asked, file: Path, tmp_path: Path) -> None:
    told = asked("train", file, "--learner", "ranker", "--out", tmp_path / "model.json")
    assert (told["decision"], told["problems"], told["fence"]) == (
        "torch.cuda.mm",
        8,
        {"hardware.name": "NVIDIA H100"},
    )
    assert told["scores"]["regret"] >= 1


def test_a_data_set_goes_into_the_store_and_out_again(asked: Asked, file: Path, tmp_path: Path) -> None:
    assert asked("import", file)["added"] == 24
    assert (
        asked("export", "torch.cuda.mm", "--format", "diode-msgpack", "--out", tmp_path / "a.msgpack")["configs"] == 24
    )
    again = asked("import", tmp_path / "a.msgpack", "--dry-run")
    assert (again["added"], again["known"], again["conflicts"]) == (0, 24, [])


def test_a_data_set_is_split_and_written_by_the_names_of_files(asked: Asked, file: Path, tmp_path: Path) -> None:
    sides = asked("dataset", "split", file, "--out-train", tmp_path / "a.msgpack", "--out-test", tmp_path / "b.json")
    assert sides["train"]["rows"] + sides["test"]["rows"] == 24
    merged = asked("dataset", "merge", tmp_path / "a.msgpack", tmp_path / "b.json", "--out", tmp_path / "c.csv")
    assert merged["problems"] == 8
    assert asked("dataset", "export", tmp_path / "c.csv", "--out", tmp_path / "d.json")["format"] == "diode"


def test_columns_of_a_data_set_are_known(cli: Cli, file: Path) -> None:
    result = cli("dataset", "info", file, "--problem", "m")
    assert result.exit_code == 1
    assert "is a diode data set, whose columns and unit are known; name none" in result.stderr
