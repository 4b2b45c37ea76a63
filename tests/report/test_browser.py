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
EVENTS = (
    "[...document.querySelectorAll('*')].flatMap(e => e.getAttributeNames()).filter(n => n.startsWith('on')).length"
)


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    assert BROWSER is not None
    with Browser(BROWSER, tmp_path_factory.mktemp("profile")) as started:
        yield started


def written(place: Path, name: samples.Name = "", large: bool = False) -> Path:
    model = chain(60) if large else samples.model(name)
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
    browser.open(written(tmp_path, large=True), width=width)
    assert browser.value("document.documentElement.scrollWidth") <= width
    assert browser.value("(b => b.scrollWidth > b.clientWidth)(document.querySelector('.tree'))")


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
