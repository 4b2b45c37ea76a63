"""What `tunewise doctor` finds: one value for people, and numbers for monitoring."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

Level = Literal["ok", "warning", "trouble"]


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at. Names and the names of numbers stay from version to version; values are prose."""

    name: str
    value: str
    level: Level = "ok"
    numbers: Mapping[str, float] = field(default_factory=dict)  # in base units: seconds, bytes
