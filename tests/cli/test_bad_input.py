"""Mistakes as a new user makes them: one clear sentence, a non-zero exit, and nothing is lost."""

import json
import os
import sqlite3
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from limits import HANG_S

Spawned = Callable[..., subprocess.CompletedProcess[str]]

SPACE = 'tw.Space({"tile": [8, 16], "unroll": [1, 2]}, rules=["tile * unroll <= 16"])'
DECLARED = f"""
import tunewise as tw

tiles = tw.Decision("tiles", space={SPACE}, default={{"tile": 8, "unroll": 1}},
                    features=lambda n: {{"n": n}}, inputs=lambda problem, seed: (problem["n"],))

@tiles.implementation
def run(n, *, tile, unroll):
    return n
"""


def one_sentence(result: subprocess.CompletedProcess[str], *expected: str) -> None:
    lines = result.stderr.splitlines()
    assert result.returncode == 1, result
    assert len(lines) == 1, result.stderr
    assert lines[0].startswith("error: ")
    for part in expected:
        assert part in lines[0]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "declared.py"
    path.write_text(DECLARED)
    return path


def changed(file: Path, old: str, new: str) -> str:
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new))
    return f"{file}:tiles"


def test_a_sound_file_is_tuned(spawned: Spawned, file: Path) -> None:
    assert spawned("tune", f"{file}:tiles", "--problem", "n=1").returncode == 0


def test_an_unknown_parameter_in_a_seed(spawned: Spawned, file: Path) -> None:
    result = spawned("tune", f"{file}:tiles", "--problem", "n=1", "--seed-config", "tiel=8")
    one_sentence(result, "unknown parameter 'tiel'; did you mean 'tile'?")


def test_a_rule_with_a_typo(spawned: Spawned, file: Path) -> None:
    target = changed(file, "tile * unroll <=", "tile * unrol <=")
    one_sentence(spawned("tune", target, "--problem", "n=1"), "declared.py:4", "unrol")


def test_a_default_outside_the_space(spawned: Spawned, file: Path) -> None:
    target = changed(file, 'default={"tile": 8', 'default={"tile": 9')
    one_sentence(spawned("tune", target, "--problem", "n=1"), "declared.py:4", "tile=9 is not one of")


def test_features_that_return_a_list(spawned: Spawned, file: Path) -> None:
    target = changed(file, 'lambda n: {"n": n}', "lambda n: [n]")
    one_sentence(spawned("tune", target, "--problem", "n=1"), "features must be a dict", "not list [1]")


def test_two_decisions_with_one_name(spawned: Spawned, file: Path) -> None:
    another = f'more = tw.Decision("tiles", space={SPACE}, default={{"tile": 8, "unroll": 1}})'
    file.write_text(f"{file.read_text()}\n{another}\n")
    one_sentence(spawned("tune", f"{file}:tiles", "--problem", "n=1"), "two decisions are named 'tiles'", "rename one")


def test_no_inputs_and_no_implementation(spawned: Spawned, file: Path) -> None:
    target = changed(file, ', inputs=lambda problem, seed: (problem["n"],)', "")
    one_sentence(spawned("tune", target, "--problem", "n=1"), "tiles has no inputs")
    file.write_text(DECLARED.replace("@tiles.implementation", ""))
    one_sentence(spawned("tune", target, "--problem", "n=1"), "tiles has no implementation")


def test_a_value_that_inputs_cannot_take(spawned: Spawned) -> None:
    result = spawned("tune", "sort", "--problem", "n=many,dtype=int64,order=random")
    one_sentence(result, "sort: inputs fails for", "n=many")


def test_a_missing_compiler(spawned: Spawned) -> None:
    result = spawned("tune", "gemm", "--problem", "m=8,n=8,k=8", CC="no-such-compiler")
    one_sentence(result, "CC='no-such-compiler' does not exist")


def test_no_problem_at_all(spawned: Spawned) -> None:
    one_sentence(spawned("tune", "gemm"), "--problem m=256,n=256,k=64")
    one_sentence(spawned("tune"), "tunewise tune gemm --problem m=256,n=256,k=64")


@pytest.mark.skipif(os.geteuid() == 0 and not Path("/proc/self").exists(), reason="nothing is read-only for root")
def test_a_home_that_cannot_be_written(spawned: Spawned, file: Path) -> None:
    result = spawned("--home", "/proc/self/tunewise", "tune", f"{file}:tiles", "--problem", "n=1")
    one_sentence(result, "/proc/self/tunewise cannot be made")


def test_a_home_that_is_a_file(spawned: Spawned, file: Path) -> None:
    result = spawned("tune", f"{file}:tiles", "--problem", "n=1", TUNEWISE_HOME=str(file))
    one_sentence(result, str(file))
    assert file.read_text() == DECLARED


def test_a_home_that_cannot_be_made_comes_with_the_way_out(spawned: Spawned, file: Path) -> None:
    one_sentence(spawned("misses", TUNEWISE_HOME=str(file)), "set TUNEWISE_HOME to another")


def test_an_empty_home_is_refused_before_anything_is_made(spawned: Spawned, tmp_path: Path) -> None:
    result = spawned("--home", "", "misses")
    assert result.returncode == 2
    assert "--home" in result.stderr


def test_a_layer_that_is_not_there_is_named_with_its_variable(spawned: Spawned, tmp_path: Path) -> None:
    missing = tmp_path / "nowhere"
    one_sentence(spawned("misses", TUNEWISE_LAYERS=str(missing)), str(missing), "correct TUNEWISE_LAYERS")


def test_a_misspelled_decision_does_not_empty_an_older_export(spawned: Spawned, file: Path, tmp_path: Path) -> None:
    export = tmp_path / "facts.jsonl"
    spawned("tune", f"{file}:tiles", "--problem", "n=1", "--budget", "1")
    assert spawned("store", "export", export).returncode == 0
    before = export.read_bytes()
    one_sentence(spawned("store", "export", export, "--decision", "tilse"), "'tilse'", "did you mean 'tiles'?")
    assert export.read_bytes() == before != b""


def test_an_export_to_a_place_that_does_not_exist(spawned: Spawned, tmp_path: Path) -> None:
    place = tmp_path / "nowhere" / "facts.jsonl"
    one_sentence(spawned("store", "export", place), f"{place} cannot be written: No such file or directory")


def test_a_home_that_others_may_write(spawned: Spawned, file: Path, home: Path) -> None:
    home.mkdir()
    home.chmod(0o777)
    one_sentence(spawned("tune", f"{file}:tiles", "--problem", "n=1"), "can be written by other users", "chmod go-w")


def test_a_corrupt_store_is_set_aside_whole_and_the_next_run_goes_on(spawned: Spawned, file: Path, home: Path) -> None:
    tune = ("tune", f"{file}:tiles", "--problem", "n=1")
    spawned(*tune)
    store = home / "store.sqlite3"
    for beside in home.glob("store.sqlite3-*"):
        beside.unlink()
    damaged = b"this is no database" * 500
    store.write_bytes(damaged)
    one_sentence(spawned(*tune), "store.sqlite3", "set aside")
    aside = [path for path in home.iterdir() if path.is_file() and path.read_bytes() == damaged]
    assert len(aside) == 1
    assert spawned(*tune).returncode == 0
    with sqlite3.connect(store) as db:
        assert db.execute("SELECT count(*) FROM verdicts").fetchone() == (1,)
    db.close()


def test_a_failing_default_is_told_and_exits_non_zero(spawned: Spawned, file: Path) -> None:
    target = changed(file, "    return n", "    raise ValueError('never works')")
    result = spawned("tune", target, "--problem", "n=1", "--json")
    assert result.returncode == 1
    assert "never works" in result.stderr
    assert json.loads(result.stdout)["tunings"][0]["ending"] == "failed"


def test_any_other_exception_is_one_line_with_the_way_to_its_traceback(spawned: Spawned, file: Path) -> None:
    target = changed(file, 'lambda n: {"n": n}', "lambda n: {}[n]")
    result = spawned("explain", target, "--problem", "n=1")
    assert result.returncode == 0  # explaining needs the problem only
    result = spawned("tune", target, "--problem", "n=1")
    one_sentence(result, "KeyError", "tunewise --traceback tune")
    told = spawned("--traceback", "tune", target, "--problem", "n=1")
    assert told.returncode == 1
    assert "Traceback" in told.stderr


@pytest.mark.parametrize(
    "words",
    [
        *(("tune", "--budget", "0"), ("tune", "--seed", "-1"), ("tune", "--problem", "m"), ("nonsense",)),
        *(("tune", "--seconds", "nan"), ("tune", "--wait", "nan"), ("store", "prune", "--older-than", "nan", "--yes")),
    ],
)
def test_usage_errors_exit_with_two(spawned: Spawned, words: tuple[str, ...]) -> None:
    result = spawned(*words)
    assert result.returncode == 2
    assert "Usage: tunewise" in result.stderr


def test_a_warning_of_ours_is_one_line(spawned: Spawned, file: Path) -> None:
    target = changed(file, 'tw.Decision("tiles",', 'tw.Decision("tiles", policy=tw.Policy(steps=2),')
    result = spawned("tune", target, "--problem", "n=1")
    assert result.returncode == 0
    warned = [line for line in result.stderr.splitlines() if "steps=2" in line]
    assert len(warned) == 1
    assert warned[0].startswith("warning: steps=2 is too few")


def test_importing_tunewise_loads_neither_click_nor_rich(home: Path) -> None:
    import sys

    code = "import sys, tunewise, tunewise.cli; print([m for m in ('click', 'rich', 'numpy') if m in sys.modules])"
    asked = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=HANG_S)
    assert asked.stdout == "[]\n"


@pytest.mark.parametrize(
    "words",
    [
        "train PIPE --out m.json",
        "explain --model PIPE",
        "replay PIPE",
        "import PIPE",
        "store import PIPE",
        "fleet check PIPE",
        "report PIPE",
    ],
)
def test_a_pipe_is_refused_and_not_waited_for(spawned: Spawned, tmp_path: Path, words: str) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    one_sentence(spawned(*words.replace("PIPE", str(pipe)).split()), f"{pipe} cannot be read", "not a regular file")
