"""Viewers get all there is to know first and then what changes; one that does not read is let go."""

import asyncio
import json
import threading
import time
from collections.abc import Coroutine
from typing import Any

import pytest
from live_samples import run, until

from limits import HANG_S
from tunewise.report.live_page import View, view
from tunewise.report.live_state import Health, Ledger, Snapshot
from tunewise.report.live_watch import Gathering
from tunewise.store import MemoryStore, Sign

pytest.importorskip("starlette", reason="starlette is not installed: pip install 'tunewise[dashboard]'")

from tunewise.report.live_hub import Hub, Viewer

NOW = time.time()


def shown(evaluations: int = 0, *, counted_at: float = 0.0) -> View:
    return view(Snapshot(time.time(), evaluations=evaluations, health=Health(counted_at=counted_at)))


def waiting(viewer: Viewer) -> list[dict[str, Any] | None]:
    found = []
    while not viewer.events.empty():
        event = viewer.events.get_nowait()
        found.append(None if event is None else json.loads(event.removeprefix(b"data: ")))
    return found


def running(work: Coroutine[Any, Any, None]) -> None:
    asyncio.run(work)


def test_a_viewer_gets_everything_and_then_what_changes() -> None:
    async def work() -> None:
        hub = Hub(lambda is_wanted: None)
        hub.publish(shown(1))
        viewer = hub.enter()
        assert viewer is not None
        hub.publish(shown(2))
        hub.publish(shown(2))
        first, second, third = (said for said in waiting(viewer) if said is not None)
        assert len(first["values"]) > 1_000
        assert second["values"] == {"figure-1.text": "2"}
        assert third["values"] == {}

    running(work())


def test_a_viewer_that_does_not_read_is_let_go_and_others_stay() -> None:
    async def work() -> None:
        hub = Hub(lambda is_wanted: None)
        deaf, good = hub.enter(), hub.enter()
        assert deaf is not None
        assert good is not None
        for number in range(20):
            hub.publish(shown(number))
            assert len(waiting(good)) == 1
        assert hub.viewers == 1
        assert waiting(deaf) == [None]

    running(work())


def test_there_is_a_limit_to_viewers() -> None:
    async def work() -> None:
        hub = Hub(lambda is_wanted: None)
        entered = [hub.enter() for _ in range(250)]
        assert sum(viewer is not None for viewer in entered) == hub.viewers == 200

    running(work())


def test_when_it_ends_everybody_is_let_go() -> None:
    async def work() -> None:
        hub = Hub(lambda is_wanted: None)
        hub.publish(shown())
        viewer = hub.enter()
        assert viewer is not None
        hub.end()
        assert waiting(viewer) == [None]
        assert hub.enter() is None

    running(work())


def test_a_viewer_after_a_long_while_is_told_nothing_old() -> None:
    async def work() -> None:
        hub = Hub(lambda is_wanted: None)
        hub.publish(view(Snapshot(NOW - 3_600)))
        viewer = hub.enter()
        assert viewer is not None
        assert waiting(viewer) == []
        hub.publish(shown())
        (said,) = waiting(viewer)
        assert said is not None
        assert len(said["values"]) > 1_000

    running(work())


def test_nothing_is_wanted_once_all_have_gone() -> None:
    async def work() -> None:
        wanted: list[bool] = []
        hub = Hub(wanted.append)
        viewer = hub.enter()
        assert viewer is not None
        hub.publish(shown())
        hub.leave(viewer)
        hub.publish(shown())
        assert wanted == [True, True, False]

    running(work())


def test_who_needs_counts_waits_for_them() -> None:
    async def work() -> None:
        hub = Hub(lambda is_wanted: None)
        asked = asyncio.ensure_future(hub.latest(NOW, 20.0, needs_counts=True))
        await asyncio.sleep(0)
        hub.publish(shown())
        await asyncio.sleep(0.01)
        assert not asked.done()
        hub.publish(shown(counted_at=NOW))
        found = await asked
        assert found is not None
        assert found.seen.health.counted_at == NOW

    running(work())


def test_a_store_that_does_not_answer_gives_what_there_is() -> None:
    async def work() -> None:
        hub = Hub(lambda is_wanted: None)
        assert await hub.latest(NOW, 0.01) is None

    running(work())


class Read(MemoryStore):
    """A store that counts how often it is asked for signs."""

    asked = 0

    def signs(self, kind: str | None = None, since: float = 0.0) -> list[Sign]:
        self.asked += 1
        return super().signs(kind, since)


def test_a_store_is_read_only_while_somebody_wants_to_know() -> None:
    store, told = Read(), threading.Event()
    store.show(run("r", NOW))
    seen: list[Snapshot] = []

    def tell(snapshot: Snapshot) -> None:
        seen.append(snapshot)
        told.set()

    gathering = Gathering(store, store, tell)
    gathering.start()
    try:
        assert not told.wait(0.3)
        assert store.asked == 0
        gathering.want(True)
        assert told.wait(HANG_S)
        assert seen[0].running.total == 1
        until(lambda: seen[-1].health.info is not None)
    finally:
        gathering.end()


def test_a_ledger_that_was_never_counted_says_so() -> None:
    assert Ledger().info is None
    assert shown().values["figure-5-remark.text"] == "not counted yet"
