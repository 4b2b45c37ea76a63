"""The live page as a browser shows it: it moves by itself, comes back by itself, and no name becomes an element."""

import itertools
import threading
import time
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from devtools import Browser, find_browser
from live_samples import Server, fill, run, serving, until
from test_page import hostile

from tunewise.store import SqliteStore

BROWSER = find_browser()
pytest.importorskip("starlette", reason="starlette is not installed: pip install 'tunewise[dashboard]'")
pytest.importorskip("uvicorn", reason="uvicorn is not installed: pip install 'tunewise[dashboard]'")
pytestmark = pytest.mark.skipif(BROWSER is None, reason="no Chromium is installed")

WIDTHS = (1280, 390)
COUNT = "document.querySelectorAll('*').length"
EVENTS = (
    "[...document.querySelectorAll('*')].flatMap(e => e.getAttributeNames()).filter(n => n.startsWith('on')).length"
)
STATUS = "document.getElementById('status').textContent"


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    assert BROWSER is not None
    with Browser(BROWSER, tmp_path_factory.mktemp("profile")) as started:
        yield started


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("live", numbered=True) / "home"


@pytest.fixture(scope="module")
def server(place: Path) -> Iterator[Server]:
    with serving(place) as started:
        yield started


class Quiet(SimpleHTTPRequestHandler):
    """Serves files and says nothing."""

    def log_message(self, format: str, *args: object) -> None:
        pass


def text_of(browser: Browser, name: str) -> str:
    return str(browser.value(f"document.getElementById({name!r}).textContent"))


def is_live(browser: Browser) -> bool:
    return bool(browser.value(STATUS) == "Live")


def until_shown(browser: Browser, name: str, text: str) -> None:
    until(lambda: text_of(browser, name) == text)


def open_live(browser: Browser, server: Server, *, width: int = 1280, scheme: str = "light") -> None:
    browser.open(server.address, width=width, scheme=scheme)
    until(lambda: is_live(browser))


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("names", ["gemm", "endless" * 15, "<b>&amp;\u202e"])
def test_nothing_sticks_out_and_the_console_is_silent(
    browser: Browser, server: Server, place: Path, width: int, scheme: str, names: str
) -> None:
    fill(SqliteStore(place), lambda: names, time.time())
    browser.trouble.clear()
    open_live(browser, server, width=width, scheme=scheme)
    until_shown(browser, "run-0-decision", names)
    assert browser.value("innerWidth") == width
    assert browser.value("document.documentElement.scrollWidth") <= width
    assert not browser.trouble


@pytest.mark.parametrize("count", [450, pytest.param(10_000, marks=pytest.mark.full)])
def test_no_name_becomes_an_element(browser: Browser, server: Server, place: Path, count: int) -> None:
    store = SqliteStore(place)
    open_live(browser, server)
    fill(store, lambda: "plain", time.time())
    until_shown(browser, "run-0-decision", "plain")
    plain = browser.value(COUNT)
    browser.trouble.clear()
    names = hostile(count)
    for first in range(0, count, 150):  # as many as one filling takes
        last, now = f"from {first}", time.time()
        fill(store, itertools.cycle(names[first : first + 150]).__next__, now)
        store.show(run("last", now + 0.5, name=last, state="won"))
        until_shown(browser, "finished-0-0", last)
        assert browser.value(COUNT) == plain
        assert browser.value(EVENTS) == 0
    assert not browser.trouble


def test_a_run_that_goes_on_moves_without_a_reload(browser: Browser, server: Server, place: Path) -> None:
    store, began = SqliteStore(place), time.time() + 100  # the newest of all runs
    store.show(run("moving", time.time(), name="moving", done=10, began=began))
    open_live(browser, server)
    browser.value("window.mark = 1")
    until(lambda: text_of(browser, "run-0-state").startswith("10 of 100"))
    line = "document.getElementById('run-0-curve-line').getAttribute('points')"
    before = browser.value(line)
    store.show(run("moving", time.time(), name="moving", done=60, began=began, curve=[[1, 8e-3], [55, 1e-4]]))
    until(lambda: text_of(browser, "run-0-state").startswith("60 of 100"))
    assert browser.value(line) != before
    store.show(run("moving", time.time(), name="moving", done=100, began=began, state="won"))
    until_shown(browser, "finished-0-0", "moving")
    assert browser.value("window.mark") == 1


def test_the_page_comes_back_after_its_server_was_killed(browser: Browser, tmp_path: Path) -> None:
    home = tmp_path / "killed"
    store = SqliteStore(home)
    with serving(home) as first:
        open_live(browser, first)
        browser.value("window.mark = 1")
        assert text_of(browser, "run-none").startswith("Nothing is being tuned. To start, run: tunewise tune")
        first.process.kill()
        first.process.wait()
        until(lambda: browser.value(STATUS) == "Connection lost, trying again")
    store.show(run("later", time.time(), name="later"))
    with serving(home, port=first.port) as second:
        assert second.token == first.token
        until(lambda: is_live(browser))
        until_shown(browser, "run-0-decision", "later")
        assert browser.value("window.mark") == 1


def test_a_page_whose_token_is_gone_says_so(browser: Browser, tmp_path: Path) -> None:
    with serving(tmp_path / "home") as first:
        open_live(browser, first)
    (tmp_path / "home" / "live.token").unlink()
    with serving(tmp_path / "home", port=first.port):
        until(lambda: "another token" in browser.value(STATUS))


def test_a_link_on_the_page_of_another_site_opens_it(browser: Browser, server: Server, tmp_path: Path) -> None:
    browser.call("Network.clearBrowserCookies")
    page = tmp_path / "link.html"
    page.write_text(f'<a href="{server.address}">look</a>')
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(tmp_path))) as other:
        threading.Thread(target=other.serve_forever).start()
        try:
            browser.open(f"http://localhost:{other.server_port}/link.html", width=1280)  # 127.0.0.1 is another site
            browser.value("document.querySelector('a').click()")
            until(lambda: bool(browser.value("document.getElementById('status') !== null")) and is_live(browser))
        finally:
            other.shutdown()
    assert server.token not in browser.value("location.href")


def test_the_token_leaves_the_address(browser: Browser, server: Server) -> None:
    open_live(browser, server)
    assert server.token not in browser.value("location.href")
    browser.open(f"http://127.0.0.1:{server.port}/", width=1280)  # the cookie opens it now
    until(lambda: is_live(browser))
    assert browser.value("document.cookie") == ""  # no script can read it
