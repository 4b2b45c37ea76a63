"""The windows of neighborhood attention, and tiles of any shape over them: right without compiling anything."""

import re
from itertools import product
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")

from neighborhood_stage import (  # noqa: E402
    Axis,
    axes_of,
    distances,
    na,
    seen,
    tensors,
    tiles,
    tuning,
    uncompiled,
)

__all__ = ["uncompiled"]  # a fixture

AXES = [
    Axis(size, kernel, dilation, causal)
    for size in range(1, 15)
    for kernel in range(1, size + 1, 2)
    for dilation in range(1, size // kernel + 1)
    for causal in (False, True)
]
WINDOWS: list[tuple[tuple[int, ...], Any, Any, Any]] = [
    ((13,), 5, 2, False),
    ((37,), 7, 4, True),
    ((8, 8), 7, 1, False),
    ((9, 11), (3, 5), (2, 1), (False, True)),
    ((12, 10), 3, 3, True),
    ((5, 6, 7), 3, (1, 2, 1), (True, False, False)),
    ((4, 9, 3), (3, 3, 1), (1, 3, 2), False),
]
FORWARD = {1: [((16,), (32,)), ((4,), (8,))], 2: [((4, 4), (2, 8)), ((8, 2), (8, 8))], 3: [((2, 2, 4), (4, 2, 2))]}


def defined_window(axis: Axis, position: int) -> list[int]:
    """Return the keys of a query by the definition: of all runs of its group, the one with it nearest the middle."""
    group = range(position % axis.dilation, axis.size, axis.dilation)
    if axis.causal:
        return [key for key in group if key <= position][-axis.kernel :]
    runs = [group[start : start + axis.kernel] for start in range(len(group) - axis.kernel + 1)]
    return list(min(runs, key=lambda run: abs(run[axis.kernel // 2] - position)))


def test_every_window_is_the_one_of_the_definition() -> None:
    assert len(AXES) > 200
    for axis in AXES:
        for position in range(axis.size):
            assert list(axis.window(position)) == defined_window(axis, position), (axis, position)


def test_a_query_sees_the_same_number_of_keys_everywhere_unless_the_axis_is_causal() -> None:
    matrix = seen(axes_of((7, 9), (3, 5), (2, 1), False))
    assert set(matrix.sum(1).tolist()) == {15}
    assert seen(axes_of((6,), 3, 1, True)).sum(1).tolist() == [1, 2, 3, 3, 3, 3]


def test_tiles_are_related_exactly_where_a_query_sees_a_key() -> None:
    for axis, q_tile, kv_tile in product(AXES, (2, 4), (1, 4)):
        dense = seen((axis,))
        q_at, kv_at = tiles.queries(axis, q_tile).positions, tiles.keys(axis, kv_tile)
        is_key = kv_at.coordinates >= 0
        some, whole = tiles.relation(axis, q_tile, kv_tile)
        pairs = dense[q_at.long()][:, :, kv_at.positions.long()] & is_key
        assert torch.equal(some, pairs.any(-1).any(1)), axis
        assert torch.equal(whole, pairs.all(-1).all(1)), axis


@pytest.mark.parametrize(("grid", "kernel", "dilation", "causal"), WINDOWS)
@pytest.mark.usefixtures("uncompiled")
def test_tiles_that_do_not_divide_the_grid_change_no_result(
    grid: tuple[int, ...], kernel: Any, dilation: Any, causal: Any
) -> None:
    for q_tile, kv_tile in FORWARD[len(grid)]:
        given = tensors(grid)
        far = distances(given, (kernel, dilation, causal), q_tile_shape=q_tile, kv_tile_shape=kv_tile)
        assert max(far) < 1e-5


@pytest.mark.parametrize(("grid", "kernel", "dilation", "causal"), WINDOWS)
@pytest.mark.parametrize("splits", [1, 2, 4, 99])
def test_gradients_do_not_depend_on_tiles_or_splits(
    grid: tuple[int, ...], kernel: Any, dilation: Any, causal: Any, splits: int
) -> None:
    given, tile = tensors(grid, torch.float64), (4, 2, 4)[: len(grid)]
    far = distances(given, (kernel, dilation, causal), backward_q_tile_shape=tile, backward_kv_splits=splits)
    assert max(far) < 1e-12


def test_values_may_be_of_another_width_and_products_of_another_scale() -> None:
    q, k, _ = tensors((9,), torch.float64)
    v = torch.linspace(-1, 1, 9 * 2 * 3, dtype=torch.float64).view(1, 9, 2, 3).requires_grad_()
    out = na.na1d(q, k, v, 3, scale=0.7)
    wanted = na.reference(q, k, v, 3, scale=0.7)
    assert torch.allclose(out, wanted, atol=1e-12)
    ours, theirs = (torch.autograd.grad(one.sum(), (q, k, v)) for one in (out, wanted))
    assert all(torch.allclose(one, other, atol=1e-12) for one, other in zip(ours, theirs, strict=True))


@pytest.mark.parametrize(
    ("ask", "said"),
    [
        (lambda q: na.na2d(q, q, q, 4), "kernel_size=4 is not a positive odd number"),
        (lambda q: na.na2d(q, q, q, 3, 0), "dilation=0 is not a whole number"),
        (lambda q: na.na2d(q, q, q, 5, 2), "does not fit into 8 tokens; a dilation of at most 1 fits"),
        (lambda q: na.na2d(q, q, q, (3, 3, 3)), "has 3 values for 2 dimensions"),
        (lambda q: na.na2d(q, q, q, 3.0), "kernel_size=3.0 is neither an int nor one for each"),
        (lambda q: na.na1d(q, q, q, 3), "na1d takes tensors of (batch, width, heads, dim)"),
        (lambda q: na.na2d(q, q[:, :4], q, 3), "they must be alike but for the width of v"),
        (lambda q: na.na2d(q, q, q.double(), 3), "they must be of one type"),
        (lambda q: na.na2d(*[q.to("meta")] * 3, 3), "the tensors are on meta; this op is for the CPU"),
        (lambda q: na.na2d(q, q, q, 3, q_tile_shape=(4, 4)), "are given together"),
        (lambda q: na.na2d(q, q, q, 3, q_tile_shape=(4,), kv_tile_shape=(4, 4)), "is not a tile of 2 positive sides"),
        (lambda q: na.na2d(q, q, q, 3, q_tile_shape=4), "q_tile_shape=4 is not a tile of 2 positive sides"),
        (lambda q: na.na2d(q, q, q, 3, backward_kv_splits=0), "backward_kv_splits=0 is not"),
        (lambda q: na.na2d(q, q, q, 3, backward_kv_splits=4), "is given without backward_q_tile_shape"),
        (lambda q: na.na2d(*[q[:0]] * 3, 3), "there is nothing to attend to"),
        (lambda q: na.na2d(*[q.int()] * 3, 3), "q, k and v are torch.int32"),
    ],
)
def test_what_does_not_fit_is_said(ask: Any, said: str) -> None:
    with pytest.raises(ValueError, match=re.escape(said)):
        ask(torch.zeros(1, 8, 8, 2, 4))


@pytest.mark.parametrize("dims", [1, 2, 3])
def test_every_space_holds_its_default_and_tiles_of_bounded_size(dims: int) -> None:
    for way in (tuning.forward_pass(dims), tuning.backward_pass(dims)):
        assert way.decision.default in way.decision.space
        assert 10 <= way.decision.space.count() <= 100
        for config in way.decision.space:
            sides = [config[f"q_{place}"] for place in range(dims)]
            assert 16 <= torch.Size(sides).numel() <= 128


@pytest.mark.parametrize("dims", [1, 2, 3])
def test_rules_of_thumb_propose_small_tiles_for_small_windows(dims: int) -> None:
    axes, space = axes_of((32,) * dims, 3, 1, False), tuning.forward_pass(dims).decision.space
    q_tile, kv_tile = tuning.forward_tiles(tuning._forward_rank(axes, space)[0])
    assert torch.Size([*q_tile, *kv_tile]).numel() <= 32 * 32
    seeds = tuning._backward_rank(axes, tuning.backward_pass(dims).decision.space)
    assert {config["kv_split"] for config in seeds[:9]} == {1, 8}
