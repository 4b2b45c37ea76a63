"""A browser driven through its DevTools protocol by the standard library alone, as far as a test of pages needs it."""

import base64
import json
import os
import re
import shutil
import socket
import struct
import subprocess
import time
import urllib.request
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from limits import HANG_S

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
_TROUBLE = {"Log.entryAdded", "Runtime.consoleAPICalled", "Runtime.exceptionThrown"}


def find_browser() -> str | None:
    """Return the path of a browser that speaks the protocol, or None."""
    return next((path for name in BROWSERS if (path := shutil.which(name))), None)


class Browser:
    """A headless browser with one page; what its console says is collected in `trouble`."""

    def __init__(self, path: str, profile: Path) -> None:
        flags = ("--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run", "--remote-debugging-port=0")
        self._process = subprocess.Popen(
            [path, *flags, f"--user-data-dir={profile}", "about:blank"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.trouble: list[dict[str, Any]] = []
        self._loaded, self._asked = 0, 0

    def __enter__(self) -> Self:
        try:
            port = self._port()
            self._socket = socket.create_connection(("127.0.0.1", port), timeout=HANG_S)
            self._file = self._socket.makefile("rb")
            self._shake_hands(port, _first_page(port))
            for domain in ("Page", "Log", "Runtime"):
                self.call(f"{domain}.enable")
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()
        self._socket.close()
        self._end()

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        """Return the result of a command of the protocol."""
        self._asked += 1
        self._send(json.dumps({"id": self._asked, "method": method, "params": params}).encode())
        while True:
            message = self._receive()
            if message.get("id") == self._asked:
                assert "result" in message, message
                result: dict[str, Any] = message["result"]
                return result

    def open(self, page: Path | str, *, width: int, scheme: str = "light") -> None:
        """Show a file or an address at a width, in light or dark colours, and wait until it is there."""
        self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=width < 500
        )
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        before = self._loaded
        self.call("Page.navigate", url=page.as_uri() if isinstance(page, Path) else page)
        while self._loaded == before:
            self._receive()

    def value(self, expression: str) -> Any:
        """Return the value of an expression in the page."""
        return self.call("Runtime.evaluate", expression=expression, returnByValue=True)["result"].get("value")

    def _port(self) -> int:
        assert self._process.stderr is not None
        for line in self._process.stderr:
            found = re.search(r"ws://127\.0\.0\.1:(\d+)/", line)
            if found:
                return int(found[1])
        raise RuntimeError("the browser ended before it listened")

    def _shake_hands(self, port: int, path: str) -> None:
        key = base64.b64encode(os.urandom(16)).decode()
        lines = (
            f"GET {path} HTTP/1.1",
            f"Host: 127.0.0.1:{port}",
            "Upgrade: websocket",
            "Connection: Upgrade",
            f"Sec-WebSocket-Key: {key}",
            "Sec-WebSocket-Version: 13",
        )
        self._socket.sendall("\r\n".join([*lines, "", ""]).encode())
        while self._file.readline().strip():
            pass

    def _send(self, raw: bytes) -> None:
        mask = os.urandom(4)
        size = bytes([0x80 | len(raw)]) if len(raw) < 126 else b"\xfe" + struct.pack(">H", len(raw))
        self._socket.sendall(b"\x81" + size + mask + bytes(byte ^ mask[i % 4] for i, byte in enumerate(raw)))

    def _receive(self) -> dict[str, Any]:
        raw, is_last = b"", False
        while not is_last:
            first, size = self._file.read(2)
            is_last = bool(first & 0x80)
            if size == 126:
                (size,) = struct.unpack(">H", self._file.read(2))
            elif size == 127:
                (size,) = struct.unpack(">Q", self._file.read(8))
            raw += self._file.read(size)
        message: dict[str, Any] = json.loads(raw)
        self._loaded += message.get("method") == "Page.loadEventFired"
        if message.get("method") in _TROUBLE:
            self.trouble.append(message)
        return message

    def _end(self) -> None:
        self._process.terminate()
        try:
            self._process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        if self._process.stderr is not None:
            self._process.stderr.close()


def _first_page(port: int) -> str:
    """Return the address of the first page's socket; the browser may need a moment to have one."""
    for _ in range(100):
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/json", timeout=HANG_S) as answer:
            pages = [target for target in json.load(answer) if target["type"] == "page"]
        if pages:
            return str(pages[0]["webSocketDebuggerUrl"]).partition(str(port))[2]
        time.sleep(0.1)
    raise RuntimeError("the browser opened no page")
