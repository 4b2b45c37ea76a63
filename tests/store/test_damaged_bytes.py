"""A file with a damaged byte anywhere: the store is read or set aside, and no exception reaches the program."""

import random
import shutil
from collections.abc import Iterable
from pathlib import Path

import pytest

from tunewise.store import SafeStore, SqliteStore
from tunewise.store.database import FILE_NAME
from tunewise.testing.store_contract import subject, timed, won


@pytest.fixture
def filled(tmp_path: Path) -> bytes:
    """Return the bytes of a store's file with some of everything in it."""
    store = SqliteStore(tmp_path / "filled")
    for m in range(5):
        store.add(subject(m=m), [timed(8)] * 3)
        store.conclude(subject(m=m), won())
        store.miss(subject(m=100 + m))
    store.close()
    return (tmp_path / "filled" / FILE_NAME).read_bytes()


def _check_damaged(home: Path, raw: bytes, at: int, value: int) -> None:
    """Ask and tell a store everything whose file has another byte at one place: nothing is raised, nothing is wrong."""
    home.mkdir(mode=0o700)
    (home / FILE_NAME).write_bytes(raw[:at] + bytes([value]) + raw[at + 1 :])
    store = SafeStore(SqliteStore(home), warn=lambda text: None)
    assert store.verdicts(subject(m=1)) in ([], [won()])
    assert all(trial == timed(8) for trial in store.trials(subject(m=2)))
    assert {found.decision for found in store.subjects()} <= {subject().decision}
    for ask in (store.misses, store.decisions, store.signs, store.info):
        ask()
    store.recorded(subject(m=1))
    store.add(subject(m=1), [timed(9)])
    store.conclude(subject(m=7), won())
    store.miss(subject(m=8))
    store.forget_miss(subject(m=8))
    assert store.verdicts(subject(m=7)) == [won()]
    store.close()


def _check_damaged_bytes(tmp_path: Path, raw: bytes, places: Iterable[int]) -> None:
    rng = random.Random(7)
    for at in places:
        _check_damaged(tmp_path / f"home{at}", raw, at, rng.randrange(256))
        shutil.rmtree(tmp_path / f"home{at}")


def test_any_damaged_byte_of_the_schema_page_costs_the_file_and_no_exception(tmp_path: Path, filled: bytes) -> None:
    _check_damaged_bytes(tmp_path, filled, random.Random(3).sample(range(4096), 300))


@pytest.mark.full
def test_any_damaged_byte_costs_the_file_and_no_exception(tmp_path: Path, filled: bytes) -> None:
    _check_damaged_bytes(tmp_path, filled, [*range(4096), *random.Random(3).sample(range(4096, len(filled)), 2000)])
