"""Models that come with tunewise, with the data they were learned from: each for one model of CPU and one source."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tunewise.heuristics.base import Heuristic
from tunewise.heuristics.loading import load_path
from tunewise.models import Model, load

MODEL, DATA = "_model.json", "_data.parquet"
_HERE = Path(__file__).parent


@dataclass(frozen=True, slots=True)
class Shipped:
    """A model that comes with tunewise; `data` is what it was learned and judged from."""

    name: str
    path: Path
    data: Path

    def model(self) -> Model:
        """Return the model itself."""
        return load(self.path)

    def heuristic(self) -> Heuristic:
        """Return the model as the ladder asks it."""
        (heuristic,) = load_path(self.path)
        return heuristic

    def why_elsewhere(self, facts: Mapping[str, object]) -> str | None:
        """Return which fact keeps it from answering here, or None where it may."""
        return self.heuristic().why_elsewhere(facts)


def shipped(place: Path = _HERE) -> tuple[Shipped, ...]:
    """Return all models that come with tunewise, by name."""
    found = sorted(place.glob(f"*{MODEL}"))
    names = [path.name.removesuffix(MODEL) for path in found]
    return tuple(Shipped(name, path, place / f"{name}{DATA}") for name, path in zip(names, found, strict=True))
