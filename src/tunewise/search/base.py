"""The role every search plays."""

from collections.abc import Sequence
from typing import Protocol

from tunewise.decision import Config, Space, Trial


class Strategy(Protocol):
    """Proposes configurations and hears what became of them; it never measures."""

    name: str

    def __init__(self, space: Space, *, seed: int = 0) -> None:
        """Start on a space. All chance comes from `seed`, so equal histories give equal proposals."""

    def ask(self, n: int) -> list[Config]:
        """Return up to `n` configurations not asked before; empty means finished."""

    def tell(self, trials: Sequence[Trial], *, origin: str = "") -> None:
        """Learn from finished trials: failures too, and trials it never asked for.

        `origin` names the other problem or device they were measured on; empty means this very problem. Trials of one
        origin can be compared with each other, not with those of another.
        """
