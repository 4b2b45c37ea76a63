"""The misbehaving functions of the fault matrix, what each must become, and work made of them."""

import ctypes
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from math import inf, nan
from pathlib import Path
from typing import Any

from limits import stretched
from tunewise.decision import Config, FailureKind, Outcome, Policy, Timing
from tunewise.measure.bench import Bench
from tunewise.measure.work import Work

HEALTHY = {"fault": "none"}
MEMORY_LIMIT = 512 << 20
# Six faults of a round run into their deadline: short, and yet long enough for all others on a busy machine.
POLICY = Policy(timeout_s=stretched(2.0), compile_timeout_s=stretched(2.0), memory_limit_bytes=MEMORY_LIMIT)

Act = Callable[[Path], Any]


@dataclass(frozen=True)
class Fault:
    act: Act
    kind: FailureKind | None  # None: it must succeed
    detail: str = ""  # a regular expression that the detail matches
    also: FailureKind | None = None  # another kind that it may be found out as


def work(scratch: Path, policy: Policy = POLICY, further: dict[str, Act] | None = None) -> Work:
    """Return work whose config names a fault; its function misbehaves on the first call and adds one on every call."""

    def prepare(config: Config) -> Callable[[int], int]:
        name = str(config["fault"])
        act = (further or {}).get(name) or (FAULTS[name].act if name in FAULTS else _nothing)
        pending = [act]

        def function(number: int) -> int:
            if pending:
                pending.pop()(scratch)
            return number + 1

        return function

    return Work(prepare, (1,), HEALTHY, policy=policy)


class LyingBench(Bench):
    """A bench whose clock a config has bent."""

    def first(self, config: Config, best_s: float = inf) -> Outcome:
        if config["fault"] in LIES:
            return Timing(LIES[str(config["fault"])])
        return super().first(config, best_s)


def note(scratch: Path, pid: int) -> None:
    """Write down a process that nobody may find alive afterwards."""
    (scratch / f"pid-{pid}").touch()


def noted(scratch: Path) -> list[int]:
    return [int(path.name[4:]) for path in scratch.glob("pid-*")]


def spray(payload: bytes) -> None:
    for fd in range(3, 256):
        try:
            os.write(fd, payload)
        except OSError:
            continue


def daemonise(scratch: Path) -> None:
    """Leave a double-forked process behind that holds every descriptor, and wait until it is there."""
    ready, told = os.pipe()
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            note(scratch, os.getpid())
            os.write(told, b"!")
            time.sleep(600)
        os._exit(0)
    os.read(ready, 1)


def _nothing(scratch: Path) -> None:
    pass


def _sleep(scratch: Path) -> None:
    time.sleep(600)


def _loop(scratch: Path) -> None:
    while True:
        pass


def _hang_with_gil(scratch: Path) -> None:
    ctypes.PyDLL(None).sleep(600)


def _block_signals(scratch: Path) -> None:
    signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    _loop(scratch)


def _leak(scratch: Path) -> None:
    kept = []
    while True:
        kept.append(b"x" * (16 << 20))


def _bomb(scratch: Path) -> None:
    for _ in range(150):
        if os.fork() == 0:
            os.setsid()
            note(scratch, os.getpid())
            time.sleep(600)
    time.sleep(600)


def _daemon_and_hang(scratch: Path) -> None:
    daemonise(scratch)
    time.sleep(600)


def _daemon_and_exit(scratch: Path) -> None:
    daemonise(scratch)
    os._exit(7)


def _spray_and_sleep(scratch: Path) -> None:
    spray(b"\x10\x00\x00\x00garbage")
    time.sleep(600)


def _print_much(scratch: Path) -> None:
    for _ in range(160):
        os.write(1, b"\x00\xff{}[]\n\n" * 8192)


class Hostile(Exception):
    def __init__(self, marker: Path) -> None:
        super().__init__("unpickle me")
        self.marker = marker

    def __reduce__(self) -> Any:
        return os.mkdir, (str(self.marker),)


class Unpicklable(Exception):
    def __init__(self, one: int, two: int) -> None:
        super().__init__(one)
        self.lock = threading.Lock()


def _raise_hostile(scratch: Path) -> None:
    raise Hostile(scratch / "unpickled")


def _raise_unpicklable(scratch: Path) -> None:
    raise Unpicklable(1, 2)


def _interrupt(scratch: Path) -> None:
    raise KeyboardInterrupt


def _pollute(scratch: Path) -> None:
    os.chdir("/")
    os.environ["PATH"] = "nowhere"


def _overflow_stack(scratch: Path) -> None:
    sys.setrecursionlimit(10**9)
    again = ctypes.CFUNCTYPE(None)(lambda: again())
    again()


def _leave_thread(scratch: Path) -> None:
    threading.Thread(target=_loop, args=(scratch,), daemon=True).start()


def _signal(number: int) -> Act:
    return lambda scratch: os.kill(os.getpid(), number)


LIES: dict[str, tuple[Any, ...]] = {
    "nan": (nan,),
    "inf": (inf,),
    "negative": (-1.0,),
    "zero": (0.0,),
    "string": ("fast",),
    "huge reply": (1e-3,) * 1_000_000,
}

_INVALID = "the worker's reply is not valid"
FAULTS: dict[str, Fault] = {
    "segv": Fault(lambda scratch: ctypes.string_at(0), "crash", r"SIGSEGV\nFatal Python error: Segmentation fault"),
    "abort": Fault(lambda scratch: os.abort(), "crash", "killed by SIGABRT"),
    "fpe": Fault(_signal(signal.SIGFPE), "crash", "killed by SIGFPE"),
    "kill9": Fault(_signal(signal.SIGKILL), "crash", "killed by SIGKILL"),
    "os._exit": Fault(lambda scratch: os._exit(3), "crash", "exit code 3"),
    "sys.exit": Fault(lambda scratch: sys.exit(3), "runtime", "SystemExit: 3"),
    "KeyboardInterrupt": Fault(_interrupt, "runtime", "KeyboardInterrupt"),
    "python hang": Fault(_loop, "timeout", "no answer within"),
    "GIL hang": Fault(_hang_with_gil, "timeout", "no answer within"),
    "blocked signals": Fault(_block_signals, "timeout", "no answer within"),
    "SIGSTOP": Fault(_signal(signal.SIGSTOP), "timeout", "no answer within"),
    "memory leak": Fault(_leak, "memory", "MiB are allowed|MemoryError"),
    # The pages that 150 copies of a large tuner write to when they begin may be more than is allowed.
    "fork bomb": Fault(_bomb, "timeout", "no answer within|MiB are allowed", also="memory"),
    "daemon and hang": Fault(_daemon_and_hang, "timeout", "no answer within"),
    "daemon left behind": Fault(daemonise, None),
    "grandchild holds the pipe": Fault(_daemon_and_exit, "crash", "exit code 7"),
    "garbage to every descriptor": Fault(_spray_and_sleep, "runtime", _INVALID),
    "nan": Fault(_nothing, "runtime", _INVALID),
    "inf": Fault(_nothing, "runtime", _INVALID),
    "negative": Fault(_nothing, "runtime", _INVALID),
    "zero": Fault(_nothing, "runtime", _INVALID),
    "string": Fault(_nothing, "runtime", _INVALID),
    "huge reply": Fault(_nothing, "runtime", _INVALID),
    "10 MB of output": Fault(_print_much, None),
    "hostile pickle": Fault(_raise_hostile, "runtime", "Hostile: unpickle me"),
    "unpicklable exception": Fault(_raise_unpicklable, "runtime", "Unpicklable: 1"),
    "polluted directory and environment": Fault(_pollute, None),
    "stack overflow": Fault(_overflow_stack, "crash", "killed by SIGSEGV"),
    "thread left running": Fault(_leave_thread, None),
}
assert len(FAULTS) == 29
