"""`tunewise torch` for real: kernels compiled and timed, a script recorded, models compared with max-autotune."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from tunewise.cli.app import app
from tunewise.decision import Problem
from tunewise.deploy.inductor import comparing, datafiles
from tunewise.deploy.inductor.comparing import Compared, Run
from tunewise.deploy.inductor.recording import record_script
from tunewise.deploy.inductor.shapes import Shape
from tunewise.deploy.inductor.statistics import scores_of, statistics_of
from tunewise.errors import InvalidFile, NotFound
from tunewise.formats.diode_shapes import Solution

pytest.importorskip("torch", reason="torch is not installed: pip install 'tunewise[torch]'")
# Torch warns about its own insides while it compiles, which is nothing of ours.
pytestmark = pytest.mark.filterwarnings("ignore")

SHAPES = ("--op", "linear", "--op", "bmm", "--power-of-two", "--min-size", "8", "--max-size", "16", "--max-batch", "4")
SCRIPT = """
import sys
import torch

calls, = map(int, sys.argv[1:])
layers = torch.compile(torch.nn.Sequential(torch.nn.Linear(16, 24), torch.nn.ReLU(), torch.nn.Linear(24, 8)).eval())
with torch.no_grad():
    for _ in range(calls):
        layers(torch.ones(12, 16))
print("done")
"""


@pytest.fixture(scope="module", autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path_factory.mktemp("inductor")))
        yield


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home in which one linear and one bmm were collected, and the file they were written to."""
    folder = tmp_path_factory.mktemp("collected")
    words = ("torch", "collect", *SHAPES, "--num-shapes", "2", "--out", folder / "data.json", "--json")
    ran = CliRunner().invoke(app, ["--home", str(folder / "home"), *map(str, words)], prog_name="tunewise")
    assert ran.exit_code == 0, ran.output
    (folder / "said.json").write_text(ran.stdout)
    return folder


def test_collecting_measures_what_inductor_offers(place: Path) -> None:
    said = json.loads((place / "said.json").read_text())
    assert [[one["decision"] for one in shape["asked"]] for shape in said["shapes"]] == [
        ["torch.linear"],
        ["torch.bmm"],
    ]
    assert [one["measured"] for shape in said["shapes"] for one in shape["asked"]] == [2, 2]


def test_a_second_collection_measures_nothing(place: Path, asked: Callable[..., Any]) -> None:
    said = asked("--home", place / "home", "torch", "collect", *SHAPES, "--num-shapes", "2")
    assert [one["measured"] for shape in said["shapes"] for one in shape["asked"]] == [0, 0]


def test_the_file_holds_what_was_measured(place: Path) -> None:
    found = datafiles.read([place / "data.json"])
    assert {name: (len(data), len(data.rows), data.default is not None) for name, data in found.items()} == {
        "torch.linear": (1, 2, True),
        "torch.bmm": (1, 2, True),
    }


def test_shapes_that_models_learn_from_are_not_held_out(place: Path, cli: Callable[..., Result]) -> None:
    known = json.loads((place / "said.json").read_text())["shapes"][0]
    sizes = {"M": known["m"], "N": known["n"], "K": known["k"], "M_dtype": "float32"}
    shapeset = place / "known.json"
    shapeset.write_text(json.dumps({"operations": {"linear": {"shapes": [sizes]}}}))
    refused = cli("--home", place / "home", "torch", "create-validation", "--shapeset", shapeset)
    assert refused.exit_code == 1
    assert "the training data have them all" in refused.stderr


def test_held_out_shapes_are_kept_apart(place: Path, asked: Callable[..., Any]) -> None:
    words = ("torch", "create-validation", *SHAPES, "--num-shapes", "1", "--out", place / "held.json")
    said = asked("--home", place / "home", *words)
    data = datafiles.read([place / "data.json"])
    assert not datafiles.sizes_in(data) & datafiles.sizes_in(datafiles.read([place / "held.json"]))
    assert said["shapes"][0]["asked"][0]["measured"] == 2
    known = asked("--home", place / "home", "trials", "torch.linear")
    assert len({json.dumps(one["problem"], sort_keys=True) for one in known["trials"]}) == 1


def test_a_script_tells_its_products_and_how_often_it_uses_them(tmp_path: Path, capsys: Any) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    shapes = record_script(script, ["3"])
    assert [(s.op, s.m, s.n, s.k, s.weight) for s in shapes] == [
        ("linear", 12, 24, 16, 3.0),
        ("linear", 12, 8, 24, 3.0),
    ]
    assert capsys.readouterr().out == ""


def test_a_script_that_breaks_is_told_by_name(tmp_path: Path) -> None:
    script = tmp_path / "broken.py"
    script.write_text("raise ValueError('no such\\nmodel')")
    with pytest.raises(InvalidFile, match="breaks with ValueError: no such model"):
        record_script(script)
    script.write_text("raise SystemExit(3)")
    with pytest.raises(InvalidFile, match="ended with 3"):
        record_script(script)
    with pytest.raises(NotFound, match="there is no script"):
        record_script(tmp_path / "nowhere.py")


@pytest.mark.full
def test_every_way_is_compiled_and_gives_the_right_result() -> None:
    shape = Shape("linear", 24, 16, 32)
    solution = Solution(Problem({"m": 24, "n": 16, "k": 32}), {"kernel": "cpp"})
    ways = comparing.ways_of((1, 2), variants=False, measured=True)
    (found,) = comparing.compare_shapes([shape], ways, solutions=[solution])
    assert list(found.runs) == ["max-autotune", "top-1", "top-2", "measured", "solution"]
    assert all(run.error < 1e-5 and run.compile_s > 0 < run.run_s for run in found.runs.values())
    assert [run.asked[0].answer.rung for run in list(found.runs.values())[1:]] == [*["default"] * 2, "memory", "pin"]


def test_a_solution_is_for_the_sizes_it_names() -> None:
    solution = Solution(Problem({"m": 24, "n": 16, "k": 32}), {"kernel": "cpp"})
    assert comparing.is_for(solution, Shape("linear", 24, 16, 32, dtype="bfloat16"))
    assert not comparing.is_for(solution, Shape("linear", 24, 16, 33))
    typed = Solution(Problem({"m": 24, "n": 16, "k": 32, "dtype": "float32"}), {"kernel": "cpp"})
    assert not comparing.is_for(typed, Shape("linear", 24, 16, 32, dtype="bfloat16"))


def test_statistics_tell_each_way_beside_max_autotune() -> None:
    def compared(op: str, run_s: float) -> Compared:
        runs = {"max-autotune": Run("max-autotune", 8.0, 1.0, 0.0), "top-1": Run("top-1", 2.0, run_s, 0.0)}
        return Compared(runs, Shape(op, 8, 8, 8))

    scores = scores_of([compared("linear", 0.5), compared("linear", 2.0), compared("bmm", 1.01), Compared(trouble="x")])
    told = statistics_of(scores)
    assert told["linear"]["float32"]["top-1"] == {
        "programs": 2,
        "compile_ratio": 0.25,
        "run_ratio": 1.0,
        "worst_run_ratio": 2.0,
        "wins": 1,
        "ties": 0,
        "losses": 1,
    }
    assert told["bmm"]["float32"]["top-1"]["ties"] == 1
    assert told["all"]["all"]["top-1"]["programs"] == 3
