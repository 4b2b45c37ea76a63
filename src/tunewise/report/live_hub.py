"""Viewers of the live page: every one gets the same bytes, and one that does not read them is let go."""

import asyncio
import time
from collections.abc import Callable

import msgspec
from starlette.types import Receive, Scope, Send

from tunewise.report.live_page import View, version

MOST_VIEWERS = 200
_WAITING = 8  # events that wait for a viewer before it is let go; its page comes back by itself
_SLOW_S = 10.0
_RETRY_MS = 2_000
_BEAT_S = 4.0
_INTEREST_S = 90.0  # one who asks for numbers now and then finds them counted


class Viewer:
    """One who looks on: the events that wait for it. None is the end."""

    def __init__(self) -> None:
        self.events: asyncio.Queue[bytes | None] = asyncio.Queue(_WAITING)

    def give(self, event: bytes) -> bool:
        """Let an event wait for the viewer; False if too many do already."""
        try:
            self.events.put_nowait(event)
        except asyncio.QueueFull:
            return False
        return True

    def end(self) -> None:
        """Let the viewer go: what waits is dropped."""
        while not self.events.empty():
            self.events.get_nowait()
        self.events.put_nowait(None)


class Hub:
    """Knows what the page shows now and who looks on. All its methods are called in the server's one thread."""

    def __init__(self, want: Callable[[bool], None]) -> None:
        self.shown: View | None = None
        self._want = want
        self._viewers: set[Viewer] = set()
        self._asked: list[tuple[asyncio.Future[View], bool]] = []
        self._until = 0.0
        self._is_ended = False
        self._told_at = 0.0

    @property
    def viewers(self) -> int:
        """How many look on."""
        return len(self._viewers)

    def publish(self, shown: View) -> None:
        """Tell all viewers what has changed."""
        before, self.shown = self.shown, shown
        self._told_at = time.monotonic()
        self._give(_event(shown, before))
        is_whole = shown.seen.health.counted_at > 0
        for asked, needs_counts in self._asked:
            if not asked.done() and (is_whole or not needs_counts):
                asked.set_result(shown)
        self._asked = [(asked, needs_counts) for asked, needs_counts in self._asked if not asked.done()]
        self._want(bool(self._viewers) or self._told_at < self._until)

    async def beat(self) -> None:
        """Tell viewers that we are here while the store is silent, as long as the server runs."""
        while True:
            await asyncio.sleep(_BEAT_S)
            silent_s = time.monotonic() - self._told_at
            if self._viewers and silent_s > 2 * _BEAT_S:
                self._give(_written({"silent_s": int(silent_s)}))

    async def latest(self, oldest: float, wait_s: float, *, needs_counts: bool = False) -> View | None:
        """Return what the page shows, gathered anew if that is older than `oldest`; None if nothing ever was.

        With `needs_counts` it waits for what the store holds to be counted, which a large one takes a while for.
        """
        self._until = time.monotonic() + _INTEREST_S
        self._want(True)
        shown = self.shown
        if shown is None or shown.at < oldest or (needs_counts and not shown.seen.health.counted_at):
            asked: asyncio.Future[View] = asyncio.get_running_loop().create_future()
            self._asked.append((asked, needs_counts))
            await asyncio.wait([asked], timeout=wait_s)
            asked.cancel()
        return self.shown

    def enter(self) -> Viewer | None:
        """Return a new viewer with all there is to know waiting for it; None if there are too many."""
        if len(self._viewers) >= MOST_VIEWERS or self._is_ended:
            return None
        if not self._viewers:  # what was shown to the last ones may be long ago, and nobody has been waiting since
            self._told_at = time.monotonic()
            if self.shown is not None and time.time() - self.shown.at > _BEAT_S:
                self.shown = None
        viewer = Viewer()
        if self.shown is not None:
            viewer.give(_event(self.shown, None))
        self._viewers.add(viewer)
        self._want(True)
        return viewer

    def leave(self, viewer: Viewer) -> None:
        """Forget a viewer."""
        self._viewers.discard(viewer)

    def end(self) -> None:
        """Let all viewers go."""
        self._is_ended = True
        for viewer in self._viewers:
            viewer.end()

    def _give(self, event: bytes) -> None:
        for viewer in [viewer for viewer in self._viewers if not viewer.give(event)]:
            self._viewers.discard(viewer)
            viewer.end()


class Stream:
    """The answer to one viewer: events as they come, until it goes, is too slow, or the server ends."""

    def __init__(self, hub: Hub) -> None:
        self._hub = hub

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the events."""
        viewer = self._hub.enter()
        status = 200 if viewer is not None else 503
        headers = [(b"content-type", b"text/event-stream"), (b"x-accel-buffering", b"no")]
        await send({"type": "http.response.start", "status": status, "headers": headers})
        if viewer is not None:
            gone = asyncio.ensure_future(_gone(receive, viewer))
            try:
                await _send_all(viewer, send)
            except TimeoutError:
                return  # too slow: an answer that is not whole makes the server close the connection
            finally:
                gone.cancel()
                self._hub.leave(viewer)
        await send({"type": "http.response.body", "body": b"", "more_body": False})


async def _send_all(viewer: Viewer, send: Send) -> None:
    event: bytes | None = f"retry: {_RETRY_MS}\n\n".encode()
    while event is not None:
        # A viewer that reads nothing fills its socket, and sending waits: for a while only.
        await asyncio.wait_for(send({"type": "http.response.body", "body": event, "more_body": True}), _SLOW_S)
        event = await viewer.events.get()


async def _gone(receive: Receive, viewer: Viewer) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
    viewer.end()


def _event(shown: View, before: View | None) -> bytes:
    """Return what has changed as one event, or all there is with the page's version where nothing was before."""
    if before is None:
        return _written({"at": shown.at, "version": version(shown), "values": shown.values})
    old = before.values
    return _written({"at": shown.at, "values": {key: new for key, new in shown.values.items() if old.get(key) != new}})


def _written(said: object) -> bytes:
    return b"data: " + msgspec.json.encode(said) + b"\n\n"
