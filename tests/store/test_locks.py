"""One lock file, many users in one process: whoever leaves takes nothing from those who stay."""

import os
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tunewise.store.locks import lock_file


@pytest.fixture
def hasty_threads():
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


@pytest.mark.usefixtures("hasty_threads")
def test_users_that_come_while_the_last_one_leaves_find_the_file_open(tmp_path: Path) -> None:
    def come_and_go(_: int) -> int:
        for _ in range(4000):
            with lock_file(tmp_path / "lock").writer():
                pass
        return 4000

    with ThreadPoolExecutor(2) as pool:
        assert sum(pool.map(come_and_go, range(2))) == 8000


def test_the_last_user_closes_the_file(tmp_path: Path) -> None:
    def is_open() -> bool:
        links = [Path("/proc/self/fd", name) for name in os.listdir("/proc/self/fd")]
        return any(os.path.realpath(link) == str(tmp_path / "lock") for link in links)

    first, second = lock_file(tmp_path / "lock"), lock_file(tmp_path / "lock")
    assert first.acquire(7, 0.0)
    del first
    assert is_open()
    assert not second.acquire(7, 0.0)  # it is this process's still, whoever took it
    second.release(7)
    del second
    assert not is_open()
