"""The fingerprint of an implementation: its code and all the user's functions it calls, however it was imported."""

import dis
import functools
import hashlib
import sys
import sysconfig
import types
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

_PLAIN = (int, float, complex, str, bytes, bool, type(None), type(...))
_NAMED = {*dis.hasname, *dis.haslocal, *dis.hasfree}
_SHAPE_FLAGS = 0x04 | 0x08 | 0x20 | 0x80 | 0x200  # *args, **kwargs, generator, coroutine, async generator
_CLASS_NOISE = {"__module__", "__doc__", "__dict__", "__weakref__", "__annotations__", "__firstlineno__"}
_OURS = str(Path(__file__).parents[1])  # in a checkout we lie elsewhere, and keys must not tell the difference
_MAX_ITEMS, _MAX_DEPTH = 20_000, 20  # of all containers together; what lies beyond counts by its size only


def fingerprint(function: Callable[..., Any] | tuple[Callable[..., Any], ...]) -> str:
    """Return a digest of the code of one or more functions and, in turn, of all of the user's code that it names.

    That is functions, classes and constants, also those reached through a module of the user. Comments, docstrings,
    file names, line numbers, import order and hash seeds do not matter; a changed helper does.
    Installed packages are left out: their versions speak for them. So is what the code itself assigns to (a global
    counter) and lower-case lists, dicts and sets at module level: they are state. A function imported inside another
    function's body is not followed.
    """
    hasher = hashlib.sha256()
    for piece in _Walk().pieces(function):
        hasher.update(piece.encode("utf-8", "surrogatepass") + b"\0")
    return hasher.hexdigest()[:32]


class _Walk:
    """Visits everything reachable from a function once, breadth first, and names what it met before by its number."""

    def __init__(self) -> None:
        self._met: dict[int, tuple[int, Any]] = {}  # id -> number, and the object itself so that the id stays its own
        self._waiting: deque[Any] = deque()
        self._items_left = _MAX_ITEMS

    def pieces(self, start: Any) -> Iterator[str]:
        yield from self._value(start)
        while self._waiting:
            met = self._waiting.popleft()
            yield "next"
            if isinstance(met, types.FunctionType):
                yield from self._function(met)
            elif isinstance(met, type):
                yield from self._class(met)
            else:
                yield from self._instance(met)

    def _value(self, value: Any, depth: int = 0) -> Iterator[str]:
        own = _own(value)
        if own is not None:
            yield own
        elif type(value) in _PLAIN:
            yield repr(value)
        elif isinstance(value, tuple | list | dict | set | frozenset):
            yield from self._container(value, depth)
        elif isinstance(value, types.CodeType):
            yield from self._code(value)
        else:
            yield from self._object(value, depth)

    def _container(self, value: Any, depth: int) -> Iterator[str]:
        yield f"{type(value).__name__} of {len(value)}"
        if depth == _MAX_DEPTH:
            return
        if isinstance(value, set | frozenset):  # in no order, so by their text; others count by number
            yield from sorted(repr(item) for item in value if type(item) in _PLAIN)
            return
        for item in value.items() if isinstance(value, dict) else value:
            self._items_left -= 1
            if self._items_left < 0:
                return
            yield from self._value(item, depth + 1)

    def _object(self, value: Any, depth: int) -> Iterator[str]:
        parts = _parts(value)
        if parts:
            yield str(type(value).__qualname__)
            yield from self._value(parts, min(depth + 1, _MAX_DEPTH))
        elif isinstance(value, types.FunctionType):
            yield self._meet(value)
        elif isinstance(value, type):
            yield str(value.__qualname__) if _is_installed_class(value) else self._meet(value)
        elif isinstance(value, types.ModuleType | types.BuiltinFunctionType) or _is_installed_class(type(value)):
            yield f"{type(value).__qualname__} {getattr(value, '__qualname__', '') or getattr(value, '__name__', '')}"
            inner = _unwrapped(value)
            if inner is not None:
                yield self._meet(inner)
        else:
            yield self._meet(value)

    def _meet(self, value: Any) -> str:
        if id(value) not in self._met:
            self._met[id(value)] = (len(self._met), value)
            self._waiting.append(value)
        return f"#{self._met[id(value)][0]}"

    def _function(self, function: types.FunctionType) -> Iterator[str]:
        for cell in function.__closure__ or ():
            try:
                yield from self._value(cell.cell_contents)
            except ValueError:  # an empty cell: the function is still being defined
                yield "empty"
        if _is_installed(function.__code__.co_filename):
            yield function.__qualname__
            return
        yield from self._code(function.__code__)
        yield from self._value(function.__defaults__)
        yield from self._value(function.__kwdefaults__)
        names, assigned = _names(function.__code__), _assigned(function.__code__)
        for name in sorted(names - assigned):
            if name in function.__globals__ and not name.startswith("__"):
                yield from self._global(name, function.__globals__[name], names)

    def _global(self, name: str, held: Any, names: set[str]) -> Iterator[str]:
        if isinstance(held, types.ModuleType):
            if not _is_installed(getattr(held, "__file__", None) or "<frozen>"):
                for inner in sorted(names & set(vars(held))):
                    if not inner.startswith("__") and not isinstance(vars(held)[inner], types.ModuleType):
                        yield from self._global(inner, vars(held)[inner], names)
        elif not _is_state(name, held):
            yield name
            yield from self._value(held)

    def _class(self, cls: type) -> Iterator[str]:
        yield cls.__qualname__
        yield from self._value(cls.__bases__)
        for name, held in sorted(vars(cls).items()):
            if name not in _CLASS_NOISE and not _is_state(name, held):
                yield name
                yield from self._value(held)

    def _instance(self, value: Any) -> Iterator[str]:
        """Of an object of the user count its class and its plain attributes; its containers are state."""
        yield from self._value(type(value))
        for name, held in sorted(getattr(value, "__dict__", {}).items()):
            if type(held) in _PLAIN or isinstance(held, tuple | types.FunctionType):
                yield str(name)
                yield from self._value(held)

    def _code(self, code: types.CodeType) -> Iterator[str]:
        """Constants by value, not by number: a docstring shifts the numbers and no instruction loads it."""
        arguments = code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags & _SHAPE_FLAGS
        yield repr((arguments, code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]))
        yield code.co_exceptiontable.hex()
        for step in dis.get_instructions(code):
            yield step.opname
            if step.opcode in dis.hasconst:
                yield from self._value(step.argval)
            else:
                yield str(step.argval if step.opcode in _NAMED else step.arg)


def _own(value: Any) -> str | None:
    """Return the digest a value gives of itself by a method or attribute `tunewise_fingerprint`, or None."""
    if isinstance(value, types.FunctionType):
        own = vars(value).get("tunewise_fingerprint")
        return None if own is None else str(own())
    method = None if isinstance(value, type) else getattr(type(value), "tunewise_fingerprint", None)
    return None if method is None else str(method(value))


def _is_state(name: str, held: Any) -> bool:
    return isinstance(held, list | dict | set) and not name.isupper()


def _parts(value: Any) -> tuple[Any, ...]:
    """Return what a bound method, partial, property and the like is made of; empty for anything else."""
    if isinstance(value, types.MethodType):
        return value.__func__, value.__self__
    if isinstance(value, functools.partial):
        return value.func, value.args, value.keywords
    if isinstance(value, property):
        return value.fget, value.fset, value.fdel
    return (value.__func__,) if isinstance(value, staticmethod | classmethod) else ()


def _unwrapped(value: Any) -> types.FunctionType | None:
    """Return the user's function inside an installed wrapper object, such as functools.cache or a compiler's."""
    for attribute in ("__wrapped__", "py_func", "fn"):
        inner = getattr(value, attribute, None)
        if isinstance(inner, types.FunctionType):
            return inner
    return None


def _names(code: types.CodeType) -> set[str]:
    nested = (constant for constant in code.co_consts if isinstance(constant, types.CodeType))
    return set(code.co_names).union(*map(_names, nested))


def _assigned(code: types.CodeType) -> set[str]:
    nested = (constant for constant in code.co_consts if isinstance(constant, types.CodeType))
    ours = {step.argval for step in dis.get_instructions(code) if step.opname in ("STORE_GLOBAL", "DELETE_GLOBAL")}
    return ours.union(*map(_assigned, nested))


def _is_installed_class(cls: type) -> bool:
    module = sys.modules.get(cls.__module__)
    return cls.__module__ in sys.builtin_module_names or _is_installed(getattr(module, "__file__", None) or "")


@functools.cache
def _is_installed(path: str) -> bool:
    roots = {sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")} | {_OURS}
    return path.startswith("<frozen") or any(Path(path).is_relative_to(root) for root in roots)
