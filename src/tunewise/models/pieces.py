"""The pieces of generated code: literals, names and signatures, each checked on its own."""

import ast
import re
from math import isfinite
from typing import Any

from tunewise.errors import InvalidModel
from tunewise.models.texts import is_text

CONSTANTS = ("FORMAT", "DECISION", "HARDWARE", "FEATURES", "FINGERPRINT", "CHOICES", "CANDIDATES")

_FIXED = ("features", "guesses", "number", "sorted", "Exception", *CONSTANTS)
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
# Comments, and strings with a letter that stands before them; what is left open ends with its line, or with the text.
_QUOTED = re.compile(
    r"""\#[^\n]*+
      | (?P<letter>\w?) (?: \"{3} (?:[^"\\]|\\.?|"(?!""))*+ (?:\"{3}|\Z) | '{3} (?:[^'\\]|\\.?|'(?!''))*+ (?:'{3}|\Z)
      | "(?:[^"\\\n]|\\.?)*+"? | '(?:[^'\\\n]|\\.?)*+'? )""",
    re.VERBOSE | re.DOTALL,
)

Kinds = dict[str, type]  # of local names: float, or object where it may be anything


def literal(node: ast.expr, depth: int = 0) -> Any:
    """Return the value of a literal: finite numbers of 64 bits, words, None, tuples, and dicts by words."""
    match node:
        case ast.Constant(value=bool() | None as value):
            return value
        case ast.Constant(value=str(value)) if is_text(value):
            return value
        case ast.Constant(value=float(value)) if isfinite(value):
            return value
        case ast.Constant(value=int(value)) if value < 1 << 64:
            return value
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=float(value))) if isfinite(value):
            return -value
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int(value))) if value <= 1 << 63:
            return -value
        case ast.Tuple(elts=items) if depth < 2:
            return tuple(literal(item, depth + 1) for item in items)
        case ast.Dict(keys=keys, values=values) if depth < 2:
            return {_word(key, node): literal(value, 2) for key, value in zip(keys, values, strict=True)}
    raise refused(node)


def check_strings(text: str) -> None:
    """Refuse strings of other kinds before anything is parsed: Python takes minutes for a long f-string."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")  # as Python does
    for quoted in _QUOTED.finditer(text):
        if quoted["letter"]:
            line = text.count("\n", 0, quoted.start()) + 1
            raise InvalidModel(
                f"not generated code: line {line} holds a string after a letter, which no generator writes"
            )


def assign(node: ast.stmt, name: str, kind: type, kinds: Kinds) -> None:
    """Note what kind of value a name has; a name that changes its kind is refused."""
    if kinds.get(name, kind) is not kind:
        raise refused(node)
    kinds[name] = kind


def ends(body: list[ast.stmt]) -> bool:
    """Return whether every way through some statements comes to a return."""
    match body[-1] if body else None:
        case ast.If(body=low, orelse=high):
            return ends(low) and ends(high)
        case last:
            return isinstance(last, ast.Return)


def is_free(name: str) -> bool:
    """Return whether generated code may give this name to a value of its own."""
    return _NAME.fullmatch(name) is not None and name not in _FIXED


def targets(loop: ast.comprehension) -> list[str]:
    """Return the names of a candidate's columns, of a loop over all candidates."""
    match loop:
        case ast.comprehension(
            target=ast.Tuple(elts=[ast.Name(id="number"), *names]), iter=ast.Name(id="CANDIDATES"), ifs=[], is_async=0
        ):
            return [_identifier(target) for target in names]
    raise refused(loop.target)


def given_names(args: list[ast.expr], kinds: Kinds) -> list[str]:
    """Return the names that a call is given; anything but a known name is refused."""
    for argument in args:
        if not isinstance(argument, ast.Name) or argument.id not in kinds:
            raise refused(argument)
    return [_identifier(argument) for argument in args]


def _identifier(node: ast.expr) -> str:
    if isinstance(node, ast.Name) and is_free(node.id):
        return node.id
    raise refused(node)


def check_signature(function: ast.FunctionDef, names: list[str]) -> None:
    """Refuse decorators, defaults, annotations and arguments of any other kind."""
    plain = ast.parse(f"def {function.name}({', '.join(names)}): pass").body[0]
    assert isinstance(plain, ast.FunctionDef)
    is_plain = all(_NAME.fullmatch(name) for name in names) and ast.dump(plain.args) == ast.dump(function.args)
    if not is_plain or _extras(function):
        raise refused(function)


def without_docstring(body: list[ast.stmt]) -> list[ast.stmt]:
    """Return statements without the text that may stand first."""
    match body:
        case [ast.Expr(value=ast.Constant(value=str())), *rest]:
            return rest
    return body


def spelled(function: ast.FunctionDef) -> str:
    """Return a function as text that is equal for equal code, whatever its docstring says."""
    evaluated = ast.dump(function.args), _extras(function)
    return repr(evaluated) + "".join(map(ast.dump, without_docstring(function.body)))


def _extras(function: ast.FunctionDef) -> bool:
    """Return whether more than a body belongs to a function: parts that run as soon as it is defined."""
    return bool(function.decorator_list or function.returns or getattr(function, "type_params", None))


def _word(key: ast.expr | None, node: ast.expr) -> str:
    match key:
        case ast.Constant(value=str(word)) if is_text(word):
            return word
    raise refused(node)


def refused(node: ast.AST) -> InvalidModel:
    """Return the error for a part of the code that does not belong there."""
    line, kind = getattr(node, "lineno", 0), type(node).__name__
    article = "an" if kind.startswith(("A", "E", "I", "O")) else "a"
    return InvalidModel(f"not generated code: line {line} holds {article} {kind} that no generator writes")


def unparsed(error: Exception) -> InvalidModel:
    """Return the error for what Python itself refuses: text that is no code, or code nested beyond all bounds."""
    is_deep = isinstance(error, RecursionError | MemoryError)
    return InvalidModel(f"not generated code: {'nested too deeply' if is_deep else error}")
