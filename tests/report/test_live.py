"""The live page's server: who gets in, what everybody gets, and that no viewer holds it or makes it grow."""

import asyncio
import functools
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from live_samples import Server, fill, run, serving, until

from limits import HANG_S
from tunewise.store import SqliteStore

pytest.importorskip("starlette", reason="starlette is not installed: pip install 'tunewise[dashboard]'")
pytest.importorskip("uvicorn", reason="uvicorn is not installed: pip install 'tunewise[dashboard]'")

PATHS = ("/", "/events", "/snapshot.html", "/metrics", "/version", "/favicon.ico", "/nothing", "/../etc/passwd")
OURS = ("localhost", "127.0.0.1", "[::1]", "192.168.1.7", socket.gethostname())
FOREIGN = ("evil.example", "localhost.evil.example", "127.0.0.1.evil.example", "", "localhost:1:2", "[::1].evil")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("live") / "home"


@pytest.fixture(scope="module")
def server(place: Path) -> Iterator[Server]:
    with serving(place) as started:
        yield started


@pytest.mark.parametrize("path", PATHS)
def test_without_the_token_nothing_is_told(server: Server, path: str) -> None:
    wrong = server.token[:-1] + ("a" if server.token[-1] != "a" else "b")
    attempts: list[tuple[str, dict[str, str]]] = [
        (path, {}),
        (f"{path}?token=", {}),
        (f"{path}?token={wrong}", {}),
        (path, {"Authorization": f"Bearer {wrong}"}),
        (path, {"Authorization": f"Basic {server.token}"}),
        (path, {"Cookie": f"tunewise-{server.port}={wrong}"}),
        (path, {"Cookie": f"tunewise-{server.port}={server.token}"}),
        (path, {"Cookie": f"other={server.token}; ;=;\x01"}),
    ]
    for asked, headers in attempts:
        status, told, text = server.ask(asked, headers=headers)
        assert (status, text) == (401, "Open the address that `tunewise live` printed.\n")
        assert "set-cookie" not in told


def test_whether_it_is_up_is_told_to_all(server: Server) -> None:
    assert server.ask("/healthz", headers={})[::2] == (200, "ok\n")


def test_the_token_comes_by_address_cookie_or_bearer(server: Server) -> None:
    status, told, _ = server.ask(f"/?token={server.token}", headers={})
    assert status == 200
    cookie, *flags = told["set-cookie"].split("; ")
    assert {"HttpOnly", "SameSite=Strict"} <= set(flags)
    assert server.ask("/", headers={"Cookie": cookie})[0] == 200
    assert server.ask("/", headers={"Authorization": f"bearer {server.token}"})[0] == 200
    assert "set-cookie" not in server.ask("/")[1]


def session_of(server: Server) -> str:
    """Return the cookie of a new session, as a browser brings it."""
    return server.ask(f"/?token={server.token}", headers={})[1]["set-cookie"].partition(";")[0]


def test_a_cookie_holds_a_session_and_nothing_of_the_token(server: Server) -> None:
    cookies = {session_of(server) for _ in range(3)}
    assert len(cookies) == 3
    for cookie in cookies:
        value = cookie.partition("=")[2]
        assert server.token not in cookie
        assert server.ask(f"/?token={value}", headers={})[0] == 401
        assert server.ask("/", headers={"Authorization": f"Bearer {value}"})[0] == 401
        assert server.ask("/", headers={"Cookie": cookie[:-1] + ("0" if cookie[-1] != "0" else "1")})[0] == 401


def test_sessions_outlive_a_restart_and_end_with_the_token(tmp_path: Path) -> None:
    home = tmp_path / "home"
    with serving(home) as first:
        headers = {"Cookie": session_of(first)}
    with serving(home, port=first.port) as second:
        assert second.ask("/version", headers=headers)[0] == 200
    (home / "live.token").unlink()
    with serving(home, port=first.port) as third:
        assert third.ask("/version", headers=headers)[0] == 401


@pytest.mark.parametrize("path", ["/", "/snapshot.html"])
def test_a_browser_is_sent_on_to_the_address_without_the_token(server: Server, path: str) -> None:
    headers = {"Accept": "text/html,*/*;q=0.8"}
    status, told, text = server.ask(f"{path}?token={server.token}", headers=headers)
    place = "." + path
    assert (status, told["location"], text) == (303, place, "")
    assert server.ask(path, headers={**headers, "Cookie": told["set-cookie"].partition(";")[0]})[0] == 200
    # A link on another site's page: a redirect would not bring the new cookie, as it is SameSite=Strict.
    status, told, text = server.ask(f"{path}?token={server.token}", headers={**headers, "Sec-Fetch-Site": "cross-site"})
    assert (status, told["referrer-policy"]) == (200, "no-referrer")
    assert f'http-equiv="refresh" content="0; url={place}"' in text
    assert server.token not in text + str(told)
    assert "set-cookie" in told


@pytest.mark.parametrize("host", OURS)
def test_names_of_this_machine_are_answered(server: Server, host: str) -> None:
    for port in ("", ":1234"):
        headers = {"Host": f"{host}{port}", "Authorization": f"Bearer {server.token}"}
        assert server.ask("/version", headers=headers)[0] == 200


@pytest.mark.parametrize("host", FOREIGN)
def test_foreign_names_are_refused_whatever_they_bring(server: Server, host: str) -> None:
    for path in ("/", "/healthz", f"/?token={server.token}"):
        status, told, _ = server.ask(path, headers={"Host": host, "Authorization": f"Bearer {server.token}"})
        assert status == 421
        assert "set-cookie" not in told


def test_everything_is_sent_with_headers_that_protect(server: Server) -> None:
    for path, headers in (("/", None), ("/snapshot.html", None), ("/metrics", None), ("/healthz", {}), ("/", {})):
        told = server.ask(path, headers=headers)[1]
        policy = told["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "frame-ancestors 'none'" in policy
        assert "unsafe" not in policy
        assert (told["cache-control"], told["referrer-policy"]) == ("no-store", "no-referrer")
        assert told["x-content-type-options"] == "nosniff"
        assert "server" not in told


def test_the_snapshot_has_the_data_and_no_script(server: Server, place: Path) -> None:
    SqliteStore(place).show(run("here", time.time(), name="<i>here</i>"))
    until(lambda: "&lt;i&gt;here" in server.ask("/snapshot.html")[2])
    text = server.ask("/snapshot.html")[2]
    assert "<script" not in text
    assert "<i>" not in text
    assert not re.search(r"\b(src|action|background)=|url\(|@import|<link|<iframe|http://|https://", text)


def test_metrics_are_told_with_what_the_store_holds(server: Server) -> None:
    status, told, text = server.ask("/metrics")
    assert status == 200
    assert told["content-type"].startswith("text/plain; version=0.0.4")
    assert "tunewise_store_up 1\n" in text


def test_all_viewers_get_the_same(server: Server, place: Path) -> None:
    store = SqliteStore(place)
    with server.events() as one, server.events() as other:
        first, second = next(one), next(other)
        assert first["version"] == second["version"] == server.ask("/version")[2]
        assert first["values"].keys() == second["values"].keys()
        store.show(run("seen", time.time(), name="by all", began=time.time() + 1_000))
        changes = [next(said for said in events if "run-0-decision.text" in said["values"]) for events in (one, other)]
        assert changes[0] == changes[1]
        assert changes[0]["values"]["run-0-decision.text"] == "by all"
        assert len(changes[0]["values"]) < len(first["values"])


def open_files(process: "subprocess.Popen[str]") -> int:
    return len(list(Path(f"/proc/{process.pid}/fd").iterdir()))


def memory_of(process: "subprocess.Popen[str]") -> int:
    """Return the bytes of memory that a process has."""
    (found,) = re.findall(r"VmRSS:\s+(\d+) kB", Path(f"/proc/{process.pid}/status").read_text())
    return 1024 * int(found)


@pytest.mark.parametrize("ticks", [4, pytest.param(90, marks=pytest.mark.full)])
def test_viewers_that_do_not_read_are_let_go_and_cost_no_memory(tmp_path: Path, ticks: int) -> None:
    home = tmp_path / "home"
    store = SqliteStore(home)
    with serving(home) as server:
        request = f"GET /events HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {server.token}\r\n\r\n"
        fill(store, lambda: "x" * 150, time.time())
        with server.events() as events:
            next(events)
            before, files = memory_of(server.process), open_files(server.process)
            deaf = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(20)]
            for one in deaf:
                one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
                one.sendall(request.encode())
            for tick in range(ticks):
                fill(store, lambda: f"{tick}" * 150, time.time())  # noqa: B023
                next(events)  # who reads is served all the while
            assert memory_of(server.process) - before < 20 * 2**20
            if ticks > 60:  # long enough for the system to give them up
                until(lambda: open_files(server.process) < files + 5, seconds=60)
            for one in deaf:
                one.close()


@pytest.mark.parametrize("sent", [b"", b"GET /healthz HT", b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\nGET"])
def test_who_never_asks_is_let_go(sent: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    from tunewise.report import live_connection

    monkeypatch.setattr(live_connection, "PATIENCE_S", 0.2)
    assert asyncio.run(answer_to(sent)).count(b"HTTP/1.1 ") == sent.count(b"\r\n\r\n")


def test_who_waits_for_an_answer_is_not_let_go(monkeypatch: pytest.MonkeyPatch) -> None:
    from tunewise.report import live_connection

    monkeypatch.setattr(live_connection, "PATIENCE_S", 0.05)
    assert asyncio.run(answer_to(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")).endswith(b"late")


async def answer_to(sent: bytes) -> bytes:
    """Return all that somebody hears who sends this and waits until the connection is closed."""
    import uvicorn

    from tunewise.report.live_connection import Impatient

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await asyncio.sleep(0.3)
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"4")]})
        await send({"type": "http.response.body", "body": b"late"})

    config = uvicorn.Config(app, http=Impatient, lifespan="off", log_config=None, timeout_keep_alive=60)
    config.load()
    state = uvicorn.server.ServerState()
    make = functools.partial(Impatient, config=config, server_state=state, app_state={})
    server = await asyncio.get_running_loop().create_server(make, "127.0.0.1", 0)
    reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
    try:
        writer.write(sent)
        return await asyncio.wait_for(reader.read(), 30)
    finally:
        writer.close()
        server.close()


def test_ctrl_c_ends_it_at_once_with_viewers_looking_on(tmp_path: Path) -> None:
    with serving(tmp_path / "home") as server, server.events() as events:
        next(events)
        server.process.send_signal(signal.SIGINT)
        _, err = server.process.communicate(timeout=HANG_S)
        assert server.process.returncode == 0
        assert err.splitlines()[-1] == "ended"
        assert "Traceback" not in err
        assert server.token not in err
        assert list(events) == []


def test_a_port_that_is_taken_is_told(server: Server) -> None:
    command = [sys.executable, "-m", "tunewise", "live", "--port", str(server.port)]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=HANG_S, check=False)
    assert ran.returncode == 1
    assert ran.stderr.startswith(f"error: port {server.port} of 127.0.0.1 is taken; name another with --port")


def test_a_store_in_trouble_is_told(tmp_path: Path) -> None:
    home = tmp_path / "home"
    SqliteStore(home).show(run("r", time.time(), name="before"))
    with serving(home) as server, server.events() as events:
        assert next(events)["values"]["run-0-decision.text"] == "before"
        for path in home.glob("store.sqlite3*"):
            path.write_bytes(b"not a database at all" * 1_000)
        told = next(said["values"] for said in events if said["values"].get("store-trouble.hidden") is False)
        assert told["store-trouble-text.text"].startswith("In trouble: ")
        assert len(list(home.glob("store.sqlite3.damaged*"))) == 0  # one who looks on renames nothing
