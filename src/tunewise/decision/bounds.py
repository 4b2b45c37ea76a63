"""Rules on what is only half known: where no choice of the open parameters can meet a rule any more.

Every expression gets a lower and an upper bound for every row; truth is a number between 0 and 1. Bounds are floats,
and comparisons leave a margin far larger than their rounding, so that no row is given up that could be legal.
"""

import ast
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import reduce

import numpy as np

from tunewise.decision.columns import Book, Columns
from tunewise.decision.vectors import Array

_MARGIN = 1e-9  # relative; a chain of a hundred float operations is off by 1e-14


class Unknown(Exception):
    """Nothing can be said about the bounds of this."""


@dataclass(frozen=True)
class Span:
    """A lower and an upper bound of a value, row by row."""

    low: Array
    high: Array


def hopeless(tree: ast.expr, columns: Columns, books: Mapping[str, Book]) -> Array:
    """Return where the rule cannot hold, whatever the parameters that have a book but no column turn out to be."""
    with np.errstate(all="ignore"):
        try:
            return np.asarray(_truth(tree, columns, books).high < 1)
        except Unknown:
            return np.zeros((), bool)


def _truth(node: ast.expr, columns: Columns, books: Mapping[str, Book]) -> Span:
    if isinstance(node, ast.BoolOp):
        parts = [_truth_or_open(part, columns, books) for part in node.values]
        join = np.minimum if isinstance(node.op, ast.And) else np.maximum
        return Span(reduce(join, (p.low for p in parts)), reduce(join, (p.high for p in parts)))
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        part = _truth(node.operand, columns, books)
        return Span(1 - part.high, 1 - part.low)
    if isinstance(node, ast.Compare) and len(node.ops) > 1:
        terms = [node.left, *node.comparators]
        links: list[ast.expr] = [ast.Compare(terms[i], [op], [terms[i + 1]]) for i, op in enumerate(node.ops)]
        return _truth(ast.BoolOp(ast.And(), links), columns, books)
    if isinstance(node, ast.Compare):
        left, right = _span(node.left, columns, books), _span(node.comparators[0], columns, books)
        return _compared(node.ops[0], left, right)
    raise Unknown


def _truth_or_open(node: ast.expr, columns: Columns, books: Mapping[str, Book]) -> Span:
    try:
        return _truth(node, columns, books)
    except Unknown:
        return Span(np.zeros(()), np.ones(()))


def _compared(op: ast.cmpop, left: Span, right: Span) -> Span:
    if isinstance(op, ast.Gt | ast.GtE):
        return _compared(ast.LtE(), right, left)
    beyond = _is_above(left.low, right.high)
    if isinstance(op, ast.Eq):
        beyond = beyond | _is_above(right.low, left.high)
    elif not isinstance(op, ast.Lt | ast.LtE):
        raise Unknown
    # That it surely holds is never claimed: only rows without hope are looked for, and `not` over them is open.
    return Span(np.zeros(()), np.where(beyond, 0.0, 1.0))


def _is_above(low: Array, high: Array) -> Array:
    return np.asarray(low > high + _MARGIN * (1 + np.maximum(np.abs(low), np.abs(high))))


def _span(node: ast.expr, columns: Columns, books: Mapping[str, Book]) -> Span:
    match node:
        case ast.Constant(value=int() | float() as value):
            number = _float(value)
            return Span(number, number)
        case ast.Name():
            return _named(node.id, columns, books)
        case ast.UnaryOp(op=ast.USub()):
            part = _span(node.operand, columns, books)
            return Span(-part.high, -part.low)
        case ast.BinOp():
            apply = _OPERATIONS.get(type(node.op))
            if apply is not None:
                return apply(_span(node.left, columns, books), _span(node.right, columns, books))
        case ast.Call(func=ast.Name(id="min" | "max"), args=[_, _, *_]):
            parts = [_span(arg, columns, books) for arg in node.args]
            join = np.minimum if node.func.id == "min" else np.maximum  # type: ignore[attr-defined]
            return Span(reduce(join, (p.low for p in parts)), reduce(join, (p.high for p in parts)))
    raise Unknown


def _named(name: str, columns: Columns, books: Mapping[str, Book]) -> Span:
    held = columns.get(name)
    book = books[name] if held is None else held.book
    if book.numbers is None:
        raise Unknown
    if held is None:
        return Span(_float(book.numbers.min()), _float(book.numbers.max()))
    numbers = book.numbers[held.places].astype(np.float64)
    return Span(numbers, numbers)


def _float(value: float) -> Array:
    try:
        return np.asarray(float(value))
    except OverflowError:
        raise Unknown from None


def _corners(apply: Callable[[Array, Array], Array]) -> Callable[[Span, Span], Span]:
    def compute(left: Span, right: Span) -> Span:
        ends = [apply(x, y) for x in (left.low, left.high) for y in (right.low, right.high)]
        return Span(reduce(np.minimum, ends), reduce(np.maximum, ends))

    return compute


def _over(left: Span, right: Span) -> Span:
    if not (right.low > 0).all():
        raise Unknown
    return _corners(np.divide)(left, right)


def _floor_over(left: Span, right: Span) -> Span:
    exact = _over(left, right)
    return Span(exact.low - 1, exact.high)


def _modulo(left: Span, right: Span) -> Span:
    if not (right.low > 0).all():
        raise Unknown
    return Span(np.zeros(()), right.high)


def _power(left: Span, right: Span) -> Span:
    if not ((left.low >= 0).all() and (right.low >= 0).all()):
        raise Unknown
    return _corners(np.power)(left, right)


_OPERATIONS: dict[type[ast.operator], Callable[[Span, Span], Span]] = {
    ast.Add: lambda x, y: Span(x.low + y.low, x.high + y.high),
    ast.Sub: lambda x, y: Span(x.low - y.high, x.high - y.low),
    ast.Mult: _corners(np.multiply),
    ast.Div: _over,
    ast.FloorDiv: _floor_over,
    ast.Mod: _modulo,
    ast.Pow: _power,
}
