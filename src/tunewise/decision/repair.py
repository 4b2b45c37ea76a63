"""The nearest legal config: the fewest moves of single parameters until all rules hold."""

from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

from tunewise.decision.groups import Group
from tunewise.decision.params import Param, Permutations

if TYPE_CHECKING:
    from numpy.typing import NDArray

Places = tuple[int, ...]

_MOVES = 50_000  # tried one by one before all configs of a group are weighed at once


def nearest_in_group(group: Group, start: Places) -> Places | None:
    """Return the legal places of the group that are the fewest moves from `start`, the first in order of several.

    None where there are none, or none that can be found.
    """
    found = _by_waves(group, start)
    return _by_weighing(group, start) if found is None and group.params else found


def nearest_in_list(params: Sequence[Param], rows: Sequence[Places], start: Places) -> Places:
    """Return the row that is the fewest moves from `start`, the first of several."""
    known: list[dict[int, int]] = [{} for _ in params]
    apart = [distance(param, place) for param, place in zip(params, start, strict=True)]

    def moves(row: Places) -> int:
        total = 0
        for place, seen, measure in zip(row, known, apart, strict=True):
            if place not in seen:
                seen[place] = measure(place)
            total += seen[place]
        return total

    return min(rows, key=moves)


def moves(params: Sequence[Param], places: Places) -> Iterator[Places]:
    """Yield all places that differ in one move of one parameter."""
    for which, param in enumerate(params):
        for near in param.neighbors(places[which]):
            yield (*places[:which], near, *places[which + 1 :])


def distance(param: Param, start: int) -> Callable[[int], int]:
    """Return how many moves each place of a parameter is from `start`."""
    orders = param.values
    if isinstance(orders, Permutations):
        return lambda place: _swaps(orders, start, place)
    if param.is_ordered:
        return lambda place: abs(place - start)
    return lambda place: int(place != start)


def _swaps(orders: Permutations, one: int, other: int) -> int:
    """Return the fewest swaps between two orders: the items less the cycles that they form."""
    left, right = orders[one], orders[other]
    assert isinstance(left, tuple)
    assert isinstance(right, tuple)
    goes_to = {(type(x), x): (type(y), y) for x, y in zip(left, right, strict=True)}
    cycles = 0
    while goes_to:
        item, step = goes_to.popitem()
        cycles += 1
        while step != item:
            step = goes_to.pop(step)
    return len(left) - cycles


def _by_waves(group: Group, start: Places) -> Places | None:
    wave, seen, moves_left = [start], {start}, _MOVES
    while wave:
        for places in wave:
            if group.holds(places):
                return places
        following = set[Places]()
        for places in wave:
            moved = list(islice(moves(group.params, places), moves_left))
            moves_left -= len(moved)
            following.update(moved)
        wave = sorted(following - seen)
        seen |= following
    return None


def _by_weighing(group: Group, start: Places) -> Places | None:
    try:
        import numpy as np

        from tunewise.decision.sampling import sampler
    except ImportError:  # numpy makes it possible, and is not always there
        return None
    begin = {param.name: place for param, place in zip(group.params, start, strict=True)}

    def weigh(param: Param) -> "NDArray[Any]":
        return np.fromiter(map(distance(param, begin[param.name]), range(len(param))), float, len(param))

    known = sampler(group.params, group.rules)
    if any(len(param) > _MOVES for param in known.free):
        return None
    found = known.nearest(weigh)
    places = None if found is None else tuple(int(param.index(found[param.name]) or 0) for param in group.params)
    return places if places is not None and group.holds(places) else None
