"""Who may see the live page: those who have its token, and only under a name that this machine has."""

import ipaddress
import socket
from collections.abc import Iterable
from http.cookies import CookieError, SimpleCookie
from urllib.parse import parse_qs

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tunewise.report.live_token import is_same

OPEN = "/healthz"  # tells nothing, so it needs no token
_HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}


class Guard:
    """Lets requests through that bring the token: as `?token=`, as the cookie that it then gives, or as a bearer.

    A browser that was led here under a foreign name (DNS rebinding) is refused whatever it brings.
    """

    def __init__(self, app: ASGIApp, *, token: str, names: Iterable[str], cookie: str) -> None:
        self._app, self._token, self._cookie = app, token, cookie
        self._names = {"localhost", *(name.lower() for name in names)}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or let it through."""
        if scope["type"] != "http":
            return
        headers = Headers(scope=scope)
        given = parse_qs(scope["query_string"].decode("latin-1")).get("token", [""])[-1]
        refusal = self._refusal(scope["path"], headers, given)
        is_new = refusal is None and is_same(self._token, given)
        cookie = self._new_cookie(scope.get("scheme") == "https") if is_new else None

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                told = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    told.setdefault(name, value)
                if cookie is not None:
                    told.append("Set-Cookie", cookie)
            await send(message)

        await (refusal or self._app)(scope, receive, send_guarded)

    def _refusal(self, path: str, headers: Headers, given: str) -> ASGIApp | None:
        """Return the answer to one who may not see what is at a path; None for one who may."""
        if not self._is_known(headers.get("host", "")):
            return PlainTextResponse("This server has another name.\n", status_code=421)
        if path != OPEN and not self._may_see(headers, given):
            return PlainTextResponse("Open the address that `tunewise live` printed.\n", status_code=401)
        return None

    def _new_cookie(self, is_secure: bool) -> str:
        flags = "Path=/; HttpOnly; SameSite=Strict" + ("; Secure" if is_secure else "")
        return f"{self._cookie}={self._token}; {flags}"

    def _is_known(self, host: str) -> bool:
        """Return whether a Host header names us: by a name of ours, or an address, which is no foreign name."""
        name = host.rpartition(":")[0] if not host.endswith("]") and ":" in host else host
        name = name.strip("[]").rstrip(".").lower()
        return name in self._names or _is_address(name)

    def _may_see(self, headers: Headers, given: str) -> bool:
        kind, _, bearer = headers.get("authorization", "").partition(" ")
        return any(
            is_same(self._token, said)
            for said in (given, bearer.strip() if kind.lower() == "bearer" else "", self._in_cookie(headers))
        )

    def _in_cookie(self, headers: Headers) -> str:
        try:
            found = SimpleCookie(headers.get("cookie", "")).get(self._cookie)
        except CookieError:
            return ""
        return found.value if found is not None else ""


def own_names(host: str) -> set[str]:
    """Return the names under which browsers may reach a server that listens at `host`."""
    machine = socket.gethostname().lower()
    return {host, machine, machine.partition(".")[0], f"{machine.partition('.')[0]}.local"} - {""}


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name.partition("%")[0])
    except ValueError:
        return False
    return True
