"""`tunewise generate --lang helion`: the one language that has to know the kernel's arguments."""

from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result
from msgspec.structs import replace

from tunewise import models
from tunewise.codegen.helion import helion_file_name, helion_source
from tunewise.models import Card, Columns, Leaf, Model, Number, Split, Tree

MODEL = Model(
    card=Card(decision="helion.mm"),
    choices=({"block_sizes_0": 32}, {"block_sizes_0": 64}),
    columns=Columns((Number("arg0_dim0", 8.0, 64.0),)),
    body=Tree((Split(0, 1, 2, 32.0), Leaf((0, 1)), Leaf((1, 0)))),
)


def test_the_command_line_writes_it(cli: Callable[..., Result], tmp_path: Path) -> None:
    file, out = tmp_path / "mm.json", tmp_path / helion_file_name("kernels", "cuda", "sm90")
    models.save(MODEL, file)
    assert cli("generate", file, "--lang", "helion", "--out", out).exit_code == 0
    assert out.read_text() == helion_source(MODEL)
    place = ("--kernel", "product", "--feature", "arg0_dim0=args[3].shape[1]")
    said = cli("generate", file, "--lang", "helion", *place)
    assert said.stdout == helion_source(MODEL, {"arg0_dim0": "args[3].shape[1]"}, kernel="product")


@pytest.mark.parametrize("wrong", [("--kernel", "mm"), ("--lang", "helion", "--feature", "m")])
def test_the_command_line_refuses_what_makes_no_sense(
    cli: Callable[..., Result], tmp_path: Path, wrong: tuple[str, ...]
) -> None:
    models.save(MODEL, tmp_path / "mm.json")
    assert cli("generate", tmp_path / "mm.json", *wrong).exit_code == 2


@pytest.mark.parametrize(
    ("decision", "column", "words", "said"),
    [
        ("mm", "arg0_dim0", (), "say which one it is for, as in kernel='matmul' or --kernel matmul"),
        ("helion.mm", "m", (), "--feature 'm=args[0].shape[0]'"),
        ("helion.mm", "arg0_dim0", ("--feature", "arg0=args[0]"), "no model has the feature 'arg0'; there are "),
    ],
)
def test_what_is_missing_or_misspelt_is_told_with_the_way_out(
    cli: Callable[..., Result], tmp_path: Path, decision: str, column: str, words: tuple[str, ...], said: str
) -> None:
    columns = Columns((Number(column, 8.0, 64.0),))
    models.save(replace(MODEL, card=Card(decision=decision), columns=columns), tmp_path / "mm.json")
    told = cli("generate", tmp_path / "mm.json", "--lang", "helion", *words)
    assert told.exit_code == 1
    assert said in told.stderr
