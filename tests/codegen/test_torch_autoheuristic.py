"""torch's own AutoHeuristic, with our artifact appended, decides as the model does on the log that it wrote itself.

What a GPU says of itself is made up at the lowest seam, Triton's driver and torch.cuda; see ask_torch.py.
"""

import csv
import importlib.util
import json
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from limits import HANG_S
from tunewise.codegen import autoheuristic_source
from tunewise.errors import InvalidModel
from tunewise.models import (
    Card,
    Columns,
    Derived,
    Forest,
    Guess,
    Leaf,
    Model,
    Number,
    Split,
    Tree,
    Word,
)

needs_torch = pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="torch is not installed")
FENCE = {"hardware.shared_memory": 232448, "hardware.capability": "9.0", "hardware.name": "NVIDIA H100"}
CARD = Card(decision="pad_or_not", fence=FENCE)
CHOICES = ({"choice": "orig"}, {"choice": "pad"}, {"choice": "view, then pad"})
PROBLEM = (Number("m", 1.0, 4096.0), Number("k", 1.0, 4096.0), Word("dtype", ("torch.float16", "torch.float32")))
TREE = Model(
    card=CARD,
    choices=CHOICES,
    columns=Columns(PROBLEM, (), (Derived("product", (0, 1)), Derived("remainder", (1,), 8.0))),
    body=Tree(
        (
            Split(3, 1, 2, threshold=100_000.0),
            Leaf((0,), 9),
            Split(4, 3, 4, threshold=0.0),
            Split(2, 5, 6, words=(1,)),
            Leaf((1, 2), 5),
            Leaf((), 2),
            Leaf((2, 0, 1), 4),
        )
    ),
)
FOREST = Model(
    card=CARD,
    choices=CHOICES,
    columns=Columns(PROBLEM, (Word("choice", ("orig", "pad", "view, then pad")),), (Derived("remainder", (1,), 8.0),)),
    body=Forest(
        (
            (Split(3, 1, 2, words=(1, 2)), Split(4, 3, 4, threshold=0.0), Guess(0.0), Guess(0.5), Guess(-0.5)),
            (Split(0, 1, 2, threshold=64.0), Guess(0.1), Split(3, 3, 4, words=(2,)), Guess(-0.2), Guess(0.0)),
        )
    ),
)


def problems(rng: random.Random, count: int, largest: int) -> list[dict[str, Any]]:
    words = ["torch.float16", "torch.float32"]
    return [
        {"m": rng.randrange(1, largest), "k": rng.randrange(1, largest), "dtype": rng.choice(words)}
        for _ in range(count)
    ]


def logged(path: Path) -> list[dict[str, Any]]:
    """Return the problems of a log as torch wrote it; the choice with a comma makes its rows longer than the header."""
    _, *rows = csv.reader(path.read_text().splitlines()[1:])
    return [{"m": int(m), "k": int(k), "dtype": dtype} for m, k, dtype, *_ in rows]


@needs_torch
@pytest.mark.parametrize("model", [TREE, FOREST], ids=["tree", "forest"])
def test_torch_returns_our_decisions_on_its_own_log(model: Model, tmp_path: Path) -> None:
    rng = random.Random(3)
    collected = problems(rng, 60, 2000)
    odd = [{"m": 5000, "k": 8, "dtype": "torch.float16"}, {"m": 8, "k": 8, "dtype": "torch.int8"}, {"m": 8}]
    given = {"collected": collected, "asked": [*collected, *problems(rng, 200, 4097), *odd]}
    (tmp_path / "problems.json").write_text(json.dumps(given))
    (tmp_path / "_artifact.py").write_text(autoheuristic_source(model))
    script = Path(__file__).with_name("ask_torch.py")
    command = [sys.executable, script, tmp_path / "_artifact.py", tmp_path / "log.txt", tmp_path / "problems.json"]
    ran = subprocess.run(command, capture_output=True, text=True, check=False, timeout=HANG_S)
    assert ran.returncode == 0, ran.stderr[-3000:]
    said = json.loads(ran.stdout)

    assert logged(tmp_path / "log.txt")[:: len(CHOICES)] == collected
    wanted = [[str(CHOICES[number]["choice"]) for number in model.rank(features)] for features in given["asked"]]
    assert said["answers"] == [ranked[0] if ranked else "fallback" for ranked in wanted]
    assert said["ranked"] == [[*r[:2], *(["orig"] if "orig" not in r[:2] else [])] if r else None for r in wanted]
    assert {"fallback", "pad"} <= set(said["answers"])
    assert said["elsewhere"] == ["fallback", "fallback"]
    assert said["shipped"] > 0


def test_configs_of_several_parameters_are_refused() -> None:
    choices = ({"a": 1, "b": 2},)
    model = Model(card=Card(decision="d"), choices=choices, columns=Columns(()), body=Tree((Leaf((0,)),)))
    with pytest.raises(InvalidModel, match="is a word"):
        autoheuristic_source(model)


def test_a_fence_that_torch_cannot_see_is_refused() -> None:
    card = Card(decision="d", fence={"hardware.kind": "cpu"})
    model = Model(card=card, choices=({"choice": "a"},), columns=Columns(()), body=Tree((Leaf((0,)),)))
    with pytest.raises(InvalidModel, match=r"cannot see the fact hardware\.kind"):
        autoheuristic_source(model)
