"""Shared memory of configs: it counts, mapped or not, and is gone when they were killed, while others' stays."""

import ctypes
import mmap
import os
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from multiprocessing.shared_memory import SharedMemory
from pathlib import Path

import faults
import pytest
from faults import Act

from limits import stretched
from tunewise.decision import Failure, Policy, Timing
from tunewise.measure.isolated import Isolated
from tunewise.measure.shared_memory import SHM, Inbox

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="configs are isolated on Linux only")

LIMIT = 192 << 20
MOST = 8 * LIMIT  # half of what is written where nobody looks: on a busy machine much is, between two looks
STEP = 8 << 20
BLOCK = b"x" * STEP
POLICY = Policy(timeout_s=20.0, memory_limit_bytes=LIMIT)
HELD_S = stretched(0.05)  # that a file stays open: one that is closed within a moment may stay
ENDLESS = 16  # limits' worth of memory: far more than is ever reached

libc = ctypes.CDLL(None, use_errno=True)
libc.shmat.restype = ctypes.c_void_p
libc.shmdt.argtypes = [ctypes.c_void_p]


@pytest.fixture
def open_with(tmp_path: Path) -> Iterator[Callable[..., Isolated]]:
    """Return a way to open work with some misbehaving configs; nothing they made may be left when all is closed."""
    before, segments = set(os.listdir(SHM)), segment_ids()
    opened: list[Isolated] = []

    def open_(policy: Policy = POLICY, **acts: Act) -> Isolated:
        opened.append(Isolated(faults.work(tmp_path, policy, acts)))
        return opened[-1]

    yield open_
    for one in opened:
        one.close()
    assert {name for name in set(os.listdir(SHM)) - before if name.startswith("tunewise-test")} == set()
    assert segment_ids() <= segments


def segment_ids() -> set[int]:
    lines = Path("/proc/sysvipc/shm").read_text().splitlines()[1:]
    return {int(line.split()[1]) for line in lines if int(line.split()[9]) == os.getuid()}


def step(scratch: Path) -> None:
    """Write down that another step was taken, and take one at a time: a slow machine looks as often as a fast one."""
    with (scratch / "steps").open("a") as steps:
        steps.write("x")
    time.sleep(0.005)


def write(path: Path, scratch: Path) -> None:
    """Write a file that is open for some milliseconds, so that it shows whose it is on a busy machine too."""
    with path.open("wb", buffering=0) as stream:
        for _ in range(2):
            stream.write(BLOCK)
            step(scratch)
            time.sleep(HELD_S)


def memfd(scratch: Path) -> None:
    fd = os.memfd_create("x")
    for _ in range(ENDLESS * LIMIT // STEP):
        os.write(fd, BLOCK)
        step(scratch)


def many_memfds(scratch: Path) -> None:
    for _ in range(ENDLESS * LIMIT // STEP):
        os.write(os.memfd_create("x"), BLOCK)
        step(scratch)


def mapped_memfd(scratch: Path) -> None:
    """Map a part, write to it, and let it go again."""
    fd = os.memfd_create("x")
    for place in range(ENDLESS * LIMIT // STEP):
        os.truncate(fd, (place + 1) * STEP)
        with mmap.mmap(fd, STEP, offset=place * STEP) as mapping:
            mapping[:] = BLOCK
        step(scratch)


def file(scratch: Path) -> None:
    with (SHM / f"tunewise-test-{os.getpid()}").open("wb", buffering=0) as stream:
        for _ in range(ENDLESS * LIMIT // STEP):
            stream.write(BLOCK)
            step(scratch)


def closed_files(scratch: Path) -> None:
    for number in range(ENDLESS * LIMIT // STEP):
        write(SHM / f"tunewise-test-{os.getpid()}-{number}", scratch)


def files_in_a_directory(scratch: Path) -> None:
    place = Path(tempfile.mkdtemp(prefix="tunewise-test-", dir=SHM))
    for number in range(ENDLESS * LIMIT // STEP):
        (place / "below").mkdir(exist_ok=True)
        write(place / "below" / str(number), scratch)


def deleted_file(scratch: Path) -> None:
    with tempfile.TemporaryFile(dir=SHM) as stream:
        for _ in range(ENDLESS * LIMIT // STEP):
            stream.write(BLOCK)
            step(scratch)


def python_shared(scratch: Path) -> None:
    shared = SharedMemory(f"tunewise-test-{os.getpid()}", create=True, size=ENDLESS * LIMIT)
    assert shared.buf is not None
    for place in range(0, ENDLESS * LIMIT, STEP):
        shared.buf[place : place + STEP] = BLOCK
        step(scratch)


def segment(scratch: Path) -> None:
    for _ in range(ENDLESS * LIMIT // STEP):
        number = libc.shmget(0, STEP, 0o1600)
        address = libc.shmat(number, None, 0)
        ctypes.memmove(address, BLOCK, STEP)
        libc.shmdt(address)
        step(scratch)


def anonymous(scratch: Path) -> None:
    mapping = mmap.mmap(-1, ENDLESS * LIMIT)
    for place in range(0, ENDLESS * LIMIT, STEP):
        mapping[place : place + STEP] = BLOCK
        step(scratch)


def anonymous_of_dead_children(scratch: Path) -> None:
    """Let children write to a mapping and end: no process is left that has touched it."""
    mapping = mmap.mmap(-1, ENDLESS * LIMIT)
    for place in range(0, ENDLESS * LIMIT, STEP):
        if os.fork() == 0:
            mapping[place : place + STEP] = BLOCK
            os._exit(0)
        os.wait()
        step(scratch)


def daemon(scratch: Path) -> None:
    """Let a process that is nobody's child write."""
    if os.fork() == 0:
        if os.fork() == 0:
            memfd(scratch)
        os._exit(0)
    os.wait()
    time.sleep(20)


WAYS = (
    memfd,
    many_memfds,
    mapped_memfd,
    file,
    closed_files,
    files_in_a_directory,
    deleted_file,
    python_shared,
    segment,
    anonymous,
    anonymous_of_dead_children,
    daemon,
)


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_shared_memory_is_limited_and_freed(open_with: Callable[..., Isolated], tmp_path: Path, way: Act) -> None:
    isolated = open_with(way=way)
    outcome = isolated.first({"fault": "way"})
    assert isinstance(outcome, Failure)
    assert outcome.kind == "memory", outcome
    assert len((tmp_path / "steps").read_text()) * STEP <= MOST
    assert isinstance(isolated.first({"fault": "none"}), Timing)


def test_shared_memory_within_the_limit_is_allowed_and_counts_once(open_with: Callable[..., Isolated]) -> None:
    def share(scratch: Path) -> None:
        fd = os.memfd_create("x")
        os.truncate(fd, LIMIT // 2)
        with mmap.mmap(fd, LIMIT // 2) as mapping, mmap.mmap(fd, LIMIT // 2) as again:
            for place in range(0, LIMIT // 2, STEP):
                mapping[place : place + STEP] = BLOCK
            for _ in range(4):
                if os.fork() == 0:
                    assert again[:: mmap.PAGESIZE] == mapping[:: mmap.PAGESIZE]
                    time.sleep(0.5)
                    os._exit(0)
            for _ in range(4):
                os.wait()

    outcome = open_with(Policy(timeout_s=20.0, memory_limit_bytes=LIMIT), share=share).first({"fault": "share"})
    assert isinstance(outcome, Timing), outcome


def test_shared_memory_of_the_tuner_and_of_others_does_not_count(open_with: Callable[..., Isolated]) -> None:
    ours = mmap.mmap(-1, 2 * LIMIT)
    ours[:] = b"x" * (2 * LIMIT)

    def touch(scratch: Path) -> None:
        assert ours[:: mmap.PAGESIZE] == b"x" * (2 * LIMIT // mmap.PAGESIZE)
        time.sleep(0.4)

    isolated = open_with(touch=touch, sleep=lambda scratch: time.sleep(0.6))
    assert isinstance(isolated.first({"fault": "touch"}), Timing)
    fd = os.memfd_create("x")

    def write() -> None:
        for _ in range(2 * LIMIT // STEP):
            os.write(fd, BLOCK)
            time.sleep(0.01)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        assert isinstance(isolated.first({"fault": "sleep"}), Timing)
    finally:
        writer.join()
        os.close(fd)
        ours.close()


def test_a_config_that_leaves_much_behind_is_the_last_in_its_worker(
    open_with: Callable[..., Isolated], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tunewise.measure.isolated.MAX_GROWTH_BYTES", LIMIT // 4)
    isolated = open_with(leave=lambda scratch: os.write(os.memfd_create("x"), b"x" * (LIMIT // 2)))
    assert isinstance(isolated.first({"fault": "leave"}), Timing)
    assert isolated._shift is not None
    pid = isolated._shift.worker.pid
    assert isinstance(isolated.first({"fault": "none"}), Timing)
    assert isolated._shift.worker.pid != pid


def test_what_others_had_does_not_count_when_a_config_opens_it(open_with: Callable[..., Isolated]) -> None:
    with tempfile.NamedTemporaryFile(dir=SHM, buffering=0) as theirs, tempfile.TemporaryFile(dir=SHM) as growing:
        for _ in range(3 * LIMIT // STEP):
            theirs.write(BLOCK)

        def look(scratch: Path) -> None:
            with open(theirs.name, "rb") as stream:
                held = b"x" * (LIMIT // 2)
                time.sleep(0.4 + len(held) * stream.tell())

        isolated = open_with(look=look)
        writer = threading.Timer(0.2, lambda: growing.write(b"x" * (LIMIT // 4)))
        writer.start()
        outcome = isolated.first({"fault": "look"})
        writer.join()
        assert isinstance(outcome, Timing), outcome


def test_new_directories_are_watched_as_long_as_they_are_there(tmp_path: Path) -> None:
    inbox = Inbox(tmp_path)
    for number in range(600):  # more than are watched at once
        place = tmp_path / str(number)
        place.mkdir()
        assert inbox.new() == [place]
        (place / "file").touch()
        assert inbox.new() == [place / "file"]
        (place / "file").unlink()
        place.rmdir()
        assert inbox.new() == []
    (tmp_path / "elsewhere").symlink_to("/")
    assert inbox.new() == [tmp_path / "elsewhere"]
    inbox.close()


def test_files_and_segments_of_others_stay(open_with: Callable[..., Isolated], tmp_path: Path) -> None:
    """What others make while a config runs is theirs, also where the config opens it."""
    ours = [SHM / f"tunewise-{os.getpid()}-{name}" for name in ("before", "meanwhile", "opened")]
    ours[0].write_bytes(b"before")
    place = Path(tempfile.mkdtemp(prefix="tunewise-", dir=SHM))

    def look(scratch: Path) -> None:
        (scratch / "started").touch()
        while not (scratch / "made").exists():
            time.sleep(0.001)
        kept = [path.open("rb") for path in (ours[0], ours[2])]
        kept.append((place / "inside").open("w+b"))
        time.sleep(0.1)
        time.sleep(0.2)
        os.kill(os.getpid(), len(kept) and 9)

    def make() -> None:
        while not (tmp_path / "started").exists():
            time.sleep(0.001)
        ours[1].write_bytes(b"meanwhile")
        ours[2].write_bytes(b"opened")
        time.sleep(0.1)
        (tmp_path / "made").touch()

    segment_id = libc.shmget(0, 4096, 0o1600)
    maker = threading.Thread(target=make)
    maker.start()
    try:
        outcome = open_with(look=look).first({"fault": "look"})
        maker.join()
        assert isinstance(outcome, Failure)
        assert [path.exists() for path in ours] == [True, True, True]
        assert list(place.iterdir()) == []
        assert segment_id in segment_ids()
    finally:
        libc.shmctl(segment_id, 0, None)
        for path in ours:
            path.unlink(missing_ok=True)
        place.rmdir()


def test_what_a_killed_config_left_is_removed_whatever_it_died_of(open_with: Callable[..., Isolated]) -> None:
    def hang(scratch: Path) -> None:
        for number in range(3):
            write(SHM / f"tunewise-test-{os.getpid()}-{number}", scratch)
        libc.shmget(0, 4096, 0o1600)
        time.sleep(600)

    def crash(scratch: Path) -> None:
        with (SHM / f"tunewise-test-{os.getpid()}").open("wb", buffering=0) as stream:
            stream.write(BLOCK)
            time.sleep(0.1)
            ctypes.string_at(0)

    before, segments = set(os.listdir(SHM)), segment_ids()
    isolated = open_with(Policy(timeout_s=1.0, compile_timeout_s=1.0), hang=hang, crash=crash)
    for fault in ("hang", "crash"):
        assert isinstance(isolated.first({"fault": fault}), Failure)
        assert {name for name in set(os.listdir(SHM)) - before if name.startswith("tunewise-test")} == set()
        assert segment_ids() <= segments
