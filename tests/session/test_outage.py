"""A store that is away when a question is first asked: the answer given without it is not the answer for ever."""

import json
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest
from loops import Loop

import tunewise as tw
from tunewise.session import context
from tunewise.store import SafeStore, guard, trouble

_read_again = guard.Guard.read_again
Outage = Callable[[], AbstractContextManager[None]]


@pytest.fixture
def outage(home: Path, monkeypatch: pytest.MonkeyPatch) -> Outage:
    """Give a block in which the store of a process that has just begun cannot be read; it is tried again by hand."""
    monkeypatch.setattr(guard.Guard, "read_again", lambda self: None)
    monkeypatch.setattr(trouble.Trouble, "is_over", lambda self, now: True)
    write_waiting, is_away = guard.Guard.write_waiting, threading.Event()
    # The thread that writes would make a new directory in the moment between the two renames.
    monkeypatch.setattr(guard.Guard, "write_waiting", lambda self: None if is_away.is_set() else write_waiting(self))

    @contextmanager
    def away() -> Iterator[None]:
        tw.configure()
        aside = home.rename(home.with_name("aside"))
        home.write_text("a file where the directory should be")
        is_away.set()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
        home.unlink()
        aside.rename(home)
        is_away.clear()

    return away


def catch_up() -> None:
    store = context.current_store()
    assert isinstance(store, SafeStore)
    assert _read_again(store._guard) is None


def test_what_was_asked_while_the_store_was_away_is_looked_up_again_once_it_is_back(outage: Outage) -> None:
    it = Loop()
    best = it.loop.tune(8).answer.config
    with outage():
        assert [it.loop.decide(8).rung for _ in range(3)] == ["default"] * 3
    assert it.loop.decide(8).rung == "default"  # a question asked before costs no look at the disk
    catch_up()
    assert (it.loop.decide(8).rung, it.loop.decide(8).config) == ("memory", best)


def test_an_answer_kept_at_hand_is_looked_up_again_too(
    outage: Outage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = tmp_path / "table.json"
    table.write_text(json.dumps({"decision": "loop", "rules": [{"when": {}, "configs": [{"steps": 4}]}]}))
    monkeypatch.setenv("TUNEWISE_HEURISTICS", str(table))
    it = Loop()
    it.loop.tune(8)
    with outage():
        assert [it.rung for _ in range(3)] == ["table"] * 3
    catch_up()
    assert it.rung == "memory"


def test_misses_of_the_outage_are_counted_all_the_same(outage: Outage) -> None:
    it = Loop()
    it.loop.tune(8)
    with outage():
        for _ in range(4):
            it.loop.decide(9)
    catch_up()
    it.decision.forget()
    assert [miss.count for miss in context.current_store().misses()] == [4]
