"""Stand-ins with the shape of Helion's own things, so that the adapter is tested where Helion is not installed."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import inf
from types import SimpleNamespace
from typing import Any

from tunewise.deploy.helion_problem import Call


@dataclass
class Values:
    """A fragment with a list of values."""

    values: Sequence[Any]
    chosen: Any

    def default(self) -> Any:
        return self.chosen

    def search_values(self, limit: int = 100) -> list[Any]:
        return list(self.values)


@dataclass
class Order:
    """A PermutationFragment."""

    length: int

    def default(self) -> list[int]:
        return list(range(self.length))

    def search_values(self, limit: int = 100) -> None:
        return None


@dataclass
class Items:
    """A ListOf."""

    inner: Any
    length: int

    def default(self) -> list[Any]:
        return [self.inner.default()] * self.length


class Odd:
    """A fragment of a kind nobody knows."""

    def default(self) -> str:
        return "as it is"


@dataclass
class Config:
    """A helion.Config: a dict of whole keys."""

    config: dict[str, Any]


@dataclass
class Spec:
    """A ConfigSpec: the layout of its keys, and one fragment a slot. What `idle` names is the default beside `off`."""

    layout: list[tuple[str, int, bool]]
    fragments: list[Any]
    refuses: Callable[[dict[str, Any]], bool] = lambda config: False
    matmul_facts: tuple[Any, ...] = ()

    def flat_key_layout(self) -> list[tuple[str, int, bool]]:
        return self.layout

    def create_config_generation(self, *, overrides: Any = None) -> "Generation":
        return Generation(self, self.fragments)

    def default_config(self) -> Config:
        return self.create_config_generation().unflatten([fragment.default() for fragment in self.fragments])


@dataclass
class Generation:
    """A ConfigGeneration."""

    spec: Spec
    flat_spec: list[Any]

    def unflatten(self, flat: Sequence[Any]) -> Config:
        rest, config = list(flat), {}
        for key, count, is_sequence in self.spec.layout:
            taken, rest = rest[:count], rest[count:]
            config[key] = taken if is_sequence else taken[0]
        if self.spec.refuses(config):
            raise ValueError("these do not go together")
        if config.get("loop") == "plain":  # a knob that does nothing there
            config.pop("depth", None)
        return Config(config)

    def flatten(self, config: Config) -> list[Any]:
        flat, place = [fragment.default() for fragment in self.flat_spec], 0
        for key, count, is_sequence in self.spec.layout:
            if key in config.config:
                value = config.config[key]
                flat[place : place + count] = value if is_sequence else [value]
            place += count
        return flat


def powers(high: int, chosen: int = 8) -> Values:
    return Values([1 << e for e in range(3, high.bit_length())], min(chosen, high))


def matmul_spec(size: int, **more: Any) -> Spec:
    """Return two block sizes up to a size, a loop and a depth that counts only beside a pipelined one."""
    layout = [("block_sizes", 2, True), ("loop", 1, False), ("depth", 1, False)]
    fragments = [powers(size), powers(size), Values(["plain", "pipelined"], "plain"), Values([1, 2, 4], 1)]
    return Spec(layout, fragments, **more)


@dataclass
class Tensor:
    """As much of a tensor as features are made of."""

    shape: tuple[int, ...]
    dtype: str = "torch.float32"

    def is_contiguous(self) -> bool:
        return True


def matmul(x: Tensor, y: Tensor) -> Tensor:
    return Tensor((x.shape[0], y.shape[1]))


def call(size: int, spec: Spec | None = None) -> Call:
    """Return a call of a kernel on square matrices."""
    settings = SimpleNamespace(static_shapes=True, autotune_config_overrides=None)
    env = SimpleNamespace(
        config_spec=spec or matmul_spec(size),
        settings=settings,
        device=SimpleNamespace(type="cpu"),
        backend_name="none",
    )
    return Call("matmul", matmul, (Tensor((size, size)), Tensor((size, size))), env)


@dataclass
class Bench:
    """Helion's benchmark: a time for every config, or a failure; it counts what it is asked."""

    time_ms: Callable[[dict[str, Any]], float]
    asked: list[dict[str, Any]] = field(default_factory=list)
    dies_after: float = inf

    def __call__(self, configs: list[Config]) -> list[Any]:
        results = []
        for config in configs:
            if len(self.asked) >= self.dies_after:
                raise KeyboardInterrupt
            self.asked.append(config.config)
            perf = self.time_ms(config.config)
            status = "ok" if perf < inf else "error"
            results.append(SimpleNamespace(config=config, perf=perf, status=status, compile_time=0.5))
        return results


def whole_is_best(size: int) -> Callable[[dict[str, Any]], float]:
    """Return a landscape in which the largest blocks are the fastest by far."""

    def time_ms(config: dict[str, Any]) -> float:
        rows, columns = config["block_sizes"]
        return (size / rows) * (size / columns) * (1.0 if config["loop"] == "plain" else 1.5)

    return time_ms
