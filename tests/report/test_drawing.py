"""The picture of a tree is well formed, its boxes keep apart, and large trees stay within bounds."""

import itertools
from xml.etree import ElementTree

import samples
from test_outline import chain

from tunewise.models import Model
from tunewise.report.drawing import picture

SVG = "{http://www.w3.org/2000/svg}"
Box = tuple[float, float, float, float]


def drawn(model: Model, most: int = 48) -> ElementTree.Element:
    text = picture(model, most=most)
    assert text is not None
    return ElementTree.fromstring(text)


def boxes(root: ElementTree.Element) -> list[Box]:
    """Return the outlines of questions and leaves as left, top, right, bottom."""
    found = []
    for rect in root.iter(f"{SVG}rect"):
        if (rect.get("class") or "").split()[0] in ("box", "leaf"):
            x, y, width, height = (float(rect.get(name, "nan")) for name in ("x", "y", "width", "height"))
            found.append((x, y, x + width, y + height))
    return found


def do_meet(one: Box, other: Box) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]


def words(root: ElementTree.Element) -> list[str]:
    return [text.text or "" for text in root.iter(f"{SVG}text")]


def test_questions_thresholds_choices_support_and_regret_are_written() -> None:
    said = words(drawn(samples.model()))
    assert {"n * n ≤ 256", "kind is flat", "tile=value0", "8 problems, regret 1.01 (default 3.50)", "abstains"} <= set(
        said
    )
    assert said.count("yes") == said.count("no") == 2


def test_boxes_keep_apart_and_inside() -> None:
    for model in (samples.model(), chain(40)):
        root = drawn(model)
        found = boxes(root)
        assert not [pair for pair in itertools.combinations(found, 2) if do_meet(*pair)]
        width, height = float(root.get("width", "0")), float(root.get("height", "0"))
        assert all(b[0] >= 0 and b[1] >= 0 and b[2] <= width and b[3] <= height for b in found)


def test_a_line_is_thicker_where_more_problems_go() -> None:
    widths = [float(path.get("stroke-width", "0")) for path in drawn(samples.model()).iter(f"{SVG}path")]
    assert widths[0] == widths[1]  # eight problems each
    assert widths[1] > widths[2] > widths[3]  # eight, five, three


def test_a_large_tree_says_what_is_not_shown() -> None:
    root = drawn(chain(60), most=10)
    assert len(boxes(root)) == 18
    assert any("51 more leaves" in word for word in words(root))


def test_a_tree_of_one_leaf_is_drawn() -> None:
    assert len(boxes(drawn(chain(1)))) == 1


def test_no_name_breaks_out_of_the_picture() -> None:
    plain = len(list(drawn(samples.model("plain")).iter()))
    assert len(list(drawn(samples.model("</text><script>\"'&\x07")).iter())) == plain


def test_a_forest_has_no_picture() -> None:
    assert picture(samples.forest()) is None
