"""What is left of rules once some parameters are known: the few values that later parameters can still tell apart.

After `a` and `b`, the rule `a * b * c <= 64` needs to know `a * b` only, so all pairs with one product are alike.
Sums and products of whole numbers are regrouped for that; everything else keeps its shape.
"""

import ast
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import Any, Literal

from tunewise.decision.columns import Condition, reads
from tunewise.decision.params import Param
from tunewise.decision.rules import Rule, closure

Kind = Literal["whole", "real", "other"]

_SUM, _PRODUCT = (ast.Add, ast.Sub), (ast.Mult,)
_BITS = (ast.BitAnd, ast.BitOr, ast.BitXor)
_DIVISIONS = (ast.Div, ast.FloorDiv, ast.Mod)
_PLAIN = (
    *(ast.Compare, ast.BoolOp, ast.BinOp, ast.UnaryOp, ast.Name, ast.Constant, ast.expr_context, ast.boolop),
    *(ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.Eq, ast.NotEq, ast.Not, ast.USub, ast.UAdd),
    *(ast.Add, ast.Sub, ast.Mult, ast.Div, ast.FloorDiv, ast.Mod),
)
_EQUALITIES = (ast.Eq, ast.NotEq, ast.In, ast.NotIn)


@dataclass(frozen=True)
class Step:
    """One parameter bound: the rules that can now be applied, and the columns that later rules still read.

    `kept` maps a column to how it is computed from the columns before; None: it is one of them. `pending` are the
    rules that wait for more, over the kept columns and the parameters still to come.
    """

    param: Param
    due: tuple[Condition, ...]
    kept: Mapping[str, Condition | None]
    pending: tuple[ast.expr, ...]


@dataclass
class Facts:
    """What is known of columns without looking at rows: the kind of their values, and which are never zero."""

    kinds: dict[str, Kind]
    nonzero: set[str] = field(default_factory=set)

    @classmethod
    def about(cls, params: Sequence[Param]) -> "Facts":
        """Return the facts about parameters."""
        facts = cls({param.name: _kind_of_values(param) for param in params})
        facts.nonzero = {p.name for p in params if facts.kinds[p.name] != "other" and 0 not in p.values}
        return facts

    def kind(self, node: ast.expr) -> Kind | None:
        """Return the kind of an expression's value, or None where computing it might fail."""
        match node:
            case ast.Constant():
                return _kind_of({type(node.value)})
            case ast.Name():
                return self.kinds[node.id]
            case ast.BinOp():
                return self._kind_of_operation(node)
            case ast.UnaryOp(op=ast.Not()):
                return "whole" if self.kind(node.operand) else None
            case ast.UnaryOp():
                kind = self.kind(node.operand)
                return kind if kind == "whole" or (kind == "real" and not isinstance(node.op, ast.Invert)) else None
            case ast.Compare():
                return self._kind_of_comparison(node)
            case ast.BoolOp():
                return _joint([self.kind(part) for part in node.values])
            case ast.Call(func=ast.Name(id="abs"), args=[_] as parts):
                return self._kind_of_numbers(parts)
            case ast.Call(func=ast.Name(id="min" | "max"), args=[_, _, *_] as parts):
                return self._kind_of_numbers(parts)
            case ast.Call(func=ast.Name(id="sum"), args=[ast.Tuple(elts=parts) | ast.List(elts=parts)]):
                return self._kind_of_numbers(parts)
        return None

    def is_nonzero(self, node: ast.expr) -> bool:
        """Return whether a value can never be zero."""
        match node:
            case ast.Constant():
                return bool(node.value)
            case ast.Name():
                return node.id in self.nonzero
            case ast.BinOp(op=ast.Mult()):
                return self.kind(node) == "whole" and self.is_nonzero(node.left) and self.is_nonzero(node.right)
        return False

    def _kind_of_numbers(self, parts: Sequence[ast.expr]) -> Kind | None:
        kind = _joint([self.kind(part) for part in parts])
        return None if kind == "other" else kind

    def _kind_of_operation(self, node: ast.BinOp) -> Kind | None:
        kind = self._kind_of_numbers([node.left, node.right])
        if kind is None:
            return None
        if isinstance(node.op, (*_SUM, *_PRODUCT)):
            return kind
        if isinstance(node.op, _DIVISIONS) and self.is_nonzero(node.right):
            return "real" if isinstance(node.op, ast.Div) else kind
        return "whole" if isinstance(node.op, _BITS) and kind == "whole" else None

    def _kind_of_comparison(self, node: ast.Compare) -> Kind | None:
        terms: list[ast.expr] = [node.left]
        for op, term in zip(node.ops, node.comparators, strict=True):
            in_group = isinstance(op, ast.In | ast.NotIn)
            if in_group and not isinstance(term, ast.Tuple | ast.List | ast.Set):
                return None
            terms += term.elts if in_group else [term]  # type: ignore[attr-defined]
        kinds = [self.kind(term) for term in terms]
        ordered = any(not isinstance(op, _EQUALITIES) for op in node.ops)
        return None if None in kinds or (ordered and "other" in kinds) else "whole"


def conjuncts(r: Rule, facts: Facts) -> list[Rule]:
    """Return the rules that together say what a rule says, where they read less each; the rule itself otherwise.

    Only rules over numbers are taken apart: elsewhere, one part may guard the next against what it cannot compare.
    """
    if r.tree is None or any(facts.kinds[name] == "other" for name in r.names) or not _is_plain(r.tree):
        return [r]
    trees = _parts(r.tree)
    if len(trees) == 1 or all(reads(tree) == r.names for tree in trees):
        return [r]
    parts = [Rule(r.text, r.reason, reads(tree), closure(tree), tree=tree) for tree in trees]
    if not all(part.holds({}) for part in parts if not part.names):
        return [r]
    return [part for part in parts if part.names]


def _parts(tree: ast.expr) -> list[ast.expr]:
    if isinstance(tree, ast.BoolOp) and isinstance(tree.op, ast.And):
        return [part for value in tree.values for part in _parts(value)]
    if isinstance(tree, ast.Compare):
        terms = [tree.left, *tree.comparators]
        return [ast.Compare(terms[i], [op], [terms[i + 1]]) for i, op in enumerate(tree.ops)]
    return [tree]


def _is_plain(tree: ast.expr) -> bool:
    """Return whether an expression over numbers can fail in no way but by arithmetic."""
    nodes = list(ast.walk(tree))
    return all(isinstance(node, _PLAIN) for node in nodes) and not any(
        isinstance(node, ast.Constant) and not isinstance(node.value, int | float) for node in nodes
    )


def plan(order: Sequence[Param], rules: Sequence[Rule]) -> list[Step]:
    """Return the steps that bind the parameters in this order, each rule reduced as far as it goes on the way."""
    facts = Facts.about(order)
    waiting: list[tuple[Rule, ast.expr | None]] = [(r, r.tree) for r in rules]
    known: set[str] = set()
    bound: set[str] = set()
    steps = []
    for param in order:
        known, bound = known | {param.name}, bound | {param.name}
        due = tuple(_condition(r, tree) for r, tree in waiting if r.names <= bound)
        reduction = _Reduction(facts, known)
        waiting = [(r, reduction.of_rule(r, tree, bound)) for r, tree in waiting if not r.names <= bound]
        kept = reduction.kept
        steps.append(Step(param, due, kept, tuple(tree for _, tree in waiting if tree is not None)))
        known = set(kept)
    return steps


def _condition(r: Rule, tree: ast.expr | None) -> Condition:
    if tree is r.tree:
        return Condition.of(r)
    assert tree is not None
    value = closure(tree)
    return Condition(reads(tree), tree, lambda config: bool(value(config)))


@dataclass
class _Reduction:
    """Replaces what is known in rules by columns, and remembers how those are computed."""

    facts: Facts
    known: set[str]
    kept: dict[str, Condition | None] = field(default_factory=dict)

    def of_rule(self, r: Rule, tree: ast.expr | None, bound: set[str]) -> ast.expr | None:
        """Return what is left of a rule; a function keeps all the parameters it reads."""
        if tree is None:
            self.kept.update(dict.fromkeys(sorted(r.names & bound)))
            return None
        return self.of(tree)

    def of(self, node: ast.expr) -> ast.expr:
        """Return the expression with its known parts as columns."""
        names = reads(node)
        if not names & self.known:
            return node
        if names <= self.known and (isinstance(node, ast.Name) or self.facts.kind(node) in ("whole", "real")):
            return self._column(node)
        if self.facts.kind(node) == "whole":
            match node:
                case ast.BinOp(op=ast.Add() | ast.Sub()):
                    return self._regrouped(_terms(node), _added)
                case ast.BinOp(op=ast.Mult()):
                    return self._regrouped(_factors(node), _multiplied)
                case ast.Call(func=ast.Name(id="sum"), args=[ast.Tuple(elts=parts) | ast.List(elts=parts)]):
                    return self._regrouped(parts, _added)
                case ast.Call(func=ast.Name(id="min" | "max") as func):
                    return self._regrouped(node.args, lambda parts: _called(func, parts))
        return self._inside(node)

    def _column(self, node: ast.expr) -> ast.Name:
        if isinstance(node, ast.Name):
            self.kept.setdefault(node.id)
            return node
        name = f"({ast.unparse(node)})"
        if name not in self.kept:
            self.kept[name] = Condition(reads(node), node, closure(node))
            kind = self.facts.kind(node)
            assert kind is not None
            self.facts.kinds[name] = kind
            if self.facts.is_nonzero(node):
                self.facts.nonzero.add(name)
        return ast.Name(name, ast.Load())

    def _regrouped(self, parts: Sequence[ast.expr], joined: Callable[[Sequence[ast.expr]], ast.expr]) -> ast.expr:
        known = [part for part in parts if reads(part) <= self.known]
        others = [self.of(part) for part in parts if not reads(part) <= self.known]
        return joined([self.of(joined(known)), *others]) if known else joined(others)

    def _inside(self, node: ast.expr) -> ast.expr:
        changed: dict[str, Any] = dict(ast.iter_fields(node))
        for name, value in changed.items():
            if isinstance(value, ast.expr) and not (isinstance(node, ast.Call) and name == "func"):
                changed[name] = self.of(value)
            elif isinstance(value, list):
                changed[name] = [self.of(each) if isinstance(each, ast.expr) else each for each in value]
        return type(node)(**changed)


def _terms(node: ast.expr, minus: bool = False) -> list[ast.expr]:
    """Return the terms of a sum; those subtracted are negated."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, _SUM):
        return _terms(node.left, minus) + _terms(node.right, minus ^ isinstance(node.op, ast.Sub))
    return [ast.UnaryOp(ast.USub(), node) if minus else node]


def _factors(node: ast.expr) -> list[ast.expr]:
    if isinstance(node, ast.BinOp) and isinstance(node.op, _PRODUCT):
        return _factors(node.left) + _factors(node.right)
    return [node]


def _added(parts: Sequence[ast.expr]) -> ast.expr:
    return reduce(lambda one, other: ast.BinOp(one, ast.Add(), other), parts)


def _multiplied(parts: Sequence[ast.expr]) -> ast.expr:
    return reduce(lambda one, other: ast.BinOp(one, ast.Mult(), other), parts)


def _called(function: ast.Name, parts: Sequence[ast.expr]) -> ast.expr:
    return ast.Call(function, list(parts), []) if len(parts) > 1 else parts[0]


def _joint(kinds: Sequence[Kind | None]) -> Kind | None:
    if None in kinds:
        return None
    return "other" if "other" in kinds else "real" if "real" in kinds else "whole"


def _kind_of(types: set[type]) -> Kind:
    return "whole" if types <= {int, bool} else "real" if types <= {int, bool, float} else "other"


def _kind_of_values(param: Param) -> Kind:
    if isinstance(param.values, range):
        return "whole"
    return _kind_of({type(value) for value in param.values}) if isinstance(param.values, tuple) else "other"
