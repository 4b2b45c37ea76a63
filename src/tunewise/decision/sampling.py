"""Uniform draws from groups too large to list: rules are met by construction where that is possible, else by trial."""

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from tunewise.decision.groups import Group, split
from tunewise.decision.lattice import MOST_MOVES, Lattice, TooWide, build
from tunewise.decision.params import Param, Value
from tunewise.decision.residual import Facts, conjuncts, plan
from tunewise.decision.rules import Rule
from tunewise.decision.vectors import Array

_TRIES = 200_000  # draws in a row that break a rule before it is called hopeless


@dataclass(frozen=True)
class Sampler:
    """Draws combinations that meet all rules, each equally likely: `rest` are the rules that are met by trial."""

    free: tuple[Param, ...]
    lattices: tuple[Lattice, ...]
    rest: tuple[Rule, ...]

    @property
    def count(self) -> int:
        """How many combinations there are, the rules in `rest` left aside."""
        return prod(map(len, self.free)) * prod(lattice.count for lattice in self.lattices)

    def rows(self) -> dict[str, Array]:
        """Return all combinations, the rules in `rest` left aside: a column of places for each parameter."""
        tables: list[dict[str, Array]] = [{param.name: np.arange(len(param))} for param in self.free]
        return crossed([*tables, *(lattice.rows() for lattice in self.lattices)])

    def nearest(self, distance: Callable[[Param], Array]) -> dict[str, Value] | None:
        """Return the combination nearest by the sum of distances, `rest` left aside; None where there is none."""
        found = {param.name: param.values[int(np.argmin(distance(param)))] for param in self.free}
        for lattice in self.lattices:
            part = lattice.nearest(distance)
            if part is None:
                return None
            found |= part
        return found

    def draws(self, rng: random.Random) -> Iterator[dict[str, Value]]:
        """Yield combinations until too many draws in a row have broken a rule; none if there is none."""
        misses = 0
        while self.count and misses < _TRIES:
            values = {param.name: param.values[rng.randrange(len(param))] for param in self.free}
            for lattice in self.lattices:
                values |= lattice.values(rng.randrange(lattice.count))
            misses += 1
            if all(r.holds(values) for r in self.rest):
                misses = 0
                yield values


def sampler(params: Sequence[Param], rules: Sequence[Rule]) -> Sampler:
    """Return the sampler that meets as many of the rules by construction as it can."""
    facts = Facts.about(params)
    parts = [part for r in rules for part in conjuncts(r, facts)]
    huge = {param.name for param in params if len(param) > MOST_MOVES}
    rest = [r for r in parts if r.names & huge]
    free, lattices, waiting = list[Param](), list[Lattice](), [*_tied(params, parts, rest)]
    while waiting:
        group = waiting.pop(0)
        if not group.rules:
            free += group.params
            continue
        found = _lattice_or_obstacle(group)
        if isinstance(found, Lattice):
            lattices.append(found)
        else:
            rest.append(found)
            waiting = [*_tied(group.params, group.rules, [found]), *waiting]
    in_order = sorted(rest, key=lambda r: next(i for i, part in enumerate(parts) if part is r))
    return Sampler(tuple(free), tuple(lattices), tuple(in_order))


def crossed(tables: Sequence[Mapping[str, Array]]) -> dict[str, Array]:
    """Return every combination of the rows of several tables, the rows of the last one fastest."""
    columns, height = dict[str, Array](), 1
    for rows in tables:
        width = len(next(iter(rows.values())))
        columns = {name: np.repeat(places, width) for name, places in columns.items()}
        columns |= {name: np.tile(places, height) for name, places in rows.items()}
        height *= width
    return columns


def _tied(params: Sequence[Param], rules: Sequence[Rule], without: Sequence[Rule]) -> Sequence[Group]:
    return split(params, [r for r in rules if not any(r is other for other in without)])


def _lattice_or_obstacle(group: Group) -> Lattice | Rule:
    """Return the group's lattice, or the rule that stands most in its way."""
    for order in (_order(group), group.order):
        try:
            return build(order, group.rules)
        except TooWide as error:
            depth = error.depth
    bound, last = {param.name for param in group.order[:depth]}, group.order[depth].name
    sizes = {param.name: len(param) for param in group.params}

    def width(r: Rule) -> tuple[bool, bool, bool, int]:
        open_names = r.names & (bound | {last})
        few = _accumulates(r, group.params)
        return r.tree is None, not few, last in r.names, prod(sizes[name] for name in open_names)

    return max((r for r in group.rules if r.names & (bound | {last}) and not r.names <= bound), key=width)


def _order(group: Group) -> tuple[Param, ...]:
    """Return an order that keeps few values open; a running sum or product is one value, however long it gets."""
    others = tuple(r for r in group.rules if not _accumulates(r, group.params))
    return Group(group.params, others).order


def _accumulates(r: Rule, params: Sequence[Param]) -> bool:
    read = [param for param in params if param.name in r.names]
    return len(read) > 2 and r.tree is not None and max(len(step.kept) for step in plan(read, [r])) <= 2
