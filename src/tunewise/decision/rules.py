"""Rules of a space: safe expressions over parameter names, or functions with a reason.

An expression is parsed, checked against an allow-list and turned into closures; no text is ever compiled or evaluated
by Python, so a rule read from a file can compute nothing but a truth value.
"""

import ast
import difflib
import inspect
import math
import operator
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tunewise.decision.source import fingerprint
from tunewise.errors import InvalidRule

Names = Mapping[str, Any]
Evaluate = Callable[[Names], Any]

_MAX_LENGTH, _MAX_NODES, _MAX_DEPTH, _MAX_BITS = 2000, 500, 40, 4096
_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "min": min,
    "max": max,
    "abs": abs,
    "len": len,
    "sum": sum,
    "ceil": math.ceil,
    "floor": math.floor,
    "log2": math.log2,
}


@dataclass(frozen=True)
class Rule:
    """A condition every config must meet; it can be applied as soon as the parameters in `names` are known."""

    text: str
    reason: str
    names: frozenset[str]
    test: Evaluate = field(compare=False, repr=False)
    code: str = field(default="", repr=False)  # fingerprint of a function: two lambdas are seldom one rule
    tree: ast.expr | None = field(default=None, compare=False, repr=False)  # the checked expression; None: a function

    def holds(self, config: Names) -> bool:
        """Return whether the config meets the rule. Division by zero and the like count as not met."""
        try:
            return bool(self.test(config))
        except (ArithmeticError, ValueError):
            return False
        except Exception as error:
            raise InvalidRule(f"rule {self.text!r} broke on {dict(config)}: {type(error).__name__}: {error}") from error


def rule(condition: Any, names: Iterable[str]) -> Rule:
    """Return a rule over the given parameter names from an expression, a function, or (function, reason)."""
    known = tuple(names)
    match condition:
        case Rule():
            _must_be_known(condition.text, condition.names, known)
            return condition
        case str():
            return _from_text(condition, known)
        case (function, str(reason)) if callable(function):
            return _from_function(function, reason, known)
        case function if callable(function):
            doc = (inspect.getdoc(function) or "").split("\n")[0] if inspect.isroutine(function) else ""
            return _from_function(function, doc or f"rule {_title(function)} does not hold", known)
    raise InvalidRule(f"rule {condition!r} is neither an expression such as 'a * b <= 64' nor a function with a reason")


def _from_text(text: str, known: tuple[str, ...]) -> Rule:
    if len(text) > _MAX_LENGTH:
        raise InvalidRule(f"rule {text[:40]!r}... is longer than {_MAX_LENGTH} characters")
    try:
        tree = ast.parse(text.strip(), mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise InvalidRule(f"rule {text!r} is not an expression: {getattr(error, 'msg', error)}") from None
    nodes = list(ast.walk(tree))
    if len(nodes) > _MAX_NODES or _is_deep(tree):
        raise InvalidRule(f"rule {text[:40]!r}... has too many parts: split it into several rules")
    called = {id(n.func) for n in nodes if isinstance(n, ast.Call)}
    names = frozenset(n.id for n in nodes if isinstance(n, ast.Name) and id(n) not in called)
    test = _Translator(text).visit(tree.body)
    _must_be_known(text, names, known)
    return Rule(text, f"rule {text!r} does not hold", names, test, tree=tree.body)


def closure(node: ast.expr) -> Evaluate:
    """Return the value of an expression as a function of a config; raises InvalidRule if it does what rules may not."""
    return _Translator(ast.unparse(node)).visit(node)


def _is_deep(tree: ast.AST) -> bool:
    # Every level costs stack frames when the rule is applied, wherever in the user's program that may be.
    level: list[ast.AST] = [tree]
    for _ in range(_MAX_DEPTH):
        level = [child for node in level for child in ast.iter_child_nodes(node)]
    return bool(level)


def _from_function(function: Callable[..., bool], reason: str, known: tuple[str, ...]) -> Rule:
    text = _title(function)
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        raise InvalidRule(f"rule {text} has no readable signature; wrap it in a function of parameter names") from None
    if any(p.kind in (p.POSITIONAL_ONLY, p.VAR_POSITIONAL) for p in parameters):
        raise InvalidRule(f"rule {text} takes arguments without a name; let it name the parameters it reads")
    code = fingerprint(function)
    if any(p.kind is p.VAR_KEYWORD for p in parameters):
        return Rule(text, reason, frozenset(known), lambda config: function(**config), code)
    named = [p.name for p in parameters if p.name in known or p.default is p.empty]
    if len(named) == 1 and _is_whole_config(named[0], known):
        return Rule(text, reason, frozenset(known), lambda config: function(dict(config)), code)
    _must_be_known(text, named, known)
    return Rule(text, reason, frozenset(named), lambda config: function(**{n: config[n] for n in named}), code)


def _is_whole_config(name: str, known: tuple[str, ...]) -> bool:
    """Return whether a rule's only argument stands for the config: it is no parameter, nor one with a slip in it."""
    return name not in known and not difflib.get_close_matches(name, known, 1, cutoff=0.8)


def _title(function: object) -> str:
    return str(getattr(function, "__name__", type(function).__name__))


def _must_be_known(text: str, names: Iterable[str], known: tuple[str, ...]) -> None:
    for name in sorted(names):
        if name not in known:
            close = difflib.get_close_matches(name, known, 1)
            hint = f"; did you mean {close[0]!r}?" if close else f"; the space has {', '.join(known)}"
            raise InvalidRule(f"rule {text!r} names {name!r}, which is not a parameter{hint}")


def _power(base: Any, exponent: Any) -> Any:
    if isinstance(base, int) and isinstance(exponent, int) and abs(exponent) * max(1, base.bit_length()) > _MAX_BITS:
        raise OverflowError("power too large")
    result = base**exponent
    if isinstance(result, complex):
        raise ValueError("no real number")
    return result


def _shift_left(value: Any, places: Any) -> Any:
    if places > _MAX_BITS:
        raise OverflowError("shift too large")
    return value << places


def _times(left: Any, right: Any) -> Any:
    if not (isinstance(left, int | float) and isinstance(right, int | float)):
        raise ValueError("only numbers can be multiplied")  # no 'a' * 10**9
    return left * right


def _modulo(left: Any, right: Any) -> Any:
    if not isinstance(left, int | float):
        raise ValueError("only numbers have a remainder")  # no '%999999999d' % 1
    return left % right


_BINARY: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: _times,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: _modulo,
    ast.Pow: _power,
    ast.LShift: _shift_left,
    ast.RShift: operator.rshift,
    ast.BitAnd: operator.and_,
    ast.BitOr: operator.or_,
    ast.BitXor: operator.xor,
}
_COMPARE: dict[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.In: lambda item, group: item in group,
    ast.NotIn: lambda item, group: item not in group,
}
_UNARY: dict[type[ast.unaryop], Callable[[Any], Any]] = {
    ast.Not: operator.not_,
    ast.USub: operator.neg,
    ast.UAdd: operator.pos,
    ast.Invert: operator.invert,
}


class _Translator:
    """Turns an allowed syntax tree into closures over a config."""

    def __init__(self, text: str) -> None:
        self._text = text

    def visit(self, node: ast.expr) -> Evaluate:
        translate = getattr(self, f"_{type(node).__name__.lower()}", None)
        if translate is None:
            raise InvalidRule(f"rule {self._text!r} uses {ast.unparse(node)!r}, which rules may not do")
        result: Evaluate = translate(node)
        return result

    def _constant(self, node: ast.Constant) -> Evaluate:
        value = node.value
        if not isinstance(value, int | float | str | bool | None):
            raise InvalidRule(f"rule {self._text!r} holds {value!r}, which is not a number or a word")
        return lambda config: value

    def _name(self, node: ast.Name) -> Evaluate:
        return operator.itemgetter(node.id)

    def _tuple(self, node: ast.Tuple | ast.List | ast.Set) -> Evaluate:
        parts = [self.visit(part) for part in node.elts]
        return lambda config: tuple(part(config) for part in parts)

    _list = _set = _tuple

    def _binop(self, node: ast.BinOp) -> Evaluate:
        apply = _BINARY.get(type(node.op))
        if apply is None:
            raise InvalidRule(f"rule {self._text!r} uses {ast.unparse(node)!r}, which rules may not do")
        left, right = self.visit(node.left), self.visit(node.right)
        return lambda config: apply(left(config), right(config))

    def _unaryop(self, node: ast.UnaryOp) -> Evaluate:
        apply, operand = _UNARY[type(node.op)], self.visit(node.operand)
        return lambda config: apply(operand(config))

    def _boolop(self, node: ast.BoolOp) -> Evaluate:
        parts = [self.visit(part) for part in node.values]
        stops_at = isinstance(node.op, ast.Or)

        def combine(config: Names) -> Any:
            for part in parts:  # as in Python, the last value looked at is the result
                value = part(config)
                if bool(value) is stops_at:
                    break
            return value

        return combine

    def _compare(self, node: ast.Compare) -> Evaluate:
        if any(type(op) not in _COMPARE for op in node.ops):
            raise InvalidRule(f"rule {self._text!r} uses 'is'; compare with == instead")
        terms = [self.visit(term) for term in (node.left, *node.comparators)]
        links = [(_COMPARE[type(op)], terms[i], terms[i + 1]) for i, op in enumerate(node.ops)]
        if len(links) == 1:
            ((apply, left, right),) = links
            return lambda config: apply(left(config), right(config))
        return lambda config: all(apply(left(config), right(config)) for apply, left, right in links)

    def _ifexp(self, node: ast.IfExp) -> Evaluate:
        test, then, other = self.visit(node.test), self.visit(node.body), self.visit(node.orelse)
        return lambda config: then(config) if test(config) else other(config)

    def _subscript(self, node: ast.Subscript) -> Evaluate:
        whole, index = self.visit(node.value), self.visit(node.slice)
        return lambda config: whole(config)[index(config)]

    def _call(self, node: ast.Call) -> Evaluate:
        function = _FUNCTIONS.get(node.func.id) if isinstance(node.func, ast.Name) else None
        if function is None or node.keywords or any(isinstance(a, ast.Starred) for a in node.args):
            allowed = ", ".join(_FUNCTIONS)
            raise InvalidRule(f"rule {self._text!r} calls {ast.unparse(node.func)!r}; rules may call {allowed}")
        arguments = [self.visit(argument) for argument in node.args]
        return lambda config: function(*(argument(config) for argument in arguments))
