"""Sizes and strides as features, and back."""

import pytest

from tunewise.formats.operands import Operand, features_of, layout, operands_of

F16 = "float16"


def test_a_product_is_its_sizes_type_and_layouts() -> None:
    operands = Operand(F16, (64, 48), (48, 1)), Operand(F16, (48, 32), (1, 48))
    features = features_of("mm", operands)
    assert features == {"m": 64, "n": 32, "k": 48, "dtype": F16, "dynamic": 0, "lhs": "rows", "rhs": "columns"}
    assert operands_of("mm", features) == operands


def test_a_batch_and_a_bias_are_told() -> None:
    batched = Operand(F16, (5, 4, 3), (12, 3, 1)), Operand(F16, (5, 3, 2), (6, 1, 3))
    assert features_of("bmm", batched)["b"] == 5
    assert operands_of("bmm", features_of("bmm", batched)) == batched
    added = Operand(F16, (4, 2), (0, 1)), Operand(F16, (4, 3), (3, 1)), Operand(F16, (3, 2), (2, 1))
    assert features_of("addmm", added)["bias"] == "vector"
    assert operands_of("addmm", features_of("addmm", added)) == added
    assert features_of("addmm", (Operand(F16, (2,), (1,)), *added[1:]))["bias"] == "vector"
    assert features_of("addmm", (Operand(F16, (4, 2), (2, 1)), *added[1:]))["bias"] == "rows"


@pytest.mark.parametrize(
    ("stride", "word"),
    [
        ((8, 1), "rows"),
        ((1, 4), "columns"),
        ((16, 1), "rows-padded"),
        ((1, 16), "columns-padded"),
        ((0, 1), "rows-padded"),
        ((16, 2), "other"),
    ],
)
def test_a_layout_has_a_word(stride: tuple[int, int], word: str) -> None:
    assert layout((4, 8), stride) == word


def test_sizes_that_may_change_are_another_problem() -> None:
    operands = Operand(F16, (64, 48), (48, 1)), Operand(F16, (48, 32), (32, 1))
    assert features_of("mm", operands, is_dynamic=True)["dynamic"] == 1


@pytest.mark.parametrize(
    ("op", "sizes"), [("mm", ((2, 3), (4, 5))), ("bmm", ((2, 3), (3, 5))), ("addmm", ((2, 3), (3, 5)))]
)
def test_what_is_no_product_is_refused(op: str, sizes: tuple[tuple[int, int], ...]) -> None:
    with pytest.raises(ValueError, match=f"{op} does not take"):
        features_of(op, [Operand(F16, size, (size[1], 1)) for size in sizes])


def test_operands_of_two_types_are_refused() -> None:
    with pytest.raises(ValueError, match="mm does not take"):
        features_of("mm", [Operand(F16, (2, 3), (3, 1)), Operand("int8", (3, 5), (5, 1))])


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"lhs": "rows-padded"}, "does not tell how far apart"),
        ({"lhs": "vector"}, "does not tell how far apart"),
        ({"m": 0}, "m=0 is not"),
        ({"k": "x"}, "k='x' is not"),
        ({"dtype": "float16, [1], [1])"}, "dtype="),
    ],
)
def test_features_that_tell_no_strides_are_refused(changed: dict[str, object], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        operands_of("mm", {"m": 2, "n": 3, "k": 4, "dtype": F16, **changed})
