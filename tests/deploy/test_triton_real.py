"""The adapter on Triton's own autotuner, compiler and launcher; only the device driver is a stand-in."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

import tunewise as tw
from tunewise.decision import Failure, Timing
from tunewise.deploy import triton_harvest
from tunewise.deploy.triton import answers, harvest, tuned
from tunewise.deploy.triton_kernel import kernel_of, source_of
from tunewise.session import context

triton = pytest.importorskip("triton", reason="Triton is not installed: make test-triton")

import triton.language as tl  # noqa: E402
import triton_kernels  # noqa: E402
from triton_kernels import FORTY, launch, scaling  # noqa: E402
from triton_stage import Notes, Tensor, staged  # noqa: E402

HERE = Path(__file__).parent
FEW = FORTY[:4]


@pytest.fixture(autouse=True)
def quiet(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Compile into one directory for all tests, and choose what Triton would otherwise warn about."""
    place = tmp_path_factory.getbasetemp() / "triton-cache"
    monkeypatch.setenv("TRITON_CACHE_DIR", str(place))
    monkeypatch.setenv("TRITON_DEFAULT_FP_FUSION", "1")
    triton_harvest._reported.clear()
    triton_harvest._recognisers.clear()


@pytest.fixture
def stage() -> Iterator[Notes]:
    with staged() as notes:
        notes.time_ms = lambda launch: 1.0 / launch.metadata.num_warps
        yield notes


def kept(decision: str = "triton_kernels.scale") -> dict[int, int]:
    """Return how many trials the store has, by the problem's size."""
    store = context.current_store()
    return {int(subject.problem["n"]): len(store.trials(subject)) for subject in store.subjects(decision)}


def test_forty_configs_none_is_timed_on_a_known_problem_and_five_are_on_an_unknown_one(stage: Notes) -> None:
    with tw.mode("collect"):
        launch(tuned()(scaling()), 1024)
    assert stage.benchmarks == 40

    known = tuned()(scaling())
    launch(known, 1024)
    assert stage.benchmarks == 40
    assert known.best_config.num_warps == 8

    before = len(stage.launches)
    launch(known, 1_000_000)
    assert stage.benchmarks == 45
    timed = [(one.metadata.num_warps, one.metadata.num_stages) for one in stage.launches[before:]]
    assert (FORTY[0].num_warps, FORTY[0].num_stages) in timed  # the author's default
    assert kept() == {1024: 40, 1_000_000: 5}


def test_all_timings_of_a_kernel_that_knows_nothing_of_us_are_harvested(stage: Notes) -> None:
    with harvest() as harvested:
        launch(scaling(FEW), 64)
    assert (stage.benchmarks, harvested.kept, kept()) == (4, 4, {64: 4})
    (subject,) = context.current_store().subjects()
    assert dict(subject.problem) == {"n": 64, "x_dtype": "fp32", "y_dtype": "fp32"}
    assert subject.environment.must["hardware.capability"] == "9.0"
    assert subject.environment.must["library.triton"] == triton.__version__


def test_timings_are_tritons_quantiles_in_seconds(stage: Notes) -> None:
    with harvest():
        launch(scaling(FEW), 64)
    store = context.current_store()
    outcomes = [trial.outcome for trial in store.trials(store.subjects()[0])]
    assert outcomes[0] == Timing((1.0 / 1e3, 0.99 / 1e3, 1.02 / 1e3))


def test_what_was_harvested_answers_the_same_kernel_once_it_is_decorated(stage: Notes) -> None:
    with harvest():
        launch(scaling(FEW), 64)
    launch(tuned()(scaling(FEW)), 64)
    assert stage.benchmarks == 4


def run_program(name: str, *words: object) -> Any:
    """Run a program of this directory in a process of its own and return the JSON it prints."""
    command = [sys.executable, str(HERE / name), *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-4000:]
    return json.loads(done.stdout)


def test_two_processes_share_what_one_measured() -> None:
    first, second = run_program("triton_process.py", 64, 128), run_program("triton_process.py", 64, 128, 4096)
    assert (first["benchmarks"], second["benchmarks"]) == (10, 5)


def test_ranks_launch_the_same_config_whatever_is_the_fastest_on_each(tmp_path: Path) -> None:
    if find_spec("torch") is None:
        pytest.skip("torch is not installed: make test-triton")
    seen = run_program("triton_real_ranks.py", tmp_path, 3)
    for problem in zip(*seen, strict=True):
        assert len({warps for *launched, _ in problem for warps in launched}) == 1
        assert sum(benchmarks for *_, benchmarks in problem) > 0


def test_inside_torch_compile_the_kernel_is_tuned_as_if_we_were_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    if find_spec("torch") is None:
        pytest.skip("torch is not installed: make test-triton")
    monkeypatch.setenv("ONEDNN_MAX_CPU_ISA", "AVX512_CORE_BF16")  # some virtual machines promise more than they have
    said = run_program("triton_compiled.py")
    assert said == {"graphs": 1, "rung": "memory", "compiled": 4, "eager": 2}


def test_a_config_that_does_not_fit_the_device_is_a_failure(stage: Notes) -> None:
    stage.max_shared_bytes = 8  # a reduction over several warps needs more, over one warp none
    configs = [triton.Config({"BLOCK": 256}, num_warps=warps) for warps in (1, 2, 8)]
    kernel = tuned("total")(triton.autotune(configs=configs, key=["n"])(triton_kernels.total))
    launch(kernel, 256)
    (subject,) = context.current_store().subjects("total")
    outcomes = {trial.config["num_warps"]: trial.outcome for trial in context.current_store().trials(subject)}
    assert isinstance(outcomes[1], Timing)
    assert isinstance(outcomes[8], Failure)
    assert outcomes[8].kind == "constraints"


def test_a_listener_of_somebody_else_still_hears(stage: Notes) -> None:
    told = []
    triton.knobs.autotuning.listener = lambda **what: told.append(len(what["configs_timings"]))
    launch(tuned()(scaling(FEW)), 64)
    assert told == [4]
    assert kept() == {64: 4}


def test_our_errors_never_reach_the_kernels_call(stage: Notes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(context, "current_store", lambda: 1 / 0)
    kernel = tuned()(scaling(FEW))
    with harvest():
        launch(kernel, 64)
    assert stage.benchmarks == 4
    assert kernel.best_config in FEW


def test_a_run_that_triton_reads_from_its_own_cache_is_not_stored_twice(stage: Notes) -> None:
    with harvest():
        launch(scaling(FEW, cache_results=True), 64)
        launch(scaling(FEW, cache_results=True), 64)
    assert (stage.benchmarks, kept()) == (4, {64: 4})


def test_the_authors_pruning_and_model_come_first(stage: Notes) -> None:
    def large(configs: list[Any], named_args: Any, **kwargs: Any) -> list[Any]:
        return [config for config in configs if config.kwargs["BLOCK"] >= 512]

    def model(n: int, BLOCK: int, num_warps: int, **rest: Any) -> float:  # noqa: N803
        return BLOCK * num_warps

    pruning = {"early_config_prune": large, "perf_model": model, "top_k": 8}
    launch(tuned(top_k=3)(scaling(prune_configs_by=pruning)), 64)
    (subject,) = context.current_store().subjects()
    tried = [(trial.config["BLOCK"], trial.config["num_warps"]) for trial in context.current_store().trials(subject)]
    assert tried == [(512, 1), (512, 1), (512, 2)]


def test_the_answers_work_as_an_early_config_prune(stage: Notes) -> None:
    for expected in (3, 3):
        launch(scaling(prune_configs_by={"early_config_prune": answers(top_k=3)}), 64)
        assert stage.benchmarks == expected


def test_a_kernel_below_triton_heuristics_is_decorated_too(stage: Notes) -> None:
    jitted = triton.jit(triton_kernels.scale)
    tuner = triton.autotune(configs=FEW, key=["n"])(triton.heuristics({})(jitted))
    above = tuned()(triton.heuristics({})(tuner))
    launch(above, 64)
    launch(tuned()(scaling(FEW)), 64)
    assert stage.benchmarks == 4


def test_warming_up_compiles_what_would_be_timed(stage: Notes) -> None:
    kernel = tuned(top_k=2)(scaling(FEW))
    compiled = kernel.warmup(Tensor(tl.float32), Tensor(tl.float32), 64, grid=(1,))
    assert len(compiled) == 2
    launch(kernel, 64)
    assert kept() == {64: 2}


def test_a_constant_of_the_module_is_part_of_the_source(monkeypatch: pytest.MonkeyPatch) -> None:
    def source() -> str:
        function = type(triton_kernels.scale)(triton_kernels.scale.__code__, vars(triton_kernels), "scale")
        function.__annotations__ = triton_kernels.scale.__annotations__
        return source_of(triton.jit(function))

    before = source()
    assert source() == before
    monkeypatch.setattr(triton_kernels, "FACTOR", tl.constexpr(3.0))
    assert source() != before


def test_off_triton_does_what_it_always_did(stage: Notes) -> None:
    with tw.mode("off"):
        launch(tuned(top_k=2)(scaling(FEW)), 64)
    assert (stage.benchmarks, kept()) == (4, {})


def test_the_kernel_is_named_after_its_module(stage: Notes) -> None:
    assert kernel_of(scaling()).name == "triton_kernels.scale"


def test_the_how_to_runs(home: Path, tmp_path: Path) -> None:
    text = (HERE.parents[1] / "docs" / "how-to" / "triton.md").read_text()
    prelude = (
        "import triton_stage, triton.language\n"
        "x = y = triton_stage.Tensor(triton.language.float32)\n"
        "stage = triton_stage.staged()\n"
        "notes = stage.__enter__()\n"
    )
    program = tmp_path / "triton_md.py"
    program.write_text("\n".join([prelude, *re.findall(r"```python no-run\n(.*?)```", text, re.DOTALL)]))
    env = {**os.environ, "PYTHONPATH": str(HERE)}
    done = subprocess.run(
        [sys.executable, "-W", "error", program], capture_output=True, text=True, env=env, check=False
    )
    assert done.returncode == 0, done.stderr[-4000:]
    assert "5 timings kept" in done.stdout
    assert done.stdout.count("'registers'") == 20
