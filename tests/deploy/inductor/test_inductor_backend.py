"""torch.compile with our backend, for real: what it chooses, what it measures, what it leaves alone."""

import logging
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

import tunewise as tw
from tunewise.decision import Failure
from tunewise.deploy.inductor import problems, selecting, steering
from tunewise.deploy.inductor.listening import Heard, heard
from tunewise.heuristics import Heuristic
from tunewise.session import context

torch: Any = pytest.importorskip("torch", reason="torch is not installed: pip install 'tunewise[torch]'")
# Torch warns about its own insides while it compiles, which is nothing of ours.
pytestmark = [pytest.mark.usefixtures("inductor_cache"), pytest.mark.filterwarnings("ignore")]

A, B = torch.randn(3, 24, 40), torch.randn(3, 40, 16)
CPP = {"kernel": "cpp", "reg_m": 1, "reg_n": 1}


def product(left: Any, right: Any) -> Any:
    return torch.bmm(left, right) + 1


def compiled(*args: Any, function: Any = product, backend: str = "tunewise", **options: Any) -> Any:
    """Return what a freshly compiled function gives; a function of its own, or Dynamo would reuse what it has."""
    torch._dynamo.reset()
    with torch.no_grad(), tw.inductor(**options):
        return torch.compile(function, backend=backend, dynamic=False)(*args)


def asked(*args: Any, **options: Any) -> list[Heard]:
    """Return what Inductor asked while a function was compiled anew, whatever the caches hold."""
    import torch._inductor.config as config

    with heard() as questions, config.patch(fx_graph_cache=False):
        assert torch.allclose(compiled(*args, **options), product(*args), rtol=1e-3, atol=1e-3)
    return questions


@pytest.fixture(autouse=True)
def as_if_new(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Forget pins, and what was reported before; the models that ship may be for this very machine."""
    monkeypatch.setattr("tunewise.session.shelf.shipped", tuple)
    for op in problems.OPS:
        problems.decision_for(op).unpin()
    steering._reported.clear()


def test_nothing_known_leaves_inductor_to_itself_and_measures_nothing() -> None:
    (question,) = asked(A, B)
    assert question.answer.rung == "default"
    assert context.current_store().info().trials == 0


def test_tuning_measures_every_candidate_once_and_use_then_knows() -> None:
    (first,) = asked(A, B, mode="tune", variants=False)
    (again,) = asked(A, B, mode="tune", variants=False)
    (used,) = asked(A, B)
    assert (first.measured, again.measured) == (2, 0)
    assert used.answer.rung == "memory"
    subject = problems.decision_for("bmm").subject(first.problem)
    kernels = {trial.config["kernel"] for trial in context.current_store().trials(subject)}
    assert kernels == {"aten", "cpp"}


def test_a_pin_decides_and_the_code_has_its_register_block() -> None:
    block = problems.configs()[3]
    problems.decision_for("bmm").pin(block)
    seen: list[tuple[int, int]] = []

    def spy(name: str, choices: Any) -> None:
        template = selecting.torchside.cpp_template(choices[0])
        seen.append((int(template.register_blocking.block_m), int(template.register_blocking.block_n)))

    chosen = selecting.chosen
    with pytest.MonkeyPatch.context() as patch:

        def watched(*args: Any) -> Any:
            taken = chosen(*args)
            spy("bmm", taken)
            return taken

        patch.setattr(selecting, "chosen", watched)
        (question,) = asked(A, B)
    assert question.answer.rung == "pin"
    assert seen == [(block["reg_m"], block["reg_n"])]


def test_off_and_replay_measure_nothing_and_take_the_library() -> None:
    problems.decision_for("bmm")
    assert asked(A, B, mode="off") == []
    (question,) = asked(A, B, mode="replay")
    assert question.answer.rung == "default"


def test_plain_inductor_stays_untouched_in_the_same_process() -> None:
    problems.decision_for("bmm").pin(CPP)
    assert len(asked(A, B)) == 1
    assert asked(A, B, backend="inductor") == []


def test_a_wrong_template_never_wins_and_the_record_says_correctness() -> None:
    left, right = torch.randn(1, 64, 32768), torch.randn(1, 32768, 64)
    (question,) = asked(left, right, mode="tune", variants=False)
    assert question.answer.config["kernel"] == "aten"
    subject = problems.decision_for("bmm").subject(question.problem)
    failures = [t.outcome for t in context.current_store().trials(subject) if isinstance(t.outcome, Failure)]
    assert [failure.kind for failure in failures] == ["correctness"]


def test_two_threads_with_two_policies_do_not_see_each_other() -> None:
    found: dict[str, Any] = {}
    ready = threading.Barrier(2)

    def work(mode: Any) -> None:
        torch.set_num_threads(1)
        with heard() as questions, torch.no_grad(), tw.inductor(mode=mode):
            ready.wait()

            def own(left: Any, right: Any) -> Any:
                return torch.bmm(left, right) * (2 if mode == "use" else 3)

            torch.compile(own, backend="tunewise", dynamic=False)(A, B)
        found[mode] = [question.answer.rung for question in questions]

    problems.decision_for("bmm").pin(CPP)
    torch._dynamo.reset()
    threads = [threading.Thread(target=work, args=(mode,)) for mode in ("use", "off")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {"use": ["pin"], "off": []}


def test_what_breaks_in_ours_costs_one_warning_and_is_not_cached_as_ours(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    from torch._dynamo.utils import counters

    def broken(*_: Any) -> Any:
        raise RuntimeError("no features today")

    def function(left: Any, right: Any) -> Any:
        return torch.bmm(left, right) * 5

    with monkeypatch.context() as patch, caplog.at_level(logging.WARNING, "tunewise.inductor"):
        patch.setattr(problems.Asked, "features", broken)
        for _ in range(2):
            assert torch.allclose(compiled(A, B, function=function), function(A, B), rtol=1e-3, atol=1e-3)
    assert [record.message for record in caplog.records] == [
        "torch.bmm is compiled as if tunewise were not there: RuntimeError: no features today"
    ]
    counters.clear()
    with heard() as questions:
        compiled(A, B, function=function)
    assert counters["inductor"]["fxgraph_cache_hit"] == 0
    assert len(questions) == 1


def test_what_breaks_before_a_graph_is_compiled_costs_a_warning_and_no_more(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken() -> Any:
        raise RuntimeError("no decisions today")

    monkeypatch.setattr("tunewise.deploy.inductor.backend.decisions", broken)
    with caplog.at_level(logging.WARNING, "tunewise.inductor"):
        assert torch.allclose(compiled(A, B), product(A, B), rtol=1e-3, atol=1e-3)
    assert [record.message for record in caplog.records] == [
        "a graph is compiled as if tunewise were not there: RuntimeError: no decisions today"
    ]


def test_backward_is_steered_too() -> None:
    problems.decision_for("bmm").pin(CPP)
    left = A.clone().requires_grad_()
    torch._dynamo.reset()
    with heard() as questions, tw.inductor():
        torch.compile(lambda x, y: torch.bmm(x, y).sum(), backend="tunewise", dynamic=False)(left, B).backward()
    assert {question.answer.rung for question in questions} == {"pin"}
    assert torch.allclose(left.grad, torch.ones(3, 24, 16) @ B.transpose(1, 2), rtol=1e-3, atol=1e-3)


def test_a_linear_with_a_constant_weight_is_asked_about_when_freezing() -> None:
    linear = torch.nn.Linear(24, 40).eval()
    with heard() as questions:
        result = compiled(A[0][:, :24], function=linear, freezing=True)
    assert [question.decision for question in questions] == ["torch.linear"]
    assert torch.allclose(result, linear(A[0][:, :24]), rtol=1e-3, atol=1e-3)


def test_options_of_compile_reach_inductor_and_us() -> None:
    torch._dynamo.reset()
    with torch.no_grad(), heard() as questions:
        options = {"tunewise_mode": "off", "max_autotune": False}
        torch.compile(lambda x, y: torch.bmm(x, y) * 7, backend="tunewise", dynamic=False, options=options)(A, B)
    assert questions == []


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"tunewise_modee": "tune"}, "there is no option 'tunewise_modee' of the backend tunewise; there are"),
        ({"tunewise_mode": "tunee"}, "mode 'tunee' is not one of"),
        ({"tunewise_wants_autotuning": True}, "there is no option 'tunewise_wants_autotuning'"),
    ],
)
def test_a_mistake_in_options_is_told_and_not_compiled_around(options: dict[str, Any], said: str) -> None:
    torch._dynamo.reset()
    with pytest.raises(torch._dynamo.exc.BackendCompilerFailed, match=said):
        torch.compile(product, backend="tunewise", dynamic=False, options=options)(A, B)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"top_k": 0}, "top_k=0 is not a whole number of at least 1"),
        ({"budget": 0}, "budget=0 is not a whole number of at least 1"),
        ({"seconds": -1}, "seconds=-1 is not a positive time"),
        ({"seconds": "1"}, "seconds='1' is not a positive time"),
        ({"variants": "no"}, "variants='no' is neither True nor False"),
        ({"mode": "tunee"}, "mode 'tunee' is not one of"),
    ],
)
def test_settings_that_make_no_sense_are_told_where_they_are_given(settings: dict[str, Any], said: str) -> None:
    with pytest.raises(tw.TunewiseError, match=said), tw.inductor(**settings):
        pass


def test_without_variants_a_model_that_prefers_a_register_block_gives_its_next_choice() -> None:
    block = problems.configs()[2]
    tw.load_heuristic(Heuristic("model", "torch.bmm", lambda features: [block, CPP]))
    assert [question.answer.config for question in asked(A, B, variants=False)] == [CPP]
    tw.drop_heuristics()
    tw.load_heuristic(Heuristic("model", "torch.bmm", lambda features: [block]))
    assert [question.answer.rung for question in asked(A, B, variants=False)] == ["default"]
    tw.drop_heuristics()


_PROCESS = """
import torch, tunewise as tw
import torch._inductor.config as config
from torch._dynamo.utils import counters
torch.set_num_threads(1); config.cpp.threads = 1; config.compile_threads = 1
decision = tw.torch.decisions()["torch.bmm"]
for kernel in ("aten", "cpp", "aten"):
    decision.pin({"kernel": kernel, "reg_m": 1, "reg_n": 1})
    torch._dynamo.reset()
    with torch.no_grad():
        torch.compile(torch.bmm, backend="tunewise", dynamic=False)(torch.ones(2, 8, 8), torch.ones(2, 8, 8))
    decision.unpin()
    print(counters["inductor"]["fxgraph_cache_hit"], end=" ")
"""


def test_the_cache_is_hit_by_what_steers_and_by_nothing_else_in_another_process_too(home: Path) -> None:
    def hits() -> str:
        environment = {**os.environ, "TUNEWISE_HOME": str(home), "OMP_NUM_THREADS": "1"}
        run = subprocess.run(
            [sys.executable, "-c", _PROCESS], capture_output=True, text=True, env=environment, check=True
        )
        return run.stdout.strip()

    assert [hits(), hits()] == ["0 0 1", "1 2 3"]
