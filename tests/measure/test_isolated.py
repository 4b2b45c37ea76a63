import json
import os
import random
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import faults
import pytest
from faults import HEALTHY, MEMORY_LIMIT, POLICY, Act, daemonise, noted, spray

from limits import HANG_S
from tunewise.decision import Config, Failure, Policy, Timing
from tunewise.measure import isolated as isolated_module
from tunewise.measure import procfs
from tunewise.measure.isolated import Isolated
from tunewise.measure.work import Work


@pytest.fixture
def open_with(tmp_path: Path) -> Iterator[Callable[..., Isolated]]:
    """Return a way to open work with some misbehaving configs; all is closed afterwards, and nothing may be left."""
    opened: list[Isolated] = []

    def open_(policy: Policy = POLICY, **acts: Act) -> Isolated:
        opened.append(Isolated(faults.work(tmp_path, policy, acts)))
        return opened[-1]

    yield open_
    for one in opened:
        one.close()
    assert procfs.descendants(os.getpid()) == []


def pid_of(isolated: Isolated) -> int:
    assert isolated._shift is not None
    return isolated._shift.worker.pid


def eventually(condition: Callable[[], bool], seconds: float = HANG_S) -> bool:
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True


def six_children(scratch: Path) -> None:
    """Fork six processes that do nothing for a while, and wait for them."""
    pids = []
    for _ in range(6):
        pid = os.fork()
        if pid == 0:
            time.sleep(0.5)
            os._exit(0)
        pids.append(pid)
    for pid in pids:
        os.waitpid(pid, 0)


def test_no_time_is_too_long_to_be_allowed(open_with: Callable[..., Isolated]) -> None:
    isolated = open_with(Policy(timeout_s=1e308, compile_timeout_s=1e308))
    assert isinstance(isolated.first(HEALTHY), Timing)


def test_nothing_is_started_before_the_first_job(open_with: Callable[..., Isolated]) -> None:
    open_with()
    assert procfs.descendants(os.getpid()) == []


def test_a_healthy_config_gives_as_many_samples_as_asked_for(open_with: Callable[..., Isolated]) -> None:
    isolated = open_with()
    first, more = isolated.first(HEALTHY), isolated.sample(HEALTHY, 7)
    assert isinstance(first, Timing)
    assert isinstance(more, Timing)
    assert (len(first.samples_s), len(more.samples_s)) == (1, 7)
    assert first.compile_s is not None
    assert isolated.verify(HEALTHY, 3) is None


def test_closures_and_arguments_need_no_pickling() -> None:
    lock = threading.Lock()  # cannot be pickled, and neither can a lambda

    def prepare(config: Config) -> Callable[..., Any]:
        return lambda given: given.locked()

    with Isolated(Work(prepare, (lock,), HEALTHY, policy=POLICY)) as isolated:
        assert isinstance(isolated.first(HEALTHY), Timing)


def test_a_wrong_result_is_a_correctness_failure() -> None:
    work = Work(lambda config: lambda x: x + config["step"], (1,), {"step": 1}, policy=POLICY)
    with Isolated(work) as isolated:
        outcome = isolated.first({"step": 2})
        checked = isolated.verify({"step": 2})
    assert isinstance(outcome, Failure)
    assert outcome.kind == "correctness"
    assert checked is not None
    assert checked.kind == "correctness"


def test_a_config_with_a_tuple_arrives_as_a_tuple() -> None:
    work = Work(lambda config: lambda x: type(config["order"]).__name__, (1,), {"order": (0, 1)}, policy=POLICY)
    with Isolated(work) as isolated:
        assert isinstance(isolated.first({"order": (1, 0)}), Timing)


def test_one_worker_serves_many_configs(open_with: Callable[..., Isolated]) -> None:
    isolated = open_with()
    pids = set()
    for turn in range(10):
        isolated.first({"fault": f"none {turn}"})
        pids.add(pid_of(isolated))
    assert len(pids) == 1


def test_fresh_isolation_forks_for_every_change_of_config(open_with: Callable[..., Isolated]) -> None:
    isolated = open_with(Policy(isolation="fresh"))
    pids = []
    for name in ("a", "a", "b", "a"):
        assert isinstance(isolated.sample({"fault": name}, 1), Timing)
        pids.append(pid_of(isolated))
    assert pids[0] == pids[1]
    assert len(set(pids)) == 3


def test_a_crash_while_sampling_is_a_failure_and_the_next_job_goes_on(open_with: Callable[..., Isolated]) -> None:
    isolated = open_with(segv=faults.FAULTS["segv"].act)
    isolated.first(HEALTHY)
    outcome = isolated.sample({"fault": "segv"}, 2)
    assert isinstance(outcome, Failure)
    assert outcome.kind == "crash"
    assert isinstance(isolated.sample(HEALTHY, 2), Timing)


def test_a_hang_while_verifying_is_a_timeout(open_with: Callable[..., Isolated]) -> None:
    isolated = open_with(Policy(timeout_s=0.05, compile_timeout_s=0.2), hang=lambda scratch: time.sleep(600))
    isolated.first(HEALTHY)
    failure = isolated.verify({"fault": "hang"})
    assert failure is not None
    assert failure.kind == "timeout"


def test_a_crash_names_the_place_and_leaves_our_own_frames_out(open_with: Callable[..., Isolated]) -> None:
    outcome = open_with().first({"fault": "segv"})
    assert isinstance(outcome, Failure)
    assert "string_at" in outcome.detail
    assert "worker.py" not in outcome.detail
    assert "Extension modules" not in outcome.detail


def test_the_last_output_is_in_the_detail(open_with: Callable[..., Isolated]) -> None:
    def act(scratch: Path) -> None:
        print("early " * 2000)
        print("the last words")
        os._exit(9)

    outcome = open_with(act=act).first({"fault": "act"})
    assert isinstance(outcome, Failure)
    assert outcome.detail.startswith("exit code 9\n")
    assert outcome.detail.endswith("the last words")
    assert len(outcome.detail) < 4200


def test_output_of_one_config_is_not_charged_to_the_next(open_with: Callable[..., Isolated]) -> None:
    def fail(scratch: Path) -> None:
        raise ValueError("quiet")

    isolated = open_with(loud=lambda scratch: print("LOUD"), fail=fail)
    isolated.first({"fault": "loud"})
    outcome = isolated.first({"fault": "fail"})
    assert outcome == Failure("runtime", "ValueError: quiet")


def test_a_hundred_megabytes_of_output_never_reach_the_tuner(
    open_with: Callable[..., Isolated], capfd: pytest.CaptureFixture[str]
) -> None:
    def flood(scratch: Path) -> None:
        for _ in range(10):
            faults.FAULTS["10 MB of output"].act(scratch)

    outcome = open_with(Policy(timeout_s=HANG_S), flood=flood).first({"fault": "flood"})
    assert isinstance(outcome, Timing)
    assert capfd.readouterr() == ("", "")


def test_memory_is_limited_while_the_config_runs(open_with: Callable[..., Isolated], tmp_path: Path) -> None:
    def leak(scratch: Path) -> None:
        start, kept = procfs.resident_bytes(os.getpid()), []
        while True:
            kept.append(b"x" * (4 << 20))
            with (scratch / "held").open("a") as held:  # a kill may come any time: what stands there stays
                held.write(f"{procfs.resident_bytes(os.getpid()) - start}\n")

    outcome = open_with(Policy(memory_limit_bytes=MEMORY_LIMIT), leak=leak).first({"fault": "leak"})
    assert isinstance(outcome, Failure)
    assert outcome.kind == "memory"
    assert int((tmp_path / "held").read_text().split()[-1]) <= 1.1 * MEMORY_LIMIT


def test_memory_of_child_processes_counts(open_with: Callable[..., Isolated]) -> None:
    def leak(scratch: Path) -> None:
        for _ in range(8):
            if os.fork() == 0:
                held = b"x" * (MEMORY_LIMIT // 4)
                time.sleep(600 + len(held) * 0)
        time.sleep(600)

    outcome = open_with(Policy(memory_limit_bytes=MEMORY_LIMIT), leak=leak).first({"fault": "leak"})
    assert isinstance(outcome, Failure)
    assert outcome.kind == "memory"


def test_memory_shared_by_forked_children_counts_once(open_with: Callable[..., Isolated]) -> None:
    def share(scratch: Path) -> None:
        held = b"x" * (MEMORY_LIMIT // 4)  # counted for each of them it would be too much
        six_children(scratch)
        assert len(held) == MEMORY_LIMIT // 4

    assert isinstance(open_with(Policy(memory_limit_bytes=MEMORY_LIMIT), share=share).first({"fault": "share"}), Timing)


def test_memory_of_the_tuner_is_not_the_configs(open_with: Callable[..., Isolated]) -> None:
    held = b"x" * (2 * MEMORY_LIMIT)  # the worker and its children share it with us
    isolated = open_with(Policy(memory_limit_bytes=MEMORY_LIMIT), fork=six_children)
    assert isinstance(isolated.first({"fault": "fork"}), Timing)
    assert len(held) == 2 * MEMORY_LIMIT


def test_an_allocation_beyond_the_limit_is_refused_at_once(open_with: Callable[..., Isolated]) -> None:
    isolated = open_with(big=lambda scratch: bytearray(8 * MEMORY_LIMIT))
    outcome = isolated.first({"fault": "big"})
    assert isinstance(outcome, Failure)
    assert outcome.kind == "memory"


def test_a_daemon_of_a_successful_config_is_killed_before_another_runs(
    open_with: Callable[..., Isolated], tmp_path: Path
) -> None:
    isolated = open_with(daemon=daemonise)
    assert isinstance(isolated.first({"fault": "daemon"}), Timing)
    assert isinstance(isolated.first(HEALTHY), Timing)
    assert len(noted(tmp_path)) == 1
    assert not any(map(procfs.is_alive, noted(tmp_path)))


def test_a_thread_left_running_costs_the_worker(open_with: Callable[..., Isolated]) -> None:
    isolated = open_with()
    isolated.first({"fault": "thread left running"})
    tainted = pid_of(isolated)
    isolated.first(HEALTHY)
    assert pid_of(isolated) != tainted


def test_a_config_that_forks_and_returns_twice_is_answered_once(open_with: Callable[..., Isolated]) -> None:
    isolated = open_with(fork=lambda scratch: os.fork())
    assert isinstance(isolated.first({"fault": "fork"}), Timing)
    assert all(isinstance(isolated.first(HEALTHY), Timing) for _ in range(3))


def test_a_config_that_closes_every_descriptor_is_a_failure(open_with: Callable[..., Isolated]) -> None:
    isolated = open_with(shut=lambda scratch: os.closerange(3, 1024))
    outcome = isolated.first({"fault": "shut"})
    assert isinstance(outcome, Failure)
    assert isinstance(isolated.first(HEALTHY), Timing)


def test_garbage_sent_between_two_jobs_harms_nobody(open_with: Callable[..., Isolated]) -> None:
    def later(scratch: Path) -> None:
        def write() -> None:
            time.sleep(0.1)
            spray(b"late")
            (scratch / "written").touch()

        threading.Thread(target=write, daemon=True).start()

    isolated = open_with(later=later)
    assert isinstance(isolated.first({"fault": "later"}), Timing)
    time.sleep(0.3)
    assert isinstance(isolated.sample({"fault": "later"}, 1), Timing)


def test_garbage_to_every_descriptor_spares_the_files_of_the_tuner(
    open_with: Callable[..., Isolated], tmp_path: Path
) -> None:
    with open(tmp_path / "store", "w+b") as store:
        store.write(b"precious")
        store.flush()
        open_with(spray=lambda scratch: spray(b"garbage")).first({"fault": "spray"})
        assert (tmp_path / "store").read_bytes() == b"precious"


def test_files_open_for_reading_stay_readable(tmp_path: Path) -> None:
    (tmp_path / "data").write_bytes(b"abc")
    fd = os.open(tmp_path / "data", os.O_RDONLY)
    work = Work(lambda config: lambda x: os.pread(fd, 3, 0) == b"abc" or 1 / 0, (1,), HEALTHY, policy=POLICY)
    with Isolated(work) as isolated:
        outcome = isolated.first(HEALTHY)
    os.close(fd)
    assert isinstance(outcome, Timing)


def test_a_result_that_would_run_code_when_unpickled_is_never_unpickled(tmp_path: Path) -> None:
    work = Work(lambda config: lambda x: faults.Hostile(tmp_path / "unpickled"), (1,), HEALTHY, policy=POLICY)
    with Isolated(work) as isolated:
        isolated.first(HEALTHY)
    assert not (tmp_path / "unpickled").exists()


def test_a_worker_is_replaced_after_its_share_of_configs(
    open_with: Callable[..., Isolated], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(isolated_module, "MAX_USES", 3)
    isolated = open_with()
    pids = []
    for turn in range(9):
        isolated.first({"fault": f"none {turn}"})
        pids.append(pid_of(isolated))
    assert [len(set(pids[i : i + 3])) for i in (0, 3, 6)] == [1, 1, 1]
    assert len(set(pids)) == 3


def test_a_worker_that_grew_is_replaced(open_with: Callable[..., Isolated], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(isolated_module, "MAX_GROWTH_BYTES", 64 << 20)
    isolated = open_with(grow=lambda scratch: sys.__dict__.setdefault("kept", b"x" * (100 << 20)))
    isolated.first({"fault": "grow"})
    grown = pid_of(isolated)
    isolated.first(HEALTHY)
    assert pid_of(isolated) != grown


@pytest.mark.full
def test_twenty_thousand_evaluations_leak_nothing(open_with: Callable[..., Isolated]) -> None:
    isolated = open_with()
    isolated.first(HEALTHY)
    before = procfs.resident_bytes(os.getpid())
    for turn in range(20_000):
        assert isinstance(isolated.first({"fault": f"none {turn}"}), Timing)
    assert procfs.resident_bytes(os.getpid()) - before <= 50 << 20


def test_ctrl_c_gets_out_and_the_next_job_runs(open_with: Callable[..., Isolated]) -> None:
    isolated = open_with(Policy(), hang=lambda scratch: time.sleep(600))
    isolated.first(HEALTHY)
    timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        isolated.first({"fault": "hang"})
    timer.join()
    assert isinstance(isolated.first(HEALTHY), Timing)


def test_a_closed_measurer_starts_anew(open_with: Callable[..., Isolated]) -> None:
    isolated = open_with()
    isolated.first(HEALTHY)
    isolated.close()
    isolated.close()
    assert procfs.descendants(os.getpid()) == []
    assert isinstance(isolated.sample(HEALTHY, 1), Timing)


def test_a_killed_zygote_is_replaced(open_with: Callable[..., Isolated]) -> None:
    isolated = open_with()
    isolated.first(HEALTHY)
    assert isolated._leash is not None
    worker = pid_of(isolated)
    os.kill(isolated._leash.pid, signal.SIGKILL)
    assert eventually(lambda: not procfs.is_alive(worker))
    assert isinstance(isolated.first(HEALTHY), Timing)


def test_two_threads_may_measure_at_once(open_with: Callable[..., Isolated]) -> None:
    isolated = open_with(Policy())
    outcomes: list[Any] = []

    def measure(name: str) -> None:
        outcomes.extend(isolated.sample({"fault": name}, 1) for _ in range(20))

    threads = [threading.Thread(target=measure, args=(name,)) for name in ("a", "b")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [type(outcome) for outcome in outcomes] == [Timing] * 40


def test_a_zygote_outlives_the_thread_that_started_it(open_with: Callable[..., Isolated]) -> None:
    isolated = open_with()
    thread = threading.Thread(target=isolated.first, args=(HEALTHY,))
    thread.start()
    thread.join()
    before = pid_of(isolated)
    assert isinstance(isolated.first(HEALTHY), Timing)
    assert pid_of(isolated) == before


def test_a_forked_copy_of_the_tuner_gets_its_own_worker(open_with: Callable[..., Isolated]) -> None:
    isolated = open_with()
    isolated.first(HEALTHY)
    before = pid_of(isolated)
    child = os.fork()
    if child == 0:
        ok = isinstance(isolated.first(HEALTHY), Timing) and pid_of(isolated) != before
        isolated.close()
        os._exit(0 if ok else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert isinstance(isolated.first(HEALTHY), Timing)
    assert pid_of(isolated) == before


def test_every_worker_starts_with_the_random_numbers_of_the_tuner(tmp_path: Path) -> None:
    def write(scratch: Path) -> None:
        (scratch / f"{os.getpid()}.json").write_text(json.dumps(random.random()))

    with Isolated(faults.work(tmp_path, Policy(isolation="fresh"), {"a": write, "b": write})) as isolated:
        isolated.first({"fault": "a"})
        isolated.first({"fault": "b"})
    assert len({path.read_text() for path in tmp_path.glob("*.json")}) == 1
    assert len(list(tmp_path.glob("*.json"))) == 2


TUNER = """
    import sys, os
    sys.path[:0] = {paths!r}
    from pathlib import Path
    import faults
    from tunewise.decision import Policy
    from tunewise.measure import procfs
    from tunewise.measure.isolated import Isolated

    def show(scratch):
        faults.daemonise(scratch)
        faults.note(scratch, os.getpid())
        faults.note(scratch, os.getppid())
        (scratch / "ready").touch()
        faults._loop(scratch)

    Isolated(faults.work(Path({scratch!r}), Policy(), {{"show": show}})).first({{"fault": "show"}})
"""


def test_a_check_survives_the_death_of_the_zygote(open_with: Callable[..., Isolated]) -> None:
    isolated = open_with()
    isolated.first(HEALTHY)
    assert isolated._leash is not None
    zygote = isolated._leash.pid
    os.kill(zygote, signal.SIGKILL)
    os.waitid(os.P_PID, zygote, os.WEXITED | os.WNOWAIT)
    assert isolated.verify(HEALTHY, 64) is None


def kill_a_tuner(scratch: Path) -> list[int]:
    """Start a tuner, kill it while a config with a daemon runs, and return what is still alive ten seconds later."""
    scratch.mkdir()
    script = textwrap.dedent(TUNER).format(paths=sys.path, scratch=str(scratch))
    with subprocess.Popen([sys.executable, "-c", script]) as tuner:
        assert eventually(lambda: (scratch / "ready").exists() or tuner.poll() is not None)
        assert tuner.poll() is None
        tuner.kill()
    pids = noted(scratch)
    assert len(pids) == 3
    eventually(lambda: not any(map(procfs.is_alive, pids)))
    return [pid for pid in pids if procfs.is_alive(pid)]


def test_nothing_outlives_a_killed_tuner(tmp_path: Path) -> None:
    assert [kill_a_tuner(tmp_path / str(turn)) for turn in range(10)] == [[]] * 10


@pytest.mark.full
def test_nothing_outlives_a_hundred_killed_tuners(tmp_path: Path) -> None:
    assert [kill_a_tuner(tmp_path / str(turn)) for turn in range(100)] == [[]] * 100
