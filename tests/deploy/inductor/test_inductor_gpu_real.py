"""Inductor's own lowerings and Triton templates for a faked H100; only the device and the benchmark are stand-ins."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("triton", reason="Triton is not installed: make test-triton")
torch = pytest.importorskip("torch", reason="torch is not installed: pip install 'tunewise[torch]'")

from inductor_gpu_stage import Notes, configs, lower, on_stage  # noqa: E402
from torch._inductor import config as inductor_config  # noqa: E402
from torch._inductor.lookup_table import LookupTableChoices  # noqa: E402

import tunewise as tw  # noqa: E402
from tunewise.decision import Config  # noqa: E402
from tunewise.deploy.inductor import gpu_choices  # noqa: E402
from tunewise.deploy.inductor.gpu_problems import DEFAULT  # noqa: E402
from tunewise.deploy.inductor.lookup_table import lookup_table  # noqa: E402
from tunewise.deploy.inductor.steering import Steering  # noqa: E402
from tunewise.heuristics import Heuristic  # noqa: E402
from tunewise.session import context  # noqa: E402

OPS = ("mm", "addmm", "bmm")
USE = Steering(mode="use", wants_autotuning=True)
TUNE = Steering(mode="tune", wants_autotuning=True)
TILE = {"BLOCK_M": 64, "BLOCK_N": 32, "BLOCK_K": 64, "GROUP_M": 8, "num_stages": 7, "num_warps": 4}
CONFIG: Config = {"kernel": "triton", **TILE}
UNEVEN = "EVEN_K : tl.constexpr = False"
RUNNER = Path(__file__).with_name("inductor_interpreted.py")


@pytest.fixture
def notes(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Notes]:
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path / "triton"))
    with on_stage() as noted:
        yield noted


def predict(op: str, *ranked: Config) -> None:
    tw.load_heuristic(Heuristic("model", f"torch.cuda.{op}", lambda features: list(ranked)))


def source_of(choices: list[Any], config: Config) -> str:
    """Return the source that Inductor wrote for a config."""
    return Path(choices[configs(choices).index(config)].bmreq.module_path).read_text()


@pytest.mark.parametrize("op", OPS)
class TestLowerings:
    def test_a_predicted_config_and_aten_are_all_that_inductor_times(self, notes: Notes, op: str) -> None:
        predict(op, CONFIG)
        choices = lower(op, USE, k=1000)
        assert len(choices) == 2
        assert dict(DEFAULT) in configs(choices)
        assert UNEVEN in source_of(choices, CONFIG)

    def test_where_aten_is_predicted_nothing_is_timed(self, notes: Notes, op: str) -> None:
        predict(op, DEFAULT)
        assert configs(lower(op, USE)) == [dict(DEFAULT)]
        assert notes.benchmarks == 0

    def test_where_nothing_is_known_inductor_has_its_own_list(self, notes: Notes, op: str) -> None:
        assert len(lower(op, USE)) == 22

    def test_what_inductor_times_is_kept_and_steers_from_then_on(self, notes: Notes, op: str) -> None:
        assert len(lower(op, TUNE)) == 22
        assert notes.benchmarks == 1
        (subject,) = context.current_store().subjects(f"torch.cuda.{op}")
        (verdict,) = context.current_store().verdicts(subject)
        assert len(context.current_store().trials(subject)) == 22
        assert verdict.winner["BLOCK_M"] == 128
        again = configs(lower(op, TUNE))
        assert len(again) == 2
        assert dict(verdict.winner) in again
        assert len(context.current_store().trials(subject)) == 22

    def test_inductor_finds_our_lookup_table(self, notes: Notes, op: str) -> None:
        predict(op, CONFIG)
        problem = {"b": 4, "m": 512, "n": 512, "k": 1000, "dtype": "bfloat16"}
        table = lookup_table({op: [{name: problem[name] for name in problem if name != "b" or op == "bmm"}]})
        with inductor_config.patch({"lookup_table.table": table.table}):
            choices = lower(op, Steering(mode="off"), k=1000, handler=LookupTableChoices())
        assert len(choices) == 2
        assert UNEVEN in source_of(choices, CONFIG)


def test_the_kernels_of_predicted_configs_compute_right_results(
    notes: Notes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Triton's interpreter runs them on the CPU; one that takes an uneven K for even must not pass."""
    for op in OPS:
        for k, block in ((100, 64), (128, 64), (100, 16)):
            _put(tmp_path / f"{op}-{k}-{block}.py", _written(op, k, block))
    monkeypatch.setattr(gpu_choices, "is_multiple", lambda *_: True)
    _put(tmp_path / "mm-100-64-taken-for-even.py", _written("mm", 100, 64))
    env = {**os.environ, "TRITON_INTERPRET": "1"}
    ran = subprocess.run([sys.executable, RUNNER, tmp_path], env=env, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    verdicts = dict(line.split() for line in ran.stdout.splitlines())
    assert len(verdicts) == 10
    assert [name for name, verdict in verdicts.items() if verdict != "right"] == ["mm-100-64-taken-for-even"]


def _written(op: str, k: int, block: int) -> str:
    """Return the kernel that Inductor writes for a predicted config that it does not list."""
    config = {**CONFIG, "BLOCK_M": 32, "BLOCK_N": 16, "BLOCK_K": block, "num_warps": 2}
    predict(op, config)
    return source_of(lower(op, USE, 40, 24, k, dtype=torch.float32), config)


def _put(path: Path, text: str) -> None:
    """Write a kernel without what makes it Inductor's: the decorator that launches it on a GPU."""
    text = re.sub(r"@triton_heuristics\.template\(.*?\n\)\n", "", text, flags=re.DOTALL)
    text = text.replace(" & (idx_q < BATCH)", "")  # always true here, and the interpreter takes no number in a mask
    path.write_text(re.sub(r"from torch\._inductor.*\n", "", text))
