"""Stand-ins for Triton's objects, with the fields that we read of them: tests of our side need no Triton."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any


@dataclass(eq=False)
class Config:
    """A `triton.Config`."""

    kwargs: dict[str, Any]
    num_warps: int = 4
    num_stages: int = 3
    num_ctas: int = 1
    maxnreg: int | None = None
    pre_hook: Callable[..., Any] | None = None
    ir_override: str | None = None

    def all_kwargs(self) -> dict[str, Any]:
        rest = {name: getattr(self, name) for name in ("num_warps", "num_stages", "num_ctas", "maxnreg")}
        return {**self.kwargs, **{name: value for name, value in rest.items() if value is not None}}


@dataclass(frozen=True, slots=True)
class Tensor:
    """A tensor of which only the type is read."""

    dtype: Any = "torch.float16"


def scale(x: Any, y: Any, n: int, block: int) -> None:
    """Stand for the kernel's Python function."""


@dataclass(eq=False)
class Jit:
    """A `triton.JITFunction`."""

    fn: Callable[..., Any] = scale
    arg_names: tuple[str, ...] = ("x", "y", "n", "block")


@dataclass(eq=False)
class Autotuner:
    """A `triton.runtime.Autotuner`: its fields, and how it prunes, times, tells and remembers."""

    configs: list[Config]
    keys: list[str] = field(default_factory=lambda: ["n"])
    fn: Any = field(default_factory=Jit)
    time_ms: Callable[[Config, Mapping[str, Any]], float] = lambda config, args: 1.0
    knobs: Any = field(default_factory=lambda: SimpleNamespace(listener=None))
    early_config_prune: Callable[..., list[Config]] | None = None
    perf_model: Callable[..., float] | None = None
    configs_top_k: float = 1.0

    def __post_init__(self) -> None:
        self.arg_names = self.fn.arg_names
        self.cache: dict[Any, Config] = {}
        self.nargs: dict[str, Any] | None = None
        self.timed: list[Config] = []
        self.best_config: Config | None = None

    def run(self, *args: Any, **kwargs: Any) -> None:
        self.nargs = dict(zip(self.arg_names, args, strict=False))
        given = {name: value for name, value in {**self.nargs, **kwargs}.items() if name in self.arg_names}
        types = [str(value.dtype) for value in given.values() if hasattr(value, "dtype")]
        key = (*(given[name] for name in self.keys if name in given), *types)
        if key not in self.cache:
            pruned = self.prune_configs(kwargs)
            if len(pruned) == 1:
                self.cache[key] = pruned[0]
            else:
                self._measure(key, pruned, given)
        self.best_config = self.cache[key]
        self.nargs = None

    def prune_configs(self, kwargs: Mapping[str, Any]) -> list[Config]:
        pruned = self.configs
        if self.early_config_prune is not None:
            pruned = self.early_config_prune(self.configs, self.nargs, **kwargs)
        if self.perf_model is None:
            return pruned
        most = self.configs_top_k
        kept = max(1, int(len(pruned) * most)) if isinstance(most, float) and most <= 1 else int(most)
        if len(pruned) <= kept:
            return pruned
        model, args = self.perf_model, {**(self.nargs or {}), **kwargs}
        return sorted(pruned, key=lambda config: model(**args, **config.all_kwargs()))[:kept]

    def _measure(self, key: Any, pruned: list[Config], given: Mapping[str, Any]) -> None:
        self.timed += pruned
        timings = {config: [self.time_ms(config, given) * quantile for quantile in (1, 0.9, 1.1)] for config in pruned}
        self.cache[key] = min(timings, key=lambda config: timings[config])
        if self.knobs.listener is not None:
            self.knobs.listener(
                fn=self.fn,
                key=key,
                best_config=self.cache[key],
                configs_timings=timings,
                duration=0.1,
                cache_hit=False,
            )


def forty() -> list[Config]:
    """Return forty configs, the slow first one being the author's default."""
    return [Config({"block": block}, warps, stages) for block in (16, 32, 64, 128, 256) for warps in (1, 2, 4, 8)
            for stages in (2, 3)]  # fmt: skip
