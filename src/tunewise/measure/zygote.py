"""The zygote: a copy of the tuner that runs no config, forks the workers that do, and buries all they leave behind."""

import ctypes
import fcntl
import gc
import os
import select
import signal
import socket
import stat
import struct
import time
from functools import cache
from typing import Any, NoReturn

from tunewise.measure import procfs, worker
from tunewise.measure.worker import Assignment
from tunewise.system import fork

ASK = struct.Struct("<cI")  # what to do, and the number of the request
ANSWER = struct.Struct("<Iqi")  # the number of the request, a process or wait status, and a count or errno
FORK, CLEAR = b"F", b"C"
UNKNOWN_STATUS = -1
PATIENCE_S = 5.0  # nobody waits longer than this for a process that cannot be killed
_SET_PDEATHSIG, _SET_CHILD_SUBREAPER = 1, 36


def start(assignment: Assignment) -> tuple[int, socket.socket]:
    """Fork a zygote from this process and return its id and the control socket; closing that ends it."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    tuner = os.getpid()
    _prctl()  # loaded before the fork: the dynamic linker's lock may be held by a thread that does not come along
    # The zygote keeps all signals blocked: Ctrl-C and the like are for the tuner, whose end it sees anyway.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    try:
        pid = fork()
        if pid == 0:
            _live(assignment, theirs, tuner)
    except BaseException:
        ours.close()
        raise
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        theirs.close()
    return pid, ours


def _live(assignment: Assignment, control: socket.socket, tuner: int) -> NoReturn:
    try:
        Zygote(assignment, control, tuner).serve()
    finally:
        os._exit(0)


class Zygote:
    """Single-threaded, never runs a config, and outlives every worker: orphans of theirs become its children.

    It watches the tuner through a pidfd rather than PR_SET_PDEATHSIG: the latter fires when the *thread* that forked
    ends, and leaves no time to kill what the configs left behind.
    """

    def __init__(self, assignment: Assignment, control: socket.socket, tuner: int) -> None:
        self._assignment = assignment
        self._control = control
        self._tuner = tuner
        self._worker: int | None = None
        self._status = UNKNOWN_STATUS

    def serve(self) -> None:
        """Answer the tuner until it is gone; then kill everything below."""
        self._settle()
        watch = os.pidfd_open(self._tuner)
        if os.getppid() != self._tuner:
            return
        poll = select.poll()
        poll.register(watch, select.POLLIN)
        poll.register(self._control, select.POLLIN)
        while True:
            ready = {fd for fd, _ in poll.poll()}
            if watch in ready or not self._answer():
                self._clear()
                return

    def _settle(self) -> None:
        os.setsid()
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # ignored, it would swallow the status of dead workers
        _prctl()(_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        seal(keep=self._control.fileno())
        # Nothing of the tuner's is ever collected here: its finalizers would act on the tuner's files and devices.
        gc.disable()
        gc.freeze()

    def _answer(self) -> bool:
        """Do one thing the tuner asks for; return False once it has closed the control socket."""
        try:
            message, fds, _, _ = socket.recv_fds(self._control, ASK.size, 2)
        except ConnectionError:
            return False
        if not message:
            return False
        verb, number = ASK.unpack(message)
        result = self._fork(fds) if verb == FORK else self._clear()
        for fd in fds:
            os.close(fd)
        try:
            self._control.send(ANSWER.pack(number, *result))
        except OSError:
            return False
        return True

    def _fork(self, fds: list[int]) -> tuple[int, int]:
        me = os.getpid()
        try:
            pid = fork()
        except OSError as error:
            return 0, error.errno or 0
        if pid == 0:
            self._become_worker(me, *fds)
        self._worker, self._status = pid, UNKNOWN_STATUS
        return pid, 0

    def _become_worker(self, zygote: int, channel_fd: int, output_fd: int) -> NoReturn:
        try:
            _prctl()(_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
            if os.getppid() != zygote:  # it ended before it could be watched
                os._exit(0)
            self._control.close()
            worker.run(self._assignment, socket.socket(fileno=channel_fd), output_fd)
        finally:
            os._exit(worker.BROKEN)

    def _clear(self) -> tuple[int, int]:
        """Kill and reap every descendant; return the worker's wait status and how many would not die in time."""
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline:
            below = procfs.descendants(os.getpid())
            procfs.kill(below)
            if not self._reap():
                return self._status, 0
            time.sleep(0.0002)
        return self._status, len(procfs.descendants(os.getpid()))

    def _reap(self) -> bool:
        """Bury all dead children; return whether any child is left. Orphans come to us, so no child means nobody."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return False
            if pid == 0:
                return True
            if pid == self._worker:
                self._status = status


def seal(keep: int) -> None:
    """Turn every inherited file that could do harm outside into /dev/null; its number stays taken.

    Read-only files, directories and devices stay as they are. Files open for writing, sockets, pipes and terminals
    belong to the tuner: a config that writes to every descriptor would destroy its store, and a pipe or flock held
    here would keep others waiting.
    """
    null = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
    for name in os.listdir("/proc/self/fd"):
        fd = int(name)
        if fd not in (keep, null) and _is_harmful(fd):
            os.dup2(null, fd, inheritable=os.get_inheritable(fd))
    os.close(null)


def _is_harmful(fd: int) -> bool:
    try:
        mode = os.fstat(fd).st_mode
        flags = fcntl.fcntl(fd, fcntl.F_GETFL)
    except OSError:
        return False  # the listing's own descriptor, closed by now
    if fd <= 2:
        return True
    if stat.S_ISCHR(mode):
        return os.isatty(fd)
    is_file = stat.S_ISREG(mode) or stat.S_ISDIR(mode)
    return not is_file or flags & os.O_ACCMODE != os.O_RDONLY


@cache
def _prctl() -> Any:
    return ctypes.CDLL(None, use_errno=True).prctl
