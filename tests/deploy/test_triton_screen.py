"""Screening: what configs need on a GPU that is not here, by Triton's own compiler."""

import os
import time
from pathlib import Path
from typing import Any

import pytest

from tunewise.decision import Failure, Hardware
from tunewise.deploy import triton_children
from tunewise.deploy.triton import screen
from tunewise.deploy.triton_compile import Build
from tunewise.errors import InvalidDecision, InvalidSetting, NotFound, TunewiseError

triton = pytest.importorskip("triton", reason="Triton is not installed: make test-triton")

from triton.backends.compiler import GPUTarget  # noqa: E402
from triton_kernels import FORTY, multiply, scaling  # noqa: E402

VECTORS = {"x": "*fp32", "y": "*fp32", "n": "i32"}
MATRICES = {**dict.fromkeys(("a", "b", "c"), "*fp16"), **dict.fromkeys(("k", "a_row", "b_row", "c_row"), "i32")}
SMALL = Hardware("cuda", "a small GPU", "9.0", 1, 0, shared_bytes=10_000)


@pytest.fixture(autouse=True)
def compiled_once(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Compile into one directory for all tests."""
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path_factory.getbasetemp() / "triton-cache"))
    monkeypatch.setenv("TRITON_DEFAULT_FP_FUSION", "1")


def square(block: int, stages: int = 3, warps: int = 4) -> Any:
    return triton.Config({"BLOCK": block, "DEPTH": 32}, num_warps=warps, num_stages=stages)


def test_a_config_that_fits_has_needs_and_no_failure() -> None:
    (one,) = screen(multiply, [square(64)], signature=MATRICES, target="H100")
    assert one.failure is None
    assert one.trial is None
    assert one.config == {"BLOCK": 64, "DEPTH": 32, "num_warps": 4, "num_stages": 3, "num_ctas": 1}
    assert one.features["shared_bytes"] >= 3 * 2 * 64 * 32 * 2 - 64 * 32 * 2 * 2  # of three stages at least two
    assert 0 < one.features["registers"] <= 255


def test_a_config_over_the_devices_limit_is_a_failure_that_says_by_how_much() -> None:
    (one,) = screen(multiply, [square(64)], signature=MATRICES, target=SMALL)
    assert one.failure is not None
    assert one.failure.kind == "constraints"
    assert one.failure.detail.endswith("bytes of shared memory, and a small GPU has 10000")
    assert one.shared_bytes > 10_000
    assert one.trial is not None
    assert one.trial.outcome == one.failure


def test_too_many_threads_are_a_failure() -> None:
    (one,) = screen(scaling(), [triton.Config({"BLOCK": 64}, num_warps=64)], signature=VECTORS, target="H100")
    reason = "needs 2048 threads in a block, and NVIDIA H100 80GB HBM3 takes 1024"
    assert one.failure == Failure("constraints", reason)


def test_what_does_not_compile_is_a_failure_with_the_compilers_words() -> None:
    (one,) = screen(multiply, [square(48)], signature=MATRICES, target="H100")
    assert one.failure is not None
    assert one.failure.kind == "compile"
    assert "power of 2" in one.failure.detail


def test_without_the_hint_of_alignment_nothing_is_pipelined() -> None:
    hinted, bare = (
        screen(multiply, [square(64)], signature=MATRICES, target="H100", aligned=aligned)[0] for aligned in (None, [])
    )
    assert hinted.shared_bytes > bare.shared_bytes


def test_an_autotuned_kernel_is_screened_with_its_own_configs() -> None:
    screened = screen(scaling(FORTY[:3]), signature=VECTORS, target=GPUTarget("cuda", 80, 32))
    assert [one.config["num_warps"] for one in screened] == [1, 1, 2]
    assert all(one.failure is None for one in screened)


def test_a_gpu_of_amd_will_do() -> None:
    (one,) = screen(scaling(), FORTY[:1], signature=VECTORS, target="MI300X")
    assert one.failure is None
    assert one.registers > 0


def test_results_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    before = screen(scaling(), FORTY[:2], signature=VECTORS, target="H100")

    def refuse(jobs: list[Any], **_: Any) -> list[Any]:
        assert jobs == []
        return []

    monkeypatch.setattr(triton_children, "run", refuse)
    assert screen(scaling(), FORTY[:2], signature=VECTORS, target="H100") == before


def test_a_damaged_result_is_made_anew(home: Path) -> None:
    before = screen(scaling(), FORTY[:1], signature=VECTORS, target="H100")
    (kept,) = (home / "kernels").glob("screened-*.json")
    kept.write_text('{"shared_bytes": "many"}')
    assert screen(scaling(), FORTY[:1], signature=VECTORS, target="H100") == before


def test_other_types_and_other_targets_are_other_results(home: Path) -> None:
    halves = {**VECTORS, "x": "*fp16", "y": "*fp16"}
    for signature, target in ((VECTORS, "H100"), (halves, "H100"), (VECTORS, "A100"), (VECTORS, "H200")):
        screen(scaling(), FORTY[:1], signature=signature, target=target)
    assert len(list((home / "kernels").glob("screened-*.json"))) == 3  # an H200 takes what an H100 takes


def test_a_compiler_that_hangs_is_stopped_and_asked_again_next_time(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(Build, "needs", lambda self, config: time.sleep(600))
        (one,) = screen(scaling(), FORTY[:1], signature=VECTORS, target="H100", timeout_s=0.5)
    assert one.failure == Failure("timeout", "stopped after 0.5 s")
    (again,) = screen(scaling(), FORTY[:1], signature=VECTORS, target="H100")
    assert again.failure is None


def test_constants_that_no_config_sets_are_given_apart() -> None:
    config = triton.Config({"BLOCK": 64})
    (one,) = screen(multiply, [config], signature=MATRICES, target="H100", constants={"DEPTH": 32})
    assert one.failure is None
    with pytest.raises(InvalidDecision, match="multiply: DEPTH has neither a type"):
        screen(multiply, [config], signature=MATRICES, target="H100")


def test_a_gpu_nobody_knows_is_refused() -> None:
    with pytest.raises(NotFound, match="no GPU named 'Z9000' is known"):
        screen(scaling(), signature=VECTORS, target="Z9000")


def test_an_argument_the_kernel_does_not_have_is_refused() -> None:
    with pytest.raises(InvalidDecision, match="scale has no argument 'z'; it has x, y, n, BLOCK"):
        screen(scaling(), signature={**VECTORS, "z": "i32"}, target="H100")


def test_screening_leaves_no_process_behind() -> None:
    children = Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children")
    before = children.read_text()
    screen(scaling(), FORTY[:3], signature=VECTORS, target="A100", at_once=2)
    assert children.read_text() == before


@pytest.mark.parametrize(
    ("kernel", "options", "error", "said"),
    [
        (multiply, {}, InvalidDecision, "multiply has no configs to screen"),
        (len, {}, InvalidDecision, "is no kernel of Triton's"),
        (multiply, {"configs": FORTY, "target": 90}, NotFound, "no GPU named 90 is known"),
        (multiply, {"configs": FORTY, "timeout_s": 0}, InvalidSetting, "timeout_s=0 is not a number of seconds"),
        (multiply, {"configs": FORTY, "at_once": -1}, InvalidSetting, "at_once=-1 is not a number of children"),
    ],
)
def test_what_makes_no_sense_is_refused_in_one_sentence(
    kernel: Any, options: dict[str, Any], error: type[TunewiseError], said: str
) -> None:
    with pytest.raises(error, match=said):
        screen(kernel, **{"signature": MATRICES, "target": "H100", **options})
