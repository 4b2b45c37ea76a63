import ctypes
import decimal
import gc
import locale
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import types
import warnings
from collections.abc import Callable
from pathlib import Path

import faults
import numpy as np
import numpy.random  # numpy loads it only when asked
import pytest

from limits import HANG_S
from tunewise.decision import Policy, Timing
from tunewise.measure.isolated import Isolated
from tunewise.measure.pollution import PARTS, Baseline


def lower_open_files() -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (64, hard))


def change_priority() -> None:
    now = os.getpriority(os.PRIO_PROCESS, 0)
    os.setpriority(os.PRIO_PROCESS, 0, now + 1 if now < 19 else now - 1)


def in_a_child(act: Callable[[], object]) -> str:
    """Return the text of what something returns, or the name of what it raises, in a forked copy of this process."""
    ours, theirs = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.write(theirs, str(act()).encode())
        except BaseException as error:
            os.write(theirs, type(error).__name__.encode())
        finally:
            os._exit(0)  # whatever happens, this copy runs no further tests
    os.close(theirs)
    with open(ours) as said:
        text = said.read()
    os.waitpid(child, 0)
    return text


def may_raise_priority() -> bool:
    """Return whether this process can go back to a higher priority, as root can."""
    raised = max(-20, os.getpriority(os.PRIO_PROCESS, 0) - 1)
    return in_a_child(lambda: os.setpriority(os.PRIO_PROCESS, 0, raised)) == "None"


POLLUTERS: dict[str, Callable[[], object]] = {
    "working directory": lambda: os.chdir("/" if os.getcwd() != "/" else "/proc"),
    "environment": lambda: os.environ.update(PATH="nowhere", NEW="1"),
    "umask": lambda: os.umask(0o123),
    "import path": lambda: sys.path.insert(0, "/nowhere"),
    "streams": lambda: setattr(sys, "stdout", None),
    "recursion limit": lambda: sys.setrecursionlimit(4321),
    "switch interval": lambda: sys.setswitchinterval(0.5),
    "tracer": lambda: sys.settrace(lambda *_: None),
    "profiler": lambda: sys.setprofile(lambda *_: None),
    "warning filters": lambda: warnings.simplefilter("always", BytesWarning),
    "collector": lambda: gc.set_threshold(1, 2, 3),
    "signal handlers": lambda: signal.signal(signal.SIGUSR1, signal.SIG_IGN),
    "signal mask": lambda: signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR2}),
    "timers": lambda: signal.setitimer(signal.ITIMER_REAL, 1000),
    "resource limits": lower_open_files,
    "affinity": lambda: os.sched_setaffinity(0, {min(os.sched_getaffinity(0))}),
    "priority": change_priority,
    "decimal context": lambda: setattr(decimal.getcontext(), "prec", 3),
    "locale": lambda: locale.setlocale(locale.LC_ALL, "C"),
    "random numbers": lambda: random.seed(1),
    "numpy random numbers": lambda: np.random.seed(1),
    "numpy errors": lambda: np.seterr(all="raise"),
}


def states(scratch: Path, pollute: Callable[[], object]) -> tuple[str, str]:
    """Return what a config finds before and after another one polluted its process."""

    def look(where: Path) -> Callable[[Path], object]:
        hidden = {"streams", "collector"}  # a bench pauses the collector; streams have addresses that say nothing here
        return lambda _: where.write_text(repr({p.name: p.read() for p in PARTS if p.name not in hidden}))

    before, after = scratch / "before", scratch / "after"
    acts = {"before": look(before), "polluter": lambda _: pollute(), "after": look(after)}
    with Isolated(faults.work(scratch, Policy(timeout_s=HANG_S), acts)) as isolated:
        for name in acts:
            assert isinstance(isolated.first({"fault": name}), Timing)
    return before.read_text(), after.read_text()


@pytest.mark.parametrize("name", POLLUTERS)
def test_the_next_config_finds_the_process_as_it_was(name: str, tmp_path: Path) -> None:
    if name == "priority" and os.getpriority(os.PRIO_PROCESS, 0) == 19 and not may_raise_priority():
        pytest.skip("the priority is the lowest, and only root may change it")
    before, after = states(tmp_path, POLLUTERS[name])
    assert before == after


def restored_in_a_child(pollute: Callable[[], object]) -> list[str]:
    """Return what a baseline restores after something was polluted, tried out in a forked copy of this process."""

    def names() -> str:
        baseline = Baseline()
        pollute()
        once, twice = baseline.restore(), baseline.restore()
        return "\n".join([*once, *(f"again {name}" for name in twice)])

    return [name for name in in_a_child(names).split("\n") if name]


@pytest.mark.parametrize("name", sorted(set(POLLUTERS) - {"locale", "affinity"}))
def test_exactly_what_was_polluted_is_restored(name: str) -> None:
    if name == "priority" and not may_raise_priority():
        pytest.skip("only root may raise a priority again; a worker of anybody else's is replaced")
    assert restored_in_a_child(POLLUTERS[name]) == [name]


def test_nothing_is_restored_where_nothing_changed() -> None:
    assert restored_in_a_child(lambda: None) == []


def test_every_part_but_torch_has_a_polluter() -> None:
    assert {part.name for part in PARTS} - set(POLLUTERS) == {"torch"}


FLUSH_DENORMALS = """
#if defined(__SSE__)
#include <xmmintrin.h>
void flush(void) { _mm_setcsr(_mm_getcsr() | 0x8040); }
#else
void flush(void) {}
#endif
"""


def test_denormals_flushed_to_zero_by_a_library_come_back(tmp_path: Path) -> None:
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("needs a C compiler")
    source = tmp_path / "fast.c"
    source.write_text(FLUSH_DENORMALS)
    subprocess.run([compiler, "-shared", "-fPIC", "-o", tmp_path / "fast.so", source], check=True)
    library = ctypes.CDLL(str(tmp_path / "fast.so"))
    tiny = np.array([5e-324])

    def look(scratch: Path) -> None:
        (scratch / "tiny").write_text(str((tiny * 1.0)[0]))

    acts = {"flush": lambda scratch: library.flush(), "look": look}
    with Isolated(faults.work(tmp_path, Policy(timeout_s=HANG_S), acts)) as isolated:
        isolated.first({"fault": "flush"})
        isolated.first({"fault": "look"})
    assert (tmp_path / "tiny").read_text() == "5e-324"


def test_a_process_that_cannot_be_restored_is_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: object) -> None:
        raise PermissionError("not yours")

    parts = tuple(p if p.name != "umask" else type(p)(p.name, p.read, refuse) for p in PARTS)
    monkeypatch.setattr("tunewise.measure.pollution.PARTS", parts)
    with Isolated(faults.work(tmp_path, Policy(), {"polluter": lambda _: os.umask(0o123)})) as isolated:
        assert isinstance(isolated.first({"fault": "polluter"}), Timing)
        assert isolated._shift is not None
        before = isolated._shift.worker.pid
        assert isinstance(isolated.first(faults.HEALTHY), Timing)
        assert isolated._shift.worker.pid != before


def test_the_flags_of_torch_come_back_when_it_is_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    state = {"threads": 2, "dtype": "float32", "grad": True, "precision": "highest", "strict": False, "rng": b"abc"}
    cudnn = types.SimpleNamespace(allow_tf32=True, benchmark=False)
    torch = types.ModuleType("torch")
    for part in ("num_threads", "default_dtype", "float32_matmul_precision"):
        key = {"num_threads": "threads", "default_dtype": "dtype", "float32_matmul_precision": "precision"}[part]
        setattr(torch, f"get_{part}", lambda key=key: state[key])
        setattr(torch, f"set_{part}", lambda value, key=key: state.update({key: value}))
    torch.is_grad_enabled = lambda: state["grad"]  # type: ignore[attr-defined]
    torch.set_grad_enabled = lambda value: state.update(grad=value)  # type: ignore[attr-defined]
    torch.are_deterministic_algorithms_enabled = lambda: state["strict"]  # type: ignore[attr-defined]
    torch.use_deterministic_algorithms = lambda value: state.update(strict=value)  # type: ignore[attr-defined]
    torch.backends = types.SimpleNamespace(cudnn=cudnn)  # type: ignore[attr-defined]
    torch.get_rng_state = lambda: types.SimpleNamespace(numpy=lambda: state["rng"])  # type: ignore[attr-defined]
    torch.set_rng_state = lambda value: state.update(rng=bytes(value))  # type: ignore[attr-defined]
    torch.frombuffer = lambda data, dtype: data  # type: ignore[attr-defined]
    torch.uint8 = "uint8"  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "torch", torch)
    baseline, before = Baseline(), dict(state)
    state.update(threads=9, grad=False, precision="medium", strict=True, rng=b"xyz")
    cudnn.allow_tf32 = False
    assert "torch" in baseline.restore()
    assert state == before
    assert cudnn.allow_tf32 is True
