"""Files that verbs write: never what they read, never one file twice, and never where no file can be made."""

from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

Cli = Callable[..., Result]


@pytest.fixture
def data(tmp_path: Path) -> Path:
    path = tmp_path / "data.csv"
    path.write_text("f_n,choice,t0\n" + "".join(f"{n},{word},1e-3\n" for n in (1, 2, 3) for word in "ab"))
    return path


def refused(result: Result, *words: str) -> None:
    assert result.exit_code != 0
    assert "Traceback" not in result.output
    assert all(word in result.stderr for word in words), result.stderr


@pytest.mark.parametrize("verb", [("train",), ("dataset", "merge"), ("dataset", "export"), ("report",)])
def test_what_is_read_is_never_replaced(cli: Cli, data: Path, verb: tuple[str, ...]) -> None:
    before = data.read_bytes()
    refused(cli(*verb, data, "--out", data), "--out", "is a file that is read")
    assert data.read_bytes() == before


def test_a_split_never_replaces_what_it_splits(cli: Cli, data: Path, tmp_path: Path) -> None:
    before = data.read_bytes()
    sides = ("--out-train", tmp_path / "train.csv", "--out-test", data)
    refused(cli("dataset", "split", data, *sides), "--out-test", "is a file that is read")
    assert data.read_bytes() == before


def test_a_link_to_what_is_read_is_the_same_file(cli: Cli, data: Path, tmp_path: Path) -> None:
    link = tmp_path / "link.csv"
    link.symlink_to(data)
    refused(cli("train", data, "--out", link), "is a file that is read")
    assert link.is_symlink()


def test_a_model_and_its_drawing_are_two_files(cli: Cli, data: Path, tmp_path: Path) -> None:
    out = tmp_path / "m.json"
    refused(cli("train", data, "--out", out, "--save-dot", tmp_path / "." / "m.json"), "are one file; give two")
    assert not out.exists()


def test_code_never_replaces_its_model(cli: Cli, tmp_path: Path) -> None:
    model = tmp_path / "m.json"
    model.write_text("{}")
    refused(cli("generate", model, "--out", model), "is a file that is read")
    assert model.read_text() == "{}"


def test_a_data_set_is_not_converted_in_place(cli: Cli, tmp_path: Path) -> None:
    pytest.importorskip("numpy")
    source = tmp_path / "data.json"
    source.write_text("{}")
    refused(cli("torch", "convert", source, source), "is a file that is read")
    assert source.read_text() == "{}"


def test_a_place_that_is_not_there_is_told_before_anything_is_read(cli: Cli, tmp_path: Path) -> None:
    out = tmp_path / "nowhere" / "m.json"
    refused(cli("train", tmp_path / "missing.csv", "--out", out), "nowhere is not a directory; choose another place")
