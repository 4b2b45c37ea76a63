"""A kernel source as a decision: what becomes of good, bad and impossible configs, and what is remembered of them."""

import gc
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tunewise as tw
from tunewise.decision import Config, Failure, Outcome, Timing
from tunewise.deploy.opencl import Local, OpenCLKernel, choose, devices, kernel_decision
from tunewise.errors import NotFound
from tunewise.measure import clruntime
from tunewise.measure.isolated import Isolated
from tunewise.session import Implementation
from tunewise.session.context import current_store

pytestmark = pytest.mark.usefixtures("pocl")

SOURCE = """
#if WAY == BROKEN
first complaint;
#endif
#if WAY == MUCH_LOCAL
#define ROOM (1 << 22)
#else
#define ROOM 4
#endif
#if WAY == OTHER_GROUP
__attribute__((reqd_work_group_size(2, 1, 1)))
#endif
__kernel void scale(__global const float *x, __global float *out, __local float *extra, int n, float factor)
{
    __local float room[ROOM];
    int i = get_global_id(0);
    room[get_local_id(0) * (ROOM / 4)] = factor;
    extra[0] = factor;
    barrier(CLK_LOCAL_MEM_FENCE);
#if WAY == HANG
    for (volatile int turn = 0; turn >= 0; turn = 0) {}
#elif WAY == CRASH
    out[(size_t)1 << 40] = 1;
#elif WAY == WRONG
    factor += 1;
#endif
    if (i < n) out[i] = x[i] * factor * (room[(3 - get_local_id(0)) * (ROOM / 4)] / extra[0]);
}
"""
WAYS = ("PLAIN", "BROKEN", "MUCH_LOCAL", "MUCH_EXTRA", "LARGE_GROUP", "OTHER_GROUP", "WRONG", "CRASH")
NUMBERS = {way: number for number, way in enumerate((*WAYS, "HANG"))}


def scale(name: str, *, ways: tuple[str, ...] = WAYS, source: str | Path = SOURCE, **facts: Any) -> Implementation:
    flags = [f"-D{word}={number}" for word, number in NUMBERS.items()]
    kernel = OpenCLKernel(source, "scale", writes=(1,), flags=flags)
    decision = tw.Decision(
        name,
        space=tw.Space({"way": list(ways)}),
        default={"way": "PLAIN"},
        features=lambda x: {"n": x.size},
        inputs=lambda problem, seed: (np.random.default_rng(seed).random(problem["n"], np.float32),),
        check=tw.Check(reference=lambda x: x * np.float32(3), repeats=2),
        policy=tw.Policy(clock="device", timeout_s=1, compile_timeout_s=30),
        backend="opencl",
        device="opencl",
        **facts,
    )

    @decision.implementation(facts=kernel.facts)
    def run(x: Any, *, way: str) -> Any:
        out = np.empty_like(x)
        extra = Local(1 << 22 if way == "MUCH_EXTRA" else 4)
        items = 1 << 14 if way == "LARGE_GROUP" else 4
        kernel.run(x, out, extra, x.size, 3, defines={"WAY": way}, global_size=(x.size,), local_size=(items,))
        return out

    return run


@pytest.fixture(autouse=True)
def unload() -> Iterator[None]:
    """Let the decisions of a test die with it, so that another may use their names."""
    yield
    gc.collect()


@pytest.fixture(scope="module")
def outcomes(pocl: None, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Outcome]:
    """What became of every way, tuned once for all tests."""
    tw.configure(home=tmp_path_factory.mktemp("home"))
    run = scale("scale_all")
    tuning = run.decision.tune({"n": 10})
    assert tuning.answer.config == {"way": "PLAIN"}
    (subject,) = current_store().subjects("scale_all")
    return {str(trial.config["way"]): trial.outcome for trial in current_store().trials(subject)}


def failure(outcomes: dict[str, Outcome], way: str) -> Failure:
    outcome = outcomes[way]
    assert isinstance(outcome, Failure)
    return outcome


def test_a_good_config_is_timed_by_the_device_and_its_build_apart(outcomes: dict[str, Outcome]) -> None:
    outcome = outcomes["PLAIN"]
    assert isinstance(outcome, Timing)
    assert outcome.compile_s is not None
    assert outcome.compile_s > 0
    assert outcome.time_s > 0


def test_what_does_not_build_is_a_compile_failure_with_the_logs_last_lines(outcomes: dict[str, Outcome]) -> None:
    found = failure(outcomes, "BROKEN")
    assert found.kind == "compile"
    assert found.detail.startswith("scale does not build with -DWAY=BROKEN: the driver said\n")
    assert "scale:3:1: unknown type name 'first'" in found.detail


@pytest.mark.parametrize(
    ("way", "limit", "asked"),
    [
        ("LARGE_GROUP", "CL_DEVICE_MAX_WORK_ITEM_SIZES", "16384 work-items in dimension 0"),
        ("MUCH_LOCAL", "CL_DEVICE_LOCAL_MEM_SIZE", f"{(4 << 22) + 4} bytes of local memory"),
        ("MUCH_EXTRA", "CL_DEVICE_LOCAL_MEM_SIZE", f"{(1 << 22) + 16} bytes of local memory"),
        ("OTHER_GROUP", "reqd_work_group_size", "a work-group of 4 is not the 2 x 1 x 1"),
    ],
)
def test_beyond_a_limit_is_a_constraints_failure_that_names_it(
    outcomes: dict[str, Outcome], way: str, limit: str, asked: str
) -> None:
    found = failure(outcomes, way)
    assert found.kind == "constraints"
    assert limit in found.detail
    assert asked in found.detail


def test_a_wrong_result_is_a_correctness_failure(outcomes: dict[str, Outcome]) -> None:
    assert failure(outcomes, "WRONG").kind == "correctness"


def test_a_crash_of_the_driver_is_a_crash_failure(outcomes: dict[str, Outcome]) -> None:
    assert failure(outcomes, "CRASH").kind == "crash"


@pytest.mark.full
def test_a_kernel_that_never_ends_is_a_timeout() -> None:
    tuning = scale("scale_hang", ways=("PLAIN", "HANG")).decision.tune({"n": 10})
    assert tuning.failures == {"timeout": 1}


def test_the_environment_names_device_driver_and_source() -> None:
    chosen = choose()
    parts = scale("scale_here").decision.subject(tw.Problem({"n": 1})).environment.must
    assert parts["hardware.kind"] == "opencl"
    assert parts["hardware.name"] == chosen.name
    assert parts["hardware.cores"] == chosen.units
    assert parts["hardware.local"] == chosen.local_bytes
    assert chosen.driver in parts["opencl.driver"]
    assert len(parts["kernel"]) == 32


def test_another_source_or_header_is_another_subject(tmp_path: Path) -> None:
    (tmp_path / "scale.cl").write_text('#include "more.clh"\n' + SOURCE)
    digests = set()
    for text in ("#define MORE 1\n", "#define MORE 2\n"):
        (tmp_path / "more.clh").write_text(text)
        decision = scale("scale_file", source=tmp_path / "scale.cl").decision
        digests.add(decision.subject(tw.Problem({"n": 1})).digest)
        del decision
        gc.collect()
    assert len(digests) == 2


def test_nothing_is_started_in_this_process() -> None:
    scale("scale_quiet").decision.tune({"n": 10}, budget=1)
    assert not clruntime.is_started()


def doubled(name: str) -> Implementation:
    """A kernel that is given its own arguments; BESIDE writes one element too far."""
    text = """
    __kernel void twice(__global const float *x, __global float *out, unsigned int n)
    {
        unsigned int first = get_global_id(0) * STEP;
        for (unsigned int i = first; i < first + STEP && i < n; i++) out[i] = 2 * x[i];
        if (BESIDE && first == 0) out[n] = 1;
    }
    """
    return kernel_decision(
        name,
        OpenCLKernel(text, "twice", writes=(1,)),
        space=tw.Space({"STEP": [1, 64], "BESIDE": tw.boolean()}),
        default={"STEP": 1, "BESIDE": False},
        features=lambda x, out, n: {"n": n},
        sizes=lambda problem, config: ((-(-problem["n"] // config["STEP"]),), (8,)),
        inputs=lambda problem, seed: (*arrays(problem["n"], seed), problem["n"]),
        check=tw.Check(repeats=2),
    )


def arrays(n: int, seed: int) -> tuple[Any, Any]:
    return np.random.default_rng(seed).random(n, np.float32), np.zeros(n, np.float32)


def test_a_kernel_whose_arguments_are_given_by_position_is_tuned_and_remembered() -> None:
    decision = doubled("twice").decision
    tuning = decision.tune({"n": 1000}, strategy="exhaustive")
    assert (tuning.evaluations, tuning.failures) == (4, {"correctness": 2})
    assert decision.tune({"n": 1000}).measured == 0


def test_a_write_beside_an_array_is_noticed() -> None:
    run = doubled("twice_beside")
    with Isolated(run.task(*run.decision.make_inputs({"n": 1000})).work) as measurer:
        found = measurer.first({"STEP": 1, "BESIDE": True})
    assert isinstance(found, Failure)
    assert (found.kind, "writes outside its arrays" in found.detail) == ("correctness", True)


def test_devices_with_memory_of_their_own_get_copies(monkeypatch: pytest.MonkeyPatch) -> None:
    """PoCL works on the host's arrays; a GPU does not. Here it is told to do as one."""
    start: Callable[..., clruntime.Runtime] = clruntime._start
    monkeypatch.setattr(clruntime, "_start", lambda chosen: replace(start(chosen), shares_memory=False))
    run = doubled("twice_copied")
    task = run.task(*run.decision.make_inputs({"n": 1000}))
    config: Config = {"STEP": 64, "BESIDE": False}
    with Isolated(task.work) as measurer:
        assert isinstance(measurer.first(config), Timing)
        assert measurer.verify(config) is None


@pytest.mark.parametrize("wanted", ["opencl:0", "opencl", "opencl:portable"])
def test_a_device_is_chosen_by_number_or_name(wanted: str) -> None:
    if "portable" in wanted and not any("Portable" in one.platform for one in devices()):
        pytest.skip("PoCL is not installed")
    assert choose(wanted) in devices()


def test_the_setting_chooses_the_device() -> None:
    tw.configure(opencl_device="no such thing")
    with pytest.raises(NotFound, match=r"there is no OpenCL device 'no such thing'; there are 0: "):
        choose()
