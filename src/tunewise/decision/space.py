"""The space of a decision: all its configs, counted, sampled, repaired and explained without listing them."""

import difflib
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import TYPE_CHECKING, Any

from tunewise.decision.groups import Group, split, walk
from tunewise.decision.listed import Listed, listed
from tunewise.decision.params import Param, Scalar, Value, named
from tunewise.decision.repair import moves, nearest_in_group, nearest_in_list
from tunewise.decision.rules import Rule, rule
from tunewise.errors import InvalidConfig, InvalidSpace

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Config = Mapping[str, Value]
Places = tuple[int, ...]
RuleLike = str | Rule | Callable[..., bool] | tuple[Callable[..., bool], str]

_WALKABLE = 100_000  # combinations that are walked through one by one
_REPEATS = 200  # configs drawn again, beyond one for each new one, before the rest of the space is listed instead


@dataclass(frozen=True, init=False, repr=False)
class Space:
    """All configurations of one decision: typed parameters and the rules that tie them together.

    Parameters that no rule connects are independent of each other, so counting and sampling work group by group and
    never list the whole space.
    """

    params: tuple[Param, ...]
    rules: tuple[Rule, ...]

    def __init__(self, params: Mapping[str, Param | Sequence[Scalar]], rules: Sequence[RuleLike] = ()) -> None:
        if not isinstance(params, Mapping) or not params:
            raise InvalidSpace('a space needs at least one parameter, such as {"tile": [8, 16]}')
        if isinstance(rules, str) or not isinstance(rules, Sequence):
            raise InvalidSpace(f"rules={rules!r} is not a list; write rules=[{rules!r}]")
        object.__setattr__(self, "params", tuple(named(name, values) for name, values in params.items()))
        object.__setattr__(self, "rules", tuple(rule(r, params) for r in rules))

    @classmethod
    def of(
        cls, configs: Sequence[Mapping[str, Any]], order: Mapping[str, Param | Sequence[Scalar]] | None = None
    ) -> "Space":
        """Return the space whose legal configs are exactly `configs`, such as those of a recording.

        A parameter's values are `order[name]` where given, else those seen: numbers by size, others as they came.
        """
        params, one_of_them = listed(configs, order)
        return cls(params, [one_of_them])

    def __repr__(self) -> str:
        sizes = ", ".join(f"{p.name}: {len(p)}" for p in self.params)
        return f"Space({sizes}; {len(self.rules)} rules)"

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The parameter names, in order."""
        return tuple(param.name for param in self.params)

    def why_not(self, config: Mapping[str, Any]) -> str | None:
        """Return the first reason `config` is not a point of this space, or None if it is one."""
        if not isinstance(config, Mapping):
            return f"config {config!r} is not a mapping of names to values"
        for name in config:
            if name not in self.names:
                close = difflib.get_close_matches(str(name), self.names, 1)
                hint = f"; did you mean {close[0]!r}?" if close else f"; the space has {', '.join(self.names)}"
                return f"unknown parameter {name!r}{hint}"
        for param in self.params:
            if param.name not in config:
                return f"parameter {param.name!r} is missing"
            if param.index(config[param.name]) is None:
                return f"{param.name}={config[param.name]!r} is not one of {_shown(param)}"
        return next((r.reason for r in self.rules if not r.holds(config)), None)

    def __contains__(self, config: object) -> bool:
        return isinstance(config, Mapping) and self.why_not(config) is None

    def config(self, given: Mapping[str, Any]) -> dict[str, Value]:
        """Return `given` as a config in the space's order; raises InvalidConfig with the reason if it is not one."""
        reason = self.why_not(given)
        if reason is not None:
            raise InvalidConfig(reason)
        return self._at(self.places(given))

    def places(self, config: Mapping[str, Any]) -> Places:
        """Return where each value stands in its parameter. Comparing places breaks ties the same way everywhere."""
        places = []
        for param in self.params:
            if param.name not in config:
                raise InvalidConfig(f"parameter {param.name!r} is missing")
            place = param.index(config[param.name])
            if place is None:
                raise InvalidConfig(f"{param.name}={config[param.name]!r} is not one of {_shown(param)}")
            places.append(place)
        return tuple(places)

    def complete(self, partial: Mapping[str, Any], base: Config) -> dict[str, Any]:
        """Return `partial` with what it leaves open taken from `base`. The result may still break a rule."""
        return {**base, **partial}

    def repair(self, config: Mapping[str, Any]) -> dict[str, Value] | None:
        """Return the nearest legal config: values clamped to legal ones, then the fewest moves until all rules hold.

        None where a value has no nearest one (a word that is not in the list), a parameter is missing or unknown, or
        no legal config lies within reach.
        """
        if set(config) != set(self.names):
            return None
        places = []
        for param in self.params:
            place = param.nearest_place(config[param.name])
            if place is None:
                return None
            places.append(place)
        return self._nearest_valid(tuple(places))

    def neighbors(self, config: Config) -> list[dict[str, Value]]:
        """Return all legal configs that differ from `config` in one move of one parameter, in the space's order."""
        places = self.places(config)
        near = (self._at(moved) for moved in sorted(moves(self.params, places)))
        return [candidate for candidate in near if self._holds(candidate)]

    def encode(self, config: Config) -> list[float]:
        """Return the config as numbers in [0, 1], of equal length for all configs of this space."""
        places = self.places(config)
        return [x for param, place in zip(self.params, places, strict=True) for x in param.encode(place)]

    def encode_table(self, places: "NDArray[Any]") -> "NDArray[np.float64]":
        """Return one row of numbers in [0, 1] for each row of places: what `encode` gives, for many at once."""
        from tunewise.decision.encoding import encoded

        return encoded(self.params, places)

    def count(self) -> int:
        """Return exactly how many configs are legal: what no rule ties together is counted apart and multiplied."""
        if self._listed is not None:
            return len(self._listed)
        return prod(group.count() for group in self._groups)

    def __iter__(self) -> Iterator[dict[str, Value]]:
        """Yield every legal config in the space's order: the last parameter changes fastest."""
        return map(self._at, self._walk())

    def table(self, limit: int = 5_000_000) -> "NDArray[np.int32] | None":
        """Return every legal config as a row of places, in the space's order; None where there are over `limit`.

        None too where the rules are such that nobody could tell without looking at far more than `limit`
        combinations. The table is made by numpy, once, and cannot be written to.
        """
        for asked, known in self._tables.items():
            if asked >= limit or known is not None:
                return known if known is not None and len(known) <= limit else None
        from tunewise.decision.table import build, stacked

        if self._listed is None:
            made = build(self.params, self.rules, limit)
        else:
            made = stacked(self._listed, len(self.params)) if len(self._listed) <= limit else None
        if made is not None:
            made.flags.writeable = False
        self._tables[limit] = made
        return made

    def sample(self, n: int, seed: int | random.Random = 0) -> list[dict[str, Value]]:
        """Return up to `n` different legal configs, each drawn uniformly; fewer only when the space has no more."""
        rng = seed if isinstance(seed, random.Random) else random.Random(seed)
        if self._listed is not None:
            return [self._at(places) for places in rng.sample(self._listed, max(0, min(n, len(self._listed))))]
        seen: dict[Places, dict[str, Value]] = {}
        repeats = 0
        for drawn in zip(*(group.draws(rng) for group in self._groups), strict=False):
            if len(seen) >= n or repeats > _REPEATS + len(seen):
                break
            places = self.places({name: value for values in drawn for name, value in values.items()})
            repeats += places in seen
            seen.setdefault(places, self._at(places))
        if 0 < len(seen) < n:  # most of the space is drawn: list what is left
            rest = [places for places in self._all_places() if places not in seen]
            rng.shuffle(rest)
            seen.update((places, self._at(places)) for places in rest[: n - len(seen)])
        return list(seen.values())

    def _at(self, places: Places) -> dict[str, Value]:
        return {param.name: param.values[place] for param, place in zip(self.params, places, strict=True)}

    def _holds(self, config: Config) -> bool:
        return all(r.holds(config) for r in self.rules)

    def _nearest_valid(self, start: Places) -> dict[str, Value] | None:
        if self._listed is not None:
            return self._at(nearest_in_list(self.params, self._listed, start))
        found = dict(zip(self.names, start, strict=True))
        for group in self._groups:  # what no rule connects is repaired apart: the nearest of each is the nearest of all
            places = nearest_in_group(group, tuple(found[param.name] for param in group.params))
            if places is None:
                return None
            found.update(zip((param.name for param in group.params), places, strict=True))
        return self._at(tuple(found.values()))

    def _all_places(self) -> Iterator[Places]:
        """Yield what `_walk` yields, from a table where there may be few legal configs among very many others."""
        if self._listed is None and prod(map(len, self.params)) > _WALKABLE:
            with suppress(ImportError):  # without numpy, it takes longer
                table = self.table()
                if table is not None:
                    return map(tuple, table.tolist())
        return self._walk()

    def _walk(self) -> Iterator[Places]:
        return walk(self.params, self.rules) if self._listed is None else iter(self._listed)

    @cached_property
    def _listed(self) -> tuple[Places, ...] | None:
        """The places of all legal configs, where the space was made from a list."""
        only = self.rules[0] if len(self.rules) == 1 else None
        return only.rows if isinstance(only, Listed) else None

    @cached_property
    def _tables(self) -> "dict[int, NDArray[np.int32] | None]":
        return {}

    @cached_property
    def _groups(self) -> tuple[Group, ...]:
        return split(self.params, self.rules)


def _shown(param: Param) -> str:
    if len(param) <= 12:
        return "(" + ", ".join(repr(value) for value in param) + ")"
    return f"({param.values[0]!r}, {param.values[1]!r}, ... {param.values[len(param) - 1]!r}: {len(param)} values)"
