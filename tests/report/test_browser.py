"""The page as a browser shows it: nothing sticks out, the console is silent, and no name becomes an element."""

from collections.abc import Iterator
from datetime import date
from pathlib import Path

import pytest
import samples
from devtools import Browser, find_browser
from test_outline import chain
from test_page import harmless, hostile, slots_of

from tunewise.report.findings import gather
from tunewise.report.page import save

BROWSER = find_browser()
pytestmark = pytest.mark.skipif(BROWSER is None, reason="no Chromium is installed")

WIDTHS = (1280, 390)
COUNT = "document.querySelectorAll('*').length"
HINT = "getComputedStyle(document.querySelector('.sideways')).display"
EVENTS = (
    "[...document.querySelectorAll('*')].flatMap(e => e.getAttributeNames()).filter(n => n.startsWith('on')).length"
)


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    assert BROWSER is not None
    with Browser(BROWSER, tmp_path_factory.mktemp("profile")) as started:
        yield started


def written(place: Path, name: samples.Name = "", leaves: int = 0) -> Path:
    model = chain(leaves) if leaves else samples.model(name)
    findings = gather(samples.data(name), model, samples.measured(name), today=date(2026, 1, 31))
    save(findings, place / "report.html")
    return place / "report.html"


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_sticks_out_and_the_console_is_silent(
    browser: Browser, tmp_path: Path, width: int, scheme: str
) -> None:
    browser.trouble.clear()
    browser.open(written(tmp_path), width=width, scheme=scheme)
    assert browser.value("innerWidth") == width
    assert browser.value("document.documentElement.scrollWidth") <= width
    assert not browser.trouble


@pytest.mark.parametrize("width", WIDTHS)
def test_a_large_tree_scrolls_in_its_own_box(browser: Browser, tmp_path: Path, width: int) -> None:
    browser.open(written(tmp_path, leaves=60), width=width)
    assert browser.value("document.documentElement.scrollWidth") <= width
    assert browser.value("(b => b.scrollWidth > b.clientWidth)(document.querySelector('.tree'))")


def test_a_tree_that_is_a_little_too_wide_is_made_to_fit(browser: Browser, tmp_path: Path) -> None:
    place = written(tmp_path, leaves=10)
    browser.open(place, width=1280)
    assert browser.value("Number(document.querySelector('.tree svg').getAttribute('width'))") > 1280
    assert browser.value("(b => b.scrollWidth <= b.clientWidth)(document.querySelector('.tree'))")
    assert browser.value(HINT) == "none"
    browser.open(place, width=390)
    assert browser.value("(b => b.scrollWidth > b.clientWidth)(document.querySelector('.tree'))")
    assert browser.value(HINT) == "block"


def test_a_tree_that_scrolls_says_so(browser: Browser, tmp_path: Path) -> None:
    browser.open(written(tmp_path, leaves=60), width=1280)
    assert browser.value(HINT) == "block"


def test_a_large_tree_is_printed_whole(browser: Browser, tmp_path: Path) -> None:
    browser.open(written(tmp_path, leaves=60), width=800)
    browser.call("Emulation.setEmulatedMedia", media="print")
    try:
        assert browser.value("(b => b.scrollWidth <= b.clientWidth)(document.querySelector('.tree'))")
        assert browser.value("document.documentElement.scrollWidth") <= 800
        assert browser.value(HINT) == "none"
    finally:
        browser.call("Emulation.setEmulatedMedia", media="")


@pytest.mark.parametrize("width", WIDTHS)
def test_names_without_end_do_not_widen_the_page(browser: Browser, tmp_path: Path, width: int) -> None:
    browser.open(written(tmp_path, "endless" * 15), width=width)
    assert browser.value("document.documentElement.scrollWidth") <= width


def test_the_colours_follow_the_scheme(browser: Browser, tmp_path: Path) -> None:
    place, seen = written(tmp_path), []
    for scheme in ("light", "dark"):
        browser.open(place, width=1280, scheme=scheme)
        seen.append(browser.value("getComputedStyle(document.body).backgroundColor"))
    assert seen == ["rgb(255, 255, 255)", "rgb(13, 17, 23)"]


@pytest.mark.parametrize("count", [96, pytest.param(4_000, marks=pytest.mark.full)])
def test_the_browser_sees_names_as_text(browser: Browser, tmp_path: Path, count: int) -> None:
    browser.trouble.clear()
    for names in slots_of(hostile(count)):
        browser.open(written(tmp_path, harmless(names)), width=1280)
        plain = browser.value(COUNT)
        browser.open(written(tmp_path, names), width=1280)
        assert browser.value(COUNT) == plain, names
        assert browser.value(EVENTS) == 0, names
    assert not browser.trouble
