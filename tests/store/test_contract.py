from pathlib import Path

import pytest

from tunewise.store import LayeredStore, MemoryStore, SafeStore, SqliteStore, Store
from tunewise.store import memory as memory_module
from tunewise.store import sqlite as sqlite_module
from tunewise.testing.store_contract import StoreContract, subject


class TestMemoryStore(StoreContract):
    def make(self, path: Path) -> Store:
        return MemoryStore()


class TestSqliteStore(StoreContract):
    def make(self, path: Path) -> Store:
        return SqliteStore(path)


class TestSafeStore(StoreContract):
    def make(self, path: Path) -> Store:
        return SafeStore(SqliteStore(path))


class TestLayeredStore(StoreContract):
    def make(self, path: Path) -> Store:
        return LayeredStore(SqliteStore(path), [MemoryStore()])


@pytest.mark.parametrize("make", [lambda path: MemoryStore(), SqliteStore], ids=["memory", "sqlite"])
def test_misses_are_capped_and_the_least_asked_oldest_goes(make, tmp_path, monkeypatch):
    monkeypatch.setattr(memory_module, "MAX_MISSES", 5)
    monkeypatch.setattr(sqlite_module, "MAX_MISSES", 5)
    store = make(tmp_path / "home")
    store.miss(subject(m=100), 9)
    for m in range(8):
        store.miss(subject(m=m))
    store.miss(subject("other", 1))
    kept = [miss.problem["m"] for miss in store.misses("gemm")]
    assert kept == [100, 4, 5, 6, 7]
    assert len(store.misses("other")) == 1


def test_miss_remembers_who_asked_last(tmp_path):
    store = SqliteStore(tmp_path / "home")
    store.miss(subject(cpu="a"))
    store.miss(subject(cpu="b"))
    assert [miss.digest for miss in store.misses()] == [subject(cpu="b").digest]
