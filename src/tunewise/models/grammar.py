"""The grammar of generated modules: literals, plain ifs over a problem's features, and nothing else that Python can do.

What passes can neither import, reach into an object, loop without end, call itself, nor build anything larger than the
module is: numbers meet numbers only, and every call leads from `choose` and `rank` down to a tree.
"""

import ast
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from tunewise.errors import InvalidModel
from tunewise.models.effort import check_parts, parts_of
from tunewise.models.pieces import (
    CONSTANTS,
    Kinds,
    assign,
    check_signature,
    check_strings,
    ends,
    given_names,
    is_free,
    literal,
    refused,
    spelled,
    targets,
    unparsed,
    without_docstring,
)
from tunewise.models.templates import CHOOSE, RANK, SORTED
from tunewise.models.texts import is_text
from tunewise.models.work import E

MAX_SOURCE_BYTES = 2 << 20

_TREE = re.compile(r"_tree_[0-9]+")
_ARITHMETIC = (ast.Add, ast.Sub, ast.Mult, ast.Div, ast.Mod, ast.FloorDiv)
_ADDED = ast.dump(ast.parse(f"{E} ** total", mode="eval").body)
_COMPARISONS = (ast.LtE, ast.Lt, ast.GtE, ast.Gt, ast.Eq, ast.NotEq, ast.In, ast.NotIn)


@dataclass(frozen=True)
class Module:
    """A module that was checked: its tree, and the constants that stand in it."""

    tree: ast.Module
    constants: dict[str, Any]


def check_source(text: str) -> Module:
    """Return the parsed module; raises InvalidModel, with a line number, for anything that no generator writes."""
    tree = _parsed(text)
    try:
        return Module(tree, _checked(tree))
    except RecursionError as error:
        raise unparsed(error) from None


def _checked(tree: ast.Module) -> dict[str, Any]:
    constants: dict[str, Any] = {}
    functions: dict[str, ast.FunctionDef] = {}
    for node in without_docstring(tree.body):
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=value) if name in CONSTANTS and name not in constants:
                constants[name] = literal(value)
            case ast.FunctionDef(name=name) if name not in functions:
                functions[name] = node
            case _:
                raise refused(node)
    _check_constants(constants)
    _Check(constants, functions).all()
    return constants


def _parsed(text: str) -> ast.Module:
    if len(text) > MAX_SOURCE_BYTES:
        raise InvalidModel(
            f"generated code of {len(text)} characters; at most {MAX_SOURCE_BYTES} are taken: use the model file"
        )
    if not text.isascii() or "\0" in text:
        raise InvalidModel("generated code is plain ASCII, and this is not")
    check_strings(text)
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise unparsed(error) from None


def _check_constants(constants: dict[str, Any]) -> None:
    missing = [name for name in CONSTANTS[:-1] if name not in constants]
    if missing:
        raise InvalidModel(f"not generated code: {missing[0]} is missing")
    if constants["FORMAT"] != 1:
        raise InvalidModel(f"generated code of format {constants['FORMAT']!r}; this version reads format 1")
    for name, kind in (("DECISION", str), ("FINGERPRINT", str), ("HARDWARE", dict)):
        if not isinstance(constants[name], kind):
            raise InvalidModel(f"not generated code: {name} is no {kind.__name__}")
    for name, kinds in (("FEATURES", str), ("CHOICES", str | dict), ("CANDIDATES", tuple)):
        held = constants.get(name, ())
        if not isinstance(held, tuple) or not all(isinstance(item, kinds) for item in held):
            raise InvalidModel(f"not generated code: {name} holds something else than it should")
    if len({type(choice) for choice in constants["CHOICES"]}) != 1:
        raise InvalidModel("not generated code: CHOICES are neither words nor configs")


class _Check:
    """Follows a module from `_ranking` down to its trees."""

    def __init__(self, constants: dict[str, Any], functions: dict[str, ast.FunctionDef]) -> None:
        self.constants = constants
        self.functions = functions
        self.kind = "words" if isinstance(constants["CHOICES"][0], str) else "configs"
        self.sorted = ast.dump(ast.parse(SORTED[self.kind], mode="eval").body)
        self.has_guess = False

    def all(self) -> None:
        """Raise InvalidModel unless every function is one that a generator writes."""
        for name, template in (("choose", CHOOSE[self.kind]), ("rank", RANK[self.kind])):
            wanted = ast.parse(template).body[0]
            assert isinstance(wanted, ast.FunctionDef)
            if spelled(self._function(name)) != spelled(wanted):
                raise InvalidModel(f"not generated code: the function {name} does something else")
        ranking = self._function("_ranking")
        check_signature(ranking, ["features"])
        self._block(without_docstring(ranking.body), {})
        for name, function in self.functions.items():
            if not ends(function.body):
                raise InvalidModel(f"not generated code: the function {name} may end without an answer")
            if _TREE.fullmatch(name):
                self._tree(function)
            elif name not in ("choose", "rank", "_ranking") and not (name == "_guess" and self.has_guess):
                raise InvalidModel(f"not generated code: no function {name!r} is called for")
        if self.has_guess:
            trees = {name: parts_of(one.body) for name, one in self.functions.items() if _TREE.fullmatch(name)}
            check_parts(len(self.constants["CANDIDATES"]), parts_of(self._function("_guess").body, trees))

    def _function(self, name: str) -> ast.FunctionDef:
        if name not in self.functions:
            raise InvalidModel(f"not generated code: the function {name} is missing")
        return self.functions[name]

    def _block(self, statements: Iterable[ast.stmt], kinds: Kinds) -> None:
        """Check statements of `_ranking`: reading features, formulas, ifs, and what is returned."""
        for node in statements:
            match node:
                case ast.If(test=test, body=body, orelse=orelse):
                    self._test(test, kinds)
                    self._block(body, kinds)
                    self._block(orelse, kinds)
                case ast.Assign(targets=[ast.Name(id="guesses")], value=value) if not self.has_guess:
                    self.has_guess = True
                    self._guesses(value, kinds)
                case ast.Assign(targets=[ast.Name(id=name)], value=value) if is_free(name):
                    assign(node, name, self._kind_of_read(value, kinds), kinds)
                case ast.Return(value=ast.Tuple() as ranked):
                    self._check_ranked(ranked)
                case ast.Return(value=ast.ListComp() as ranked) if ast.dump(ranked) == self.sorted:
                    pass
                case _:
                    raise refused(node)

    def _kind_of_read(self, value: ast.expr, kinds: Kinds) -> type:
        match value:
            case ast.Subscript(value=ast.Name(id="features"), slice=ast.Constant(value=str())):
                return object
            case ast.BinOp(
                left=ast.Subscript(value=ast.Name(id="features"), slice=ast.Constant(value=str())),
                op=ast.Mult(),
                right=ast.Constant(value=float()),
            ):
                return float
        self._number(value, kinds)
        return float

    def _check_ranked(self, ranked: ast.Tuple) -> None:
        choices = self.constants["CHOICES"]
        known = set(choices) if self.kind == "words" else set(range(len(choices)))
        kind = str if self.kind == "words" else int
        for item in ranked.elts:
            if not isinstance(item, ast.Constant) or type(item.value) is not kind or item.value not in known:
                raise refused(item)

    def _test(self, node: ast.expr, kinds: Kinds) -> None:
        match node:
            case ast.BoolOp(values=values):
                for value in values:
                    self._test(value, kinds)
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                self._test(operand, kinds)
            case ast.Compare(left=left, ops=ops, comparators=right) if all(isinstance(op, _COMPARISONS) for op in ops):
                for operand in (left, *right):
                    self._operand(operand, kinds)
            case _:
                raise refused(node)

    def _operand(self, node: ast.expr, kinds: Kinds) -> None:
        match node:
            case ast.Name(id=name) if name in kinds:
                pass
            case ast.Constant(value=str(word)) if is_text(word):  # long ones would take long to compare
                pass
            case ast.Tuple(elts=items) if all(type(literal(item)) is str for item in items):
                pass
            case _:
                self._number(node, kinds)

    def _number(self, node: ast.expr, kinds: Kinds) -> None:
        """Refuse what may be anything but a double: a word or a tuple times a number could fill the memory."""
        waiting = [node]
        while waiting:
            match waiting.pop():
                case ast.Constant(value=float()):
                    pass
                case ast.Name(id=name) if kinds.get(name) is float:
                    pass
                case ast.UnaryOp(op=ast.USub(), operand=operand):
                    waiting.append(operand)
                case ast.BinOp(left=left, op=op, right=right) if isinstance(op, _ARITHMETIC):
                    waiting += (left, right)
                case ast.IfExp(test=ast.Compare(left=left, ops=[ast.Gt()], comparators=[right]), body=low, orelse=high):
                    waiting += (left, right, low, high)
                case other:
                    raise refused(other)

    def _guesses(self, node: ast.expr, kinds: Kinds) -> None:
        match node:
            case ast.ListComp(elt=ast.Tuple(elts=[call, ast.Name(id="number")]), generators=[loop]):
                local = {**kinds, **self._columns(targets(loop))}
                match call:
                    case ast.Call(func=ast.Name(id="_guess"), args=given, keywords=[]):
                        self._guess([local[name] for name in given_names(given, local)])
                        return
        raise refused(node)

    def _columns(self, names: list[str]) -> Kinds:
        """Return the kinds of a candidate's columns: a double where all are, and a number of a choice before them."""
        rows = self.constants.setdefault("CANDIDATES", ())
        choices = len(self.constants["CHOICES"])
        for row in rows:
            if len(row) != len(names) + 1 or type(row[0]) is not int or not 0 <= row[0] < choices:
                raise InvalidModel("not generated code: a row of CANDIDATES does not fit")
        return {
            name: float if all(type(row[place]) is float for row in rows) else object
            for place, name in enumerate(names, start=1)
        }

    def _guess(self, given: list[type]) -> None:
        function = self._function("_guess")
        names = [argument.arg for argument in function.args.args]
        check_signature(function, names)
        if len(names) != len(given) or len(set(names)) < len(names):
            raise InvalidModel("not generated code: _guess is called with other columns than it takes")
        kinds = dict(zip(names, given, strict=True))
        for node in without_docstring(function.body):
            match node:
                case ast.AugAssign(target=ast.Name(id="total"), op=ast.Add(), value=ast.Call() as call):
                    self._tree_call(call, kinds)
                case ast.Assign(targets=[ast.Name(id=name)], value=value) if is_free(name):
                    self._number(value, kinds)
                    assign(node, name, float, kinds)
                case ast.Return(value=ast.Name(id="total")):
                    pass
                case ast.Return(value=ast.BinOp(left=left, op=ast.Mult(), right=right)):
                    self._power(left, right, kinds)
                case _:
                    raise refused(node)

    def _power(self, left: ast.expr, right: ast.expr, kinds: Kinds) -> None:
        """Refuse anything but what the trees add to the time of work: no other power is ever taken."""
        match right:
            case ast.BinOp(left=ast.Name(id="time"), op=ast.Pow(), right=ast.Constant(value=float(share))):
                if ast.dump(left) == _ADDED and 0 < share <= 1 and kinds.get("time") is float:
                    return
        raise refused(right)

    def _tree_call(self, call: ast.Call, kinds: Kinds) -> None:
        match call:
            case ast.Call(func=ast.Name(id=name), args=given, keywords=[]) if _TREE.fullmatch(name):
                if len(given_names(given, kinds)) == len(self._function(name).args.args):
                    return
        raise refused(call)

    def _tree(self, function: ast.FunctionDef) -> None:
        names = [argument.arg for argument in function.args.args]
        check_signature(function, names)
        kinds: Kinds = dict.fromkeys(names, object)
        waiting = list(without_docstring(function.body))
        while waiting:
            node = waiting.pop()
            match node:
                case ast.If(test=test, body=body, orelse=orelse):
                    self._test(test, kinds)
                    waiting += (*body, *orelse)
                case ast.Return(value=ast.expr() as value) if type(literal(value)) is float:
                    pass
                case _:
                    raise refused(node)
