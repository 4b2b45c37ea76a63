"""The scripts behind our figures: all of them start, say what they compare, and answer in JSON. No figure is judged."""

import ast
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from limits import HANG_S

TESTS = Path(__file__).parent
BENCHES = {path.stem: path for path in sorted((TESTS.parent / "bench").glob("*.py"))}
EACH = pytest.mark.parametrize("bench", BENCHES)

# How many threads a library starts, and which instructions: that is read when it is imported, so scripts say it first.
MAY_SET = {"OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "ONEDNN_MAX_CPU_ISA"}
OF_TORCH = {"TORCHINDUCTOR_CACHE_DIR"}  # set by PyTorch where it is imported

MISSING = ("torch", "ray", "starlette", "uvicorn", "psycopg")
CANNOT_RUN = {  # and a word of the sentence that says why
    "fleet": "Ray",
    "kernels": "CC",
    "learned": "TUNEWISE_DATA",
    "live": "starlette",
    "lower_half": "TUNEWISE_DATA",
    "near": "TUNEWISE_DATA",
    "neighborhood_attention": "PyTorch",
    "priors": "TUNEWISE_DATA",
    "ranks": "PyTorch",
    "search": "TUNEWISE_DATA",
    "second_machine": "TUNEWISE_DATA",
    "seeds": "CC",
    "serve": "PyTorch",
    "torch_compile": "PyTorch",
    "trust": "TUNEWISE_DATA",
}


def probed(
    place: Path, scripts: list[tuple[Path, list[str], str]], *, missing: tuple[str, ...] = (), **env: str
) -> Any:
    """Run scripts one after the other in one process and return what each of them did: PyTorch is imported once."""
    asked = {"scripts": [(str(path), words, name) for path, words, name in scripts], "missing": missing}
    folder = place / "empty"
    folder.mkdir()
    done = subprocess.run(
        [sys.executable, TESTS / "bench_probe.py"],
        input=json.dumps(asked),
        capture_output=True,
        text=True,
        cwd=folder,
        env={**os.environ, "TUNEWISE_HOME": str(folder / "home"), **env},
        timeout=HANG_S,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def started(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """Return what importing each script did, and what it answered to --help."""
    imports: list[tuple[Path, list[str], str]] = [(path, [], "imported") for path in BENCHES.values()]
    helps = [(path, ["--help"], "__main__") for path in BENCHES.values()]
    found = probed(tmp_path_factory.mktemp("started"), [*imports, *helps])
    pairs = zip(found[: len(BENCHES)], found[len(BENCHES) :], strict=True)
    return {bench: {"import": one, "help": two} for bench, (one, two) in zip(BENCHES, pairs, strict=True)}


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """Return what the scripts did where what they need is not there."""
    scripts = [(BENCHES[bench], ["--quick", "--json"], "__main__") for bench in CANNOT_RUN]
    place = tmp_path_factory.mktemp("bare")
    found = probed(place, scripts, missing=MISSING, TUNEWISE_DATA="", CC=str(place / "no-compiler"))
    return dict(zip(CANNOT_RUN, found, strict=True))


def test_there_are_benches_to_look_at() -> None:
    assert {"decide", "kernels", "learned", "racing"} <= set(BENCHES)


@EACH
def test_import_says_starts_writes_and_changes_nothing(bench: str, started: dict[str, dict[str, Any]]) -> None:
    did = started[bench]["import"]
    assert (did["code"], did["out"], did["err"]) == (0, "", "")
    before, after = did["changed"].pop("environment", [{}, {}])
    assert {name for name, _ in before.items() ^ after.items()} <= MAY_SET | OF_TORCH
    assert did["changed"] == {}


@EACH
def test_docstring_is_a_sentence_that_says_what_is_compared(bench: str) -> None:
    said = ast.get_docstring(ast.parse(BENCHES[bench].read_text())) or ""
    first = said.partition("\n\n")[0]
    assert first.endswith("."), first
    assert len(first.split()) >= 8, first


@EACH
def test_help_shows_the_docstring_and_both_options(bench: str, started: dict[str, dict[str, Any]]) -> None:
    did = started[bench]["help"]
    said = ast.get_docstring(ast.parse(BENCHES[bench].read_text())) or ""
    if "PyTorch is not installed" in did["err"]:
        pytest.skip(did["err"])
    assert (did["code"], did["err"]) == (0, "")
    assert " ".join(said.split()[:8]) in " ".join(did["out"].split())
    usage = did["out"].partition("\n\n")[0]  # which is the parser's: the docstring may promise what it does not take
    assert "[--quick]" in usage
    assert "[--json]" in usage


@pytest.mark.parametrize("bench", CANNOT_RUN)
def test_what_cannot_run_says_so_in_one_sentence_and_is_no_failure(bench: str, bare: dict[str, dict[str, Any]]) -> None:
    did = bare[bench]
    assert (did["code"], did["out"]) == (0, ""), did["err"]
    assert CANNOT_RUN[bench] in did["err"]
    assert len(did["err"].splitlines()) == 1


@pytest.mark.full
@EACH
def test_quick_run_prints_one_json_object_with_its_targets(bench: str) -> None:
    done = subprocess.run(
        [sys.executable, BENCHES[bench], "--quick", "--json"], capture_output=True, text=True, timeout=HANG_S
    )
    assert done.returncode == 0, done.stderr[-3_000:]
    if not done.stdout:
        assert len(done.stderr.splitlines()) == 1, done.stderr
        pytest.skip(done.stderr.strip())
    said = json.loads(done.stdout, parse_constant=refuse)
    assert isinstance(said, dict)
    assert said["targets"]
    assert set(said["targets"].values()) <= {True, False, None}  # None: not measured in this run


def refuse(word: str) -> Any:
    """Refuse what is a number to Python only."""
    raise ValueError(f"{word} is not JSON")
