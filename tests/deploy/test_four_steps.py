"""The four steps of AutoHeuristic's users, as a new user takes them: real programs, real commands, no torch."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import sys
from tunewise.autoheuristic import AHContext, AutoHeuristic, LocalFeedback

measured = 0

def milliseconds(choice, n, layout):
    global measured
    measured += 1
    return {"plain": 2 + n / 100, "pad": 4.0, "copy": 3.0 if layout == "columns" else 9.0}[choice]

def choose(n, layout):
    context = AHContext()
    context.add_feature("n", n)
    context.add_feature("layout", layout, is_categorical=True)
    feedback = LocalFeedback(lambda choice: milliseconds(choice, n, layout))
    return AutoHeuristic(lambda: "plain", ["plain", "pad", "copy"], feedback, context, "pad").get_choice()

sizes = range(*map(int, sys.argv[1:]))
print(*(choose(n, layout) for n in sizes for layout in ("rows", "columns")), measured)
"""


@pytest.fixture
def step(tmp_path: Path, home: Path):
    (tmp_path / "program.py").write_text(PROGRAM)

    def run(*words: str, **switches: str) -> str:
        env = {**os.environ, "TUNEWISE_HOME": str(home), "OMP_NUM_THREADS": "1", **switches}
        command = [sys.executable, *words]
        return subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, check=True).stdout

    return run


def test_from_the_constructor_to_generated_code_in_use(step, tmp_path: Path) -> None:
    assert step("program.py", "100", "101").split() == ["plain", "plain", "0"]
    step("program.py", "10", "600", "20", TUNEWISE_COLLECT="other,pad", TUNEWISE_LOG_PATH="pad.txt")
    assert len((tmp_path / "pad.txt").read_text().splitlines()) == 2 + 30 * 2 * 3
    again = step("program.py", "10", "600", "20", TUNEWISE_COLLECT="pad", TUNEWISE_LOG_PATH="pad.txt")
    assert again.split()[-1] == "0"

    step("-m", "tunewise", "train", "pad.txt", "--name", "pad", "--default", "plain", "--out", "pad.json")
    step("-m", "tunewise", "generate", "pad.json", "--lang", "python", "--out", "pad_heuristic.py")

    expected = ["plain", "plain", "pad", "copy"]
    for file in ("pad_heuristic.py", "pad.json"):
        chosen = step("program.py", "55", "600", "400", TUNEWISE_USE="pad", TUNEWISE_HEURISTICS=file).split()
        assert chosen == [*expected, "0"]
    unsure = step("program.py", "9000000", "9000001", TUNEWISE_USE="pad", TUNEWISE_HEURISTICS="pad.json")
    assert unsure.split() == ["plain", "plain", "0"]
    unused = step("program.py", "455", "456", TUNEWISE_USE="other", TUNEWISE_HEURISTICS="pad.json")
    assert unused.split() == ["plain", "plain", "0"]
