"""The wheel, in an empty virtual environment: it installs, runs, and needs nothing that it does not say."""

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import tunewise
from limits import HANG_S

ROOT = Path(__file__).parents[1]


def run(*command: object, cwd: Path | None = None) -> "subprocess.CompletedProcess[str]":
    env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    words = [str(word) for word in command]
    return subprocess.run(words, cwd=cwd, env=env, capture_output=True, text=True, timeout=HANG_S, check=False)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built from this checkout without a network."""
    place = tmp_path_factory.mktemp("wheel")
    built = run(sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", place, ROOT)
    assert built.returncode == 0, built.stdout + built.stderr
    (found,) = place.glob("*.whl")
    return found


@pytest.fixture(scope="module")
def python(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The interpreter of an empty environment into which only the wheel was installed, by name of its dependencies."""
    place = tmp_path_factory.mktemp("empty") / "venv"
    made = run(sys.executable, "-m", "venv", place)
    assert made.returncode == 0, made.stderr
    pip = (place / "bin" / "pip", "--disable-pip-version-check")
    installed = run(*pip, "install", wheel)
    if installed.returncode != 0:
        reached = run(*pip, "download", "--no-deps", "--dest", place, "click")  # is it us, or is there no index?
        assert reached.returncode != 0, installed.stderr
        pytest.skip(f"no package index is reachable: {reached.stderr.strip().splitlines()[-1]}")
    return place / "bin" / "python"


def test_it_holds_the_package_its_kernels_and_its_types(wheel: Path) -> None:
    held = set(zipfile.ZipFile(wheel).namelist())
    wanted = {f"tunewise/{path.relative_to(ROOT / 'src' / 'tunewise')}" for path in sources()}
    assert "tunewise/py.typed" in wanted
    assert "tunewise/workloads/kernels/gemm.c" in wanted
    assert not wanted - held


def sources() -> list[Path]:
    found = (ROOT / "src" / "tunewise").rglob("*")
    return [path for path in found if path.is_file() and "__pycache__" not in path.parts]


def test_it_holds_nothing_else(wheel: Path) -> None:
    tops = {name.split("/")[0] for name in zipfile.ZipFile(wheel).namelist()}
    assert tops == {"tunewise", f"tunewise-{tunewise.__version__}.dist-info"}


def test_the_command_answers(python: Path, tmp_path: Path) -> None:
    command = python.parent / "tunewise"
    helped, told = run(command, "--help", cwd=tmp_path), run(command, "--version", cwd=tmp_path)
    assert (helped.returncode, told.returncode) == (0, 0), helped.stderr + told.stderr
    assert "doctor" in helped.stdout
    assert told.stdout.split() == ["tunewise", tunewise.__version__]


def test_it_runs_without_numpy(python: Path, tmp_path: Path) -> None:
    code = (
        "import importlib.util, tunewise as tw\n"
        "assert importlib.util.find_spec('numpy') is None\n"
        "way = tw.choice('way', {'a': len, 'b': len}, default='a', features=lambda x: {'n': len(x)})\n"
        "assert way([1, 2]) == 2\n"
        "print(way.tune([1, 2]).verdict.ending)\n"
    )
    ran = run(python, "-W", "error", "-c", code, cwd=tmp_path)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.split() == ["tie"]


def test_without_numpy_a_built_in_decision_says_what_is_missing(python: Path, tmp_path: Path) -> None:
    ran = run(python, "-m", "tunewise", "tune", "sort", "--problem", "n=10,dtype=int64,order=random", cwd=tmp_path)
    assert ran.returncode == 1
    assert "needs numpy" in ran.stderr
    assert "Traceback" not in ran.stderr
