"""NVIDIA's own heuristics, asked in a child process that may crash, hang, or not be there."""

import importlib.util
import json
import sys

import pytest

from limits import HANG_S
from tunewise.decision import MatmulFact, Space, pow2
from tunewise.decision.devices import known_device
from tunewise.heuristics.case import Case
from tunewise.heuristics.experts import nvidia
from tunewise.heuristics.experts.nvidia import NvidiaTriton, ask, question

HALF = ("float16", "float16", "float16")
TILE = {"m": 128, "n": 256, "k": 64, "stages": 3, "split_k": 1, "warps": 8, "group": 4, "cluster_m": 1, "cluster_n": 1}
PRINTS = f"import sys; sys.stdin.read(); print({json.dumps([TILE])!r}, flush=True)"


def child(code):
    return [sys.executable, "-c", code]


def test_tiles_are_read_from_the_child():
    assert ask(b"{}", child(PRINTS), timeout_s=HANG_S) == [TILE]


def test_a_child_that_crashes_after_its_answer_has_answered():
    assert ask(b"{}", child(PRINTS + "; import os; os.abort()"), timeout_s=HANG_S) == [TILE]


@pytest.mark.parametrize(
    "code",
    [
        "import os; os.abort()",
        "raise SystemExit(3)",
        "print('not tiles')",
        'print(\'[{"m": "wide"}]\')',
        "print('{}')",
    ],
)
def test_a_child_that_crashes_or_talks_nonsense_proposes_nothing(code):
    assert ask(b"{}", child(code)) == []


def test_a_child_that_hangs_is_not_waited_for():
    assert ask(b"{}", child("import time; time.sleep(600)"), timeout_s=0.5) == []


def test_a_program_that_is_not_there_proposes_nothing():
    assert ask(b"{}", ["/no/such/program"]) == []


def test_the_question_names_device_types_and_layouts_as_the_package_does():
    fact = MatmulFact(1, 2, 3, batch=4, dtypes=("torch.bfloat16",) * 3, layouts=("column", "row"))
    asked = json.loads(question(fact, "NVIDIA H100 80GB HBM3", "TRITON", 5))
    assert (asked["gpu"], asked["precision"], asked["layout"]) == ("H100_SXM", "TST", "TN_ROW_MAJOR")
    assert [asked[name] for name in ("m", "n", "k", "batch", "count")] == [1, 2, 3, 4, 5]


@pytest.mark.parametrize("device", ["Tesla V100-SXM2-16GB", "AMD Instinct MI300X", "GPU"])
def test_a_device_that_the_package_does_not_know_is_not_asked_about(device):
    assert question(MatmulFact(64, 64, 64, dtypes=HALF), device, "TRITON", 5) is None


def test_types_that_are_not_certain_are_not_asked_about():
    assert question(MatmulFact(64, 64, 64, dtypes=("int8", "int8", "int32")), "h100", "TRITON", 5) is None
    assert question(MatmulFact(64, 64, 64, dtypes=("float16", "bfloat16", "float32")), "h100", "TRITON", 5) is None


def case(space):
    hardware = known_device("h100")
    assert hardware is not None
    return Case({}, hardware, Space(space), {}, (MatmulFact(4096, 4096, 4096, dtypes=HALF),))


SPACE = {"BLOCK_M": pow2(16, 256), "BLOCK_N": pow2(16, 256), "num_stages": [2, 3, 4]}


def test_tiles_are_put_into_the_words_of_the_space(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: object())
    monkeypatch.setattr(nvidia, "_remembered", lambda asked: (TILE,))
    assert NvidiaTriton().seeds(case(SPACE)) == [{"BLOCK_M": 128, "BLOCK_N": 256, "num_stages": 3}]


def test_without_the_package_nothing_is_proposed_and_no_process_started(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    monkeypatch.setattr(nvidia, "_remembered", lambda asked: pytest.fail("a child was started"))
    assert NvidiaTriton().seeds(case(SPACE)) == []


@pytest.mark.skipif(importlib.util.find_spec("nvMatmulHeuristics") is None, reason="needs tunewise[nvidia]")
def test_the_real_package_proposes_tiles_for_an_h100():
    seeds = NvidiaTriton().seeds(case(SPACE))
    assert 1 <= len(seeds) <= NvidiaTriton.most
    assert all(seed["BLOCK_M"] >= 64 and seed["num_stages"] >= 2 for seed in seeds)
