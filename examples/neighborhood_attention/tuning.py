"""The decisions: which tiles the forward and the backward pass use, and the switch that has them tuned.

They are named `neighborhood.forward.2d`, `neighborhood.backward.2d` and so on: a tile has as many sides as the grid has
dimensions. The sides of a tile are powers of two, in the order of the dimensions: q_0, q_1 of the queries, kv_0, kv_1
of the keys.
"""

import functools
from collections.abc import Callable, Mapping, Sequence
from math import prod

import torch
from torch import Tensor

import tunewise as tw
from tunewise.errors import LimitExceeded

from . import backward, forward, tiles
from .tiles import Tile
from .window import Axes, Axis

BUDGET = 12  # configs of the standard effort: each new size of a tile costs a run of the C++ compiler
SPLITS = (1, 2, 4, 8)  # of the keys; 1 is off

tuner = tw.Autotuner("neighborhood", budget=BUDGET)
use_autotuner, disable_autotuner, autotuning = tuner.use_autotuner, tuner.disable_autotuner, tuner.autotuning
is_autotuner_enabled = tuner.is_autotuner_enabled

_SIDES = {1: (16, 32, 64, 128), 2: (2, 4, 8, 16), 3: (2, 4, 8)}
DEFAULTS = {1: (64,), 2: (8, 8), 3: (4, 4, 4)}
_SMALLEST, _LARGEST = 16, 128  # tokens of a tile
# What else costs time, as many pairs of a query and a key: rough, for they only say what is tried first.
_BLOCK_PAIRS = 128  # to begin a block
_MASKED = 0.6  # to mask a pair
_KEY_PAIRS = 32  # to gather a key for the backward pass, and to add to its gradient
_SPLIT = 1.3  # to compute the scores of split keys twice


def attend(q: Tensor, k: Tensor, v: Tensor, axes: Axes, scale: float) -> Tensor:
    """Return the attention of (batch, tokens, heads, width) tensors, by the best tiles that are known for them."""
    return forward_pass(len(axes))(q, k, v, axes, scale)


def gradients(grad: Tensor, q: Tensor, k: Tensor, v: Tensor, out: Tensor, axes: Axes, scale: float) -> tuple:
    """Return the gradients of q, k and v, by the best tiles that are known for them."""
    return backward_pass(len(axes))(grad, q, k, v, out, axes, scale)


def forward_pass(dims: int) -> tw.Implementation:
    """Return the forward pass for a number of dimensions: a function that asks its decision for the tiles."""
    return _forward_pass(dims, torch.get_num_threads())


def backward_pass(dims: int) -> tw.Implementation:
    """Return the backward pass for a number of dimensions: a function that asks its decision for tile and split."""
    return _backward_pass(dims, torch.get_num_threads())


@functools.cache
def _forward_pass(dims: int, threads: int) -> tw.Implementation:
    tile = _tile("q", dims) | _tile("kv", dims)
    decision = tw.Decision(
        f"neighborhood.forward.{dims}d",
        space=tw.Space(tile, rules=[*_bounded("q", dims), *_bounded("kv", dims)]),
        default=forward_config(DEFAULTS[dims], DEFAULTS[dims]),
        features=lambda q, k, v, axes, scale: features(q, v, axes),
        inputs=lambda problem, seed: (*_tensors(problem, seed), axes_in(problem), 0.125),
        switch=tuner.forward,
        **_measured(threads),
    )
    tw.load_heuristic(_expert(decision.name, _forward_rank))

    @decision.implementation
    def run(q, k, v, axes, scale, **config):
        q_tile, kv_tile = forward_tiles(config)
        _refuse_waste(axes, (q_tile, kv_tile), DEFAULTS[dims])
        return forward.flex(q, k, v, axes, scale, q_tile, kv_tile)

    return run


@functools.cache
def _backward_pass(dims: int, threads: int) -> tw.Implementation:
    decision = tw.Decision(
        f"neighborhood.backward.{dims}d",
        space=tw.Space(_tile("q", dims) | {"kv_split": list(SPLITS)}, rules=_bounded("q", dims)),
        default=backward_config(DEFAULTS[dims], 1),
        features=lambda grad, q, k, v, out, axes, scale: features(q, v, axes),
        inputs=_backward_inputs,
        switch=tuner.backward,
        **_measured(threads),
    )
    tw.load_heuristic(_expert(decision.name, _backward_rank))

    @decision.implementation
    def run(grad, q, k, v, out, axes, scale, **config):
        tile, kv_split = backward_tiles(config)
        _refuse_waste(axes, (tile,), DEFAULTS[dims])
        return backward.gradients(grad, q, k, v, out, axes, scale, tile, kv_split)

    return run


def features(q: Tensor, v: Tensor, axes: Axes) -> dict[str, int | str]:
    """Return what a decision is asked about: the grid and its windows, and the sizes and type of the tensors."""
    batch, _, heads, width = q.shape
    asked = {"batch": batch, "heads": heads, "dim": width, "value_dim": v.shape[-1], "dtype": str(q.dtype)[6:]}
    for place, axis in enumerate(axes):
        asked[f"size_{place}"], asked[f"kernel_{place}"] = axis.size, axis.kernel
        asked[f"dilation_{place}"], asked[f"causal_{place}"] = axis.dilation, "yes" if axis.causal else "no"
    return asked


def axes_in(problem: Mapping[str, int | str]) -> Axes:
    """Return the axes of a problem's features."""
    names = ("size", "kernel", "dilation", "causal")
    rows = ([problem[f"{name}_{place}"] for name in names] for place in range(3) if f"size_{place}" in problem)
    return tuple(Axis(size, kernel, dilation, causal == "yes") for size, kernel, dilation, causal in rows)


def forward_config(q_tile: Sequence[int], kv_tile: Sequence[int]) -> dict[str, int]:
    """Return two tile shapes as a config."""
    return {f"{who}_{place}": side for who, tile in (("q", q_tile), ("kv", kv_tile)) for place, side in enumerate(tile)}


def forward_tiles(config: Mapping[str, int]) -> tuple[Tile, Tile]:
    """Return the tile shapes of a config: queries, keys."""
    dims = len(config) // 2
    return tuple(config[f"q_{at}"] for at in range(dims)), tuple(config[f"kv_{at}"] for at in range(dims))


def backward_config(q_tile: Sequence[int], kv_split: int) -> dict[str, int]:
    """Return a tile shape and the number of splits as a config."""
    return {**{f"q_{place}": side for place, side in enumerate(q_tile)}, "kv_split": kv_split}


def backward_tiles(config: Mapping[str, int]) -> tuple[Tile, int]:
    """Return the tile shape of a config, and in how many parts the keys are computed."""
    return tuple(config[f"q_{at}"] for at in range(len(config) - 1)), config["kv_split"]


def _tile(who: str, dims: int) -> dict[str, list[int]]:
    return {f"{who}_{place}": list(_SIDES[dims]) for place in range(dims)}


def _bounded(who: str, dims: int) -> list[str]:
    """Return the rules for a tile: neither too small nor too large, and nearly as long as it is wide."""
    sides = [f"{who}_{place}" for place in range(dims)]
    size = f"{_SMALLEST} <= {' * '.join(sides)} <= {_LARGEST}"
    return [size] if dims == 1 else [size, f"max({', '.join(sides)}) <= {8 // dims} * min({', '.join(sides)})"]


def _measured(threads: int) -> dict[str, object]:
    """Return how configs are measured: in this process, where their code is compiled once and for good."""
    clock = {"clock": "cpu"} if threads == 1 else {"clock": "wall", "threads": threads}
    check = tw.Check(variants=False, repeats=2)  # how tiles are cut depends on no value
    return {"check": check, "policy": tw.Policy(isolation="none", **clock), "libraries": ("torch",)}


def _refuse_waste(axes: Axes, shapes: Sequence[Tile], default: Tile) -> None:
    """Raise LimitExceeded for a tile that is mostly outside of the grid: compiling it would be a waste of time."""
    for tile in shapes:
        for axis, side in zip(axes, tile, strict=True):
            if tile != default and side >= 2 * axis.longest:
                raise LimitExceeded(f"a tile side of {side} is for more than the {axis.longest} tokens there are")


def _expert(decision_name: str, rank: Callable[[Axes, tw.Space], list]) -> type[tw.Expert]:
    class LeastWork(tw.Expert):
        """What has least to do is tried first."""

        name = f"{decision_name} by least work"
        decision = decision_name
        most = 9

        def seeds(self, problem):
            """Return the configs that come first in the rank; the default is measured anyway."""
            ranked = rank(axes_in(problem), problem.space)
            return [config for config in ranked if config != problem.default][: self.most]

    return LeastWork


def _forward_rank(axes: Axes, space: tw.Space) -> list:
    """Return all configs by the pairs there are to compute, and by what beginning each block costs."""

    def cost(config):
        q_tile, kv_tile = forward_tiles(config)
        some, whole = tiles.count_blocks(axes, q_tile, kv_tile)
        return (prod(q_tile) * prod(kv_tile) + _BLOCK_PAIRS) * (some + _MASKED * (some - whole))

    return sorted(space, key=cost)


def _backward_rank(axes: Axes, space: tw.Space) -> list:
    """Return configs by the pairs there are to compute and the keys to gather; keys are not split, or most of all."""

    def cost(config):
        tile, kv_split = backward_tiles(config)
        count = prod(len(tiles.queries(axis, side).first) for axis, side in zip(axes, tile, strict=True))
        return count * backward.window_size(axes, tile) * (prod(tile) + _KEY_PAIRS) * (_SPLIT if kv_split > 1 else 1)

    ranked = sorted(space, key=cost)
    plain, split = ([config for config in ranked if config["kv_split"] == count] for count in (SPLITS[0], SPLITS[-1]))
    return [*plain[:6], *split[:3], *plain[6:]]


def _tensors(problem: Mapping[str, int | str], seed: int, count: int = 3) -> list[Tensor]:
    tokens = prod(axis.size for axis in axes_in(problem))
    dtype, generator = getattr(torch, problem["dtype"]), torch.Generator().manual_seed(seed)
    widths = [problem["dim"], problem["dim"], *[problem["value_dim"]] * (count - 2)]
    shape = problem["batch"], tokens, problem["heads"]
    return [torch.randn(*shape, width, generator=generator).to(dtype) for width in widths]


def _backward_inputs(problem: Mapping[str, int | str], seed: int) -> tuple:
    q, k, v, grad = _tensors(problem, seed, 4)
    axes = axes_in(problem)
    out = backward.attend(q.float(), k.float(), v.float(), axes, 0.125, DEFAULTS[len(axes)]).to(q.dtype)
    return grad, q, k, v, out, axes, 0.125
