"""Damaged model files and modules are refused or still sound; nothing in them is ever run, and no bomb goes off."""

import json
import random
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from limits import HANG_S
from tunewise.codegen import LANGUAGES, generate, python_source
from tunewise.errors import InvalidModel
from tunewise.models import Card, Columns, Model, Number, Word, dump, load, parse
from tunewise.models.model import MAX_FILE_BYTES
from tunewise.models.net import Layer, Net, Scale
from tunewise.models.source import load_source

sys.path.append(str(Path(__file__).parents[1] / "codegen"))
from drawn import draw_model

NET = Model(
    card=Card(decision="net"),
    choices=({"tile": 8}, {"tile": 16}),
    columns=Columns((Number("m", 1.0, 4096.0), Word("dtype", ("f4", "f8"))), (Number("tile", 8.0, 16.0),)),
    body=Net(
        (Scale(0, 3.0, 2.0, is_log=True), Scale(1, 0.5, 0.5, word=1), Scale(2, 12.0, 4.0)),
        (
            Layer(3, 2, struct.pack("<6f", 1, 2, 3, -1, 0, 0.5), struct.pack("<2f", 0, 1)),
            Layer(2, 1, struct.pack("<2f", 1, -1), struct.pack("<f", 0)),
        ),
    ),
)
SCRIPT = Path(__file__).with_name("mutate.py")


def damaged(kind: str, count: int, place: Path) -> dict[str, Any]:
    """Return what became of damaged files: how many load, which faults there were, and what was run."""
    seeds = place / "seeds"
    seeds.mkdir()
    for seed in range(30):
        model = draw_model(random.Random(seed))
        raw = dump(model) if kind == "models" else python_source(model).encode()
        (seeds / f"{seed}").write_bytes(raw)
    if kind == "models":
        for number in range(5):
            (seeds / f"net-{number}").write_bytes(dump(NET))
    command = [sys.executable, SCRIPT, kind, str(count), "11", seeds]
    ran = subprocess.run(command, cwd=place, capture_output=True, text=True, check=False, timeout=HANG_S)
    assert ran.returncode == 0, ran.stderr[-3000:]
    said: dict[str, Any] = json.loads(ran.stdout)
    return said


def check_models(count: int, place: Path) -> None:
    said = damaged("models", count, place)
    assert not said["faults"]
    assert not said["events"]
    assert 0 < said["loaded"] < count


def test_damaged_models_are_refused_or_sound_and_run_nothing(tmp_path: Path) -> None:
    check_models(600, tmp_path)


@pytest.mark.full
def test_damaged_models_in_full(tmp_path: Path) -> None:
    check_models(5_000, tmp_path)


def check_sources(count: int, place: Path) -> None:
    said = damaged("sources", count, place)
    assert not said["faults"]
    assert not [event for event in said["events"] if not event.startswith(("compile ", "exec "))]
    assert 0 < said["loaded"] < count


def test_damaged_modules_are_refused_or_sound_and_do_nothing_else(tmp_path: Path) -> None:
    check_sources(300, tmp_path)


@pytest.mark.full
def test_damaged_modules_in_full(tmp_path: Path) -> None:
    check_sources(5_000, tmp_path)


DEEP = 200_000
BOMBS = {
    "lists": b"[" * DEEP,
    "closed lists": b"[" * DEEP + b"]" * DEEP,
    "objects": b'{"a":' * DEEP,
    "a tag behind a deep value": b'{"body":{"nodes":' + b"[" * DEEP + b'],"type":"tree"}}',
    "a long text": b'{"format":1,"card":{"decision":"' + b"a" * (4 << 20) + b'"}}',
    "a long number": b'{"format":' + b"9" * (4 << 20) + b"}",
    "too long": b" " * (MAX_FILE_BYTES + 1),
    "empty lists": b'{"choices":[' + b"{}," * (2 << 20) + b"{}]}",
    "nothing": b"",
    "no text": bytes(range(256)),
}


@pytest.mark.parametrize("bomb", BOMBS)
def test_bombs_are_refused(bomb: str) -> None:
    with pytest.raises(InvalidModel):
        parse(BOMBS[bomb])


CODE_BOMBS = {
    "brackets": "(" * DEEP,
    "signs": "FORMAT = " + "-" * DEEP + "1\n",
    "nots": "FORMAT = " + "not " * DEEP + "1\n",
    "sums": "FORMAT = " + "1+" * DEEP + "1\n",
    "elifs": "if 1:\n    pass\n" + "elif 1:\n    pass\n" * DEEP,
    "indents": "".join(" " * depth + "if 1:\n" for depth in range(1000)),
    "attributes": "FORMAT = a" + ".a" * DEEP + "\n",
    "a long text of formulas": "FORMAT = f'" + "{1}" * 600_000 + "'\n",  # minutes, if it were parsed
    "such a text of several lines": 'FORMAT = """\'""" rf"""' + "{1}\n" * 400_000 + '"""\n',
    "such a text after other line ends": "#\rFORMAT = 'a\\\r\n' f'" + "{1}" * 600_000 + "'\n",
    "such a text left open": "FORMAT = f'" + "{1}" * 600_000,
    "quotes": "'\"" * 900_000,
    "a long number": "FORMAT = " + "9" * 100_000 + "\n",
    "too long": "#" * (3 << 20),
    "a zero byte": "FORMAT = 1\0\n",
    "another encoding": "# coding: utf-7\nFORMAT = 1\n",
}


@pytest.mark.parametrize("bomb", CODE_BOMBS)
def test_code_bombs_are_refused(bomb: str, tmp_path: Path) -> None:
    (tmp_path / "bomb.py").write_bytes(CODE_BOMBS[bomb].encode())
    with pytest.raises(InvalidModel):
        load_source(tmp_path / "bomb.py")


def test_a_file_that_is_refused_is_named(tmp_path: Path) -> None:
    (tmp_path / "model.json").write_text("{}")
    with pytest.raises(InvalidModel, match=r"model\.json: not a model: Object missing required field"):
        load(tmp_path / "model.json")


def test_a_net_that_would_take_for_ever_is_refused() -> None:
    wide = Layer(512, 512, bytes(4 * 512 * 512), bytes(4 * 512))
    first, last = Layer(1, 512, bytes(4 * 512), bytes(4 * 512)), Layer(512, 1, bytes(4 * 512), bytes(4))
    body = Net((Scale(0, 0.0, 1.0),), (first, wide, wide, last))
    with pytest.raises(InvalidModel, match="products"):
        replace(NET, choices=({"tile": 8},) * 10_000, body=body).check()


def test_a_net_is_not_written_as_code() -> None:
    for language in LANGUAGES:
        with pytest.raises(InvalidModel, match="a net cannot be written as code"):
            generate(NET, language)
