"""A tree in words says what is asked, answered and left out."""

import samples

from tunewise.models import Card, Columns, Leaf, Model, Number, Split, Tree
from tunewise.report.outline import Ending, Outline, Question, Stub, outline, parts, text


def read(model: Model, most: int = 48) -> Outline:
    words = outline(model, most=most)
    assert words is not None
    return words


def chain(leaves: int, name: str = "n") -> Model:
    """A tree that goes down on one side only; the leaves further down have more support."""
    nodes: list[Split | Leaf] = []
    for number in range(leaves - 1):
        place = 2 * number
        nodes += [Split(0, place + 1, place + 2, threshold=number + 0.5), Leaf((0,), support=number + 1)]
    nodes.append(Leaf((0,), support=leaves))
    columns = Columns(problem=(Number(name, 0.0, 1e9),))
    made = Model(card=Card(decision="d"), choices=({"way": "x"},), columns=columns, body=Tree(tuple(nodes)))
    made.check()
    return made


def test_a_tree_reads_as_questions_and_answers() -> None:
    assert text(read(samples.model())).splitlines() == [
        "n * n ≤ 256?",
        "    yes: tile=value0 (8 problems, regret 1.01 (default 3.50))",
        "    no:  kind is flat?",
        "        yes: tile=value1 (5 problems, regret 1.00 (default 1.00))",
        "        no:  abstains (3 problems, default 1.20)",
    ]


def test_a_name_of_two_lines_takes_one_line() -> None:
    columns = Columns(problem=(Number("n\nm", 0.0, 9.0),))
    body = Tree((Split(0, 1, 2, threshold=4.0), Leaf((0,)), Leaf((1,))))
    model = Model(card=Card(decision="d"), choices=({"way": "x\nz"}, {"way": "y"}), columns=columns, body=body)
    assert len(text(read(model)).splitlines()) == 3


def test_support_adds_up_towards_the_root() -> None:
    assert [part.support for part in parts(read(samples.model()).root)] == [16, 8, 8, 5, 3]


def test_a_large_tree_is_cut_where_support_is_least() -> None:
    words = read(chain(30), most=10)
    shown = list(parts(words.root))
    assert (words.leaves, words.hidden) == (30, 21)
    assert [part for part in shown if isinstance(part, Stub)] == [Stub(leaves=21, support=sum(range(10, 31)))]
    assert sum(isinstance(part, Question) for part in shown) == 9


def test_a_small_tree_is_whole() -> None:
    words = read(chain(30), most=30)
    assert words.hidden == 0
    assert sum(isinstance(part, Ending) for part in parts(words.root)) == 30


def test_one_regression_tree_is_told_as_factors() -> None:
    endings = [part.label for part in parts(read(samples.forest(trees=1)).root) if isinstance(part, Ending)]
    assert endings == ["0.368 x", "2.72 x", "1 x"]


def test_a_forest_has_no_outline() -> None:
    assert outline(samples.forest(trees=2)) is None
