"""Locks on single bytes: what other processes see of them. The child processes are real."""

import errno
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from tunewise.store import byte_locks
from tunewise.store.byte_locks import holder, try_lock, unlock

_CHILD = """
import os, sys
from tunewise.store.byte_locks import holder, try_lock, unlock
fd = os.open(sys.argv[1], os.O_RDWR)
for line in sys.stdin:
    print(eval(line), flush=True)
"""
FAR = 1 + 0xFFFFFFFFFFFFFFF  # the farthest byte that stands for a subject

Ask = Callable[[str], str]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Return an empty file."""
    file = tmp_path / "lock"
    file.touch()
    return file


@pytest.fixture
def fd(path: Path) -> Iterator[int]:
    """Return the file, open in this process."""
    number = os.open(path, os.O_RDWR)
    yield number
    os.close(number)


@pytest.fixture
def child(path: Path) -> Iterator[subprocess.Popen[str]]:
    """Return another process that has the file open and evaluates lines."""
    command = [sys.executable, "-c", _CHILD, str(path)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    with process:
        yield process
        process.kill()


@pytest.fixture
def ask(child: subprocess.Popen[str]) -> Ask:
    """Return what has the child evaluate a line."""

    def answer(line: str) -> str:
        assert child.stdin is not None
        assert child.stdout is not None
        child.stdin.write(line + "\n")
        child.stdin.flush()
        return child.stdout.readline().strip()

    return answer


@pytest.mark.parametrize("byte", [0, 7, FAR])
def test_a_byte_that_is_ours_is_nobody_elses_until_it_is_given_back(fd: int, ask: Ask, byte: int) -> None:
    assert try_lock(fd, byte)
    assert ask(f"try_lock(fd, {byte})") == "False"
    unlock(fd, byte)
    assert ask(f"try_lock(fd, {byte})") == "True"
    assert not try_lock(fd, byte)


def test_bytes_beside_each_other_are_locked_independently(fd: int, ask: Ask) -> None:
    assert try_lock(fd, 5)
    assert (ask("try_lock(fd, 4)"), ask("try_lock(fd, 6)")) == ("True", "True")


def test_shared_locks_go_together_and_exclude_an_exclusive_one(fd: int, ask: Ask) -> None:
    assert try_lock(fd, 3, is_shared=True)
    assert ask("try_lock(fd, 3, is_shared=True)") == "True"
    assert not try_lock(fd, 3)
    ask("unlock(fd, 3)")
    assert try_lock(fd, 3)
    assert ask("try_lock(fd, 3, is_shared=True)") == "False"


@pytest.mark.parametrize("shared", ["", ", is_shared=True"])
def test_the_holder_of_a_byte_is_named(fd: int, ask: Ask, child: subprocess.Popen[str], shared: str) -> None:
    assert holder(fd, FAR) is None
    assert ask(f"try_lock(fd, {FAR}{shared})") == "True"
    assert holder(fd, FAR) == child.pid
    assert holder(fd, 0) is None
    ask(f"unlock(fd, {FAR})")
    assert holder(fd, FAR) is None


def test_a_byte_of_our_own_is_held_by_nobody_against_us(fd: int, ask: Ask) -> None:
    assert try_lock(fd, 1)
    assert holder(fd, 1) is None
    assert ask("holder(fd, 1)") == str(os.getpid())


def test_a_stopped_holder_is_named_at_once(fd: int, ask: Ask, child: subprocess.Popen[str]) -> None:
    ask("try_lock(fd, 0)")
    child.send_signal(signal.SIGSTOP)
    try:
        assert (try_lock(fd, 0), holder(fd, 0)) == (False, child.pid)
    finally:
        child.send_signal(signal.SIGCONT)


def test_a_killed_holder_holds_nothing(fd: int, ask: Ask, child: subprocess.Popen[str]) -> None:
    ask("try_lock(fd, 0)")
    child.kill()
    child.wait()
    assert (holder(fd, 0), try_lock(fd, 0)) == (None, True)


def test_a_forked_child_inherits_no_lock(fd: int) -> None:
    assert try_lock(fd, 2)
    pid = os.fork()
    if pid == 0:
        os._exit(try_lock(fd, 2))
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


def test_what_is_wrong_with_the_file_is_an_error_and_no_lock(path: Path) -> None:
    closed = os.open(path, os.O_RDWR)
    os.close(closed)
    with pytest.raises(OSError, match="Bad file descriptor"):
        try_lock(closed, 0)


class _Msvcrt(SimpleNamespace):
    """Locks of one process at file positions, as the module of Windows has them."""

    LK_UNLCK, LK_NBLCK = 0, 2

    def __init__(self) -> None:
        self.taken: set[int] = set()

    def locking(self, fd: int, mode: int, nbytes: int) -> None:
        assert nbytes == 1
        position = os.lseek(fd, 0, os.SEEK_CUR)
        assert 0 <= position < 2**31
        if mode == self.LK_UNLCK:
            self.taken.remove(position)
        elif position in self.taken:
            raise OSError(errno.EACCES, "Permission denied")
        else:
            self.taken.add(position)


def test_windows_locks_at_the_position_of_the_file(fd: int, monkeypatch: pytest.MonkeyPatch) -> None:
    windows = _Msvcrt()
    monkeypatch.setattr(byte_locks, "_posix", lambda: None)
    monkeypatch.setattr(byte_locks, "_windows", lambda: windows)
    assert all(try_lock(fd, byte) for byte in (0, FAR, 2**31))
    assert len(windows.taken) == 3
    assert not try_lock(fd, FAR)
    assert holder(fd, FAR) is None
    unlock(fd, FAR)
    assert try_lock(fd, FAR)


def test_without_locks_of_any_kind_every_byte_is_ours(fd: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(byte_locks, "_posix", lambda: None)
    monkeypatch.setattr(byte_locks, "_windows", lambda: None)
    assert [try_lock(fd, 0), try_lock(fd, 0)] == [True, True]
    unlock(fd, 0)
    assert holder(fd, 0) is None
