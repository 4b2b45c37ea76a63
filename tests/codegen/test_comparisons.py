"""Trees that compare choices by long formulas: their code in Python and C answers as they do, at every edge."""

import random
from pathlib import Path

import pytest
from cprogram import COMPILERS, asked, build, can_be_said, has_compiler
from drawn import edges_of, problems_of
from msgspec.structs import replace
from test_python_source import differences

from tunewise.codegen import python_source
from tunewise.models import Card, Columns, Derived, Leaf, Model, Number, Split, Tree


def compared() -> Model:
    """Return a model of two choices: 6 by 32 tiles with a slow edge, and 4 by 64 tiles that begin slowly."""
    derived = (
        Derived("remainder", (0,), by=6.0),
        Derived("remainder", (1,), by=32.0),
        Derived("product", (0, 1, 2), by=0.061),
        Derived("product", (3, 1, 2), by=0.41),
        Derived("product", (0, 4, 2), by=0.37),
        Derived("sum", (5, 6, 7), by=12.3, about=0),
        Derived("tiles", (1,), by=64.0),
        Derived("product", (0, 1, 2), by=0.083),
        Derived("product", (0, 2, 9), by=0.57),
        Derived("sum", (10, 11), by=48.9, about=1),
        Derived("ratio", (8, 12)),
    )
    sizes = tuple(Number(name, 1.0, 5000.0) for name in "mnk")
    leaves = (Leaf((0, 1), 3, 1.02, 1.1), Leaf((1, 0), 4, 1.01, 1.2), Leaf((), 1, 1.0, 1.0))
    nodes = (Split(13, 1, 2, 0.9817), leaves[0], Split(13, 3, 4, 1.1042), leaves[2], leaves[1])
    choices = ({"rows": 6, "wide": 32}, {"rows": 4, "wide": 64})
    card = Card(decision="gemm", learner="tree")
    return Model(card=card, choices=choices, default=0, columns=Columns(sizes, (), derived), body=Tree(nodes))


def text() -> str:
    """Return the generated lines from the first formula on, without their indent."""
    source = python_source(compared())
    return source[source.index("    part3 = ") :]


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


def test_terms_stand_in_their_sum() -> None:
    assert "time_0 = m * n * k * 0.061 + part3 * n * k * 0.41 + m * part4 * k * 0.37 + 12.3\n" in text()
    assert "time_1 = m * n * k * 0.083 + m * k * part9 * 0.57 + 48.9\n" in text()


def test_a_long_sum_has_a_line_for_every_term() -> None:
    columns = compared().columns
    many = tuple(Derived("product", (0, 1, 2), by=rate / 7) for rate in range(1, 7))
    total = Derived("sum", tuple(range(3, 9)), by=1.5)
    model = replace(
        compared(),
        columns=Columns(columns.problem, (), (*many, total, Derived("ratio", (9, 0)))),
        body=Tree((Split(10, 1, 2, 5e3), Leaf((0,)), Leaf((1,)))),
    )
    assert not differences(model, list(problems_of(model, random.Random(5), 500)))
    lines = python_source(model).splitlines()
    first = lines.index("    part9 = (")
    assert lines[first + 1].strip() == f"m * n * k * {1 / 7!r}"
    assert [line.strip()[:16] for line in lines[first + 2 : first + 7]] == ["+ m * n * k * 0."] * 5
    assert [line.strip() for line in lines[first + 7 : first + 9]] == ["+ 1.5", ")"]


def test_formulas_are_worked_out_once_and_only_where_they_are_asked_for() -> None:
    columns = compared().columns
    derived = (*columns.derived, Derived("ratio", (12, 8)), Derived("ratio", (12, 0)))
    nodes = (
        Split(0, 1, 2, 100.0),  # small problems are told from their rows alone
        Leaf((0,)),
        Split(15, 3, 4, 50.0),
        Leaf((1,)),
        Split(13, 5, 6, 0.9817),  # this one alone needs the first sum
        Leaf((0,)),
        Leaf((1,)),
    )
    model = replace(compared(), columns=Columns(columns.problem, (), derived), body=Tree(nodes))
    assert not differences(model, [*edges_of(model), *problems_of(model, random.Random(4), 2000)])
    lines = [line.strip() for line in python_source(model).splitlines()]
    starts = [next(n for n, line in enumerate(lines) if line.startswith(f"time_{choice} = ")) for choice in (1, 0)]
    tests = [
        next(n for n, line in enumerate(lines) if line.startswith(f"if {test}")) for test in ("m <=", "time_1 / m")
    ]
    assert tests[0] < starts[0] < tests[1] < starts[1]
    assert sum(line.startswith("time_1 = ") for line in lines) == 1


def test_a_reader_is_told_what_times_are_and_sizes_keep_their_names() -> None:
    model = compared()
    sizes = tuple(Number(f"d{place}", 1.0, 5000.0) for place in range(3))  # as readers of tables call sizes
    text = python_source(replace(model, columns=Columns(sizes, (), model.columns.derived)))
    assert "# time_0, time_1, ... are the nanoseconds that the choices are expected to take\n" in text
    assert "    if time_0 / time_1 <= 0.9817:\n" in text
    assert "    time_1 = d0 * d1 * d2 * 0.083 + " in text


def test_the_default_is_told_where_it_is_none_of_the_choices() -> None:
    model = replace(compared(), default=None, card=Card(decision="gemm", fallback={"rows": 1, "wide": 8}))
    assert "# Default      {'rows': 1, 'wide': 8}\n" in python_source(model)


def test_a_leaf_where_nothing_was_measured_says_so() -> None:
    leaves = (Leaf((0,), 0, 1.2, 1.9), Leaf((1,), 2, 1.1, 1.5))
    text = python_source(replace(compared(), body=Tree((Split(13, 1, 2, 0.9817), *leaves))))
    assert "return (0,)  # nothing measured: expected regret 1.2, the default's 1.9\n" in text
    assert "return (1,)  # 2 problems: regret 1.1, the default's 1.5\n" in text
