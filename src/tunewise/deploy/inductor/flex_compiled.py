"""Compiled flex_attention: block masks, how much they leave to compute, and code for one shape and block size each."""

import functools
import types
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tunewise.errors import BuildError

BlockSize = tuple[int, int]
_BLOCK_PAIRS = 64  # what beginning a block costs, in pairs: so small that only the smallest blocks feel it
_MOST = 256  # block masks, and compiled functions, kept at hand


@dataclass(frozen=True, slots=True)
class Call:
    """What a call of flex_attention is given besides its tensors; the mask may depend on the batch and the head."""

    mask_mod: Callable[..., Any]
    score_mod: Callable[..., Any] | None = None
    per_batch: bool = False
    per_head: bool = False
    options: tuple[tuple[str, Any], ...] = ()


@dataclass(frozen=True, slots=True)
class Shape:
    """What compiled code depends on."""

    batch: int
    heads: int
    kv_heads: int
    q_length: int
    kv_length: int
    width: int
    v_width: int
    dtype: str
    device: str

    def features(self) -> dict[str, int | str]:
        """Return the sizes and the type as features; what goes without saying is left out."""
        said: dict[str, int | str] = {"b": self.batch, "h": self.heads, "m": self.q_length, "n": self.kv_length}
        more = {"hkv": self.kv_heads} if self.kv_heads != self.heads else {}
        wide = {"dv": self.v_width} if self.v_width != self.width else {}
        return {**said, "d": self.width, **more, **wide, "dtype": self.dtype}


class Compiled:
    """The compiled code and the block masks of one call, by shape and block size."""

    def __init__(self, call: Call) -> None:
        self._call = call
        self._masks: dict[tuple[Shape, BlockSize], Any] = {}
        self._code: dict[tuple[Shape, BlockSize], Callable[..., Any]] = {}
        self._broken: dict[tuple[Shape, BlockSize], str] = {}

    def shape(self, q: Any, k: Any, v: Any) -> Shape:
        """Return the shape of a call's tensors, each (batch, heads, length, width)."""
        (batch, heads, q_length, width), (_, kv_heads, kv_length, _) = q.shape, k.shape
        kind, place = str(q.dtype).removeprefix("torch."), str(q.device)
        return Shape(batch, heads, kv_heads, q_length, kv_length, width, v.shape[-1], kind, place)

    def block_mask(self, shape: Shape, size: BlockSize) -> Any:
        """Return the BlockMask of a block size, worked out once."""
        from torch.nn.attention.flex_attention import create_block_mask

        def make() -> Any:
            batch, heads = shape.batch if self._call.per_batch else None, shape.heads if self._call.per_head else None
            lengths = shape.q_length, shape.kv_length
            return create_block_mask(self._call.mask_mod, batch, heads, *lengths, device=shape.device, BLOCK_SIZE=size)

        return _kept(self._masks, (shape, size), make)

    def area(self, shape: Shape, size: BlockSize) -> float:
        """Return how many pairs of a query and a key are computed, for one batch and head: whole blocks are."""
        return self._blocks(shape, size) * size[0] * size[1]

    def cost(self, shape: Shape, size: BlockSize) -> float:
        """Return how much there is to do, in pairs, for one batch and head: an estimate to begin a search with."""
        return self._blocks(shape, size) * (size[0] * size[1] + _BLOCK_PAIRS)

    def attention(self, shape: Shape, size: BlockSize) -> Callable[..., Any]:
        """Return attention of a block size for tensors of a shape; the first call compiles it.

        Raises BuildError where `build` could not compile it.
        """
        if (shape, size) in self._broken:
            raise BuildError(self._broken[shape, size])
        mask = self.block_mask(shape, size)
        compiled = _kept(self._code, (shape, size), lambda: self._fresh(f"flex_attention_{size[0]}_{size[1]}"))
        return functools.partial(compiled, mask)

    def build(self, shape: Shape, size: BlockSize, args: tuple[Any, ...]) -> None:
        """Compile a block size now; what went wrong is remembered."""
        try:
            self.attention(shape, size)(*args)
        except Exception as error:  # a candidate's own trouble
            self._broken[shape, size] = f"{type(error).__name__}: {error}"

    def untraced(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return a function that torch.compile leaves alone: what it calls is compiled already."""
        import torch

        return torch.compiler.disable(function)  # type: ignore[no-any-return]

    def threads(self) -> int:
        """Return how many threads torch uses for one op."""
        import torch

        return int(torch.get_num_threads())

    def clear(self) -> None:
        """Drop everything."""
        for kept in (self._masks, self._code, self._broken):
            kept.clear()

    def _blocks(self, shape: Shape, size: BlockSize) -> float:
        mask = self.block_mask(shape, size)
        full = mask.full_kv_num_blocks
        blocks = int(mask.kv_num_blocks.sum()) + (0 if full is None else int(full.sum()))
        batches, heads = map(int, mask.kv_num_blocks.shape[:2])
        return blocks / (batches * heads)

    def _fresh(self, name: str) -> Callable[..., Any]:
        """Return attention with code of its own: Dynamo compiles one piece of code so often, and then gives up."""
        import torch
        from torch.nn.attention.flex_attention import flex_attention

        score_mod, options = self._call.score_mod, dict(self._call.options)

        def attend(mask: Any, q: Any, k: Any, v: Any) -> Any:
            return flex_attention(q, k, v, score_mod=score_mod, block_mask=mask, **options)

        code = attend.__code__.replace(co_name=name)
        alone = types.FunctionType(code, attend.__globals__, name, attend.__defaults__, attend.__closure__)
        compiled: Callable[..., Any] = torch.compile(alone, dynamic=False)
        return compiled


def _kept(kept: dict[Any, Any], key: Any, make: Callable[[], Any]) -> Any:
    if key not in kept:
        if len(kept) >= _MOST:
            kept.clear()
        kept[key] = make()
    return kept[key]
