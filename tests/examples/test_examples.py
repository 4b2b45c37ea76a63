"""The examples run as they stand, and can be tuned from the command line as their first lines say."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from limits import HANG_S

ROOT = Path(__file__).parents[2]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
TUNED = [path for path in EXAMPLES if "Tune it:" in path.read_text()]
LEARNED = [path for path in EXAMPLES if path not in TUNED]


def run(*command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=HANG_S, check=True)


@pytest.mark.parametrize("path", TUNED, ids=lambda path: path.name)
def test_an_example_runs_by_itself(path: Path) -> None:
    assert run(sys.executable, os.fspath(path)).stdout


@pytest.mark.parametrize("path", TUNED, ids=lambda path: path.name)
def test_an_example_is_tuned_as_it_says(path: Path) -> None:
    told = re.search(r"^Tune it: +tunewise (.+)$", path.read_text(), re.MULTILINE)
    assert told is not None
    tuned = run(sys.executable, "-m", "tunewise", *shlex.split(told[1]), "--budget", "6")
    assert path.stem in told[1]
    assert "gain" in tuned.stdout


@pytest.mark.parametrize("path", LEARNED, ids=lambda path: path.name)
def test_an_example_learns_as_it_says(path: Path) -> None:
    told = re.search(r"^Run it: +python (\S+) (\S+) \d+$", path.read_text(), re.MULTILINE)
    assert told is not None
    assert told[1] == f"examples/{path.name}"
    figures = run(sys.executable, told[1], told[2], "12").stdout.splitlines()
    assert figures[-1].startswith("learned ")
    assert all(re.search(r" \d+\.\d{3} of the best time, +\d+\.\d\d at worst$", line) for line in figures)


def test_the_problems_beside_the_examples_suit_gemm() -> None:
    words = ("tune", "examples/gemm.py:gemm", "--problems", "examples/problems.csv", "--budget", "2")
    assert run(sys.executable, "-m", "tunewise", *words).stdout.count("blocked_matmul") == 3
