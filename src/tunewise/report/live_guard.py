"""Who may see the live page: those who have its token, and only under a name that this machine has."""

import ipaddress
import socket
from collections.abc import Iterable
from http.cookies import CookieError, SimpleCookie
from urllib.parse import parse_qs, quote

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import HTMLResponse, PlainTextResponse, RedirectResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tunewise.report.live_access import LIFETIME_S, Access

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


_ONWARD = '<!doctype html><meta http-equiv="refresh" content="0; url={path}"><a href="{path}">Open the page</a>\n'


class Guard:
    """Lets requests through that bring the token, as `?token=` or as a bearer, or the cookie of an open session.

    The token in an address opens a session, and a browser is sent on to the same address without the token. A browser
    that was led here under a foreign name (DNS rebinding) is refused whatever it brings.
    """

    def __init__(self, app: ASGIApp, *, access: Access, names: Iterable[str], cookie: str) -> None:
        self._app, self._access, self._cookie = app, access, cookie
        self._names = {"localhost", *(name.lower() for name in names)}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or let it through."""
        if scope["type"] != "http":
            return
        headers = Headers(scope=scope)
        given = parse_qs(scope["query_string"].decode("latin-1")).get("token", [""])[-1]
        refusal = self._refusal(scope["path"], headers, given)
        is_new = refusal is None and self._access.is_token(given)
        cookie = self._new_cookie(scope.get("scheme") == "https") if is_new else None

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                told = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    told.setdefault(name, value)
                if cookie is not None:
                    told.append("Set-Cookie", cookie)
            await send(message)

        onward = _onward(scope["path"], headers) if is_new else None
        await (refusal or onward or self._app)(scope, receive, send_guarded)

    def _refusal(self, path: str, headers: Headers, given: str) -> ASGIApp | None:
        """Return the answer to one who may not see what is at a path; None for one who may."""
        if not self._is_known(headers.get("host", "")):
            return PlainTextResponse("This server has another name.\n", status_code=421)
        if path != OPEN and not self._may_see(headers, given):
            return PlainTextResponse("Open the address that `tunewise live` printed.\n", status_code=401)
        return None

    def _new_cookie(self, is_secure: bool) -> str:
        flags = f"Path=/; Max-Age={LIFETIME_S}; HttpOnly; SameSite=Strict" + ("; Secure" if is_secure else "")
        return f"{self._cookie}={self._access.open_session()}; {flags}"

    def _is_known(self, host: str) -> bool:
        """Return whether a Host header names us: by a name of ours, or an address, which is no foreign name."""
        name = host.rpartition(":")[0] if not host.endswith("]") and ":" in host else host
        name = name.strip("[]").rstrip(".").lower()
        return name in self._names or _is_address(name)

    def _may_see(self, headers: Headers, given: str) -> bool:
        kind, _, bearer = headers.get("authorization", "").partition(" ")
        tokens = given, bearer.strip() if kind.lower() == "bearer" else ""
        return any(map(self._access.is_token, tokens)) or self._access.is_session(self._in_cookie(headers))

    def _in_cookie(self, headers: Headers) -> str:
        try:
            found = SimpleCookie(headers.get("cookie", "")).get(self._cookie)
        except CookieError:
            return ""
        return found.value if found is not None else ""


def _onward(path: str, headers: Headers) -> ASGIApp | None:
    """Return what sends a browser on to a path without the token; None for a program, which shows no address."""
    if "text/html" not in headers.get("accept", ""):
        return None
    place = "./" + quote(path.rpartition("/")[2])  # relative: a proxy may have put us below a path of its own
    if headers.get("sec-fetch-site") == "cross-site":  # redirected from another site's link, it would bring no cookie
        return HTMLResponse(_ONWARD.format(path=place))
    return RedirectResponse(place, status_code=303)


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
