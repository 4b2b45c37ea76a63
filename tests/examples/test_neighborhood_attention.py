"""Neighborhood attention by compiled flex_attention: right, tuned once by the switch, remembered, and profiled."""

import json
import logging
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from typing import Any

import pytest

import tunewise as tw
from limits import HANG_S
from tunewise.session.context import current_store

torch = pytest.importorskip("torch", reason="torch is not installed")

from neighborhood_stage import EXAMPLES, axes_of, distances, forward, na, tensors, tuning, uncompiled  # noqa: E402

__all__ = ["uncompiled"]  # a fixture

pytestmark = [
    pytest.mark.filterwarnings("ignore::UserWarning:torch", "ignore::DeprecationWarning"),
    pytest.mark.skipif(not forward.compiles_for(torch.empty(0)), reason="flex_attention is compiled for AVX2 only"),
]
GRID = (9, 11)
WINDOW = ((3, 5), (2, 1), (False, True))


@pytest.fixture(scope="module", autouse=True)
def inductor_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Give compilations one thread and a cache that goes when the tests go."""
    config: Any = pytest.importorskip("torch._inductor.config")
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path_factory.mktemp("inductor")))
        with config.patch({"cpp.threads": 1, "compile_threads": 1}):
            yield
    torch.set_num_threads(threads)
    torch._dynamo.reset()


@pytest.fixture(autouse=True)
def switch_off() -> Iterator[None]:
    """Leave the switch as it was found, and no stand-in behind."""
    yield
    na.tuner.reset()


def trials(pass_: str = "forward") -> list[Any]:
    store, name = current_store(), f"neighborhood.{pass_}.2d"
    return [trial for subject in store.subjects(name) for trial in store.trials(subject)]


def evaluated(pass_: str = "forward") -> int:
    return len({json.dumps(dict(trial.config)) for trial in trials(pass_)})


def asked_forward(grid: tuple[int, ...] = GRID) -> Any:
    q, k, v = (one.detach().flatten(1, 2) for one in tensors(grid))
    return tuning.forward_pass(2).decide(q, k, v, axes_of(grid, *WINDOW), 0.5)


IN_ANOTHER_PROCESS = """
import os, sys
import pytest, torch
torch.set_num_threads(1)
sys.path[:0] = sys.argv[1].split(os.pathsep)
from neighborhood_stage import axes_of, do_without_compiler, na, tensors, tuning
from test_neighborhood_attention import GRID, WINDOW, asked_forward, trials
if sys.argv[2] == "uncompiled":
    do_without_compiler(pytest.MonkeyPatch())
na.use_autotuner(True, True)
before = len(trials()), len(trials("backward"))
given = tensors(GRID)
torch.autograd.grad(na.na2d(*given, *WINDOW).sum(), given)
print(asked_forward().rung, before == (len(trials()), len(trials("backward"))), min(before) > 0)
"""


def said_by_another_process(compiled: str) -> list[str]:
    tests = EXAMPLES.parent / "tests"
    command = [sys.executable, "-c", IN_ANOTHER_PROCESS, f"{tests}{os.pathsep}{tests / 'examples'}", compiled]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=HANG_S, check=False)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout.split()


@pytest.mark.full
def test_compiled_tiles_are_tuned_at_the_first_call_right_and_known_to_another_process() -> None:
    given = tensors(GRID)
    na.use_autotuner(forward_pass=True, backward_pass=True, budget=2)
    for _ in range(2):
        assert max(distances(given, WINDOW)) < 1e-5
        assert (evaluated(), evaluated("backward")) == (2, 2)
    assert said_by_another_process("compiled") == ["memory", "True", "True"]


@pytest.mark.parametrize(
    ("grid", "window", "tiles"),
    [
        ((37,), (5, 3, True), ((16,), (16,))),
        (GRID, WINDOW, ((4, 4), (4, 4))),
        ((3, 5, 7), (3, (1, 1, 2), (True, False, False)), ((2, 2, 4), (2, 2, 4))),
        pytest.param((37,), (9, 1, False), ((64,), (32,)), marks=pytest.mark.full),
        pytest.param((20, 13), (7, 1, False), ((4, 8), (8, 8)), marks=pytest.mark.full),
        pytest.param((33, 17), (3, 5, (True, False)), ((8, 16), (4, 4)), marks=pytest.mark.full),
        pytest.param((6, 10, 9), (3, 2, False), ((4, 4, 4), (2, 4, 4)), marks=pytest.mark.full),
    ],
)
def test_compiled_tiles_are_right(grid: tuple[int, ...], window: Any, tiles: Any) -> None:
    far = distances(tensors(grid), window, q_tile_shape=tiles[0], kv_tile_shape=tiles[1])
    assert max(far) < 1e-5


@pytest.mark.full
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_is_as_near_as_it_can_be(dtype: Any) -> None:
    given = [one.detach().to(dtype).requires_grad_() for one in tensors(GRID)]
    assert max(distances(given, WINDOW)) < 0.05


@pytest.mark.usefixtures("uncompiled")
def test_tiles_of_one_size_share_their_code_whatever_the_window() -> None:
    given = tensors((8, 8))
    for kernel, tile in ((3, (4, 4)), (5, (2, 8)), (7, (8, 2))):
        na.na2d(*given, kernel, q_tile_shape=tile, kv_tile_shape=tile)
    assert len(forward._compiled) == 1


def test_ctrl_c_waits_for_the_compiler_and_code_that_failed_is_compiled_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[bool] = []

    def fresh(*sizes: object) -> Any:
        def code(q: Any, *rest: Any) -> Any:
            seen.append(signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, ()))
            if len(seen) == 1:
                raise RuntimeError("killed")
            return q

        return code

    monkeypatch.setattr(forward, "_fresh", fresh)
    monkeypatch.setattr(forward, "_compiled", {})
    given = [one.detach().flatten(1, 2) for one in tensors((8, 8))]
    axes = axes_of((8, 8), 3, 1, False)
    with pytest.raises(RuntimeError, match="killed"):
        forward.flex(*given, axes, 0.5, (4, 4), (4, 4))
    for _ in range(2):
        forward.flex(*given, axes, 0.5, (4, 4), (4, 4))
    assert seen == [True, True, False]


@pytest.mark.usefixtures("uncompiled")
class TestTheSteps:
    """The steps that users of NATTEN's auto-tuner take, with attention that needs no compiler."""

    def call(self) -> Any:
        given = tensors(GRID)
        return torch.autograd.grad(na.na2d(*given, *WINDOW).sum(), given)

    def test_nothing_is_measured_before_it_is_switched_on(self) -> None:
        assert not na.is_autotuner_enabled()
        self.call()
        assert not trials()

    def test_the_first_call_measures_and_the_next_does_not(self) -> None:
        na.use_autotuner(forward_pass=True, backward_pass=False)
        self.call()
        count = len(trials())
        assert 2 <= evaluated() <= tuning.BUDGET
        assert not trials("backward")
        self.call()
        assert len(trials()) == count
        assert asked_forward().rung == "memory"

    def test_a_second_process_begins_with_what_the_first_remembers(self) -> None:
        na.use_autotuner(True, True, budget=2)
        self.call()
        assert said_by_another_process("uncompiled") == ["memory", "True", "True"]

    def test_the_passes_are_tuned_apart(self) -> None:
        na.use_autotuner(forward_pass=False, backward_pass=True)
        self.call()
        assert not trials()
        assert 2 <= evaluated("backward") <= tuning.BUDGET

    def test_thorough_mode_measures_all_there_is(self) -> None:
        na.use_autotuner(False, True, thorough_mode_backward=True)
        self.call()
        assert evaluated("backward") == tuning.backward_pass(2).decision.space.count()

    def test_steps_are_fixed_and_few_of_them_warn(self) -> None:
        with pytest.warns(tw.TunewiseWarning, match="at least 5"):
            na.use_autotuner(False, True, steps_backward=4, budget=2)
        na.use_autotuner(False, True, warmup_steps_backward=2, steps_backward=6)
        self.call()
        assert trials("backward")

    def test_its_own_standard_effort_is_small_and_yours_stays(self) -> None:
        na.use_autotuner()
        assert na.tuner.position.budget == tuning.BUDGET
        na.use_autotuner(budget=20)
        na.use_autotuner(steps_forward=8)
        assert na.tuner.position.budget == 20

    def test_off_measures_nothing_new_and_keeps_what_is_known(self) -> None:
        na.use_autotuner(budget=2)
        self.call()
        na.disable_autotuner()
        assert not na.is_autotuner_enabled()
        other = tensors((13, 14))
        na.na2d(*other, 3)
        assert evaluated() == 2
        assert asked_forward().rung == "memory"

    def test_the_debug_log_tells_every_config_and_the_end(self, caplog: pytest.LogCaptureFixture) -> None:
        na.use_autotuner(True, False, budget=3)
        with caplog.at_level(logging.DEBUG, logger="neighborhood.autotuner"):
            self.call()
        said = [record.getMessage() for record in caplog.records if record.name == "neighborhood.autotuner"]
        assert all("neighborhood.forward.2d" in line for line in said)
        assert sum("proposed by" in line for line in said) == 3
        assert any("wins" in line or "stays" in line for line in said)

    def test_a_tile_that_is_mostly_outside_of_the_grid_is_not_even_compiled(self) -> None:
        given = [one.detach().flatten(1, 2) for one in tensors((4, 16))]
        tuning.forward_pass(2).tune(*given, axes_of((4, 16), 3, 1, False), 0.5, thorough=True)
        failed = [trial for trial in trials() if isinstance(trial.outcome, tw.Failure)]
        assert {trial.outcome.kind for trial in failed} == {"constraints"}
        assert all(max(trial.config["q_0"], trial.config["kv_0"]) >= 8 for trial in failed)


class TestUnderTorchCompile:
    """A model that calls the op is compiled whole."""

    @pytest.mark.usefixtures("uncompiled")
    def test_there_is_no_graph_break_and_the_result_is_the_same(self) -> None:
        def model(q: Any, k: Any, v: Any) -> Any:
            return na.na2d(q + 1, k, v, *WINDOW).relu()

        given = tensors(GRID)
        compiled = torch.compile(model, fullgraph=True, backend="aot_eager")
        ours, theirs = (torch.autograd.grad(one(*given).sum(), given) for one in (compiled, model))
        assert all(torch.allclose(one, other, atol=1e-5) for one, other in zip(ours, theirs, strict=True))


def profile(*words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "neighborhood_attention", *words]
    env = {**os.environ, "OMP_NUM_THREADS": "1"}
    return subprocess.run(command, cwd=EXAMPLES, env=env, capture_output=True, text=True, timeout=HANG_S, check=False)


def test_the_profiler_says_what_does_not_fit() -> None:
    ran = profile("--size", "8x8", "--kernel-size", "9")
    assert (ran.returncode, ran.stdout) == (2, "")
    assert ran.stderr.startswith("neighborhood_attention: kernel_size=9")
    assert len(ran.stderr.splitlines()) == 1


@pytest.fixture
def profiler(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The profiler in this process."""
    monkeypatch.setenv("OMP_NUM_THREADS", "1")  # as it would do itself, for good
    return import_module("neighborhood_attention.__main__")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--threads", "0"], "--threads 0 is not at least 1"),
        (["--size=-3"], "a grid of -3 tokens in a dimension is none"),
    ],
)
def test_the_profiler_refuses_numbers_that_make_no_sense(
    profiler: Any, words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert profiler.main(words) == 2
    assert said in capsys.readouterr().err


def test_ctrl_c_ends_the_profiler_with_a_sentence(
    profiler: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def press(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(profiler, "_profile", press)
    assert profiler.main(["--size", "8x8"]) == 130
    assert capsys.readouterr().err == (
        "neighborhood_attention: interrupted; what was measured is kept, and --optimize goes on\n"
    )


@pytest.mark.full
def test_the_profiler_prints_code_that_runs() -> None:
    words = ("--size", "16x16", "--kernel-size", "5", "--dim", "16", "--backprop", "--optimize", "--budget", "2")
    ran = profile(*words, "--json")
    assert ran.returncode == 0, ran.stderr
    found = json.loads(ran.stdout)
    assert [len(found[one]["configs"]) for one in ("forward", "backward")] == [2, 2]
    assert found["code"].startswith(
        "na2d(q, k, v, kernel_size=(5, 5), dilation=(1, 1), is_causal=(False, False), q_tile"
    )
    again = profile(*words[:-3])
    assert again.returncode == 0, again.stderr
    assert found["code"] in again.stdout  # what was found is in force without being pasted
