"""The fingerprint of an implementation: its code and all the user's functions it calls, however it was imported."""

import hashlib
import sys
import sysconfig
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

_PLAIN = (int, float, str, bytes, bool, type(None))


def fingerprint(function: Callable[..., Any]) -> str:
    """Return a digest of the function's bytecode, its constants, and, in turn, of every function of the user it names.

    Comments, file names, line numbers, import order and hash seeds do not matter; a changed helper does. Installed
    packages are left out: their versions speak for them.
    """
    hasher = hashlib.sha256()
    for piece in _pieces(function, set()):
        hasher.update(piece.encode("utf-8", "surrogatepass") + b"\0")
    return hasher.hexdigest()[:32]


def _pieces(value: Any, seen: set[int]) -> Iterator[str]:
    while hasattr(value, "__wrapped__"):
        value = value.__wrapped__
    if isinstance(value, types.MethodType):
        value = value.__func__
    if hasattr(value, "tunewise_fingerprint"):
        yield str(value.tunewise_fingerprint())
    elif isinstance(value, types.FunctionType):
        if id(value) not in seen:
            seen.add(id(value))
            yield from _function_pieces(value, seen)
    elif isinstance(value, _PLAIN):
        yield repr(value)
    elif isinstance(value, tuple | list):
        for item in value:
            yield from _pieces(item, seen)
    elif isinstance(value, frozenset | set):
        yield from sorted(repr(item) for item in value if isinstance(item, _PLAIN))
    elif isinstance(value, dict):
        for key, item in value.items():
            yield repr(key) if isinstance(key, _PLAIN) else ""
            yield from _pieces(item, seen)
    elif hasattr(value, "func") and hasattr(value, "keywords"):  # functools.partial
        yield from _pieces(value.func, seen)
        yield from _pieces(value.args, seen)
        yield from _pieces(value.keywords, seen)
    else:
        yield f"{type(value).__module__}.{type(value).__qualname__}"


def _function_pieces(function: types.FunctionType, seen: set[int]) -> Iterator[str]:
    if _is_installed(function):
        yield f"{function.__module__}.{function.__qualname__}"
        return
    yield from _code_pieces(function.__code__)
    yield from _pieces(function.__defaults__ or (), seen)
    yield from _pieces(function.__kwdefaults__ or {}, seen)
    for cell in function.__closure__ or ():
        try:
            yield from _pieces(cell.cell_contents, seen)
        except ValueError:  # an empty cell: the function is still being defined
            yield "empty"
    for name in sorted(_names(function.__code__)):
        if name in function.__globals__:
            held = function.__globals__[name]
            if isinstance(held, types.FunctionType | tuple | list | _PLAIN) or hasattr(held, "tunewise_fingerprint"):
                yield name
                yield from _pieces(held, seen)


def _code_pieces(code: types.CodeType) -> Iterator[str]:
    yield code.co_code.hex()
    yield repr(code.co_names)
    yield repr(code.co_varnames)
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _code_pieces(constant)
        elif isinstance(constant, frozenset):
            yield repr(sorted(map(repr, constant)))
        else:
            yield repr(constant)


def _names(code: types.CodeType) -> set[str]:
    names = set(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            names |= _names(constant)
    return names


def _is_installed(function: types.FunctionType) -> bool:
    module = sys.modules.get(function.__module__ or "")
    path = getattr(module, "__file__", None)
    if path is None:
        return False
    roots = [sysconfig.get_path(name) for name in ("stdlib", "purelib", "platlib")]
    return any(Path(path).is_relative_to(root) for root in roots)
