"""The table of a space: every legal config as a row of places, built column by column with numpy."""

from collections.abc import Mapping, Sequence
from functools import reduce
from math import log2, prod
from typing import Any

import numpy as np

from tunewise.decision.columns import Book, Column, Condition, book
from tunewise.decision.groups import Group, split, walk
from tunewise.decision.params import Param
from tunewise.decision.residual import Facts, conjuncts
from tunewise.decision.rules import Rule
from tunewise.decision.sampling import crossed, sampler
from tunewise.decision.vectors import Array
from tunewise.errors import InvalidRule

_CHUNK = 1 << 18  # combinations looked at together: large enough for numpy, small enough for the caches
_PROBES = 256  # combinations a rule is tried on to see how much it forbids
_MOST_VALUES = 1 << 24  # of a parameter that rules read
_MANY = 1_000_000  # rows
_SLACK = 16  # times the limit: combinations that may be looked at on the way, where rules leave few of them

Rows = dict[str, Array]


def build(params: Sequence[Param], rules: Sequence[Rule], limit: int) -> Array | None:
    """Return the places of every legal config in the space's order; None where there are more than `limit`."""
    nothing = np.empty((0, len(params)), np.int32)
    if not all(r.holds({}) for r in rules if not r.names):
        return nothing
    groups = [group for group in split(params, rules) if group.params]
    try:
        tables = [rows_of(group, limit) if group.rules else {} for group in groups]
    except InvalidRule:  # perhaps only because another rule should have been asked first: keep to the declared order
        return _walked(params, rules, limit)
    heights = [_height(rows, group) for rows, group in zip(tables, groups, strict=True) if rows is not None]
    if 0 in heights:
        return nothing
    if None in tables or prod(heights) > limit:
        return None
    return _combined(params, [_listed(rows, group) for rows, group in zip(tables, groups, strict=True)])


def rows_of(group: Group, limit: int) -> Rows | None:
    """Return the legal combinations of a group, in no particular order; None where there are far more than `limit`."""
    if max(map(len, group.params)) > _MOST_VALUES:
        return None
    books = {param.name: book(param.values) for param in group.params}
    facts = Facts.about(group.params)
    conditions = [Condition.of(part) for r in group.rules for part in conjuncts(r, facts)]
    rows: Rows = {}
    is_asked = prod(map(len, group.params)) <= limit
    for param in _binding_order(group.params, conditions, books):
        due = [c for c in conditions if param.name in c.names and c.names <= {*rows, param.name}]
        most = _rows(rows) * len(param)
        if most > min(limit, _MANY) and not is_asked:  # before many rows are made, see whether too many will be left
            is_asked, known = True, sampler(group.params, group.rules)
            if not known.rest:
                return known.rows() if known.count <= limit else None
        if most > (_SLACK * limit if due else limit) or (most > limit and any(c.tree is None for c in due)):
            return None
        rows = _extended(rows, param, due, books)
    return rows


def _walked(params: Sequence[Param], rules: Sequence[Rule], limit: int) -> Array | None:
    rows = list[tuple[int, ...]]()
    for places in walk(params, rules):
        if len(rows) == limit:
            return None
        rows.append(places)
    return stacked(rows, len(params))


def stacked(rows: Sequence[tuple[int, ...]], width: int) -> Array:
    """Return rows of places as a table."""
    return np.array(rows, np.int32).reshape(len(rows), width)


def _rows(rows: Rows) -> int:
    return len(next(iter(rows.values()))) if rows else 1


def _height(rows: Rows, group: Group) -> int:
    return _rows(rows) if rows else len(group.params[0])


def _listed(rows: Rows | None, group: Group) -> Rows:
    return rows or {group.params[0].name: np.arange(len(group.params[0]))}


def _extended(rows: Rows, param: Param, due: Sequence[Condition], books: Mapping[str, Book]) -> Rows:
    """Return the rows with one more column, for those combinations that meet the rules that are due."""
    height, width = _rows(rows), len(param)
    step = max(1, _CHUNK // width)
    kept: list[tuple[Array, Array]] = []
    for start in range(0, max(1, height), step):
        chunk = {name: Column(places[start : start + step, None], books[name]) for name, places in rows.items()}
        chunk[param.name] = Column(np.arange(width), books[param.name])
        shape = (min(step, height - start), width)
        mask = reduce(np.logical_and, (c.mask(chunk) for c in due), np.ones((), bool))
        which, place = np.nonzero(np.broadcast_to(mask, shape))
        kept.append((which + start, place))
    which = np.concatenate([rows_kept for rows_kept, _ in kept])
    longer = {name: places[which] for name, places in rows.items()}
    longer[param.name] = np.concatenate([place for _, place in kept]).astype(_narrowest(width))
    return longer


def _narrowest(count: int) -> type[np.signedinteger]:
    return np.int8 if count <= 1 << 7 else np.int16 if count <= 1 << 15 else np.int32


def _binding_order(
    params: Sequence[Param], conditions: Sequence[Condition], books: Mapping[str, Book]
) -> Sequence[Param]:
    """Return the parameters so that those come first whose rules leave the fewest combinations."""
    named = {param.name: param for param in params}
    share = {id(c): _share(c, named, books) for c in conditions}
    order: list[Param] = []
    while len(order) < len(params):
        bound = {param.name for param in order}
        open_rules = [c for c in conditions if not c.names <= bound]
        best = min(open_rules, key=lambda c: _growth(c.names - bound, conditions, bound, named, share))
        order += sorted((named[name] for name in best.names - bound), key=len)
    return order


def _growth(
    names: frozenset[str],
    conditions: Sequence[Condition],
    bound: set[str],
    named: Mapping[str, Param],
    share: Mapping[int, float],
) -> float:
    """Return by how many powers of two the rows would grow if `names` were bound next."""
    after = bound | names
    due = (share[id(c)] for c in conditions if c.names <= after and not c.names <= bound)
    return sum(log2(len(named[name])) for name in names) + sum(map(log2, due))


def _share(condition: Condition, named: Mapping[str, Param], books: Mapping[str, Book]) -> float:
    """Return about how many of the combinations meet a rule, seen on a few of them; a function is not asked."""
    if condition.tree is None:
        return 0.5
    rng = np.random.default_rng(0)
    probes = {name: Column(rng.integers(len(named[name]), size=_PROBES), books[name]) for name in condition.names}
    return (float(np.mean(condition.mask(probes))) * _PROBES + 1) / (_PROBES + 1)


def _combined(params: Sequence[Param], tables: Sequence[Rows]) -> Array:
    """Return every combination of the tables' rows as places, in the space's order."""
    bits = [(len(param) - 1).bit_length() for param in params]
    shifts = [sum(bits[i + 1 :]) for i in range(len(bits))]
    if sum(bits) > 63:
        return _lexsorted(params, tables)
    kind: type[np.integer[Any]] = np.uint32 if sum(bits) <= 32 else np.int64
    shift = {param.name: n for param, n in zip(params, shifts, strict=True)}
    keys: Array = np.zeros(1, kind)
    for rows in tables:
        part = reduce(np.add, (places.astype(kind) << kind(shift[name]) for name, places in rows.items()))
        keys = np.add.outer(keys, np.sort(part)).ravel()
    if not (keys[:-1] <= keys[1:]).all():
        keys.sort()
    table = np.empty((len(params), len(keys)), np.int32).T  # by columns: that is how it is written and mostly read
    for i, (n, width) in enumerate(zip(shifts, bits, strict=True)):
        table[:, i] = (keys >> kind(n)) & kind((1 << width) - 1)
    return table


def _lexsorted(params: Sequence[Param], tables: Sequence[Rows]) -> Array:
    columns = crossed(tables)
    order = np.lexsort([columns[param.name] for param in reversed(params)])
    return np.stack([columns[param.name][order].astype(np.int32) for param in params], axis=1)
