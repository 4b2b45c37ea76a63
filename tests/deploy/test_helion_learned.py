"""What was measured of a Helion kernel is learned, and written as the file that its aot_kernel asks."""

import runpy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("sklearn", reason="learning needs the extra `learn`")

from helion_standins import Bench, Tensor, call, matmul_spec

from tunewise.codegen.helion import helion_file_name, helion_source
from tunewise.deploy import helion_memory as memory
from tunewise.learn.options import Training
from tunewise.learn.store_data import from_store
from tunewise.learn.training import train
from tunewise.session.context import current_store


def small_is_best_up_to_64(size: int) -> Callable[[dict[str, Any]], float]:
    best = 16 if size <= 64 else 64

    def time_ms(config: dict[str, Any]) -> float:
        return 1.0 + sum(abs(block - best) / 16 for block in config["block_sizes"]) + (config["loop"] != "plain")

    return time_ms


def test_what_was_measured_becomes_a_file_that_answers_right(tmp_path: Path) -> None:
    for size in (16, 24, 32, 40, 48, 64, 96, 128, 160, 192, 224, 256):
        here = call(size, matmul_spec(64))
        configs = [here.knobs.helion(config) for config in here.knobs.space if config["depth"] == 1]
        memory.record(here, Bench(small_is_best_up_to_64(size))(configs), ["test"] * len(configs), "run")
    model = train(from_store(current_store(), "helion.matmul"), Training(max_leaves=4, portfolio=3), learner="tree")
    path = tmp_path / helion_file_name("kernels", "cuda", "sm90")
    path.write_text(helion_source(model))
    answer = runpy.run_path(str(path))["autotune_matmul"]
    squares = {size: (Tensor((size, size)), Tensor((size, size))) for size in (16, 48, 128, 256)}
    assert {size: answer(*args)["block_sizes"] for size, args in squares.items()} == {
        16: [16, 16],
        48: [16, 16],
        128: [64, 64],
        256: [64, 64],
    }
