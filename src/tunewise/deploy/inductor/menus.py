"""Which kernels Inductor has for one product, by our configs; further C++ candidates are made when asked for."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tunewise.decision import Config, canonical
from tunewise.deploy.inductor import blockings, torchside
from tunewise.deploy.inductor.problems import ATEN, CPP
from tunewise.errors import LimitExceeded


@dataclass
class Menu:
    """The choices of one product: the library's, Inductor's C++ code, and that code with other register blocks."""

    extern: Any
    cpp: Any
    made: dict[str, Any] = field(default_factory=dict)

    @property
    def own(self) -> dict[str, Any]:
        """What Inductor itself offers, by config."""
        return {canonical.encode(ATEN): self.extern, canonical.encode(CPP): self.cpp}

    def choice(self, config: Config) -> Any:
        """Return the choice a config stands for, made now if need be; raises LimitExceeded where there is none."""
        key = canonical.encode(dict(config))
        if key in self.own:
            return self.own[key]
        if key not in self.made:
            make = blockings.maker_of(self.cpp)
            if make is None:
                raise LimitExceeded("Inductor does not say how this C++ candidate was made, so no other one can be")
            self.made[key] = make(_block(config))
        return self.made[key]


def _block(config: Mapping[str, Any]) -> blockings.Block:
    return int(config["reg_m"]), int(config["reg_n"])


def menu_of(choices: Sequence[Any]) -> Menu | None:
    """Return the menu of what Inductor offers, or None where there is nothing to decide between."""
    externs = [choice for choice in choices if torchside.is_extern(choice)]
    written = [choice for choice in choices if torchside.cpp_template(choice) is not None]
    if len(externs) != 1 or len(written) != 1 or len(choices) != 2:
        return None
    return Menu(externs[0], written[0])
