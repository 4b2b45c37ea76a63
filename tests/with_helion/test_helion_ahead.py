"""A file generated from a model is what `@helion.aot_kernel()` asks."""

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("helion", reason="Helion is not installed: run `make test-helion`")

import helion_kernels
from helion._hardware import HardwareInfo
from helion.autotuner import aot_cache
from helion.autotuner.aot_kernel import HeuristicKeyFunction
from helion_kernels import ahead, is_right, squares

from tunewise.codegen.helion import helion_file_name, helion_source
from tunewise.models import Card, Columns, Leaf, Model, Number, Split, Tree, Word

CHOICES = tuple(
    {"block_sizes_0": size, "block_sizes_1": size, "block_sizes_2": size, "pallas_loop_type": "fori_loop"}
    for size in (32, 64)
)
MODEL = Model(
    card=Card(decision="helion.ahead"),
    choices=CHOICES,
    columns=Columns((Number("arg0_dim0", 8.0, 64.0), Word("arg1_dtype", ("float32",)))),
    body=Tree((Split(0, 1, 2, 32.0), Leaf((0,)), Leaf((1,)))),
)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return where Helion looks for generated files. It takes GPUs and TPUs only, so the CPU needs a name."""
    here = HardwareInfo(device_kind="cpu", hardware_name="interpreter", runtime_version="0", compute_capability="x86")
    monkeypatch.setattr("helion._hardware.get_hardware_info", lambda *device: here)
    monkeypatch.setattr(aot_cache, "get_hardware_info", lambda *device: here)
    monkeypatch.setenv("HELION_HEURISTIC_DIR", str(tmp_path))
    aot_cache.clear_heuristic_cache()
    aot_cache.AOTAutotuneCache.clear_caches()
    HeuristicKeyFunction.clear_cache()
    return tmp_path


def test_a_generated_file_is_picked_up(folder: Path) -> None:
    name = helion_file_name(Path(helion_kernels.__file__).stem, "cpu", "x86")
    (folder / name).write_text(helion_source(MODEL))
    for size in (32, 64):
        args: Any = squares(size)
        assert is_right(ahead(*args), args)
        assert ahead.bind(args)._config.block_sizes == [size, size, size]
        assert ahead.bind(args)._config.config["pallas_loop_type"] == "fori_loop"


def test_a_call_that_the_model_does_not_know_gets_helions_own_default(folder: Path) -> None:
    name = helion_file_name(Path(helion_kernels.__file__).stem, "cpu", "x86")
    up_to_16 = Columns((Number("arg0_dim0", 8.0, 16.0),))
    model = Model(card=MODEL.card, choices=CHOICES, columns=up_to_16, body=Tree((Leaf((0,)),)))
    (folder / name).write_text(helion_source(model))
    bound = ahead.bind(squares(32))
    assert bound.autotune(squares(32), force=False) == bound.config_spec.default_config()
