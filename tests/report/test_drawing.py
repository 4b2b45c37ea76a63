"""The picture of a tree is well formed, its boxes keep apart, and large trees stay within bounds."""

import itertools
from xml.etree import ElementTree

import samples
from test_outline import chain

from tunewise.models import Card, Columns, Derived, Leaf, Model, Number, Split, Tree
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
    evil = "</text><script>\"'&\x07"
    plain = len(list(drawn(samples.model("x" * len(evil))).iter()))
    assert len(list(drawn(samples.model(evil)).iter())) == plain


def compared(threshold: float = 1.07) -> Model:
    """A tree that asks how two long formulas compare, over choices of many parameters."""
    sizes = tuple(Number(name, 1.0, 1000.0) for name in ("height", "width", "channels"))
    work, edge = Derived("product", (0, 1, 2), by=0.125), Derived("remainder", (0,), by=6.0)
    slow, time = Derived("product", (4, 1, 2), by=0.5), Derived("sum", (3, 5), by=12.0)
    columns = Columns(sizes, (), (work, edge, slow, time, Derived("sum", (3,), by=80.0), Derived("ratio", (6, 7))))
    choices = tuple(
        {"VW": 16, "MR": 4, "NV": 4, "KC": 64, "NC": 1048576, "MC": 128, "PACKA": packs} for packs in (0, 1)
    )
    choices += ({"VW": 8, "MR": 8, "NV": 2, "KC": 32, "NC": 65536, "MC": 32, "PACKA": 0},)
    body = Tree((Split(8, 1, 2, threshold=threshold), Leaf((0, 2), 3, 1.0, 2.0), Leaf((1,), 3, 1.0, 2.0)))
    model = Model(card=Card(decision="gemm"), choices=choices, columns=columns, body=body)
    model.check()
    return model


def test_what_numbers_stand_for_is_written_under_the_tree() -> None:
    model = compared()
    said = " ".join(words(drawn(model)))
    assert "[8] ≤ 1.07" in said
    assert f"[8] = {model.columns.names[8]}" in said
    assert f"[6] = {model.columns.names[6]}" in said
    assert "#1 = VW=16, MR=4, NV=4, KC=64, NC=1048576, MC=128, PACKA=1" in said
    assert "#2" not in said  # no leaf chooses it


def test_a_long_name_is_cut_off_before_its_threshold() -> None:
    (question,) = [word for word in words(drawn(chain(2, "size" * 20))) if "≤" in word]
    assert question.endswith("… ≤ 0.5")
    assert len(question) <= 48


def test_what_is_written_under_the_tree_is_inside() -> None:
    root = drawn(compared())
    height = float(root.get("height", "0"))
    assert all(float(text.get("y", "nan")) < height for text in root.iter(f"{SVG}text"))


def test_a_forest_has_no_picture() -> None:
    assert picture(samples.forest()) is None
