"""Answers: a config, and where it came from."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from tunewise.decision.params import Value
from tunewise.escaping import one_line

Rung = Literal["pin", "memory", "table", "promoted", "learned", "near", "default"]


@dataclass(frozen=True, slots=True)
class Answer:
    """The config to use now, the rung of the ladder that gave it, its source and the reason."""

    config: Mapping[str, Value]
    rung: Rung
    source: str
    reason: str
    confidence: float | None = None  # how sure the source is, from 0 to 1; None where it cannot say
    time_s: float | None = None  # seconds per call when it was measured

    def __post_init__(self) -> None:
        # They may quote a row, a file or a heuristic, and are printed and logged by whoever asks.
        object.__setattr__(self, "source", one_line(self.source))
        object.__setattr__(self, "reason", one_line(self.reason))
