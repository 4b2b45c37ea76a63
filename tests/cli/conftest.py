"""The command line as tests call it: in this process, or as a process of its own."""

import gc
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from limits import HANG_S

ROOT = Path(__file__).parents[2]

TOY = """
import tunewise as tw

toy = tw.Decision(
    "toy",
    space=tw.Space({"work": [1, 2, 4], "way": ["plain", "odd"]}),
    default={"work": 4, "way": "plain"},
    features=lambda n: {"n": n},
    inputs=lambda problem, seed: (int(problem["n"]),),
)

@toy.implementation
def run(n, *, work, way):
    for _ in range(n * work):
        pass
    return n
"""


@pytest.fixture(autouse=True)
def unload() -> Iterator[None]:
    """Let the decisions that a test declared die with it, so that another test may use their names."""
    yield
    for name in [name for name in sys.modules if name.startswith("_tunewise_target_")]:
        del sys.modules[name]
    gc.collect()


@pytest.fixture
def cli() -> Callable[..., Result]:
    """Run a command in this process and return what came of it."""
    from tunewise.cli.app import app

    return lambda *words: CliRunner().invoke(app, [str(word) for word in words], prog_name="tunewise")


@pytest.fixture
def asked(cli: Callable[..., Result]) -> Callable[..., Any]:
    """Run a command with --json, expect success, and return its document."""

    def ask(*words: object) -> Any:
        result = cli(*words, "--json")
        assert result.exit_code == 0, result.output
        return json.loads(result.stdout)

    return ask


@pytest.fixture
def toy(tmp_path: Path) -> str:
    """The target of a tiny decision in a file."""
    return f"{write(tmp_path / 'toy.py', TOY)}:toy"


def write(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


@pytest.fixture
def spawned(home: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run a command as a process of its own and return what came of it."""

    def run(*words: object, **env: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "tunewise", *map(str, words)]
        return subprocess.run(
            command, capture_output=True, text=True, timeout=HANG_S, cwd=ROOT, env={**os.environ, **env}, check=False
        )

    return run
