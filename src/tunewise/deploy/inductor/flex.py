"""flex_attention's BLOCK_SIZE as a decision: the tiles of a block mask, tuned for the mask and the sizes it meets."""

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tunewise.decision import Answer, Check, Config, Policy, Space
from tunewise.decision.source import fingerprint
from tunewise.deploy.inductor.flex_compiled import BlockSize, Call, Compiled, Shape
from tunewise.session import Decision, Explanation, Implementation, Tuning
from tunewise.session.context import FRAME

NAME = "torch.flex_attention"
DEFAULT = (128, 128)  # torch's own
TILES = (16, 32, 64, 128, 256)
BUDGET = 8  # each block size costs a run of the C++ compiler


@functools.cache
def decision(threads: int = 1) -> Decision:
    """Return the decision on the block size, for measurements with so many threads."""
    policy = Policy() if threads == 1 else Policy(clock="wall", threads=threads, isolation="none")
    made = Decision(
        NAME,
        space=Space({"q": list(TILES), "kv": list(TILES)}),
        default=_config(DEFAULT),
        check=Check(variants=False, repeats=4),  # how tiles are cut depends on no value
        policy=policy,
        backend="inductor-cpu",
        libraries=("torch",),
    )
    made.implementation(facts=lambda: {"source": "flex_attention"})(_never_run)
    return made


def tuned_flex_attention(
    mask_mod: Callable[..., Any],
    *,
    score_mod: Callable[..., Any] | None = None,
    per_batch: bool = False,
    per_head: bool = False,
    **options: Any,
) -> "TunedFlexAttention":
    """Return attention under a mask, `attention(q, k, v)`, whose block size is the best known for the sizes it meets.

    `mask_mod`, `score_mod` and `options` (scale, enable_gqa, kernel_options) are those of torch's flex_attention.
    `per_batch` and `per_head` say that the mask depends on the batch or the head. What the mask reads must not change:
    its blocks are worked out once for each shape.
    """
    return TunedFlexAttention(Call(mask_mod, score_mod, per_batch, per_head, tuple(sorted(options.items()))))


def flex_block_size(mask_mod: Callable[..., Any], q: Any, k: Any, v: Any, **options: Any) -> BlockSize:
    """Return the (q, kv) BLOCK_SIZE for `create_block_mask`; takes what `tuned_flex_attention` takes.

    In the modes `tune` and `collect` a problem that is new is measured first.
    """
    return tuned_flex_attention(mask_mod, **options).block_size(q, k, v)


class TunedFlexAttention:
    """flex_attention under one mask, compiled for each shape it meets with the block size that is known to be best."""

    def __init__(self, call: Call) -> None:
        self._compiled = Compiled(call)
        self._word = f"{getattr(call.mask_mod, '__name__', 'mask')}-{fingerprint(call.mask_mod)[:8]}"
        self._features: dict[Shape, Mapping[str, Any]] = {}
        self._run = self._compiled.untraced(self._attend)

    def __call__(self, q: Any, k: Any, v: Any) -> Any:
        """Return the attention of queries, keys and values (batch, heads, length, width)."""
        return self._run(q, k, v)

    def block_size(self, q: Any, k: Any, v: Any) -> BlockSize:
        """Return the (q, kv) block size for these tensors; in `tune` and `collect` mode, a new problem is measured."""
        return _size(self.decide(q, k, v).config)

    def block_mask(self, q: Any, k: Any, v: Any) -> Any:
        """Return the BlockMask to pass to flex_attention yourself, made once for each shape and block size."""
        return self._compiled.block_mask(self._compiled.shape(q, k, v), self.block_size(q, k, v))

    def decide(self, q: Any, k: Any, v: Any) -> Answer:
        """Return the answer for these tensors; in `tune` and `collect` mode, measure a new problem first."""
        asked = decision(self._compiled.threads())
        answer, now = asked.decide(self.features(q, k, v)), asked.mode_in_force()
        frame = FRAME.get()
        if now == "tune" and answer.rung not in ("pin", "memory", *(frame.accept if frame else ())):
            return self.tune(q, k, v, **_bounds()).answer
        if now == "collect" and answer.rung != "pin":
            return self.tune(q, k, v, measure_all=True, **{"budget": asked.space.count(), **_bounds()}).answer
        return answer

    def tune(self, q: Any, k: Any, v: Any, *, budget: int = BUDGET, **plan: Any) -> Tuning:
        """Measure up to `budget` block sizes unless the answer is known: torch's own, and the cheapest by estimate.

        Each one is compiled first. Results are compared with those of torch's own block size. Takes what `Plan` takes.
        """
        asked, shape = decision(self._compiled.threads()), self._compiled.shape(q, k, v)
        chosen = self.candidates(q, k, v)[:budget]
        bench = _Bench(self._compiled, shape, asked, self.features(q, k, v))
        return bench.tune((q, k, v), chosen, plan)

    def candidates(self, q: Any, k: Any, v: Any) -> list[BlockSize]:
        """Return all block sizes in the order they are tried: torch's own, then by how much each seems to cost."""
        shape = self._compiled.shape(q, k, v)
        sizes = [(rows, columns) for rows in TILES for columns in TILES if (rows, columns) != DEFAULT]
        # Of equals the larger tiles: they have fewer ends.
        return [DEFAULT, *sorted(sizes, key=lambda size: (self._compiled.cost(shape, size), -size[0] * size[1]))]

    def explain(self, q: Any, k: Any, v: Any) -> Explanation:
        """Return where the answer for these tensors comes from, rung by rung."""
        return decision(self._compiled.threads()).explain(self.features(q, k, v))

    def features(self, q: Any, k: Any, v: Any) -> Mapping[str, Any]:
        """Return what the decision is asked about: sizes, type, the mask, and what coarse and fine tiles keep of it."""
        shape = self._compiled.shape(q, k, v)
        if shape not in self._features:
            pairs = shape.q_length * shape.kv_length
            kept = {f"kept_{tile}": round(self._compiled.area(shape, (tile, tile)) / pairs, 3) for tile in (32, 128)}
            self._features[shape] = {**shape.features(), **kept, "mask": self._word}
        return self._features[shape]

    def forget(self) -> None:
        """Drop block masks, compiled code and features, such as when what the mask reads has changed."""
        self._features.clear()
        self._compiled.clear()

    def _attend(self, q: Any, k: Any, v: Any) -> Any:
        shape, size = self._compiled.shape(q, k, v), self.block_size(q, k, v)
        return self._compiled.attention(shape, size)(q, k, v)


@dataclass(frozen=True)
class _Bench:
    """One problem whose block sizes are measured."""

    compiled: Compiled
    shape: Shape
    decision: Decision
    features: Mapping[str, Any]

    def tune(self, tensors: tuple[Any, ...], sizes: Sequence[BlockSize], plan: Mapping[str, Any]) -> Tuning:
        """Compile block sizes ahead, in this process, and let a tuning run measure those and no others."""
        asked = Implementation(self.decision, self._attend)
        args = tuple(tensor.detach() for tensor in tensors)
        known = self.decision.decide(self.features, mode="replay").rung == "memory"
        if not known or plan.get("again") or plan.get("measure_all"):
            for size in sizes:  # a worker is forked from this process, and sees what was compiled before
                self.compiled.build(self.shape, size, args)
        given = {"seeds": [_config(size) for size in sizes[1:]], "heuristics": False, "budget": len(sizes), **plan}
        return asked._tune(args, {}, self.features, asked._planned(given))

    def _attend(self, *args: Any, q: int, kv: int) -> Any:
        return self.compiled.attention(self.shape, (q, kv))(*args)


def _config(size: BlockSize) -> Config:
    return {"q": size[0], "kv": size[1]}


def _size(config: Config) -> BlockSize:
    q, kv = config["q"], config["kv"]
    assert isinstance(q, int)
    assert isinstance(kv, int)
    return q, kv


def _bounds() -> dict[str, Any]:
    frame = FRAME.get()
    given = {} if frame is None else {"budget": frame.budget, "seconds": frame.seconds}
    return {name: value for name, value in given.items() if value is not None}


def _never_run(*args: Any, **config: Any) -> Any:
    raise NotImplementedError("flex_attention is run through tuned_flex_attention")
