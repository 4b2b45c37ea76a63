"""Rules over many configs at once: expressions on numpy columns that mean exactly what they mean for one config.

A column holds, for each row, the place of its value. What numpy computes just as Python does is left to numpy;
everything else (words, None, orders, powers, functions, numbers beyond 64 bits) is computed by the rule's own closures,
once for each distinct combination of the values it reads.
"""

import ast
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tunewise.decision.rules import Evaluate, Rule, closure
from tunewise.decision.vectors import (
    BINARY,
    EXACT,
    FUNCTIONS,
    SAFE,
    Array,
    Unvectorised,
    Vector,
    choose,
    compared,
    either,
    fits,
    following,
    minus,
    negative,
    number,
)
from tunewise.errors import InvalidRule

_BAD: Any = object()  # what a closure gives where Python gives nothing
_MOST_KNOWN = 200_000  # answers of a closure that are remembered: some 50 MB


@dataclass(frozen=True)
class Book:
    """The values that the places of a column stand for; as numbers too, where they are numbers."""

    values: Sequence[Any]
    numbers: Array | None
    low: int = 0
    high: int = 0


@dataclass(frozen=True)
class Column:
    """Places in a book, in an array of any shape that broadcasts with the other columns."""

    places: Array
    book: Book


Columns = Mapping[str, Column]


def book(values: Sequence[Any]) -> Book:
    """Return the values with their numbers; none where they are not all numbers that 64 bits hold exactly."""
    if isinstance(values, range):
        low, high = values[0], values[-1]
        return Book(values, np.arange(low, high + 1, values.step) if fits(low, high) else None, low, high)
    kinds = {type(value) for value in values}
    if not kinds <= {bool, int, float}:
        return Book(values, None)
    whole = [int(value) for value in values if not isinstance(value, float)]
    low, high = min(whole, default=0), max(whole, default=0)
    if not fits(low, high) or (float in kinds and not fits(low, high, EXACT)):
        return Book(values, None)
    kind = float if float in kinds else int if int in kinds else bool
    return Book(values, np.array(values, dtype=kind), low, high)


def reads(node: ast.expr) -> frozenset[str]:
    """Return the names an expression reads; the names of functions are none."""
    called = {id(n.func) for n in ast.walk(node) if isinstance(n, ast.Call)}
    return frozenset(n.id for n in ast.walk(node) if isinstance(n, ast.Name) and id(n) not in called)


@dataclass
class Condition:
    """A rule, or what is left of one, ready to be applied to columns again and again.

    `test` is asked for one combination of values where numpy cannot answer; what it said is remembered by places, so
    the books of the columns must stay the same.
    """

    names: frozenset[str]
    tree: ast.expr | None
    test: Evaluate
    _known: dict[tuple[int, tuple[int, ...]], Any] = field(default_factory=dict, repr=False)
    _reads: dict[int, tuple[str, ...]] = field(default_factory=dict, repr=False)
    _closures: dict[int, Evaluate] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, r: Rule) -> "Condition":
        """Return the rule's condition: not met where Python could not compute it."""
        return cls(r.names, r.tree, r.holds)

    def mask(self, columns: Columns) -> Array:
        """Return where it holds, in the shape that the columns it reads broadcast to."""
        vector = self.vector(columns)
        return vector.truth if vector.bad is None else vector.truth & ~vector.bad

    def vector(self, columns: Columns) -> Vector:
        """Return its value for every row; raises Unvectorised where the values are not all numbers."""
        with np.errstate(all="ignore"):
            if self.tree is not None:
                try:
                    return self._visit(self.tree, columns)
                except Unvectorised:
                    pass
            return self._one_by_one(0, sorted(self.names), self.test, columns)

    def _visit(self, node: ast.expr, columns: Columns) -> Vector:
        names = self._reads.get(id(node))
        if names is None:
            names = self._reads[id(node)] = tuple(sorted(reads(node)))
        compute: Callable[[ast.expr, Columns], Vector] | None = getattr(self, f"_{type(node).__name__.lower()}", None)
        if names and compute is not None:
            try:
                return compute(node, columns)
            except Unvectorised:
                if isinstance(node, ast.Name):
                    raise
        test = self._closures.get(id(node))
        if test is None:
            test = self._closures[id(node)] = closure(node)
        return self._one_by_one(id(node), names, test, columns)

    def _one_by_one(self, key: int, names: Iterable[str], test: Evaluate, columns: Columns) -> Vector:
        held = {name: columns[name] for name in names}
        places, inverse = distinct(list(held.values()))
        results = [self._ask(key, each, test, held) for each in places]
        bad = np.array([result is _BAD for result in results], dtype=bool)
        numbers = book([False if result is _BAD else result for result in results])
        if numbers.numbers is None:
            raise Unvectorised
        worst = bad[inverse] if bad.any() else None
        return Vector(np.asarray(numbers.numbers[inverse]), worst, numbers.low, numbers.high)

    def _ask(self, key: int, places: tuple[int, ...], test: Evaluate, columns: Columns) -> Any:
        known = self._known.get((key, places), self)
        if known is not self:
            return known
        config = {name: col.book.values[place] for (name, col), place in zip(columns.items(), places, strict=True)}
        try:
            result = test(config)
        except (ArithmeticError, ValueError):
            result = _BAD
        except InvalidRule:
            raise
        except Exception:  # an earlier part of the rule may guard against this one: the whole rule is asked
            raise Unvectorised from None
        if len(self._known) < _MOST_KNOWN:
            self._known[key, places] = result
        return result

    def _name(self, node: ast.Name, columns: Columns) -> Vector:
        held = columns[node.id]
        if held.book.numbers is None:
            raise Unvectorised
        return Vector(held.book.numbers[held.places], None, held.book.low, held.book.high)

    def _binop(self, node: ast.BinOp, columns: Columns) -> Vector:
        apply = BINARY.get(type(node.op))
        if apply is None:
            raise Unvectorised
        return apply(self._visit(node.left, columns), self._visit(node.right, columns))

    def _unaryop(self, node: ast.UnaryOp, columns: Columns) -> Vector:
        value = self._visit(node.operand, columns)
        if isinstance(node.op, ast.Not):
            return Vector(~value.truth, value.bad, 0, 1)
        if isinstance(node.op, ast.UAdd):
            return number(value)
        if isinstance(node.op, ast.USub):
            return minus(Vector(np.zeros((), np.int64)), value) if not value.is_float else negative(value)
        if value.is_float:
            raise Unvectorised
        return Vector(~number(value).array, value.bad, ~value.high, ~value.low)

    def _boolop(self, node: ast.BoolOp, columns: Columns) -> Vector:
        stops_at = isinstance(node.op, ast.Or)
        result = self._visit(node.values[0], columns)
        going = result.truth ^ stops_at
        for part in node.values[1:]:  # as in Python, the last value looked at is the result
            result = following(going, self._visit(part, columns), result)
            going = going & (result.truth ^ stops_at)
        return result

    def _compare(self, node: ast.Compare, columns: Columns) -> Vector:
        terms = [node.left, *node.comparators]
        links = ((op, terms[i], terms[i + 1]) for i, op in enumerate(node.ops))
        result = self._link(*next(links), columns)
        for link in links:
            result = following(result.truth, self._link(*link, columns), result)
        return result

    def _link(self, op: ast.cmpop, left: ast.expr, right: ast.expr, columns: Columns) -> Vector:
        item = self._visit(left, columns)
        if not isinstance(op, ast.In | ast.NotIn):
            return compared(type(op), item, self._visit(right, columns))
        if not isinstance(right, ast.Tuple | ast.List | ast.Set):
            raise Unvectorised
        found = Vector(np.zeros((), bool), item.bad)
        for part in right.elts:
            match = compared(ast.Eq, item, self._visit(part, columns))
            found = Vector(found.array | match.array, either(found.bad, match.bad), 0, 1)
        return found if isinstance(op, ast.In) else Vector(~found.array, found.bad, 0, 1)

    def _ifexp(self, node: ast.IfExp, columns: Columns) -> Vector:
        test, then, other = (self._visit(part, columns) for part in (node.test, node.body, node.orelse))
        chosen = choose(test.truth, then, other)
        return Vector(chosen.array, either(test.bad, chosen.bad), chosen.low, chosen.high)

    def _call(self, node: ast.Call, columns: Columns) -> Vector:
        assert isinstance(node.func, ast.Name)
        match node.func.id, node.args:
            case "min" | "max" | "sum", [ast.Tuple() | ast.List() | ast.Set() as group] if group.elts:
                parts = group.elts
            case "min" | "max", [_, _, *_]:
                parts = node.args
            case "abs" | "ceil" | "floor" | "log2", [_]:
                parts = node.args
            case _:
                raise Unvectorised
        return FUNCTIONS[node.func.id]([self._visit(part, columns) for part in parts])


def distinct(columns: Sequence[Column]) -> tuple[list[tuple[int, ...]], Array]:
    """Return the distinct combinations of places, and for every row which of them it is."""
    if not columns:
        return [()], np.zeros((), np.intp)
    places = np.broadcast_arrays(*(col.places for col in columns))
    first, inverse = first_and_inverse(places, [len(col.book.values) for col in columns])
    flat = [np.asarray(each).ravel()[first].tolist() for each in places]
    return list(zip(*flat, strict=True)), inverse.reshape(places[0].shape)


def first_and_inverse(places: Sequence[Array], sizes: Sequence[int]) -> tuple[Array, Array]:
    """Return the first row of each distinct combination of `places`, and for each row its combination's number."""
    keys, span = np.zeros(places[0].size, np.int64), 1
    for each, size in zip(places, sizes, strict=True):
        if span * size >= SAFE:
            keys, span = np.unique(keys, return_inverse=True)[1], keys.size
        keys = keys * size + each.ravel()
        span *= size
    if span > 4 * keys.size + 65536:
        _, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
        return first, inverse
    first_of = np.full(span, keys.size, np.int64)
    first_of[keys[::-1]] = np.arange(keys.size - 1, -1, -1)
    present = np.flatnonzero(first_of < keys.size)
    number = np.empty(span, np.int64)
    number[present] = np.arange(present.size)
    return first_of[present], number[keys]


def distinct_numbers(numbers: Array) -> tuple[Array, Array]:
    """Return the distinct numbers of an array by size, and for each number its place among them."""
    if numbers.dtype.kind != "i" or not numbers.size:
        found, places = np.unique(numbers, return_inverse=True)
        return found, places.reshape(-1)
    low, span = int(numbers.min()), int(numbers.max()) - int(numbers.min()) + 1
    if span > 4 * numbers.size + 65536:
        found, places = np.unique(numbers, return_inverse=True)
        return found, places.reshape(-1)
    is_there = np.zeros(span, bool)  # far faster than sorting, where the numbers lie close together
    is_there[numbers - low] = True
    return np.flatnonzero(is_there) + low, (np.cumsum(is_there) - 1)[numbers - low]
