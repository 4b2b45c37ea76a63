"""`tunewise generate`: a model file in, code out, on stdout or in a file."""

from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import msgspec
import pytest
from click.testing import Result

from tunewise import models
from tunewise.codegen import LANGUAGES, generate
from tunewise.models import Card, Columns, Forest, Guess, Leaf, Model, Number, Tree
from tunewise.models.source import load_source

MODEL = Model(
    card=Card(decision="conv"),
    choices=({"choice": "direct"}, {"choice": "fft"}),
    columns=Columns((Number("n", 1.0, 64.0),)),
    body=Tree((Leaf((1, 0), 5, 1.0, 1.2),)),
)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    models.save(MODEL, tmp_path / "conv.json")
    return tmp_path / "conv.json"


@pytest.mark.parametrize("language", LANGUAGES)
def test_code_goes_to_stdout(cli: Callable[..., Result], file: Path, language: str) -> None:
    result = cli("generate", file, "--lang", language)
    assert result.exit_code == 0
    assert result.stdout == generate(MODEL, language)
    assert cli("generate", file, "--lang", language, "--out", "-").stdout == result.stdout


def test_a_tree_is_drawn_as_a_picture_that_stands_for_itself(
    cli: Callable[..., Result], file: Path, tmp_path: Path
) -> None:
    out = tmp_path / "conv.svg"
    assert cli("generate", file, "--lang", "svg", "--out", out).exit_code == 0
    assert ElementTree.parse(out).getroot().tag == "{http://www.w3.org/2000/svg}svg"


def test_several_trees_cannot_be_drawn_as_a_picture(cli: Callable[..., Result], tmp_path: Path) -> None:
    forest = msgspec.structs.replace(MODEL, body=Forest(((Guess(0.0),), (Guess(1.0),))))
    models.save(forest, tmp_path / "forest.json")
    result = cli("generate", tmp_path / "forest.json", "--lang", "svg")
    assert result.exit_code == 1
    assert "conv: a model of several trees cannot be drawn" in result.stderr


def test_code_goes_to_a_file_that_loads(cli: Callable[..., Result], file: Path, tmp_path: Path) -> None:
    out = tmp_path / "conv.py"
    result = cli("generate", file, "--out", out)
    assert result.exit_code == 0
    assert not result.stdout
    assert load_source(out).choose({"n": 3}) == {"choice": "fft"}


def test_json_tells_what_was_written(asked: Callable[..., Any], file: Path, tmp_path: Path) -> None:
    out = tmp_path / "conv.h"
    told = asked("generate", file, "--lang", "c", "--out", out)
    assert told == {
        "model": str(file),
        "decision": "conv",
        "language": "c",
        "bytes": out.stat().st_size,
        "file": str(out),
        "source": None,
    }
    assert asked("generate", file)["source"] == generate(MODEL, "python")


def test_a_damaged_model_is_one_sentence_and_leaves_the_file_alone(
    cli: Callable[..., Result], file: Path, tmp_path: Path
) -> None:
    out = tmp_path / "conv.py"
    out.write_text("before")
    file.write_text(file.read_text().replace('"conv"', "7"))
    result = cli("generate", file, "--out", out)
    assert result.exit_code == 1
    assert result.stderr.startswith(f"error: {file}: not a model: ")
    assert len(result.stderr.splitlines()) == 1
    assert out.read_text() == "before"


def test_a_place_that_takes_no_file_is_one_sentence(cli: Callable[..., Result], file: Path, tmp_path: Path) -> None:
    result = cli("generate", file, "--out", tmp_path / "nowhere" / "conv.py")
    assert result.exit_code == 1
    assert "cannot be written" in result.stderr


def test_a_name_of_several_lines_is_told_in_one(cli: Callable[..., Result], tmp_path: Path) -> None:
    named = msgspec.structs.replace(MODEL, card=Card(decision="conv\nerror: \x1b[31mall is lost"))
    models.save(named, tmp_path / "m.json")
    result = cli("generate", tmp_path / "m.json", "--out", tmp_path / "m.py")
    assert result.exit_code == 0
    assert len(result.stderr.splitlines()) == 1
    assert r"conv\nerror: \x1b[31mall is lost in python" in result.stderr
