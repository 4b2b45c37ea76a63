"""Global feedback: Inductor's timings are logged once a problem, learned from, and steer the choice of kernels."""

import logging
from pathlib import Path

import pytest
from click.testing import CliRunner

import tunewise as tw
from tunewise.autoheuristic import switches
from tunewise.cli.app import app

torch = pytest.importorskip("torch", reason="torch is not installed")

from ah_lowering import NAME, ONCE, Lowering, lowered_by, run  # noqa: E402
from torch._inductor import select_algorithm  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning:torch", "ignore::DeprecationWarning")


@pytest.fixture(autouse=True)
def one_thread():
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)
    torch._dynamo.reset()


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "bmm.txt"


def _rows(log: Path) -> list[str]:
    return log.read_text().splitlines()[2:]


def _ours() -> int:
    savers = select_algorithm.get_algorithm_selector_cache().feedback_saver_fns
    return sum("_Desk.save" in getattr(one, "__qualname__", "") for one in savers)


def test_a_problem_compiled_again_and_again_is_logged_once(log: Path) -> None:
    with lowered_by(Lowering()) as how, switches(collect=NAME, log_path=log):
        for _ in range(3):
            torch._dynamo.reset()
            run(16, 32)
    assert len(how.asked) == 6
    assert [row.rsplit(",", 1)[0] for row in _rows(log)] == [
        f"{m},16,48,extern_tunewise_{which}" for m in (16, 32) for which in ("twice", "once")
    ]
    assert _ours() == 1


def test_feedback_arrives_after_others_have_cleared_the_savers(log: Path) -> None:
    with lowered_by(Lowering()) as how, switches(collect=NAME, log_path=log):
        run(16)
        select_algorithm.clear_feedback_savers()
        run(32)
    assert len(_rows(log)) == 4
    assert _ours() == 1
    assert how.asked[-1].get_collected_feedback("extern_tunewise_once") > 0


def test_nothing_is_logged_where_collecting_is_off(log: Path) -> None:
    with lowered_by(Lowering()) as how, switches(collect="another", log_path=log):
        run(16)
    assert len(how.asked) == 1
    assert not log.exists()


def test_a_log_that_cannot_be_written_costs_a_warning_and_no_compile(tmp_path: Path, caplog) -> None:
    (tmp_path / "file").touch()
    nowhere, loud = tmp_path / "file" / "log.txt", caplog.at_level(logging.WARNING, "tunewise")
    with lowered_by(Lowering()), switches(collect=NAME, log_path=nowhere), loud:
        assert run(16)[0] < 1e-4
    assert len([one for one in caplog.records if "timings of Inductor are not logged" in one.getMessage()]) == 1


def test_collected_then_learned_then_used_without_a_benchmark(log: Path, tmp_path: Path) -> None:
    with lowered_by(Lowering()), switches(collect=NAME, log_path=log):
        run(*range(32, 160, 12))
    model = tmp_path / "bmm.json"
    words = ["train", str(log), "--name", NAME, "--default", "extern_tunewise_twice", "--out", str(model)]
    assert CliRunner().invoke(app, words).exit_code == 0
    tw.load_heuristic(model)

    with lowered_by(Lowering()) as how, switches(use=NAME):
        assert max(run(44, 100)) < 1e-4
    assert how.offered == [["tunewise_once"]] * 2
    with lowered_by(Lowering(top_k=1)) as how, switches(use=NAME):
        run(44)
    assert how.offered == [["tunewise_once", "tunewise_twice"]]
    with lowered_by(Lowering()) as how, switches(use="another"):
        run(44)
    assert how.offered == [["tunewise_twice", "tunewise_once"]]


def test_kernels_of_the_library_and_of_the_template_are_told_apart(log: Path) -> None:
    with lowered_by(Lowering(externs=(ONCE,), cpp=True)) as how, switches(collect=NAME, log_path=log):
        run(32)
    library, template = how.asked[0].choices
    assert library == "extern_tunewise_once"
    assert template.startswith("cpp::CppMicroGemmFP32Vec ")
    assert len(_rows(log)) == 2
