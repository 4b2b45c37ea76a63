"""Keys: every part that matters, changed alone, is a miss that explain names; nothing else is."""

import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import tunewise as tw
from limits import HANG_S
from tunewise.decision import declaration as declaration_module
from tunewise.decision import detect
from tunewise.decision import hardware as hardware_module

BASE: dict[str, Any] = {"libraries": ("click", "rich"), "variables": ("OMP_NUM_THREADS", "MY_FLAG"), "version": "1"}


def helper(n: int) -> int:
    return n + 1


def declare(name: str = "keyed", *, policy: dict[str, Any] | None = None, facts: Any = None, **changes: Any) -> Any:
    settled = tw.Policy(isolation="none", min_sample_s=1e-5, **(policy or {}))
    decision = tw.Decision(
        name,
        space=tw.Space({"x": [1, 2]}),
        default={"x": 1},
        features=lambda m, n, dtype: {"m": m, "n": n, "dtype": dtype},
        policy=settled,
        **{**BASE, **changes},
    )

    @decision.implementation(facts=facts or (lambda: {"compiler": "gcc 12", "driver": "550"}))
    def run(m: int, n: int, dtype: str, *, x: int) -> int:
        return helper(m)

    return run


def patched_hardware(monkeypatch: pytest.MonkeyPatch, **changes: Any) -> None:
    real = detect()
    monkeypatch.setattr(declaration_module, "detect", lambda device: replace(real, **changes))


def caches(name: str) -> tuple[tuple[str, int], ...]:
    known = {"l1d": 32768, "l2": 524288, "l3": 33554432, **dict(detect().caches)}
    return tuple(sorted({**known, name: 12345}.items()))


PROBLEM = (8, 16, "float32")
Change = Callable[[pytest.MonkeyPatch], str]


def asked(*args: Any, **options: Any) -> Change:
    return lambda monkeypatch: str(declare(**options).explain(*(args or PROBLEM)))


def with_hardware(**changes: Any) -> Change:
    def change(monkeypatch: pytest.MonkeyPatch) -> str:
        patched_hardware(monkeypatch, **changes)
        return str(declare().explain(*PROBLEM))

    return change


def with_patch(target: Any, name: str, value: Any) -> Change:
    def change(monkeypatch: pytest.MonkeyPatch) -> str:
        monkeypatch.setattr(target, name, value)
        return str(declare().explain(*PROBLEM))

    return change


def with_variable(name: str) -> Change:
    def change(monkeypatch: pytest.MonkeyPatch) -> str:
        monkeypatch.setenv(name, "7")
        return str(declare().explain(*PROBLEM))

    return change


def version_of(changed: str) -> Callable[[str], str]:
    real = hardware_module.metadata.version
    return lambda name: "99.9" if name == changed else real(name)


CHANGES: dict[str, Change] = {
    "problem.m": asked(64, 16, "float32"),
    "problem.n": asked(8, 128, "float32"),
    "problem.dtype": asked(8, 16, "float64"),
    "policy.clock": asked(policy={"clock": "wall"}),
    "policy.cache": asked(policy={"cache": "cold"}),
    "policy.threads": asked(policy={"threads": 2}),
    "policy.steps": asked(policy={"steps": 10}),
    "policy.warmup_steps": asked(policy={"warmup_steps": 3}),
    "hardware.kind": with_hardware(kind="tpu"),
    "hardware.name": with_hardware(name="Another CPU"),
    "hardware.capability": with_hardware(capability="riscv64"),
    "hardware.cores": with_hardware(cores=96),
    "hardware.isa": with_hardware(isa=("avx512f",)),
    "hardware.l1d": with_hardware(caches=caches("l1d")),
    "hardware.l2": with_hardware(caches=caches("l2")),
    "hardware.l3": with_hardware(caches=caches("l3")),
    "os": with_patch(hardware_module.platform, "system", lambda: "Plan9"),
    "python": with_patch(hardware_module.platform, "python_implementation", lambda: "PyPy"),
    "library.click": with_patch(hardware_module.metadata, "version", version_of("click")),
    "library.rich": with_patch(hardware_module.metadata, "version", version_of("rich")),
    "variable.OMP_NUM_THREADS": with_variable("OMP_NUM_THREADS"),
    "variable.MY_FLAG": with_variable("MY_FLAG"),
    "version": asked(version="2"),
    "compiler": asked(facts=lambda: {"compiler": "gcc 13", "driver": "550"}),
    "driver": asked(facts=lambda: {"compiler": "gcc 12", "driver": "560"}),
    "source": lambda monkeypatch: (
        monkeypatch.setitem(globals(), "helper", lambda n: n + 2) or str(declare().explain(*PROBLEM))  # type: ignore[func-returns-value]
    ),
}


def test_there_are_at_least_twenty_parts() -> None:
    assert len(CHANGES) >= 20


@pytest.mark.parametrize("part", CHANGES)
def test_a_changed_part_is_a_miss_that_explain_names(part: str, monkeypatch: pytest.MonkeyPatch) -> None:
    declare().tune(*PROBLEM)
    assert "[memory]" in str(declare().explain(*PROBLEM))
    text = CHANGES[part](monkeypatch)
    assert "[memory]" not in text
    assert f"differs in {part} (now" in text


PROGRAM = """
import sys
sys.path.insert(0, {folder!r})
{first}
import keyed_program
print(keyed_program.run.decide(8).rung)
"""

KEYED = """
import tunewise as tw
SCALE = 3
WORDS = frozenset({"alpha", "beta", "gamma", "delta"})
def helper(n):
    return n * SCALE if "alpha" in {"alpha", "beta", "gamma"} else 0
decision = tw.Decision("fresh", space=tw.Space({"x": [1, 2]}), default={"x": 1}, features=lambda n: {"n": n},
                       libraries=("click",), variables=("HOME",), policy=tw.Policy(isolation="none", min_sample_s=1e-5))
@decision.implementation
def run(n, *, x):
    return helper(n), len(WORDS)
"""


def test_unchanged_in_twenty_fresh_processes_is_a_hit(tmp_path: Path, home: Path) -> None:
    (tmp_path / "keyed_program.py").write_text(KEYED)
    environ = {**os.environ, "PYTHONPATH": str(tmp_path)}
    tune = "import keyed_program; keyed_program.run.tune(8)"
    subprocess.run([sys.executable, "-c", tune], env=environ, check=True, timeout=HANG_S)
    firsts = ["", "import json, decimal", "import numpy", "import sqlite3, asyncio"]
    rungs = []
    for turn in range(20):
        code = PROGRAM.format(folder=str(tmp_path), first=firsts[turn % len(firsts)])
        cwd = tmp_path if turn % 2 else Path("/")
        fresh = {**environ, "PYTHONHASHSEED": str(turn)}
        done = subprocess.run(
            [sys.executable, "-c", code], env=fresh, cwd=cwd, capture_output=True, text=True, timeout=HANG_S
        )
        assert done.returncode == 0, done.stderr
        rungs.append(done.stdout.strip())
    assert rungs == ["memory"] * 20
