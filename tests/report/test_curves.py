"""The picture of the curves is one well-formed SVG that loads nothing, whatever the names are."""

import re
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tunewise.report.curves import Line, picture

SVG = "{http://www.w3.org/2000/svg}"


def drawn(*lines: Line, **words: str) -> ElementTree.Element:
    return ElementTree.fromstring(picture(lines, **words))


def texts(root: ElementTree.Element) -> list[str]:
    return [text.text or "" for text in root.iter(f"{SVG}text")]


def points(root: ElementTree.Element, which: int = 0) -> list[tuple[float, float]]:
    path = list(root.iter(f"{SVG}polyline"))[which].get("points", "")
    return [(float(x), float(y)) for x, y in (pair.split(",") for pair in path.split())]


def test_every_strategy_has_a_curve_and_a_place_in_the_legend_best_first() -> None:
    root = drawn(Line("slow", [3.0] * 100), Line("fast", [2.0, *[1.1] * 99]), title="gemm")
    assert len(list(root.iter(f"{SVG}polyline"))) == 2
    said = texts(root)
    assert said.index("fast") < said.index("slow")
    assert {"gemm", "1.100", "3.000", "evaluations (log scale)"} <= set(said)


def test_a_falling_curve_falls_and_stays_in_the_frame() -> None:
    found = points(drawn(Line("x", [10 / n + 1 for n in range(1, 401)])))
    assert [x for x, _ in found] == sorted(x for x, _ in found)
    assert [y for _, y in found] == sorted(y for _, y in found)
    assert all(0 < x < 820 and 0 < y < 460 for x, y in found)


@pytest.mark.parametrize("values", [[1.0], [1.0] * 400, [1e6], [2.0, 1.0], [1.0000001] * 3])
def test_odd_curves_are_drawn_too(values: list[float]) -> None:
    assert points(drawn(Line("x", values)))


def test_a_shorter_curve_ends_earlier() -> None:
    root = drawn(Line("long", [2.0] * 100), Line("short", [1.5] * 20))
    ends = sorted(points(root, which)[-1][0] for which in (0, 1))
    assert ends[0] < ends[1]


def test_more_strategies_than_colours_are_told_apart_by_dashes() -> None:
    root = drawn(*(Line(f"s{n}", [2.0] * 10) for n in range(20)))
    looks = {(line.get("class"), line.get("stroke-dasharray")) for line in root.iter(f"{SVG}polyline")}
    assert len(looks) == 20


@given(st.text(max_size=40), st.text(max_size=40))
def test_no_name_breaks_out_of_the_picture(name: str, title: str) -> None:
    root = drawn(Line(name, [2.0, 1.5]), title=title)
    assert len(list(root.iter())) == len(list(drawn(Line("plain", [2.0, 1.5]), title="x").iter()))


def test_nothing_is_loaded_and_nothing_runs() -> None:
    text = picture([Line("<script>alert(1)</script>", [2.0])], title="&<>\"'")
    assert "<script" not in text
    assert not re.search(r"href|url\(|@import|on\w+=", text.replace("http://www.w3.org/2000/svg", ""))


def test_both_light_and_dark_pages_have_colours() -> None:
    style = drawn(Line("x", [2.0])).find(f"{SVG}style")
    assert style is not None
    light, _, dark = (style.text or "").partition("prefers-color-scheme:dark")
    assert light.count(".c0{") == dark.count(".c0{") == 1
