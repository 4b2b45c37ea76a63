"""The tuner's hold on its zygote and worker: starts them, asks, waits with a deadline, and lets nothing get away."""

import os
import re
import secrets
import select
import signal
import socket
import time
import warnings
from dataclasses import dataclass
from typing import Literal

from tunewise.errors import MeasureWarning
from tunewise.measure import frames, procfs, worker, zygote
from tunewise.measure.shared_memory import SharedMemory
from tunewise.measure.worker import Assignment

LOOK_S = 0.05  # how often memory is looked at while waiting
MAX_PROCESSES = 1000  # below one worker
_RING_BYTES = 64 << 10
_TAIL_BYTES = 4 << 10
_READ_BYTES = 1 << 16
# A crash prints its stack, innermost call first. From our own loop on it is the same every time, and so is the list of
# extension modules: both would push the useful lines out of the tail.
_OUR_FRAMES = re.compile(
    rb'(?:^  File "' + re.escape(worker.__file__.encode()) + rb'".*\n(?:^  File .*\n)*)|(?:^Extension modules: .*\n?)',
    re.M,
)
_LONGEST_S = 1e6  # that a socket is told to wait: far more is too long for its clock
_CONTROL_S = 60.0  # forking a very large process takes its time
_DYING_S = 0.5  # between the end of the channel and the end of the process


class Lost(Exception):
    """No answer will come from this worker; the text says why. Never leaves this room."""

    def __init__(self, kind: Literal["timeout", "memory", "crash", "runtime"], detail: str = "") -> None:
        super().__init__(detail)
        self.kind = kind
        self.detail = detail


class ZygoteGone(Exception):
    """The zygote does not answer any more. Never leaves this room."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """How long a job may take, and how much more memory than at its start the worker's process tree may hold."""

    seconds: float
    memory_bytes: int


class Leash:
    """A zygote and its control socket. The zygote ends when this is closed or collected, or when the tuner ends."""

    def __init__(self, assignment: Assignment) -> None:
        self.pid, self._control = zygote.start(assignment)
        self._control.settimeout(_CONTROL_S)
        self._asked = 0
        self._shared = SharedMemory(self.pid)

    def fork(self) -> "Held":
        """Return a new worker; raises OSError if there is no room for one, ZygoteGone if nobody can fork it."""
        ours, theirs = socket.socketpair()
        output, their_output = os.pipe2(os.O_CLOEXEC)
        try:
            pid, errno = self._ask(zygote.FORK, [theirs.fileno(), their_output])
            if errno:
                raise OSError(errno, os.strerror(errno))
            return Held(pid, self.pid, ours, output, self._shared)
        except BaseException:
            ours.close()
            os.close(output)
            raise
        finally:
            theirs.close()
            os.close(their_output)

    def clear(self) -> str:
        """Kill everything below the zygote, free its shared memory, and return how the worker ended, in words."""
        self._shared.note_last()
        status, left = self._ask(zygote.CLEAR)
        self._shared.free()
        if left:
            warnings.warn(f"{left} processes of a config cannot be killed", MeasureWarning, stacklevel=2)
        return _ending(status)

    def has_strays(self, pid: int) -> bool:
        """Return whether anything but the worker lives below the zygote."""
        others = [*procfs.children(pid), *(other for other in procfs.children(self.pid) if other != pid)]
        return any(map(procfs.is_alive, others))

    def close(self) -> None:
        """End the zygote and everything below it, and wait for that (not for ever)."""
        self._shared.note_last()
        self._control.close()
        deadline = time.monotonic() + zygote.PATIENCE_S + 1
        while not _is_buried(self.pid):
            if time.monotonic() > deadline:
                procfs.kill([self.pid])
                break
            time.sleep(0.0005)
        self._shared.free()
        self._shared.close()

    def abandon(self) -> None:
        """Let go without ending anything: for a copy of the tuner that was forked by somebody else."""
        self._control.close()
        self._shared.close()

    def _ask(self, verb: bytes, fds: list[int] | None = None) -> tuple[int, int]:
        self._asked += 1
        try:
            socket.send_fds(self._control, [zygote.ASK.pack(verb, self._asked)], fds or [])
            while True:
                answer = self._control.recv(zygote.ANSWER.size)
                if not answer:
                    raise ZygoteGone
                number, first, second = zygote.ANSWER.unpack(answer)
                if number == self._asked:  # an older one belongs to a question that Ctrl-C cut short
                    return first, second
        except OSError as error:
            raise ZygoteGone from error


class Held:
    """One worker: the channel to it, its output, and a pidfd that shows its death at once."""

    def __init__(self, pid: int, zygote: int, channel: socket.socket, output_fd: int, shared: SharedMemory) -> None:
        self.pid = pid
        self._zygote = zygote
        self._shared = shared
        shared.begin()
        self.base_bytes = procfs.resident_bytes(pid)
        self._channel = channel
        self._output_fd = output_fd
        self._pidfd = os.pidfd_open(pid)
        self._ring = bytearray()
        self._poll = select.poll()
        for fd in (channel.fileno(), output_fd, self._pidfd):
            os.set_blocking(fd, False)
            self._poll.register(fd, select.POLLIN)
        if self._shared.events is not None:
            self._poll.register(self._shared.events, select.POLLIN)

    def is_quiet(self) -> bool:
        """Return whether the worker lives and has said nothing unasked; what it printed meanwhile is forgotten."""
        ready = {fd for fd, _ in self._poll.poll(0)}
        if self._output_fd in ready:
            self._drain()
        self._ring.clear()
        return not ready & {self._channel.fileno(), self._pidfd}

    def ask(self, job: frames.Job, bounds: Bounds) -> frames.Reply:
        """Send a job and return the reply; raises Lost when none will come, BadFrame when something else does."""
        token = secrets.token_bytes(frames.TOKEN_BYTES)
        deadline = time.monotonic() + bounds.seconds
        self._shared.skip()
        self._send(frames.pack(token, job), deadline)
        return frames.read_reply(self._receive(frames.Receiver(token), deadline, bounds))

    def output(self) -> str:
        """Return the end of what the config printed, at most 4 KB of it."""
        self._drain()
        return _OUR_FRAMES.sub(b"", self._ring)[-_TAIL_BYTES:].decode("utf-8", "replace").strip()

    def grown_bytes(self) -> int:
        """Return how much more memory the worker itself holds than when it was forked."""
        return procfs.resident_bytes(self.pid) - self.base_bytes

    def shared_growth_bytes(self) -> int:
        """Return how much more shared memory the whole system holds than at the least since the worker was forked."""
        return self._shared.growth_bytes()

    def close(self) -> None:
        """Let go of the descriptors."""
        self._channel.close()
        os.close(self._output_fd)
        os.close(self._pidfd)

    def _send(self, frame: bytes, deadline: float) -> None:
        self._channel.settimeout(min(max(deadline - time.monotonic(), 0.001), _LONGEST_S))
        try:
            self._channel.sendall(frame)
        except TimeoutError:
            raise Lost("timeout") from None
        except OSError:
            raise Lost("crash") from None
        finally:
            self._channel.setblocking(False)

    def _receive(self, receiver: frames.Receiver, deadline: float, bounds: Bounds) -> bytes:
        look = time.monotonic() + LOOK_S
        while True:
            now = time.monotonic()
            if now >= deadline:
                raise Lost("timeout", f"no answer within {bounds.seconds:g} s")
            if now >= look:
                self._check_memory(bounds.memory_bytes)
                look = time.monotonic() + LOOK_S
            ready = {fd for fd, _ in self._poll.poll(max(min(look, deadline) - now, 0) * 1000)}
            if self._output_fd in ready:
                self._drain()
            if self._shared.events in ready:
                self._shared.note()
            if self._channel.fileno() in ready or self._pidfd in ready:
                payload = self._take(receiver)
                if payload is not None:
                    return payload
                if self._pidfd in ready:
                    raise Lost("crash")

    def _take(self, receiver: frames.Receiver) -> bytes | None:
        try:
            data = self._channel.recv(_READ_BYTES)
        except BlockingIOError:
            return None
        except OSError:
            data = b""
        if data:
            return receiver.feed(data)
        # The end of the channel comes a moment before the end of the process, unless a config only closed it.
        if select.select([self._pidfd], [], [], _DYING_S)[0]:
            raise Lost("crash")
        raise frames.BadFrame("it closed the channel")

    def _drain(self) -> None:
        """Keep the last of the output; stops after a pipe's worth, so that an endless printer cannot hold us."""
        for _ in range(16):
            try:
                data = os.read(self._output_fd, _READ_BYTES)
            except OSError:
                return
            if not data:
                self._forget_output()
                return
            self._ring += data
            del self._ring[:-_RING_BYTES]

    def _forget_output(self) -> None:
        # Closed at the other end, it would be readable for ever.
        try:
            self._poll.unregister(self._output_fd)
        except KeyError:
            return

    def _check_memory(self, limit_bytes: int) -> None:
        others = [pid for pid in procfs.descendants(self._zygote) if pid != self.pid]  # daemons too: orphans are there
        if len(others) > MAX_PROCESSES:
            raise Lost("runtime", f"it started {len(others)} processes; {MAX_PROCESSES} are allowed")
        own = self.grown_bytes()
        if own + sum(map(procfs.resident_bytes, others)) + self._shared.growth_bytes() <= limit_bytes:
            return
        # Forked processes share most of their pages, also those the worker was born with: look closer before judging.
        # Neither sum exceeds what came since: the first misses what others share, the second what the tuner shares.
        held = [procfs.held_bytes(pid) for pid in (self.pid, *others)]
        alone = own - procfs.mapped_shared_bytes(self.pid) + sum(private for private, _ in held[1:])
        used = max(alone, sum(share for _, share in held) - self.base_bytes) + self._shared.held_bytes()
        if used > limit_bytes:
            raise Lost("memory", f"it held {used >> 20} MiB; {limit_bytes >> 20} MiB are allowed")


def _ending(status: int) -> str:
    if status == zygote.UNKNOWN_STATUS:
        return "ended in an unknown way"
    code = os.waitstatus_to_exitcode(status)
    if code >= 0:
        return f"exit code {code}"
    try:
        return f"killed by {signal.Signals(-code).name}"
    except ValueError:
        return f"killed by signal {-code}"


def _is_buried(pid: int) -> bool:
    try:
        return os.waitpid(pid, os.WNOHANG)[0] == pid
    except ChildProcessError:  # somebody else in this program waits for all children, or ignores them
        return not procfs.is_alive(pid)
