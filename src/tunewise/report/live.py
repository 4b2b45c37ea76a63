"""The live page's server: the page, its events, a snapshot without scripts, metrics, and whether it is up."""

import asyncio
import errno
import ipaddress
import socket
import time
from contextlib import suppress
from dataclasses import dataclass

import uvicorn
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response
from starlette.routing import Route

from tunewise.errors import InvalidSetting
from tunewise.report import live_page, metrics
from tunewise.report.live_access import Access
from tunewise.report.live_connection import Impatient
from tunewise.report.live_guard import OPEN, Guard, own_names
from tunewise.report.live_hub import MOST_VIEWERS, Hub, Stream
from tunewise.report.live_page import View
from tunewise.report.live_state import Snapshot
from tunewise.report.live_watch import TICK_S, Gathering, watched
from tunewise.settings import Settings

_FRESH_S = 2 * TICK_S
_WAIT_S = 5.0  # for a first look at the store, before a page says that it does not answer
_GONE_MS = 30_000  # after so long without a sign of the other side a connection is dropped by the system
_UNREAD_BYTES = 128 * 1024
_EVERYWHERE = ("0.0.0.0", "::")


@dataclass(frozen=True, slots=True)
class Listening:
    """A socket that browsers can reach, and the names they may use for it."""

    socket: socket.socket
    host: str
    port: int

    @property
    def is_private(self) -> bool:
        """Whether only this machine can reach it."""
        return ipaddress.ip_address(self.socket.getsockname()[0].partition("%")[0]).is_loopback

    def address(self, token: str) -> str:
        """Return what to open in a browser on this machine."""
        return f"http://{_in_url('127.0.0.1' if self.host in _EVERYWHERE else self.host)}:{self.port}/?token={token}"

    def address_elsewhere(self, token: str) -> str | None:
        """Return what to open on another machine of the network; None where only this one can reach it."""
        outside = _outside(self.socket.family) if self.host in _EVERYWHERE else None
        return f"http://{_in_url(outside)}:{self.port}/?token={token}" if outside else None


def listen(host: str, port: int) -> Listening:
    """Return a socket that listens, at any free port for port 0; raises InvalidSetting where that cannot be."""
    try:
        family, _, _, _, place = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
        bound = socket.create_server(place[:2], family=family, backlog=256)
    except (OSError, UnicodeError, OverflowError) as error:
        raise InvalidSetting(_why_not(host, port, error)) from error
    # Connections inherit these: one whose other side is gone, or does not read, takes little and ends.
    if hasattr(socket, "TCP_USER_TIMEOUT"):
        bound.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, _GONE_MS)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _UNREAD_BYTES)
    return Listening(bound, host, bound.getsockname()[1])


def serve(listening: Listening, settings: Settings, access: Access) -> None:
    """Serve the page of the store that settings name until somebody interrupts it."""
    server = _Server(settings)
    app = _app(server.hub, access, listening)
    server.configure(app)
    server.run(sockets=[listening.socket])


class _Server(uvicorn.Server):
    """Gathers while it is up, and lets all viewers go when it ends, so that none of them holds it."""

    def __init__(self, settings: Settings) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._gathering = Gathering(watched(settings), watched(settings), self._tell)
        self.hub = Hub(self._gathering.want)

    def configure(self, app: Starlette) -> None:
        """Take what requests are answered with."""
        super().__init__(
            uvicorn.Config(
                app,
                http=Impatient,
                loop="asyncio",
                ws="none",
                lifespan="off",
                log_config=None,  # addresses hold the token: nothing of uvicorn's is logged
                log_level="critical",
                access_log=False,
                server_header=False,
                limit_concurrency=MOST_VIEWERS + 100,
                timeout_graceful_shutdown=1,
            )
        )

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to listen and to gather."""
        self._loop = asyncio.get_running_loop()
        self._gathering.start()
        self._beating = asyncio.ensure_future(self.hub.beat())
        await super().startup(sockets)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Let everybody go and end."""
        self._gathering.end()
        self._beating.cancel()
        self.hub.end()
        await super().shutdown(sockets)

    def _tell(self, seen: Snapshot) -> None:
        shown = live_page.view(seen)  # in the thread that gathers
        assert self._loop is not None
        with suppress(RuntimeError):  # the server has just ended
            self._loop.call_soon_threadsafe(self.hub.publish, shown)


def _app(hub: Hub, access: Access, listening: Listening) -> Starlette:
    async def shown(*, needs_counts: bool = False) -> View:
        found = await hub.latest(time.time() - _FRESH_S, _WAIT_S, needs_counts=needs_counts)
        return found or live_page.view(Snapshot(time.time(), health=live_page.SILENT))

    async def page(request: Request) -> Response:
        return HTMLResponse(live_page.live(await shown()), headers={"Content-Security-Policy": live_page.policy()})

    async def snapshot(request: Request) -> Response:
        policy = {"Content-Security-Policy": live_page.static_policy()}
        return HTMLResponse(live_page.static(await shown()), headers=policy)

    async def numbers(request: Request) -> Response:
        return Response(metrics.text((await shown(needs_counts=True)).seen), media_type=metrics.CONTENT_TYPE)

    async def version(request: Request) -> Response:
        return PlainTextResponse(live_page.version(await shown()))

    async def health(request: Request) -> Response:
        return PlainTextResponse("ok\n")

    async def icon(request: Request) -> Response:
        return Response(status_code=204)

    names, cookie = own_names(listening.host), f"tunewise-{listening.port}"
    guard = Middleware(Guard, access=access, names=names, cookie=cookie)
    routes = [
        Route("/", page),
        Route("/events", Stream(hub), methods=["GET"]),
        Route("/snapshot.html", snapshot),
        Route("/metrics", numbers),
        Route("/version", version),
        Route("/favicon.ico", icon),
        Route(OPEN, health),
    ]
    return Starlette(routes=routes, middleware=[guard])


def _why_not(host: str, port: int, error: Exception) -> str:
    if isinstance(error, OSError) and error.errno == errno.EADDRINUSE:
        return f"port {port} of {host} is taken; name another with --port, or --port 0 for any that is free"
    if isinstance(error, OSError) and error.errno == errno.EACCES:
        return f"port {port} of {host} needs more rights than you have; name one above 1023 with --port"
    said = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return f"nothing can listen at {host}, port {port}: {said}; --host takes an address of this machine"


def _outside(family: int) -> str | None:
    """Return the address by which others reach this machine, or None; nothing is sent to find it."""
    place = ("192.0.2.1", 9) if family == socket.AF_INET else ("2001:db8::1", 9)
    with socket.socket(family, socket.SOCK_DGRAM) as probe, suppress(OSError):
        probe.connect(place)
        return str(probe.getsockname()[0])
    return None


def _in_url(host: str) -> str:
    return f"[{host}]" if ":" in host else host
