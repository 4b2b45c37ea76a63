"""Trees that compare choices by long formulas: their code in Python and C answers as they do, at every edge."""

import random
from pathlib import Path

import pytest
from cprogram import COMPILERS, asked, build, can_be_said, has_compiler
from drawn import edges_of, problems_of
from test_python_source import differences

from tunewise.models import Card, Columns, Derived, Leaf, Model, Number, Split, Tree


def compared() -> Model:
    """Return a model of two choices: 6 by 32 tiles with a slow edge, and 4 by 64 tiles that begin slowly."""
    derived = (
        Derived("remainder", (0,), by=6.0),
        Derived("remainder", (1,), by=32.0),
        Derived("product", (0, 1, 2), by=0.061),
        Derived("product", (3, 1, 2), by=0.41),
        Derived("product", (0, 4, 2), by=0.37),
        Derived("sum", (5, 6, 7), by=12.3),
        Derived("tiles", (1,), by=64.0),
        Derived("product", (0, 1, 2), by=0.083),
        Derived("product", (0, 2, 9), by=0.57),
        Derived("sum", (10, 11), by=48.9),
        Derived("ratio", (8, 12)),
    )
    sizes = tuple(Number(name, 1.0, 5000.0) for name in "mnk")
    leaves = (Leaf((0, 1), 3, 1.02, 1.1), Leaf((1, 0), 4, 1.01, 1.2), Leaf((), 1, 1.0, 1.0))
    nodes = (Split(13, 1, 2, 0.9817), leaves[0], Split(13, 3, 4, 1.1042), leaves[2], leaves[1])
    choices = ({"rows": 6, "wide": 32}, {"rows": 4, "wide": 64})
    card = Card(decision="gemm", learner="tree")
    return Model(card=card, choices=choices, default=0, columns=Columns(sizes, (), derived), body=Tree(nodes))


def problems(count: int) -> list[dict[str, object]]:
    model = compared()
    model.check()
    return [*edges_of(model), *problems_of(model, random.Random(3), count)]


def test_python_compares_as_the_model_does() -> None:
    assert not differences(compared(), problems(2000))
    assert {tuple(compared().rank(problem)) for problem in problems(2000)} == {(), (0, 1), (1, 0)}


@pytest.mark.skipif(not has_compiler("gcc"), reason="no gcc is installed")
def test_c_compares_as_the_model_does(tmp_path: Path) -> None:
    questions = [(0, compared(), one) for one in problems(2000) if can_be_said(compared(), one)]
    assert asked(build([compared()], tmp_path, *COMPILERS[0]), questions) == [m.rank(f) for _, m, f in questions]
