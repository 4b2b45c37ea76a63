"""Files for Helion's aot_kernel: they answer as the model does, import nothing, and no name in them is code."""

import ast
import random
import runpy
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from drawn import Features, draw_model, edges_of, problems_of

from tunewise import models
from tunewise.codegen.helion import helion_file_name, helion_source
from tunewise.errors import InvalidModel
from tunewise.models import Card, Columns, Forest, Guess, Leaf, Model, Number, Split, Tree, Word

CHOICES = (
    {"block_sizes_0": 32, "block_sizes_1": 16, "loop_orders_0": "[0,1]", "loop": "unroll"},
    {"block_sizes_0": 64, "block_sizes_1": 64, "loop_orders_0": "[1,0]", "loop": "fori_loop"},
)
MODEL = Model(
    card=Card(decision="helion.mm", fence={"hardware.name": "H100"}),
    choices=CHOICES,
    columns=Columns((Number("arg0_dim0", 8.0, 64.0), Word("arg1_dtype", ("bfloat16", "float32")))),
    body=Tree((Split(0, 1, 2, 32.0), Leaf((0, 1)), Leaf((1, 0)))),
)
EVIL = [
    "');import os#",
    '"""\nimport os\n"""',
    "a\nimport os",
    "args",
    "configs",
    "number",
    "_ranking",
    "\u2028import os",
]


def loaded(text: str, folder: Path) -> dict[str, Any]:
    """Return what a file defines, run by Python itself."""
    path = folder / "generated.py"
    path.write_text(text)
    return runpy.run_path(str(path))


def tensor(*shape: int, dtype: str = "torch.float32") -> Any:
    return SimpleNamespace(shape=shape, dtype=dtype, is_contiguous=lambda: True)


def test_a_call_gets_the_config_of_the_model_as_helion_spells_it(tmp_path: Path) -> None:
    made = loaded(helion_source(MODEL), tmp_path)
    small, large = (tensor(32, 8), tensor(8, 8)), (tensor(33, 8), tensor(8, 8))
    assert (made["key_mm"](*small), made["key_mm"](*large)) == (0, 1)
    assert made["autotune_mm"](*small) == {"block_sizes": [32, 16], "loop_orders": [[0, 1]], "loop": "unroll"}
    assert made["autotune_mm"](*large) == {"block_sizes": [64, 64], "loop_orders": [[1, 0]], "loop": "fori_loop"}


def test_two_calls_share_no_list(tmp_path: Path) -> None:
    answer = loaded(helion_source(MODEL), tmp_path)["autotune_mm"]
    answer(tensor(32, 8), tensor(8, 8))["block_sizes"].append(7)
    assert answer(tensor(32, 8), tensor(8, 8))["block_sizes"] == [32, 16]


@pytest.mark.parametrize(
    "call",
    [(tensor(65, 8), tensor(8, 8)), (tensor(32, 8), tensor(8, 8, dtype="torch.int8")), (tensor(32, 8),), (), (1, "x")],
)
def test_a_call_outside_what_was_measured_gets_helions_default_or_the_models(tmp_path: Path, call: Any) -> None:
    made = loaded(helion_source(MODEL), tmp_path)
    assert (made["key_mm"](*call), made["autotune_mm"](*call)) == (-1, None)
    with_default = models.Model(card=MODEL.card, choices=CHOICES, default=1, columns=MODEL.columns, body=MODEL.body)
    made = loaded(helion_source(with_default), tmp_path)
    assert (made["key_mm"](*call), made["autotune_mm"](*call)["block_sizes"]) == (1, [64, 64])


def test_file_and_model_agree_on_drawn_problems_and_at_the_edges(tmp_path: Path) -> None:
    asked = 0
    for seed in range(60):
        rng = random.Random(seed)
        model = draw_model(rng, decision="helion.drawn")
        names = [column.name for column in model.columns.problem]
        places = {name: f"args[{place}]" for place, name in enumerate(names)}
        key = loaded(helion_source(model, places), tmp_path)["key_drawn"]
        problems: list[Features] = [*edges_of(model), *problems_of(model, rng, 20)]
        words = {column.name for column in model.columns.problem if isinstance(column, Word)}
        for features in problems:
            if set(features) == set(names) and all(isinstance(features[word], str) for word in words):
                asked += 1
                assert key(*(features[name] for name in names)) == (model.rank(features) or [model.default])[0]
    assert asked > 1_000


def test_kernels_of_one_source_file_stand_in_one_file(tmp_path: Path) -> None:
    forest = Model(
        card=Card(decision="anything"),
        choices=({"block_sizes_0": 8}, {"block_sizes_0": 16}),
        columns=Columns((Number("arg0_dim0", 1.0, 64.0),), (Number("block_sizes_0", 8.0, 16.0),)),
        body=Forest(trees=((Split(1, 1, 2, 8.0), Guess(1.0), Guess(0.0)),)),
    )
    made = loaded(helion_source({"mm": MODEL, "softmax": forest, "relu": forest}), tmp_path)
    assert made["autotune_softmax"](tensor(4)) == made["autotune_relu"](tensor(4)) == {"block_sizes": [16]}
    assert made["autotune_mm"](tensor(32, 8), tensor(8, 8))["block_sizes"] == [32, 16]


def test_names_never_become_code() -> None:
    harmless = [f"name{place}" for place in range(len(EVIL))]
    for seed in range(40):
        rows: list[list[str]] = []
        for names in (EVIL, harmless):
            model = draw_model(random.Random(seed), names=names, decision=names[0])
            places = {column.name: "args[0]" for column in model.columns.problem}
            tree = ast.parse(helion_source(model, places, kernel="mm"))
            rows.append([type(node).__name__ for node in ast.walk(tree) if not isinstance(node, ast.Constant)])
            assert "Import" not in rows[-1]
        assert rows[0] == rows[1]


@pytest.mark.parametrize(
    "place",
    ["os.system('id')", "args[0].shape[0]; import os", "args", "args[0].data_ptr()", "args[0].shape", "", "args[-1]"],
)
def test_a_place_is_an_argument_or_a_plain_fact_of_one(place: str) -> None:
    with pytest.raises(InvalidModel, match="it can be an argument such as"):
        helion_source(MODEL, {"arg0_dim0": place})


def test_a_feature_whose_place_nobody_told_is_asked_for() -> None:
    model = Model(card=MODEL.card, choices=CHOICES, columns=Columns((Number("m", 1.0, 2.0),)), body=Tree((Leaf((0,)),)))
    with pytest.raises(InvalidModel, match="where is the feature 'm'"):
        helion_source(model)
    assert "args[0].shape[0]" in helion_source(model, {"m": "args[0].shape[0]"})


@pytest.mark.parametrize("kernel", ["mm()", "class", "a b", "", "\u00e9", "../mm"])
def test_a_kernel_is_a_function_of_python(kernel: str) -> None:
    with pytest.raises(InvalidModel, match=r"Python function|at least one|say which one"):
        helion_source({kernel: MODEL})


def test_a_decision_that_is_no_kernel_has_to_say_which_one_it_is_for() -> None:
    model = Model(card=Card(decision="gemm"), choices=CHOICES, columns=MODEL.columns, body=MODEL.body)
    with pytest.raises(InvalidModel, match="say which one"):
        helion_source(model)
    assert "def key_mm" in helion_source(model, kernel="mm")


def test_a_file_is_called_as_helion_looks_for_it() -> None:
    assert helion_file_name("kernels", "cuda", "sm90") == "_helion_aot_kernels_cuda_sm90.py"
    for wrong in ("../x", "", ".x", "a/b", "a\nb"):
        with pytest.raises(InvalidModel, match="cannot be part of a file's name"):
            helion_file_name("kernels", "cuda", wrong)
