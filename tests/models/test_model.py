"""Models as values: what they answer, what they refuse to be, and that files give them back."""

import math
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from tunewise.errors import InvalidFile, InvalidModel, NotFound
from tunewise.models import (
    Card,
    Columns,
    Derived,
    Forest,
    Guess,
    Layer,
    Leaf,
    Model,
    Net,
    Number,
    Scale,
    Split,
    Tree,
    Word,
    dump,
    load,
    parse,
    save,
)

PROBLEM = (Number("m", 1.0, 4096.0), Word("dtype", ("f4", "f8")))
CHOICES = ({"choice": "direct"}, {"choice": "fft"})
TREE = Tree((Split(0, 1, 2, threshold=64.0), Leaf((1, 0)), Split(1, 3, 4, words=(1,)), Leaf((0,)), Leaf(())))


def model(**changed: Any) -> Model:
    parts = {"card": Card(decision="conv"), "choices": CHOICES, "columns": Columns(PROBLEM), "body": TREE}
    return Model(**{**parts, **changed})


def forest(**changed: Any) -> Model:
    columns = Columns(PROBLEM, (Number("tile", 8.0, 16.0),), (Derived("remainder", (0, 2)),))
    body = Forest(((Split(3, 1, 2, threshold=0.0), Guess(0.0), Guess(1.0)),))
    return model(**{"choices": ({"tile": 16}, {"tile": 8}), "columns": columns, "body": body, **changed})


@pytest.mark.parametrize(
    ("features", "ranking"),
    [
        ({"m": 64, "dtype": "f4"}, [1, 0]),
        ({"m": math.nextafter(64, 65), "dtype": "f8"}, [0]),
        ({"m": 65, "dtype": "f4"}, []),
        ({"m": np.int64(64), "dtype": np.str_("f4")}, [1, 0]),
        ({"m": np.float32(64), "dtype": "f4"}, [1, 0]),
        ({"m": True, "dtype": "f4"}, [1, 0]),
        ({"m": 4097, "dtype": "f4"}, []),
        ({"m": 64, "dtype": "f2"}, []),
        ({"m": "64", "dtype": "f4"}, []),
        ({"m": math.nan, "dtype": "f4"}, []),
        ({"m": 10**400, "dtype": "f4"}, []),
        ({"m": 64}, []),
    ],
)
def test_a_tree_ranks_within_its_bounds_and_abstains_elsewhere(features: dict[str, Any], ranking: list[int]) -> None:
    assert model().rank(features) == ranking


def test_parameters_stay_in_their_order(tmp_path: Path) -> None:
    choices = ({"width": 8, "depth": 1}, {"width": 4, "depth": 2})
    made = Model(card=Card(decision="d"), choices=choices, columns=Columns(()), body=Tree((Leaf((0,)),)))
    save(made, tmp_path / "model.json")
    assert [list(choice) for choice in load(tmp_path / "model.json").choices] == [["width", "depth"]] * 2


def test_a_forest_ranks_by_the_sum_of_its_guesses_and_ties_by_order() -> None:
    assert forest().rank({"m": 24, "dtype": "f4"}) == [1, 0]
    assert forest().rank({"m": 16, "dtype": "f4"}) == [0, 1]


def test_a_derived_column_reads_like_a_formula() -> None:
    derived = (Derived("product", (0, 0)), Derived("tiles", (0,), 64.0), Derived("ratio", (2, 3)))
    assert Columns(PROBLEM, (), derived).names[2:] == ("m * m", "ceil(m / 64)", "(m * m) / ceil(m / 64)")


def test_formulas_of_formulas_do_not_grow_without_end() -> None:
    derived = tuple(Derived("sum", (number, number)) for number in range(200))
    assert sum(map(len, Columns((Number("m", 0.0, 1e-80),), (), derived).names)) < 1_000_000


def columns(*derived: Derived, low: float = 1.0, high: float = 4096.0) -> Columns:
    return Columns((Number("m", low, high), Word("dtype", ("f4",))), (), derived)


UNSOUND = {
    "format": {"format": 2},
    "no choice": {"choices": ()},
    "too many choices": {"choices": CHOICES * 20_000},
    "another default": {"default": 2},
    "a negative default": {"default": -1},
    "inputs of one name": {"columns": Columns((PROBLEM[0], PROBLEM[0]))},
    "an input without a name": {"columns": Columns((Number("", 0.0, 1.0), PROBLEM[1]))},
    "bounds in disorder": {"columns": columns(low=2.0, high=1.0)},
    "bounds that are no numbers": {"columns": columns(low=math.nan)},
    "endless bounds": {"columns": columns(high=math.inf)},
    "no words": {"columns": Columns((PROBLEM[0], Word("dtype", ())))},
    "a word twice": {"columns": Columns((PROBLEM[0], Word("dtype", ("a", "a"))))},
    "a column of a later one": {"columns": columns(Derived("product", (0, 2)))},
    "a column of words": {"columns": columns(Derived("product", (0, 1)))},
    "a column of nothing": {"columns": columns(Derived("product", ()))},
    "a column of one": {"columns": columns(Derived("product", (0,)))},
    "a ratio of three": {"columns": columns(Derived("ratio", (0, 0, 0)))},
    "a sum of too many": {"columns": columns(Derived("sum", (0,) * 100))},
    "a ratio to zero": {"columns": columns(Derived("ratio", (0, 0)), low=0.0)},
    "a constant zero": {"columns": columns(Derived("remainder", (0,), 0.0))},
    "tiles of what may be negative": {"columns": columns(Derived("tiles", (0,), 8.0), low=-1.0)},
    "a product without bounds": {"columns": columns(Derived("product", (0, 0)), high=1e300)},
    "an unknown column": {"body": Tree((Split(2, 1, 2), Leaf(), Leaf()))},
    "a negative column": {"body": Tree((Split(-1, 1, 2), Leaf(), Leaf()))},
    "a word of a number": {"body": Tree((Split(0, 1, 2, words=(0,)), Leaf(), Leaf()))},
    "a number of a word": {"body": Tree((Split(1, 1, 2, threshold=1.0), Leaf(), Leaf()))},
    "an unknown word": {"body": Tree((Split(1, 1, 2, words=(2,)), Leaf(), Leaf()))},
    "a loop": {"body": Tree((Split(0, 0, 1), Leaf()))},
    "a child twice": {"body": Tree((Split(0, 1, 1), Leaf()))},
    "a node of nobody": {"body": Tree((Leaf(), Leaf()))},
    "a child outside": {"body": Tree((Split(0, 1, 2), Leaf()))},
    "no node": {"body": Tree(())},
    "a choice that is none": {"body": Tree((Leaf((2,)),))},
    "a choice twice": {"body": Tree((Leaf((0, 0)),))},
    "a threshold that is no number": {"body": Tree((Split(0, 1, 2, threshold=math.nan), Leaf(), Leaf()))},
    "no name of a decision": {"card": Card(decision=" ")},
    "a long text": {"card": Card(decision="d" * 1001)},
    "half a character": {"card": Card(decision="\ud800")},
    "a number beyond 64 bits": {"choices": ({"choice": 1 << 64}, {"choice": 1})},
    "an endless score": {"card": Card(decision="d", scores={"regret": math.inf})},
    "a tree over configs": {"columns": Columns(PROBLEM, (Number("tile", 1.0, 2.0),))},
}


def interleaved_guesses(depth: int, trees: int = 20) -> Any:
    return (tuple(node if isinstance(node, Split) else Guess(0.0) for node in interleaved(depth).nodes),) * trees


def interleaved(depth: int) -> Tree:
    nodes: list[Split | Leaf] = []
    for _ in range(depth):
        nodes += [Split(0, len(nodes) + 1, len(nodes) + 2), Leaf()]
    return Tree((*nodes, Leaf()))


@pytest.mark.parametrize("fault", UNSOUND)
def test_an_unsound_model_is_refused(fault: str) -> None:
    with pytest.raises(InvalidModel):
        model(**UNSOUND[fault]).check()


def test_a_tree_may_be_as_deep_as_the_limit() -> None:
    model(body=interleaved(64)).check()
    with pytest.raises(InvalidModel, match="deeper"):
        model(body=interleaved(65)).check()


@pytest.mark.parametrize(
    "changed",
    [
        {"choices": ({"tile": 32},)},
        {"choices": ({"other": 8},)},
        {"body": Forest(((Guess(1e9),),))},
        {"body": Forest((), base=-1e9)},
        {"body": Forest(((Guess(0.0),),) * 2001)},
        {"choices": ({"tile": 8},) * 20_000, "body": Forest(((Guess(0.0),),) * 1000)},
    ],
)
def test_an_unsound_forest_is_refused(changed: dict[str, Any]) -> None:
    with pytest.raises(InvalidModel):
        forest(**changed).check()


TILES = tuple({"tile": 8} for _ in range(20_000))
MANY = tuple(Derived("sum", (0,) * 8) for _ in range(1_990))


@pytest.mark.parametrize(
    ("trees", "derived"),
    [(((Guess(0.0),),) * 2_000, ()), (interleaved_guesses(60, 40), ()), (((Guess(0.0),),), MANY)],
)
def test_a_forest_that_takes_too_long_for_a_question_is_refused(trees: Any, derived: tuple[Derived, ...]) -> None:
    columns = Columns(PROBLEM, (Number("tile", 8.0, 16.0),), derived)
    with pytest.raises(InvalidModel, match=r"ranking 20000 choices takes .* at most .* fewer choices"):
        forest(choices=TILES, columns=columns, body=Forest(trees)).check()
    forest(choices=TILES[:64], columns=columns, body=Forest(trees)).check()


def test_a_net_over_too_many_formulas_for_its_choices_is_refused() -> None:
    columns = Columns(PROBLEM, (Number("tile", 8.0, 16.0),), MANY)
    net = Net((Scale(0, 0.0, 1.0),), (Layer(1, 1, bytes(4), bytes(4)),))
    with pytest.raises(InvalidModel, match="ranking 20000 choices takes"):
        forest(choices=TILES, columns=columns, body=net).check()


def test_the_largest_forest_that_we_train_is_accepted() -> None:
    columns = Columns(PROBLEM, (Number("tile", 8.0, 16.0),), tuple(Derived("ratio", (0, 2)) for _ in range(330)))
    forest(choices=TILES[:2_000], columns=columns, body=Forest(interleaved_guesses(12) * 45)).check()


class Counted(float):
    """A number that counts what it is compared with."""

    compared = 0

    def __eq__(self, other: object) -> bool:
        Counted.compared += 1
        return float(self) == other

    __hash__ = float.__hash__


def test_a_word_is_not_compared_with_all_that_a_split_lists() -> None:
    tree = Tree((Split(0, 1, 2, words=tuple(range(20_000))), Leaf((0,)), Leaf((1,))))
    assert tree.leaf([Counted(19_999)]).ranking == (0,)
    assert tree.path([Counted(20_000)])[1].ranking == (1,)
    assert Counted.compared < 10


def test_a_file_gives_back_what_was_saved(tmp_path: Path) -> None:
    for number, saved in enumerate((model(default=1), forest())):
        path = tmp_path / f"{number}.json"
        save(saved, path)
        assert load(path) == saved
        assert dump(load(path)) == path.read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir() if path.is_file()) == ["0.json", "1.json"]


def test_an_unsound_model_is_not_saved_over_a_sound_one(tmp_path: Path) -> None:
    path = tmp_path / "model.json"
    save(model(), path)
    with pytest.raises(InvalidModel):
        save(model(default=7), path)
    assert load(path) == model()


def test_a_place_that_takes_no_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidFile, match=r"nowhere/model\.json cannot be written"):
        save(model(), tmp_path / "nowhere" / "model.json")


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match=r"model\.json cannot be read"):
        load(tmp_path / "model.json")


def test_a_field_that_is_not_known_is_refused() -> None:
    document = msgspec.json.decode(dump(model()))
    document["card"]["more"] = 1
    with pytest.raises(InvalidModel, match="more"):
        parse(msgspec.json.encode(document))
