"""Generated modules as heuristics: checked against the grammar of our generators, then run with next to nothing."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tunewise.decision import Config, Scalar
from tunewise.errors import InvalidModel
from tunewise.models.grammar import MAX_SOURCE_BYTES, check_source
from tunewise.models.pieces import unparsed
from tunewise.models.whole import read_bounded

_BUILTINS = {"Exception": Exception, "sorted": sorted}


@dataclass(frozen=True, eq=False)
class Generated:
    """A generated module at hand: the decision and hardware it is for, and how it ranks configs."""

    decision: str
    fence: Mapping[str, Scalar]
    features: tuple[str, ...]
    choices: tuple[Config, ...]
    fingerprint: str  # of the data it was learned from
    _rank: Callable[[Mapping[str, object]], list[Any]] = field(repr=False)

    def rank(self, features: Mapping[str, object]) -> list[Config]:
        """Return configs for a problem, best first; empty where the code abstains."""
        return [{"choice": ranked} if isinstance(ranked, str) else ranked for ranked in self._rank(features)]

    def choose(self, features: Mapping[str, object]) -> Config | None:
        """Return the best config for a problem, or None where the code abstains."""
        return next(iter(self.rank(features)), None)


def load_source(path: Path | str) -> Generated:
    """Return the heuristic of a generated Python module; raises NotFound, or InvalidModel for any other code."""
    raw = read_bounded(path, MAX_SOURCE_BYTES)
    try:
        return parse_source(raw.decode("ascii"))
    except UnicodeDecodeError:
        raise InvalidModel(f"{path}: generated code is plain ASCII, and this is not") from None
    except InvalidModel as error:
        raise InvalidModel(f"{path}: {error}") from None


def parse_source(text: str) -> Generated:
    """Return the heuristic of a generated module's text; raises InvalidModel for any other code."""
    module = check_source(text)
    held = module.constants
    namespace: dict[str, Any] = {"__builtins__": _BUILTINS, "__name__": "tunewise_generated"}
    try:
        exec(compile(module.tree, "<generated>", "exec"), namespace)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise unparsed(error) from None
    configs = tuple({"choice": choice} if isinstance(choice, str) else choice for choice in held["CHOICES"])
    return Generated(
        held["DECISION"], held["HARDWARE"], held["FEATURES"], configs, held["FINGERPRINT"], namespace["rank"]
    )
