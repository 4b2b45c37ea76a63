"""What a kernel is called, what its arguments say, and which source it has."""

import importlib.util
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from triton_standins import Autotuner, Jit, Tensor, forty, scale

from tunewise.deploy import triton_kernel
from tunewise.deploy.triton_kernel import autotuner_of, capability_of, device, kernel_of, source_of
from tunewise.errors import InvalidDecision


def test_a_decision_is_named_after_the_kernels_module_and_name() -> None:
    assert kernel_of(Autotuner(forty())).name == "triton_standins.scale"


def test_a_long_name_is_cut_and_stays_its_own() -> None:
    first, second = (
        SimpleNamespace(__module__="m" * 300, __qualname__="a"),
        SimpleNamespace(__module__="m" * 300, __qualname__="b"),
    )
    names = [triton_kernel.name_of(SimpleNamespace(fn=one)) for one in (first, second)]
    assert len(set(names)) == 2
    assert max(map(len, names)) <= 200


def test_the_problem_is_the_key_and_the_types_of_the_tensors() -> None:
    given = {"x": Tensor(), "y": Tensor("torch.bfloat16"), "n": 4096, "grid": (1,), "num_warps": 4}
    assert kernel_of(Autotuner(forty())).problem(given) == {"n": 4096, "x_dtype": "float16", "y_dtype": "bfloat16"}


def test_what_is_neither_a_number_nor_a_word_becomes_one() -> None:
    kernel = kernel_of(Autotuner(forty(), keys=["x", "y", "n"]))
    assert kernel.problem({"x": None, "y": (3, 4), "n": True}) == {"x": "none", "y": "(3, 4)", "n": True}


def test_the_key_is_the_one_triton_files_a_call_under() -> None:
    tuner = Autotuner(forty())
    tuner.run(Tensor("fp16"), Tensor("fp32"), 64)
    assert list(tuner.cache) == [kernel_of(tuner).key({"x": Tensor("fp16"), "y": Tensor("fp32"), "n": 64})]


def test_the_autotuner_is_found_below_other_decorators() -> None:
    tuner = Autotuner(forty())
    assert autotuner_of(SimpleNamespace(fn=tuner)) is tuner


@pytest.mark.parametrize("bare", [Jit(), scale, 7])
def test_a_kernel_without_an_autotuner_is_refused(bare: object) -> None:
    with pytest.raises(InvalidDecision, match=r"is not autotuned: put the decorator above @triton.autotune"):
        autotuner_of(bare)


def _loaded(path: Path, text: str) -> object:
    path.write_text(text)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return SimpleNamespace(fn=module.kernel)


def test_the_source_stays_when_the_kernel_moves_and_changes_with_what_it_calls(tmp_path: Path) -> None:
    text = "def helper(x):\n    return x + {0}\n\ndef kernel(x):\n    return helper(x)\n"
    before = source_of(_loaded(tmp_path / "one.py", text.format(1)))
    assert source_of(_loaded(tmp_path / "two.py", "\n# moved down\n\n" + text.format(1))) == before
    assert source_of(_loaded(tmp_path / "three.py", text.format(2))) != before


def test_constants_that_triton_notes_are_part_of_the_source() -> None:
    def kernel() -> None:
        pass

    def jit(value: int) -> SimpleNamespace:
        fresh = type(kernel)(kernel.__code__, {})
        return SimpleNamespace(fn=fresh, cache_key="", used_global_vals={("FACTOR", 1): (value, {})})

    assert source_of(jit(1)) == source_of(jit(1)) != source_of(jit(2))


def test_without_a_driver_the_device_is_the_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "triton", None)
    assert device().kind == "cpu"


def test_capabilities_are_written_as_hardware_writes_them() -> None:
    said = [capability_of(SimpleNamespace(arch=arch)) for arch in (90, 100, "gfx942")]
    assert said == ["9.0", "10.0", "gfx942"]
