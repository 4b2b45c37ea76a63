"""Helion's knobs as parameters of ours, and back."""

import pytest
from helion_standins import Config, Items, Odd, Order, Spec, Tensor, Values, call, matmul_spec, powers

from tunewise.deploy.helion_problem import features_of
from tunewise.deploy.helion_space import knobs_of
from tunewise.errors import InvalidConfig

SPEC = Spec(
    [("block_sizes", 2, True), ("loop_orders", 1, True), ("buffers", 1, False), ("kind", 1, False), ("odd", 1, False)],
    [powers(32), powers(16), Order(2), Items(Values([1, 2], 1), 2), Values([(1, 2), (3, 4)], (1, 2)), Odd()],
)


def test_every_value_has_a_name_of_its_own_and_what_nobody_knows_stays_as_it_is() -> None:
    knobs = knobs_of(SPEC)
    assert {param.name: list(param) for param in knobs.space.params} == {
        "block_sizes_0": [8, 16, 32],
        "block_sizes_1": [8, 16],
        "loop_orders_0": ["[0,1]", "[1,0]"],
        "buffers_0": [1, 2],
        "buffers_1": [1, 2],
        "kind": ["[1,2]", "[3,4]"],
    }
    assert knobs.helion(knobs.default).config["odd"] == "as it is"


def test_every_config_goes_to_helion_and_back() -> None:
    knobs = knobs_of(SPEC)
    for config in knobs.space:
        assert knobs.ours(knobs.helion(config)) == config
    made = knobs.helion({**knobs.default, "loop_orders_0": "[1,0]", "buffers_1": 2, "kind": "[3,4]"}).config
    assert (made["loop_orders"], made["buffers"], made["kind"]) == ([[1, 0]], [1, 2], (3, 4))


def test_a_part_of_a_config_is_completed_from_the_default() -> None:
    knobs = knobs_of(SPEC)
    assert knobs.ours(Config({"block_sizes": [32, 16]})) == {**knobs.default, "block_sizes_0": 32, "block_sizes_1": 16}


def test_a_knob_that_does_nothing_makes_no_other_config() -> None:
    knobs = knobs_of(matmul_spec(16))
    settled = {tuple(knobs.settled(config)[0].values()) for config in knobs.space}
    assert (knobs.space.count(), len(settled)) == (24, 16)


def test_what_helion_refuses_is_said_with_its_reason() -> None:
    spec = matmul_spec(16)
    knobs = knobs_of(spec)
    spec.refuses = lambda config: True
    with pytest.raises(InvalidConfig, match="these do not go together"):
        knobs.helion(knobs.default)


def test_slots_without_names_are_numbered() -> None:
    spec = matmul_spec(16)
    named = spec.flat_key_layout()
    knobs = knobs_of(Spec(named, spec.fragments))
    spec.flat_key_layout = lambda: [("block_sizes", 1, True)]  # type: ignore[method-assign]
    assert knobs_of(spec).space.names == ("slot_0", "slot_1", "slot_2", "slot_3")
    assert knobs.space.names == ("block_sizes_0", "block_sizes_1", "loop", "depth")


def test_features_are_sizes_types_and_numbers_of_the_arguments() -> None:
    args = (Tensor((2, 3), "torch.bfloat16"), 0.5, True, "gelu", None, [Tensor((4,))])
    assert features_of(args) == {
        "arg0_dim0": 2,
        "arg0_dim1": 3,
        "arg0_dtype": "bfloat16",
        "arg0_contiguous": 1,
        "arg1_scalar": 0.5,
        "arg2_scalar": 1,
        "arg3_word": "gelu",
        "arg5_0_dim0": 4,
        "arg5_0_dtype": "float32",
        "arg5_0_contiguous": 1,
    }


def test_a_subject_tells_kernels_settings_and_sizes_apart() -> None:
    one, other = call(16).subject, call(32).subject
    assert set(one.difference(other)) == {f"problem.arg{arg}_dim{axis}" for arg in (0, 1) for axis in (0, 1)}
    assert one.decision == "helion.matmul"
    assert {"kernel", "helion.backend", "helion.static_shapes", "library.helion"} <= set(one.parts)
