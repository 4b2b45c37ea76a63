"""The live page as text: the same elements whatever there is to tell, values that match it, and nothing loaded."""

import itertools
import re
import time
from dataclasses import replace
from pathlib import Path

import pytest
from live_samples import fill, run
from test_page import Reader, hostile

from tunewise.decision import Proposal
from tunewise.errors import InvalidFile
from tunewise.report import live_page
from tunewise.report.live_page import live, save, static, version, view
from tunewise.report.live_slots import Slots
from tunewise.report.live_state import Health, Snapshot, snapshot
from tunewise.store import MemoryStore, Sign
from tunewise.testing.store_contract import subject, won

NOW = time.time()
ATTRIBUTES = {"class", "d", "hidden", "points", "transform", "width", "y"}


def shown(*names: str, each: int = 30) -> live_page.View:
    store = MemoryStore()
    fill(store, itertools.cycle(names).__next__, NOW, each=each)
    proposals = (Proposal(names[0], "expert", 1, {"tile": 8}),)
    store.conclude(subject(names[-1]), replace(won(), source=names[0], proposals=proposals))
    store.miss(subject(names[0]))
    return view(snapshot(store, NOW))


def test_a_full_page_has_the_elements_of_an_empty_one() -> None:
    empty, full = Reader(static(view(Snapshot(NOW)))), Reader(static(shown("gemm")))
    assert full.elements == empty.elements
    assert view(Snapshot(NOW)).values.keys() == shown("gemm").values.keys()


@pytest.mark.parametrize("count", [600, pytest.param(10_000, marks=pytest.mark.full)])
def test_no_name_becomes_markup(count: int) -> None:
    plain, names = Reader(static(shown("plain"))), hostile(count)
    for first in range(0, count, 150):
        reader = Reader(static(shown(*names[first : first + 150])))
        assert reader.elements == plain.elements
        assert reader.keys.keys() == plain.keys.keys()
        assert not reader.strange
        assert not reader.open


def test_every_value_has_its_element_and_stands_in_it() -> None:
    page = shown("<gemm>")
    ids = re.findall(r' id="([^"]+)"', static(page))
    assert len(ids) == len(set(ids))
    for key in page.values:
        name, _, part = key.rpartition(".")
        assert name in ids
        assert part == "text" or part in ATTRIBUTES
    element = re.search(r'<h3 id="run-0-decision">(.*?)</h3>', static(page))
    assert element is not None
    assert element[1] == "&lt;gemm&gt;"
    assert page.values["run-0-decision.text"] == "<gemm>"


def test_what_viewers_are_sent_is_what_the_page_shows() -> None:
    page, slots = shown("gemm"), Slots()
    live_page._body(slots, page.seen)
    assert slots.values == page.values


def test_the_script_knows_every_attribute_that_changes() -> None:
    (listed,) = re.findall(r"ATTRIBUTES = new Set\(\[(.*?)\]\)", live_page.script())
    known = set(re.findall(r'"(\w+)"', listed))
    assert known == ATTRIBUTES - {"hidden"}
    assert not any(name.startswith("on") for name in known)
    assert "innerHTML" not in live_page.script()
    assert "</" not in live_page.script()


def test_the_static_page_runs_and_loads_nothing() -> None:
    text = static(shown("gemm"))
    assert "<script" not in text
    assert not re.search(r"\b(src|action|background)=|url\(|@import|<link|<iframe", text)
    assert "default-src &#x27;none&#x27;" in text


def test_the_policy_allows_our_own_script_and_style_alone() -> None:
    text = live(shown("gemm"))
    assert text.count("<script") == text.count("<style") == 1
    policy = live_page.policy()
    for tag, inside in re.findall(r"<(script|style)>(.*?)</\1>", text, re.DOTALL):
        assert f"{tag}-src 'sha256-{live_page.digest_of(inside)}'" in policy
    assert "unsafe" not in policy


def test_what_is_shown_is_no_part_of_the_version() -> None:
    assert version(shown("gemm")) == version(view(Snapshot(NOW)))


def test_pictures_tables_and_headings_say_what_they_are() -> None:
    reader = Reader(static(shown("gemm")))
    text = static(shown("gemm"))
    assert all("aria-labelledby=" in tag or "aria-hidden=" in tag for tag in re.findall(r"<svg[^>]*>", text))
    assert text.count("<table") == text.count("<caption")
    assert reader.elements.count("h1") == 1
    assert 'aria-live="polite"' in live(shown("gemm"))


def test_lists_end_with_how_many_more_there_are() -> None:
    values = shown("gemm").values
    assert values["run-more-text.text"] == "and 24 more runs"
    assert values["nodes-more-text.text"] == "and 6 more nodes"
    assert shown("gemm", each=2).values["nodes-more.hidden"] is True


def test_nothing_to_tell_is_told_in_words() -> None:
    text = static(view(Snapshot(NOW)))
    assert "Nothing is being tuned. To start, run: <code>tunewise tune gemm" in text
    values = view(Snapshot(NOW)).values
    assert values["run-none.hidden"] is False
    assert shown("gemm").values["run-none.hidden"] is True


def test_trouble_with_the_store_is_told() -> None:
    values = view(Snapshot(NOW, health=Health(trouble="the disk is full"))).values
    assert values["store-trouble.hidden"] is False
    assert values["store-trouble-text.text"] == "In trouble: the disk is full"


CURVES = (
    [],
    [[1, 1e-3]],
    [[1, 1e-3], [2, 1e-3 * 0.999_999_9]],
    [[5, 1e-11], [10, 9e11]],
    [[10**15, 1.0]],
    [[n, 1 / n] for n in range(1, 200)],
)


@pytest.mark.parametrize("curve", CURVES, ids=len)
@pytest.mark.parametrize("default_s", [None, 1e-3, 5e11])
@pytest.mark.parametrize("budget", [0, 1, 200])
def test_every_curve_stays_inside_its_frame(curve: list[list[float]], default_s: float | None, budget: int) -> None:
    store = MemoryStore()
    store.show(run("r", NOW, curve=curve, default_s=default_s, budget=budget, done=7))
    values = view(snapshot(store, NOW)).values
    assert values["run-0-curve.hidden"] is (not curve)
    points = re.findall(r"([\d.e+-]+),([\d.e+-]+)", str(values["run-0-curve-line.points"]))
    assert bool(points) == bool(curve)
    assert all(64 <= float(x) <= 362 and 10 <= float(y) <= 168 for x, y in points)
    shown_marks = [key for key in values if re.fullmatch(r"run-0-curve-[xy]\d\.hidden", key) and not values[key]]
    assert not curve or len([key for key in shown_marks if "-y" in key]) >= 1


def test_a_page_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    save(Snapshot(NOW), tmp_path / "live.html")
    assert (tmp_path / "live.html").read_text() == static(view(Snapshot(NOW)))
    with pytest.raises(InvalidFile, match="nowhere"):
        save(Snapshot(NOW), tmp_path / "nowhere" / "live.html")


def test_a_sign_of_another_kind_is_passed_over() -> None:
    store = MemoryStore()
    store.show(Sign("of tomorrow", "x", NOW, {"state": "running"}))
    assert snapshot(store, NOW).running.total == 0


def test_a_run_that_fell_silent_went_on_for_as_long_as_it_was_heard_of() -> None:
    store = MemoryStore()
    store.show(run("r", NOW - 30))  # it began a minute before
    values = view(snapshot(store, NOW)).values
    told = "not heard of for 30 s: gone or stuck after 30 of 100 evaluations, 2 failed, for 60 s"
    assert values["run-0-state.text"] == told
