"""Triton's configs as ours: the parameters they have, the space that a list of them is, and the way back."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

from tunewise.decision import Config, Scalar, Space, canonical
from tunewise.errors import InvalidDecision

LAUNCH = ("num_warps", "num_stages", "num_ctas")
RARE = ("maxnreg", "ir_override")  # parameters only of kernels where a config sets them
_MAX_WORD = 200


class TritonConfig(Protocol):
    """What we read of a `triton.Config`; `maxnreg` and `ir_override` too, where there are any."""

    kwargs: dict[str, Any]
    num_warps: int
    num_stages: int
    num_ctas: int


@dataclass(frozen=True, eq=False)
class Menu:
    """The configs that an author lists for a kernel, and how each is called here."""

    configs: Sequence[TritonConfig]

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The parameters: the meta-parameters of any config, then how it is launched."""
        meta = {name: None for config in self.configs for name in config.kwargs}
        rare = [name for name in RARE if any(getattr(config, name, None) is not None for config in self.configs)]
        return (*meta, *(name for name in (*LAUNCH, *rare) if name not in meta))

    @cached_property
    def space(self) -> Space:
        """The space whose legal configs are those of the list."""
        return Space.of([self.config_of(config) for config in self.configs])

    def config_of(self, config: TritonConfig) -> dict[str, Scalar]:
        """Return a `triton.Config` as a config of ours; a parameter that it leaves out is None."""
        said = {**{name: getattr(config, name, None) for name in (*LAUNCH, *RARE)}, **config.kwargs}
        return {name: plain(said.get(name)) for name in self.names}

    def default(self, wanted: Mapping[str, Any] | None = None) -> dict[str, Scalar]:
        """Return the first config, or the first that has the values `wanted`; raises InvalidDecision for none."""
        for config in map(self.config_of, self.configs):
            if all(name in config and config[name] == plain(value) for name, value in (wanted or {}).items()):
                return config
        said = f"has the values {dict(wanted or {})}" if self.configs else "is listed"
        raise InvalidDecision(f"no config of the kernel {said}; its parameters are {', '.join(self.names)}")

    def offered(self, configs: Sequence[TritonConfig]) -> dict[str, TritonConfig]:
        """Return configs by their `key_of`, in order; of those that are one and the same here, the first."""
        found: dict[str, TritonConfig] = {}
        for config in configs:
            found.setdefault(key_of(self.config_of(config)), config)
        return found


def key_of(config: Config) -> str:
    """Return one spelling of a config, whatever the order of its parameters."""
    return canonical.encode(dict(config))


def plain(value: Any) -> Scalar:
    """Return a value as a number, word, switch or None: a type or a tuple becomes the word it is written as."""
    value = getattr(value, "value", value)  # what a tl.constexpr or an enum holds
    try:
        return canonical.scalar(value)
    except ValueError:
        word = str(value).removeprefix("torch.")
        return word if len(word) <= _MAX_WORD else f"sha256:{canonical.digest(word)}"
