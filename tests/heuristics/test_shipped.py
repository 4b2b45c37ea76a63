"""Models that come with tunewise: sound, for the code that ships, and made from the data beside them."""

import pytest

from tunewise import workloads
from tunewise.decision import Problem
from tunewise.formats.datasets import read
from tunewise.heuristics.shipped import Shipped, shipped
from tunewise.learn.split import by_problem
from tunewise.learn.validate import validate

DEMO = ("gemm", "isin")
TORCH = ("torch_linear", "torch_bmm")
each = pytest.mark.parametrize("one", shipped(), ids=lambda one: one.name)
of_demo = pytest.mark.parametrize("one", [one for one in shipped() if one.name in DEMO], ids=lambda one: one.name)
of_torch = pytest.mark.parametrize("one", [one for one in shipped() if one.name in TORCH], ids=lambda one: one.name)


def test_the_models_of_the_demo_and_of_torch_compile_are_there() -> None:
    assert {one.name for one in shipped()} == {*DEMO, *TORCH}


@of_torch
def test_a_model_of_torch_compile_is_for_one_cpu_vector_unit_number_of_threads_and_torch(one: Shipped) -> None:
    fence = one.model().card.fence
    assert {"hardware.name", "isa", "threads", "library.torch"} <= set(fence)
    assert one.model().card.decision == one.name.replace("_", ".")


@of_demo
def test_a_model_is_for_one_cpu_and_for_the_code_that_ships(one: Shipped) -> None:
    fence = one.model().card.fence
    assert fence["hardware.name"]
    here = workloads.find(one.name).subject(Problem({})).environment.must
    assert {name: here[name] for name in ("kernel", "source") if name in here} == {
        name: value for name, value in fence.items() if name in ("kernel", "source")
    }


@each
def test_a_model_beats_default_and_best_single_choice_on_the_held_out_part_of_its_data(one: Shipped) -> None:
    data = read([one.data])
    _, held = by_problem(data, 0.3)
    judged = validate(one.model(), held, default=data.configs[data.default or 0])
    assert judged.default_regret is not None
    assert judged.regret.geomean < judged.default_regret.geomean
    assert judged.regret.geomean <= judged.best_single_regret.geomean


@of_demo
def test_a_model_names_configs_of_the_space_only(one: Shipped) -> None:
    space = workloads.find(one.name).space
    assert all(space.why_not(choice) is None for choice in one.model().choices)


@each
def test_the_data_name_no_host_and_no_path(one: Shipped) -> None:
    raw = one.data.read_bytes()
    assert b"/home" not in raw
    assert b"/tmp" not in raw
    assert b"/root" not in raw
