"""Groups: the parameters of a space that rules tie together, counted and drawn from without listing the product."""

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import prod
from typing import TYPE_CHECKING

from tunewise.decision.params import Param, Value
from tunewise.decision.rules import Rule
from tunewise.errors import InvalidSpace

if TYPE_CHECKING:
    from tunewise.decision.sampling import Sampler

_TRIES = 200  # rejected draws in a row before a group is counted instead
_MANY_TRIES = 100_000  # the same where counting would take far longer than that
_CHEAP = 300_000  # rules applied while counting, one combination at a time: below a second
_PATIENT = 1_000_000_000  # the same where there is no other way: up to an hour


@dataclass(frozen=True)
class Group:
    """Parameters that rules connect, directly or through others; independent of all other groups.

    Counting takes the parameters in an order that keeps few earlier ones of interest to later rules, and remembers
    each count by the places of those few: the work follows how the rules hang together, not the size of the product.
    """

    params: tuple[Param, ...]
    rules: tuple[Rule, ...]
    _counts: dict[tuple[int, ...], int] = field(default_factory=dict, compare=False, repr=False)

    def holds(self, places: Sequence[int]) -> bool:
        """Return whether the values at these places meet the rules."""
        return _hold(self.rules, {p.name: p.values[place] for p, place in zip(self.params, places, strict=True)})

    def count(self) -> int:
        """Return exactly how many combinations meet the rules."""
        if not self.rules:
            return prod(map(len, self.params))
        sampler = self._sampler
        if sampler is not None and not sampler.rest:
            return sampler.count
        return self._count(0, {}, []) if _hold(self._due[0], {}) else 0

    def draws(self, rng: random.Random) -> Iterator[dict[str, Value]]:
        """Yield combinations without end, all equally likely each time; none if there is none."""
        if self._is_dense:
            yield from self._trials(rng, _TRIES)
        if self._work > _CHEAP:
            sampler = self._sampler
            yield from self._trials(rng, _MANY_TRIES) if sampler is None else sampler.draws(rng)
            if sampler is not None and not (sampler.rest and sampler.count):
                return
            if self._work > _PATIENT:
                widest = max(self.rules, key=lambda r: len(r.names))
                raise InvalidSpace(
                    f"no legal config was found by trial; rules over many parameters, such as {widest.text!r}, "
                    "are best written as several smaller ones"
                )
        total = self.count()
        while total:
            yield self._pick(rng.randrange(total))

    def _trials(self, rng: random.Random, tries: int) -> Iterator[dict[str, Value]]:
        """Yield combinations found by trial, until that many in a row have broken a rule."""
        misses = 0
        while misses < tries:
            values = {param.name: param.values[rng.randrange(len(param))] for param in self.params}
            misses += 1
            if _hold(self.rules, values):
                misses = 0
                yield values

    def _pick(self, rank: int) -> dict[str, Value]:
        """Return the combination of that rank, counting how many lie below each choice on the way."""
        chosen: dict[str, Value] = {}
        places: list[int] = []
        for depth, param in enumerate(self.order):
            for place, below in self._choices(depth, chosen, places):
                if rank < below:
                    places.append(place)
                    break
                rank -= below
            chosen[param.name] = param.values[places[depth]]
        return chosen

    def _count(self, depth: int, chosen: dict[str, Value], places: list[int]) -> int:
        if depth == len(self.order):
            return 1
        key = (depth, *(places[i] for i in self._open[depth]))
        known = self._counts.get(key)
        if known is None:
            known = self._counts[key] = sum(below for _, below in self._choices(depth, chosen, places))
        return known

    def _choices(self, depth: int, chosen: dict[str, Value], places: list[int]) -> Iterator[tuple[int, int]]:
        """Yield each legal place of the parameter at `depth`, and how many combinations lie below it."""
        param, due = self.order[depth], self._due[depth + 1]
        for place, value in enumerate(param.values):
            chosen[param.name] = value
            if _hold(due, chosen):
                places.append(place)
                below = self._count(depth + 1, chosen, places)
                places.pop()
                yield place, below

    @cached_property
    def order(self) -> tuple[Param, ...]:
        """The parameters so that, at each step, the earlier ones that a later rule still reads are few and small."""
        left, taken = list(self.params), list[Param]()
        while left:
            best = min(left, key=lambda param: (self._width([*taken, param]), len(param)))
            left.remove(best)
            taken.append(best)
        return tuple(taken)

    def _width(self, taken: Sequence[Param]) -> int:
        return prod(len(taken[i]) for i in _still_read(taken, self.rules))

    @cached_property
    def _open(self) -> tuple[tuple[int, ...], ...]:
        return tuple(_still_read(self.order[:depth], self.rules) for depth in range(len(self.order)))

    @cached_property
    def _due(self) -> tuple[tuple[Rule, ...], ...]:
        return _due(self.order, self.rules)

    @cached_property
    def _is_dense(self) -> bool:
        """Whether trial soon finds a legal combination: known before any draw, so that no draw depends on others."""
        return next(self._trials(random.Random(0), _TRIES), None) is not None

    @cached_property
    def _sampler(self) -> "Sampler | None":
        """What draws from a group that is too large to be counted one by one; None for a small one."""
        if self._work <= _CHEAP:
            return None
        try:
            from tunewise.decision.sampling import sampler
        except ImportError:  # numpy makes it quick, and is not always there
            return None
        return sampler(self.params, self.rules)

    @cached_property
    def _work(self) -> int:
        """How many times rules are applied, at most, to count."""
        return sum(self._width(self.order[:depth]) * len(param) for depth, param in enumerate(self.order))


def split(params: Sequence[Param], rules: Sequence[Rule]) -> tuple[Group, ...]:
    """Return the parameters in groups that no rule connects; rules that read no parameter come first, on their own."""
    groups: list[tuple[set[str], list[Rule]]] = [({param.name}, []) for param in params]
    for r in rules:
        tied = [group for group in groups if group[0] & r.names]
        if tied:
            names, held = tied[0]
            for other in tied[1:]:
                groups.remove(other)
                names |= other[0]
                held += other[1]
            held.append(r)
    constant = tuple(r for r in rules if not r.names)
    return (
        *([Group((), constant)] if constant else []),
        *(Group(tuple(p for p in params if p.name in names), tuple(held)) for names, held in groups),
    )


def walk(params: Sequence[Param], rules: Sequence[Rule]) -> Iterator[tuple[int, ...]]:
    """Yield the places of every legal combination, the last parameter fastest, each rule applied as early as it can."""
    due = _due(params, rules)
    if not _hold(due[0], {}):
        return
    chosen: dict[str, Value] = {}
    places = [0] * len(params)
    cursors = [enumerate(params[0].values)]
    while cursors:
        depth = len(cursors) - 1
        for place, value in cursors[depth]:
            chosen[params[depth].name] = value
            if _hold(due[depth + 1], chosen):
                places[depth] = place
                if depth + 1 < len(params):
                    cursors.append(enumerate(params[depth + 1].values))
                    break
                yield tuple(places)
        else:
            cursors.pop()


def _due(params: Sequence[Param], rules: Sequence[Rule]) -> tuple[tuple[Rule, ...], ...]:
    """Return, for each number of parameters chosen, the rules that can be applied then and not before."""
    known = [{param.name for param in params[:n]} for n in range(len(params) + 1)]
    return tuple(
        tuple(r for r in rules if r.names <= names and (n == 0 or not r.names <= known[n - 1]))
        for n, names in enumerate(known)
    )


def _still_read(taken: Sequence[Param], rules: Sequence[Rule]) -> tuple[int, ...]:
    """Return which of the parameters taken so far are read by a rule that is not yet fully known."""
    names = {param.name for param in taken}
    wanted = {name for r in rules if not r.names <= names for name in r.names}
    return tuple(i for i, param in enumerate(taken) if param.name in wanted)


def _hold(rules: Sequence[Rule], values: Mapping[str, Value]) -> bool:
    for r in rules:  # noqa: SIM110 - all() costs as much as a rule, and this runs once a combination
        if not r.holds(values):
            return False
    return True
