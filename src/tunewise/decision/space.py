"""The space of a decision: all its configs, counted, sampled, repaired and explained without listing them."""

import difflib
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

from tunewise.decision.params import Param, Scalar, Value, named
from tunewise.decision.rules import Rule, rule
from tunewise.errors import InvalidConfig, InvalidSpace

Config = Mapping[str, Value]
Places = tuple[int, ...]
RuleLike = str | Rule | Callable[..., bool] | tuple[Callable[..., bool], str]

_TRIES = 200  # rejected draws in a row before a group of parameters is listed instead
_REPAIR_LIMIT = 20_000  # configs looked at before repair gives up


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

    def __repr__(self) -> str:
        sizes = ", ".join(f"{p.name}: {len(p)}" for p in self.params)
        return f"Space({sizes}; {len(self.rules)} rules)"

    @property
    def names(self) -> tuple[str, ...]:
        """The parameter names, in order."""
        return tuple(param.name for param in self.params)

    def why_not(self, config: Mapping[str, Any]) -> str | None:
        """Return the first reason `config` is not a point of this space, or None if it is one."""
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
        clamped = {param.name: param.nearest(config[param.name]) for param in self.params}
        places = []
        for param in self.params:
            place = param.index(clamped[param.name])
            if place is None:
                return None
            places.append(place)
        return self._nearest_valid(tuple(places))

    def neighbors(self, config: Config) -> list[dict[str, Value]]:
        """Return all legal configs that differ from `config` in one move of one parameter, in the space's order."""
        places = self.places(config)
        near = (self._at(moved) for moved in self._moves(places))
        return [candidate for candidate in near if self._holds(candidate)]

    def encode(self, config: Config) -> list[float]:
        """Return the config as numbers in [0, 1], of equal length for all configs of this space."""
        places = self.places(config)
        return [x for param, place in zip(self.params, places, strict=True) for x in param.encode(place)]

    def count(self) -> int:
        """Return exactly how many configs are legal: groups tied by rules are walked, the rest multiplied."""
        return prod(sum(1 for _ in self._walk(group)) if rules else _size(group) for group, rules in self._groups())

    def __iter__(self) -> Iterator[dict[str, Value]]:
        """Yield every legal config in the space's order."""
        return (self._at(places) for places in self._walk(self.params))

    def sample(self, n: int, seed: int | random.Random = 0) -> list[dict[str, Value]]:
        """Return up to `n` different legal configs, each drawn uniformly; fewer only when the space has no more."""
        rng = seed if isinstance(seed, random.Random) else random.Random(seed)
        draws = [_Draw(self, group, bool(rules), rng) for group, rules in self._groups()]
        if any(draw.is_empty for draw in draws):
            return []
        seen: dict[Places, dict[str, Value]] = {}
        misses = 0
        while len(seen) < n and misses < _TRIES:
            values = {name: value for draw in draws for name, value in draw.next().items()}
            places = self.places(values)
            misses = misses + 1 if places in seen else 0
            seen.setdefault(places, self._at(places))
        if len(seen) < n:  # nearly everything is drawn: list the few that are left
            rest = [config for config in self if self.places(config) not in seen]
            rng.shuffle(rest)
            seen.update({self.places(config): config for config in rest[: n - len(seen)]})
        return list(seen.values())

    def _at(self, places: Places) -> dict[str, Value]:
        return {param.name: param.values[place] for param, place in zip(self.params, places, strict=True)}

    def _holds(self, config: Config) -> bool:
        return all(r.holds(config) for r in self.rules)

    def _moves(self, places: Places) -> Iterator[Places]:
        for which, param in enumerate(self.params):
            for near in param.neighbors(places[which]):
                yield (*places[:which], near, *places[which + 1 :])

    def _nearest_valid(self, start: Places) -> dict[str, Value] | None:
        wave, seen = [start], {start}
        while wave and len(seen) < _REPAIR_LIMIT:
            for places in wave:
                config = self._at(places)
                if self._holds(config):
                    return config
            following: list[Places] = []
            for places in wave:
                for moved in self._moves(places):
                    if moved not in seen:
                        seen.add(moved)
                        following.append(moved)
            wave = sorted(following)
        return None

    def _groups(self) -> list[tuple[tuple[Param, ...], tuple[Rule, ...]]]:
        """Split the parameters into groups that no rule connects."""
        root = {name: name for name in self.names}

        def find(name: str) -> str:
            while root[name] != name:
                name = root[name]
            return name

        for r in self.rules:
            first, *others = sorted(r.names) or [self.names[0]]
            for other in others:
                root[find(other)] = find(first)
        groups: dict[str, list[Param]] = {}
        for param in self.params:
            groups.setdefault(find(param.name), []).append(param)
        return [
            (tuple(group), tuple(r for r in self.rules if not r.names or r.names & {p.name for p in group}))
            for group in groups.values()
        ]

    def _walk(self, params: Sequence[Param]) -> Iterator[Places]:
        """Yield the places of every combination of `params` that meets the rules, each rule applied as early as it can be."""
        due: list[list[Rule]] = [[] for _ in params]
        last_of = {param.name: i for i, param in enumerate(params)}
        for r in self.rules:
            if r.names <= set(last_of):
                due[max((last_of[name] for name in r.names), default=0)].append(r)
        chosen: dict[str, Value] = {}
        places: list[int] = []

        def descend(depth: int) -> Iterator[Places]:
            if depth == len(params):
                yield tuple(places)
                return
            param, rules = params[depth], due[depth]
            for place, value in enumerate(param.values):
                chosen[param.name] = value
                if all(r.holds(chosen) for r in rules):
                    places.append(place)
                    yield from descend(depth + 1)
                    places.pop()
            chosen.pop(param.name, None)

        return descend(0)


class _Draw:
    """Uniform draws from one group of parameters: by rejection while that works, from a list once it does not."""

    def __init__(self, space: Space, group: tuple[Param, ...], is_ruled: bool, rng: random.Random) -> None:
        self._space, self._group, self._rng = space, group, rng
        self._rules = [r for r in space.rules if r.names <= {p.name for p in group}] if is_ruled else []
        self._listed: list[Places] | None = None
        self._ahead = self._try()

    @property
    def is_empty(self) -> bool:
        return self._ahead is None

    def next(self) -> dict[str, Value]:
        drawn, self._ahead = self._ahead, self._try()
        assert drawn is not None
        return drawn

    def _try(self) -> dict[str, Value] | None:
        if self._listed is None:
            for _ in range(_TRIES):
                values = {p.name: p.values[self._rng.randrange(len(p))] for p in self._group}
                if all(r.holds(values) for r in self._rules):
                    return values
            self._listed = list(self._space._walk(self._group))
        if not self._listed:
            return None
        places = self._rng.choice(self._listed)
        return {p.name: p.values[place] for p, place in zip(self._group, places, strict=True)}


def _size(group: Sequence[Param]) -> int:
    return prod(len(param) for param in group)


def _shown(param: Param) -> str:
    if len(param) <= 12:
        return "(" + ", ".join(repr(value) for value in param) + ")"
    return f"({param.values[0]!r}, {param.values[1]!r}, ... {param.values[len(param) - 1]!r}: {len(param)} values)"
