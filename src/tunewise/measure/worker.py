"""The worker: a disposable process that runs the configs, one job after the other, and may die of any of them."""

import faulthandler
import gc
import os
import random
import resource
import signal
import socket
import sys
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NoReturn, TextIO

from tunewise.decision import Failure, Outcome, Timing
from tunewise.measure import frames, procfs
from tunewise.measure.pollution import Baseline
from tunewise.measure.work import Measurer, Work

BROKEN = 70  # exit code of a worker that can no longer speak to the tuner
_DETAIL = 4000


@dataclass(frozen=True, slots=True)
class Assignment:
    """What every worker of one zygote gets: inherited through fork, neither pickled nor imported by name."""

    work: Work
    bench: Callable[[Work], Measurer]
    memory_limit_bytes: int
    random_state: Any  # forking reseeds `random`; every worker starts where the tuner stood
    collects_garbage: bool


def run(assignment: Assignment, channel: socket.socket, output_fd: int) -> NoReturn:
    """Answer jobs until the channel closes; never returns and never raises."""
    code = BROKEN
    try:
        _settle(assignment, output_fd)
        _Loop(assignment, channel).serve()
        code = 0
    except BaseException:
        traceback.print_exc()
        _flush(sys.stderr)
    finally:
        os._exit(code)


class _Loop:
    """Reads jobs, runs them on the bench and replies. The bench is made by the first job, under its deadline."""

    def __init__(self, assignment: Assignment, channel: socket.socket) -> None:
        self._assignment = assignment
        self._channel = channel
        self._pid = os.getpid()
        self._threads = len(sys._current_frames())
        self._baseline = Baseline()
        self._bench: Measurer | None = None
        self._last: dict[str, Any] | None = None

    def serve(self) -> None:
        while (asked := self._next()) is not None:
            token, job = asked
            frame = self._frame(token, self._reply(job))
            if os.getpid() != self._pid:  # the config forked and both returned: only the worker answers
                os._exit(0)
            self._channel.sendall(frame)

    def _next(self) -> tuple[bytes, frames.Job] | None:
        receiver = frames.Receiver()
        payload = None
        while payload is None:
            data = self._channel.recv(receiver.missing)
            if not data:
                return None
            payload = receiver.feed(data)
        assert receiver.token is not None
        return receiver.token, frames.read_job(payload)

    def _reply(self, job: frames.Job) -> frames.Reply:
        try:
            if job.config != self._last:
                self._baseline.restore()
                self._last = job.config
        except BaseException as error:
            return frames.Reply(is_refused=True, detail=_described(error))
        try:
            outcome = self._run(job)
            _flush(sys.stdout, sys.stderr)
            return frames.reply_of(outcome, self._taint())
        except MemoryError as error:
            return frames.reply_of(Failure("memory", _described(error)), self._taint())
        except BaseException as error:  # SystemExit and KeyboardInterrupt are a config's own, too
            return frames.reply_of(Failure("runtime", _described(error)), self._taint())

    def _run(self, job: frames.Job) -> Outcome | None:
        if self._bench is None:
            self._bench = self._assignment.bench(self._assignment.work)
        if job.verb == "verify":
            return self._bench.verify(job.config, job.n)
        if job.verb == "sample":
            return self._bench.sample(job.config, job.n)
        if job.rival is not None:
            pair = self._bench.pair(job.rival, job.config, job.n or None)
            return pair if isinstance(pair, Failure) else Timing(pair)
        best_s = float("inf") if job.best_s is None else job.best_s
        return self._bench.first(job.config, best_s)

    def _taint(self) -> str:
        return "it left a thread running" if len(sys._current_frames()) > self._threads else ""

    def _frame(self, token: bytes, reply: frames.Reply) -> bytes:
        try:
            return frames.pack(token, reply)
        except frames.BadFrame as error:
            failure = Failure("runtime", f"the worker's reply is not valid: {error}"[:_DETAIL])
            return frames.pack(token, frames.reply_of(failure, reply.taint or "its reply is not valid"))


def _settle(assignment: Assignment, output_fd: int) -> None:
    """Make a forked zygote into a place where a config can do no harm."""
    os.setsid()
    _default_signals()
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.dup2(output_fd, 1)
    os.dup2(output_fd, 2)
    os.close(null)
    os.close(output_fd)
    _replace_streams()
    faulthandler.disable()  # where the tuner had enabled it, enabling alone would do nothing
    faulthandler.enable(2, all_threads=False)  # a crash writes where it happened into the captured output
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    _limit_data(assignment.memory_limit_bytes)
    random.setstate(assignment.random_state)
    if assignment.collects_garbage:
        gc.enable()


def _default_signals() -> None:
    ignored = {signal.SIGPIPE, signal.SIGXFSZ}  # as Python itself starts
    for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
        if signal.getsignal(number) is not None:
            signal.signal(number, signal.SIG_IGN if number in ignored else signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.pthread_sigmask(signal.SIG_SETMASK, [])


_inherited_streams: list[TextIO | None] = []


def _replace_streams() -> None:
    # The tuner's streams may hold text that was never flushed: kept alive and never flushed, it is printed once, there.
    _inherited_streams.extend([sys.stdout, sys.stderr, sys.__stdout__, sys.__stderr__])
    sys.stdin = sys.__stdin__ = open(0, encoding="utf-8", closefd=False)  # type: ignore[misc]  # noqa: SIM115
    sys.stdout = sys.__stdout__ = _stream(1)  # type: ignore[misc,assignment]
    sys.stderr = sys.__stderr__ = _stream(2)  # type: ignore[misc,assignment]


def _stream(fd: int) -> TextIO:
    return open(fd, "w", buffering=1, encoding="utf-8", errors="backslashreplace", closefd=False)


def _limit_data(limit_bytes: int) -> None:
    # A backstop for what grows between two looks of the tuner, so a little above its limit. Not RLIMIT_AS: drivers
    # reserve huge address ranges that they never use.
    most = procfs.data_bytes() + limit_bytes + limit_bytes // 16
    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    if hard == resource.RLIM_INFINITY or most < hard:
        resource.setrlimit(resource.RLIMIT_DATA, (most, most))


def _flush(*streams: Any) -> None:
    for stream in streams:
        try:
            stream.flush()
        except (OSError, ValueError, AttributeError):  # a config closed or replaced it
            continue


def _described(error: BaseException) -> str:
    try:
        text = f"{type(error).__name__}: {error}"
    except BaseException:
        text = f"{type(error).__name__}, whose text cannot be had"
    return text[:_DETAIL]
