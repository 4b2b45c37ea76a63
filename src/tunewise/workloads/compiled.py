"""A C kernel and the parameters that are compiled into it; the others are given to it at run time."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from tunewise.decision import Config
from tunewise.measure.ckernel import CKernel


@dataclass(frozen=True, slots=True)
class Compiled:
    """A kernel built from configs: `names` are the parameters that it is compiled for, in this order."""

    kernel: CKernel
    names: tuple[str, ...]

    def build(self, config: Config) -> None:
        """Compile the kernel for a config, unless that is done already."""
        self.kernel.build(self.defines(config))

    def load(self, config: Config) -> Callable[..., int]:
        """Return the kernel of a config, loaded into this process."""
        return self.kernel.load(self.defines(config))

    def defines(self, config: Config) -> dict[str, int | str | bool]:
        """Return the `-D` parameters of a config."""
        return defines(config, self.names)


def defines(config: Config, names: Iterable[str]) -> dict[str, int | str | bool]:
    """Return parameters of a config for `-D`: in capitals, names and words alike, as our sources have them."""
    return {name.upper(): _spelled(config[name]) for name in names}


def _spelled(value: object) -> int | str | bool:
    assert isinstance(value, int | str)
    return value.upper() if isinstance(value, str) else value
