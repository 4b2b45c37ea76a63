"""Nets by numpy: the same guesses as in plain Python, for every op, word and kind of column, with and without numpy."""

import builtins
from itertools import pairwise
from struct import pack
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tunewise.models import Card, Columns, Derived, Layer, Model, Net, Number, Scale, Word
from tunewise.models.pool import pool
from tunewise.models.scoring import inputs, outputs

COLUMNS = Columns(
    problem=(Number("m", 1.0, 4096.0), Number("bias", -50.0, 50.0), Word("dtype", ("f4", "f8", "i4"))),
    config=(Number("rows", 1.0, 64.0), Number("wide", 1.0, 64.0), Word("order", ("row", "column"))),
    derived=(
        Derived("tiles", (0, 3)),  # 6, of both
        Derived("remainder", (0, 4)),
        Derived("product", (3, 4)),  # 8, of the config
        Derived("ratio", (8, 0)),
        Derived("product", (6, 7, 4)),  # 10, on the way it has a product of two
        Derived("difference", (1, 6)),
        Derived("sum", (0, 1)),  # 12, of the problem
        Derived("product", (12,), by=0.5),
        Derived("ratio", (8,), by=3.0),
    ),
)
CHOICES = tuple(
    {"rows": rows, "wide": wide, "order": order}
    for rows in (1, 4, 64)
    for wide in (2, 64)
    for order in ("row", "column")
)


def layer(chance: np.random.Generator, before: int, after: int) -> Layer:
    weights, biases = chance.normal(0, 0.5, (after, before)), chance.normal(0, 0.5, after)
    return Layer(before, after, *(pack(f"<{part.size}f", *part.ravel()) for part in (weights, biases)))


def model(seed: int = 0, widths: tuple[int, ...] = (8, 5)) -> Model:
    chance = np.random.default_rng(seed)
    numbers = [n for n in range(15) if n not in (2, 5)]
    scales = [Scale(n, *chance.uniform(0.5, 5.0, 2).tolist(), is_log=bool(chance.integers(2))) for n in numbers]
    scales += [Scale(column, 0.4, 0.5, word=word) for column, words in ((2, 3), (5, 2)) for word in range(words)]
    scales = [scales[n] for n in chance.permutation(len(scales))]
    every = (len(scales), *widths, 1)
    layers = tuple(layer(chance, before, after) for before, after in pairwise(every))
    return Model(card=Card(decision="d"), choices=CHOICES, columns=COLUMNS, body=Net(tuple(scales), layers))


def plain(one: Model, problem: dict[str, Any]) -> list[float]:
    known = one.columns.known(problem)
    assert known is not None
    assert isinstance(one.body, Net)
    return [one.body.guess(one.columns.row(known, one.columns.setting(choice))) for choice in one.choices]


def apart(one: Model, problem: dict[str, Any]) -> float:
    known = one.columns.known(problem)
    assert known is not None
    guesses, expected = np.array(one.guesses(known)), np.array(plain(one, problem))
    return float(np.abs(guesses - expected).max() / max(np.abs(expected).max(), 1.0))


@settings(deadline=None, max_examples=60)
@given(
    m=st.integers(1, 4096),
    bias=st.floats(-50, 50),
    dtype=st.sampled_from(("f4", "f8", "i4")),
    seed=st.integers(0, 20),
    widths=st.sampled_from(((), (3,), (8, 5), (4, 4, 4))),
)
def test_numpy_guesses_what_plain_python_does(
    m: int, bias: float, dtype: str, seed: int, widths: tuple[int, ...]
) -> None:
    one = model(seed, widths)
    one.check()
    assert apart(one, {"m": m, "bias": bias, "dtype": dtype}) < 1e-5


def test_the_pool_has_the_numbers_of_every_row() -> None:
    parameters = np.array([COLUMNS.setting(choice) for choice in CHOICES])
    made = pool(COLUMNS, parameters)
    known = [77.0, -3.5, 1.0]
    values = made.filled(known)
    for choice, setting in enumerate(parameters):
        for number, value in enumerate(COLUMNS.row(known, list(setting))):
            places = made.combinations[number]
            assert values[made.starts[number] + (0 if places is None else places[choice])] == value


def test_a_pool_keeps_a_column_once_for_every_combination_it_looks_at() -> None:
    made = pool(COLUMNS, np.array([COLUMNS.setting(choice) for choice in CHOICES]))
    lengths = [1 if places is None else int(places.max()) + 1 for places in made.combinations]
    assert lengths == [1, 1, 1, 3, 2, 2, 3, 2, 6, 6, 6, 3, 1, 1, 6]
    assert len(made.steps) < len(COLUMNS.derived)


def test_training_and_serving_see_the_same_numbers() -> None:
    one = model()
    assert isinstance(one.body, Net)
    known = [500.0, 2.0, 0.0]
    rows = np.array([[*known, *COLUMNS.setting(choice)] for choice in CHOICES])
    given = inputs(COLUMNS, one.body.scales, rows)
    served = [[scale.value(COLUMNS.row(list(row))) for scale in one.body.scales] for row in rows]
    np.testing.assert_allclose(given, served, rtol=1e-14)  # numpy's logarithms may differ in the last bit
    trained = outputs(one.body.layers, given)
    assert np.abs(trained - np.array(one.guesses(known))).max() < 1e-5


def test_guesses_of_one_problem_leave_no_trace_in_those_of_another() -> None:
    one = model()
    first = one.guesses([500.0, 2.0, 0.0])
    one.guesses([3.0, -40.0, 2.0])
    assert one.guesses([500.0, 2.0, 0.0]) == first


def test_a_problem_out_of_bounds_is_not_ranked() -> None:
    assert model().rank({"m": 5000, "bias": 0, "dtype": "f4"}) == []


def test_without_numpy_a_net_is_asked_in_plain_python(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def refuse(name: str, *rest: Any, **named: Any) -> Any:
        if name == "tunewise.models.scoring":
            raise ImportError("No module named 'numpy'")
        return real(name, *rest, **named)

    one, problem = model(), {"m": 100, "bias": 1, "dtype": "f8"}
    monkeypatch.setattr(builtins, "__import__", refuse)
    assert one.guesses([100.0, 1.0, 1.0]) == plain(one, problem)
    monkeypatch.undo()
    ranking = model().rank(problem)
    assert one.rank(problem) == ranking
