"""Generated Python answers as its model does, for every problem, and stands on its own."""

import random
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from drawn import Features, beside, draw_model, edges_of, problems_of

from tunewise.codegen import python_source
from tunewise.models import Card, Columns, Leaf, Model, Number, Split, Tree, Word
from tunewise.models.pieces import CONSTANTS
from tunewise.models.source import parse_source


def differences(model: Model, problems: Iterable[Features]) -> list[Features]:
    """Return the problems for which code and model differ, as Python itself runs the code."""
    namespace: dict[str, object] = {}
    exec(compile(python_source(model), "<generated>", "exec"), namespace)
    rank, choose = namespace["rank"], namespace["choose"]
    assert callable(rank)
    assert callable(choose)
    has_words = all(set(choice) == {"choice"} for choice in model.choices)
    shown = [choice["choice"] if has_words else choice for choice in model.choices]
    found = []
    for features in problems:
        wanted = [shown[number] for number in model.rank(features)]
        if rank(features) != wanted or choose(features) != (wanted[0] if wanted else None):
            found.append(features)
    return found


def sweep(seeds: Iterable[int], count: int) -> tuple[int, int]:
    """Return how many problems were asked of drawn models, and for how many of them an answer differed."""
    asked, answered, different = 0, 0, 0
    for seed in seeds:
        rng = random.Random(seed)
        model = draw_model(rng)
        problems = [*edges_of(model)]
        for features in problems_of(model, rng, count):
            problems += beside(features, rng)
        asked += len(problems)
        answered += sum(bool(model.rank(features)) for features in problems)
        different += len(differences(model, problems))
    assert answered > asked / 5
    return asked, different


def test_code_and_model_agree_on_random_problems_and_at_the_edges() -> None:
    asked, different = sweep(range(120), 40)
    assert asked > 10_000
    assert different == 0


@pytest.mark.full
def test_code_and_model_agree_in_full() -> None:
    asked, different = sweep(range(1000, 1300), 600)
    assert asked > 300_000
    assert different == 0


CARD = Card(decision="conv", fence={"hardware.name": "Fast CPU"}, fingerprint="f" * 8, scores={"regret": 1.05})
COLUMNS = Columns((Number("m", 1.0, 4096.0), Word("dtype", ("f4", "f8"))))
TREE = Tree((Split(0, 1, 2, threshold=64.5), Leaf((1, 0), 12, 1.02, 1.4), Leaf((), 3)))
WORDS = Model(card=CARD, choices=({"choice": "direct"}, {"choice": "fft"}), columns=COLUMNS, body=TREE)
CONFIGS = Model(card=CARD, choices=({"tile": 8}, {"tile": 16}), columns=COLUMNS, body=TREE)


def test_words_come_back_where_the_parameter_is_called_choice() -> None:
    namespace: dict[str, object] = {}
    exec(python_source(WORDS), namespace)
    assert namespace["choose"]({"m": 8, "dtype": "f4"}) == "fft"  # type: ignore[operator]
    assert namespace["rank"]({"m": 8, "dtype": "f4"}, 1) == ["fft"]  # type: ignore[operator]


def test_configs_come_back_as_dicts_of_ones_own() -> None:
    code = parse_source(python_source(CONFIGS))
    first = code.choose({"m": 8, "dtype": "f4"})
    assert first == {"tile": 16}
    assert isinstance(first, dict)
    first["tile"] = 0
    assert code.choose({"m": 8, "dtype": "f4"}) == {"tile": 16}


@pytest.mark.parametrize(
    "features",
    [
        {},
        {"m": 8},
        {"m": None, "dtype": "f4"},
        {"m": float("nan"), "dtype": "f4"},
        {"m": "8", "dtype": "f4"},
        {"m": 10**400, "dtype": "f4"},
        {"m": 1j, "dtype": "f4"},
        {"m": 0, "dtype": "f4"},
        {"m": 8, "dtype": "i4"},
        {"m": 8, "dtype": ["f4"]},
        {"m": 100, "dtype": "f4"},
        None,
        7,
    ],
)
def test_nothing_is_raised_and_nothing_answered_elsewhere(features: object) -> None:
    namespace: dict[str, object] = {}
    exec(python_source(WORDS), namespace)
    assert namespace["choose"](features) is None  # type: ignore[operator]
    assert namespace["rank"](features, 3) == []  # type: ignore[operator]


def test_whole_numbers_beyond_the_doubles_are_rounded_as_the_model_rounds_them() -> None:
    columns = Columns((Number("n", 0.0, 2.0**60),))
    tree = Tree((Split(0, 1, 2, threshold=2.0**53), Leaf((0,)), Leaf((1,))))
    model = Model(card=Card(decision="d"), choices=({"choice": "a"}, {"choice": "b"}), columns=columns, body=tree)
    assert not differences(model, [{"n": 2**53 + step} for step in range(-3, 4)])


def test_the_code_reads_like_one_written_by_hand() -> None:
    code = python_source(WORDS)
    for line in (
        "# Decision     conv",
        "# Only for     hardware.name = Fast CPU",
        "# Scores       regret 1.05",
        "# Features     m: 1 to 4096",
        "    if m <= 64.5:",
        '        return ("fft", "direct")  # 12 problems: regret 1.02, the default\'s 1.4',
        'HARDWARE = {"hardware.name": "Fast CPU"}',
        'FEATURES = ("m", "dtype")',
    ):
        assert line in code.splitlines()
    assert "import" not in code.replace("imports nothing", "")


def test_importing_the_code_imports_nothing(tmp_path: Path) -> None:
    (tmp_path / "heuristic.py").write_text(python_source(WORDS))
    code = "import sys; before = set(sys.modules); import heuristic; print(*sorted(set(sys.modules) - before))"
    ran = subprocess.run([sys.executable, "-B", "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert ran.stdout.split() == ["heuristic"]


def test_derived_columns_that_share_parts_do_not_grow_the_text() -> None:
    from tunewise.models import Derived

    derived = tuple(Derived("sum", (number, number)) for number in range(200))
    columns = Columns((Number("m", 0.0, 1e-80),), (), derived)
    tree = Tree((Split(200, 1, 2, threshold=1e-30), Leaf((0,)), Leaf(())))
    model = Model(card=Card(decision="d"), choices=({"choice": "a"},), columns=columns, body=tree)
    assert len(python_source(model)) < 20_000
    assert not differences(model, [{"m": 1e-80}, {"m": 1e-90}])


@pytest.mark.parametrize(
    "name", [*CONSTANTS, "features", "guesses", "number", "sorted", "total", "time", "r0", "part1", "time_0"]
)
def test_a_feature_may_be_called_like_a_part_of_the_code(name: str) -> None:
    columns = Columns((Number(name, 1.0, 64.0),))
    body = Tree((Split(0, 1, 2, threshold=8.0), Leaf((0,)), Leaf((1,))))
    choices = ({"choice": "direct"}, {"choice": "fft"})
    code = parse_source(python_source(Model(card=Card(decision="toy"), choices=choices, columns=columns, body=body)))
    assert [code.choose({name: size}) for size in (4, 32)] == list(choices)


@pytest.mark.parametrize("choices", [({"choice": "a"}, {"choice": "b"}), ({"tile": 8}, {"tile": 16})])
@pytest.mark.parametrize(("k", "ranked"), [(None, 2), (5, 2), (1, 1), (0, 0), (-1, 0), (-5, 0)])
def test_at_most_k_choices_are_ranked_and_none_for_less_than_one(choices: Any, k: int | None, ranked: int) -> None:
    columns = Columns((Number("n", 1.0, 64.0),))
    model = Model(card=Card(decision="conv"), choices=choices, columns=columns, body=Tree((Leaf((1, 0)),)))
    namespace: dict[str, Any] = {}
    exec(compile(python_source(model), "<generated>", "exec"), namespace)
    assert len(namespace["rank"]({"n": 8}, k)) == ranked
