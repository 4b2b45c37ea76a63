"""The page is one well-formed document that loads nothing, runs nothing, and shows whatever names there are as text."""

import base64
import hashlib
import random
import re
from collections import Counter
from collections.abc import Iterator
from datetime import date
from html.parser import HTMLParser
from pathlib import Path

import msgspec
import pytest
import samples

from tunewise.errors import InvalidFile
from tunewise.models import Model
from tunewise.report.findings import Findings, gather
from tunewise.report.page import SECTIONS, page, save

DAY = date(2026, 1, 31)
NO_END = {"meta", "br"}
PAYLOADS = (
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    '"><svg/onload=alert(1)>',
    "' onmouseover='alert(1)",
    "</title><script>alert(1)</script>",
    "</style><script>alert(1)</script>",
    "</svg></table></body></html>",
    "]]><!--",
    "--><script>",
    "&lt;script&gt;",
    "&#60;b&#62;",
    "javascript:alert(1)",
    "\u2028\u2029",
    "\u202e\u0000\u001b[31m",
    "${7*7}{{7*7}}",
    "<textarea><plaintext><xmp>",
    "\ufeff<a href=//evil>",
    "=cmd|' /C calc'!A0",
)
SCRAPS = "<>\"'`=/&;#!-[]{}()\\ \t\n\r\x00\x7f\u2028\u00a0\ufffe😀abconloadstyl"


class Reader(HTMLParser):
    """Counts what a page is made of, and remembers its text."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.open: list[str] = []
        self.texts: list[str] = []
        self.strange: list[str] = []
        self.feed(text)
        self.close()

    @property
    def keys(self) -> Counter[str]:
        return Counter(key for key, _ in self.attributes)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append(tag)
        self.attributes += attrs
        if tag not in NO_END:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if not self.open or self.open.pop() != tag:
            self.strange.append(f"</{tag}>")

    def handle_data(self, data: str) -> None:
        self.texts.append(data)

    def handle_comment(self, data: str) -> None:
        self.strange.append(data)

    def unknown_decl(self, data: str) -> None:
        self.strange.append(data)


def found(name: samples.Name = "") -> Findings:
    return gather(samples.data(name), samples.model(name), samples.measured(name), today=DAY)


def read(name: samples.Name = "") -> Reader:
    return Reader(page(found(name)))


def ids(reader: Reader) -> set[str | None]:
    return {value for name, value in reader.attributes if name == "id"}


def test_every_section_is_there_and_linked() -> None:
    reader = read()
    links = [value for name, value in reader.attributes if name == "href"]
    assert links == [f"#{name}" for name, _, _ in SECTIONS]
    assert {link[1:] for link in links if link} <= ids(reader)


def test_without_a_model_the_data_are_still_told() -> None:
    reader = Reader(page(gather(samples.data(), today=DAY)))
    assert {"data", "headroom", "regret"} <= ids(reader)
    assert not {"tree", "importance", "worst", "progress"} & ids(reader)
    assert any("tunewise train" in text for text in reader.texts)


def test_every_tag_is_closed_in_its_order() -> None:
    reader = read()
    assert not reader.open
    assert not reader.strange


def test_the_figures_are_those_of_the_validation() -> None:
    findings = found()
    texts = read().texts
    assert f"{findings.scores.regret.geomean:.3f}" in texts
    assert "It answers 81 % of the problems" in " ".join(texts)
    assert findings.scores.coverage == 13 / 16


def test_worst_problems_show_their_features() -> None:
    text = page(found())
    table = text[text.index("<caption><span>Worst problems") :]
    head = table[: table.index("</thead>")]
    assert [name in head for name in ("regret", "chosen", "best", ">n<", ">kind<")] == [True] * 5


def test_a_model_judged_on_its_own_data_says_so() -> None:
    data, model = samples.data(), samples.model()
    assert "flatter" not in page(gather(data, model, today=DAY))
    same = samples.model(fingerprint=data.fingerprint)
    assert "flatter" in page(gather(data, same, today=DAY))


def tiles(text: str) -> list[tuple[str, ...]]:
    """Return the figures on top: what each is, the number, and the remark."""
    return re.findall(r"<dt>(.*?)</dt><dd>(.*?)</dd><dd class=\"remark\">(.*?)</dd>", text)


def test_what_was_held_out_comes_first_and_every_figure_of_a_model_says_where_it_is_from() -> None:
    data = samples.data()
    seen = tiles(page(gather(data, samples.model(fingerprint=data.fingerprint), today=DAY)))
    assert seen[0] == ("learned, held out", "1.050", "of the best, on problems not learned from")
    of_model = [remark for name, _, remark in seen if name in ("learned", "speed-up", "coverage")]
    assert len(of_model) == 3
    assert all("on the data learned from" in remark for remark in of_model)
    other = tiles(page(gather(data, samples.model(), today=DAY)))
    assert all("on other data" in remark for name, _, remark in other if name in ("learned", "speed-up", "coverage"))


def test_a_model_that_was_not_judged_has_no_held_out_figure() -> None:
    data = samples.data()
    model = samples.model(fingerprint=data.fingerprint)
    silent = msgspec.structs.replace(model, card=msgspec.structs.replace(model.card, scores={}))
    text = page(gather(data, silent, today=DAY))
    assert "learned, held out" not in text
    assert "It was not judged on problems that were held out" in text


def test_a_speed_up_is_written_as_one() -> None:
    (said,) = [value for name, value, _ in tiles(page(found())) if name == "speed-up"]
    assert said.endswith("x")


def test_the_counts_say_what_they_count() -> None:
    said = " ".join(read().texts)
    assert re.search(r"As AutoHeuristic counts: \d+ correct \(it named the very fastest\)", said)
    assert "3 unsure (it abstained)" in said


def test_shares_of_a_forest_are_of_what_is_told_above_them() -> None:
    forest = page(gather(samples.data(), samples.forest(), today=DAY))
    assert "Share of the rise in regret" in forest
    assert "Share of the regret saved" not in forest
    assert "Share of the regret saved" in page(found())


def with_many_choices(model: Model) -> Model:
    """The same model with choices of many parameters, those of the data among them."""
    more = tuple({"tile": "value0", "way": number} for number in range(2, 40))
    return msgspec.structs.replace(model, choices=(*model.choices, *more))


def test_every_choice_is_listed() -> None:
    text = page(gather(samples.data(), with_many_choices(samples.forest()), today=DAY))
    assert "<summary>25 more choices</summary>" in text
    assert text.count('<th scope="row">tile=value0, way=') == 39
    assert "Further back" not in text


def test_worst_problems_name_choices_as_leaves_do() -> None:
    text = page(found("a_rather_long_name_of_a_parameter_"))
    worst = text[text.index("<caption><span>Worst problems") :]
    assert re.search(r"<td>#[012] a_rather_long", worst)
    assert re.search(r"<th scope=\"row\">#0 a_rather_long", text)  # the list of choices


def test_parameters_stand_in_the_order_of_the_data() -> None:
    model = samples.model()
    turned = msgspec.structs.replace(model, choices=tuple(dict(reversed(choice.items())) for choice in model.choices))
    findings = gather(samples.data(), turned, today=DAY)
    assert findings.model == model
    assert [list(choice) for choice in findings.model.choices] == [["tile", "way"]] * 3


def test_a_forest_is_told_in_words() -> None:
    text = page(gather(samples.data(), samples.forest(), today=DAY))
    assert "a forest of 2 trees" in text


def test_nothing_is_loaded_and_only_our_own_style_counts() -> None:
    text = page(found())
    assert not re.search(r"\b(src|xlink:href|action|background)=|url\(|@import|<script|<link|<iframe", text)
    addresses = re.findall(r"https?://[^\"' ]+", text)
    assert set(addresses) == {"http://www.w3.org/2000/svg"}
    (policy,) = re.findall(r'Content-Security-Policy" content="([^"]*)"', text)
    (style,) = re.findall(r"<style>(.*?)</style>", text, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    assert "default-src &#x27;none&#x27;" in policy
    assert f"sha256-{digest}" in policy
    assert "unsafe" not in policy


def test_light_and_dark_have_colours() -> None:
    assert page(found()).count("prefers-color-scheme") == 2  # of the page and of its pictures


def test_pictures_and_tables_say_what_they_are() -> None:
    text = page(found())
    pictures = re.findall(r"<svg[^>]*>", text)
    assert pictures
    assert all('aria-label="' in tag or 'aria-hidden="true"' in tag for tag in pictures)
    assert text.count("<table") == text.count("<caption>")
    assert '<html lang="en">' in text
    assert text.count("<h1") == 1


def test_the_same_findings_make_the_same_page() -> None:
    assert page(found()) == page(found())


def hostile(count: int) -> list[str]:
    """Return names that try to become markup: known tricks first, then tricks and scraps put together by chance."""
    chance = random.Random(0)
    names = [*PAYLOADS]
    while len(names) < count:
        scraps = "".join(chance.choices(SCRAPS, k=chance.randint(1, 30)))
        names.append(chance.choice(["", chance.choice(PAYLOADS)]) + scraps)
    return names


def slots_of(names: list[str]) -> Iterator[list[str]]:
    """Yield the names in lists that fill every slot of a sample; the last one begins again from the front."""
    slots = len(samples.SLOTS)
    for first in range(0, len(names), slots):
        yield [names[(first + slot) % len(names)] for slot in range(slots)]


def harmless(names: list[str]) -> list[str]:
    """Return names that are as long, so that as many of them stand by number."""
    return [re.sub("[^ ]", "x", name) for name in names]


@pytest.mark.parametrize("count", [600, pytest.param(10_000, marks=pytest.mark.full)])
def test_no_name_becomes_markup(count: int) -> None:
    for given in slots_of(hostile(count)):
        reader, plain = read(given), read(harmless(given))
        assert reader.elements == plain.elements, given
        assert reader.keys == plain.keys, given  # counted: features stand in the order of their names
        assert not reader.strange, given
        assert not [key for key in reader.keys if key.startswith("on") or key in ("style", "src")]


def test_a_page_is_written_whole(tmp_path: Path) -> None:
    save(found(), tmp_path / "report.html")
    assert [path.name for path in tmp_path.iterdir() if path.is_file()] == ["report.html"]
    assert (tmp_path / "report.html").read_text() == page(found())


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidFile, match="nowhere"):
        save(found(), tmp_path / "nowhere" / "report.html")
