"""Jobs in forked children: what they return, and what becomes of those that hang or crash."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from limits import HANG_S, stretched
from tunewise.decision import Failure
from tunewise.deploy.triton_children import run


def hang() -> bytes:
    time.sleep(600)
    return b""


def segfault() -> bytes:
    os.kill(os.getpid(), signal.SIGSEGV)
    return b""


def leave() -> bytes:
    os._exit(3)


def talk() -> bytes:
    print("to nobody", flush=True)
    raise RuntimeError("of no consequence to the parent")


def test_results_come_in_the_order_of_the_jobs() -> None:
    jobs = [lambda place=place: b"%d" % place for place in range(20)]  # type: ignore[misc]
    assert run(jobs, timeout_s=HANG_S, at_once=3) == [b"%d" % place for place in range(20)]


def test_no_job_is_no_result() -> None:
    assert run([], timeout_s=1, at_once=1) == []


def test_a_reply_larger_than_a_pipe_arrives_whole() -> None:
    assert run([lambda: b"x" * 500_000], timeout_s=HANG_S, at_once=1) == [b"x" * 500_000]


def test_a_job_that_hangs_is_stopped_and_the_others_go_on() -> None:
    limit_s = stretched(0.5)
    hung, done = run([hang, lambda: b"done"], timeout_s=limit_s, at_once=2)
    assert hung == Failure("timeout", f"stopped after {limit_s:g} s")
    assert done == b"done"


def test_a_job_that_dies_is_a_crash_with_its_signal() -> None:
    assert run([segfault, leave, talk], timeout_s=HANG_S, at_once=1) == [
        Failure("crash", "killed by signal 11"),
        Failure("crash", "left with code 3 and no result"),
        Failure("crash", "left with code 1 and no result"),
    ]


def test_what_a_job_started_ends_with_it(tmp_path: Path) -> None:
    note = tmp_path / "pid"

    def start() -> bytes:
        with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"]) as started:
            note.write_text(str(started.pid))
        return b""

    (failure,) = run([start], timeout_s=stretched(2.0), at_once=1)
    assert isinstance(failure, Failure)
    assert _is_gone(int(note.read_text()))


def _is_gone(pid: int) -> bool:
    for _ in range(int(HANG_S / 0.05)):
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except FileNotFoundError:
            return True
        if state == "Z":  # dead, and its new parent has not looked yet
            return True
        time.sleep(0.05)
    return False
