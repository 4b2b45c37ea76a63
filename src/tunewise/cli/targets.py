"""Targets: `file.py:name`, `package.module:name` or the name of a built-in decision, and how each is found."""

import difflib
import hashlib
import importlib
import importlib.util
import os
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import TypeVar

from tunewise import workloads
from tunewise.errors import InvalidFile, NotFound, TunewiseError
from tunewise.session import Decision, Implementation

_T = TypeVar("_T")
_OURS = Path(__file__).resolve().parents[1]


def find(targets: Sequence[str]) -> list[Decision]:
    """Return the decisions that targets name, each file loaded once; raises NotFound or InvalidFile with the reason."""
    modules: dict[str, ModuleType] = {}
    return [_find(target, modules) for target in targets]


def _find(target: str, modules: dict[str, ModuleType]) -> Decision:
    place, colon, name = target.rpartition(":")
    if not colon and not target.endswith(".py"):
        return _built_in(target)
    place, name = (place, name) if colon else (target, "")
    if place not in modules:
        modules[place] = _from_file(Path(place)) if _is_path(place) else _from_package(place)
    return _named(modules[place], place, name)


def _is_path(place: str) -> bool:
    return place.endswith(".py") or os.sep in place


def _built_in(name: str) -> Decision:
    try:
        return workloads.find(name)
    except NotFound as error:
        joint = " A" if str(error).endswith("?") else "; a"
        raise NotFound(f"{error}{joint} decision of your own is written path/to/file.py:name") from None


def _named(module: ModuleType, place: str, name: str) -> Decision:
    decisions = _decisions(module)
    if name in decisions:
        return decisions[name]
    if not decisions:
        raise NotFound(f"{place} holds no decision: declare one with tunewise.Decision or tunewise.choice")
    if not name and len(set(decisions.values())) == 1:  # a decision and its implementation are one
        return next(iter(decisions.values()))
    names = ", ".join(decisions)
    if not name:
        raise NotFound(f"{place} holds several decisions: name one of {names}, such as {place}:{next(iter(decisions))}")
    close = difflib.get_close_matches(name, decisions, 1)
    if name in vars(module):
        kind = type(vars(module)[name]).__name__
        raise NotFound(f"{name} in {place} is a {kind}, not a decision; decisions there: {names}")
    hint = f"did you mean {place}:{close[0]}?" if close else f"decisions there: {names}"
    raise NotFound(f"there is no {name!r} in {place}; {hint}")


def _decisions(module: ModuleType) -> dict[str, Decision]:
    found = {}
    for name, value in vars(module).items():
        if isinstance(value, Decision):
            found[name] = value
        elif isinstance(value, Implementation):
            found[name] = value.decision
    return found


def _from_file(path: Path) -> ModuleType:
    if not path.is_file():
        raise NotFound(_no_file(path))
    name = f"_tunewise_target_{hashlib.sha256(os.fsencode(path.resolve())).hexdigest()[:16]}"
    spec = importlib.util.spec_from_file_location(name, path.resolve())
    if spec is None or spec.loader is None:
        raise InvalidFile(f"{path} is not a Python file: a target's file ends with .py")
    module, loader = importlib.util.module_from_spec(spec), spec.loader
    sys.modules[name] = module  # dataclasses, inspect and the like look a function's module up by name
    with _on_path(path.resolve().parent):
        _run(str(path), lambda: loader.exec_module(module))
    return module


def _no_file(path: Path) -> str:
    if path.is_dir():
        return f"{str(path)!r} is a directory; a target is a file in it, written path/to/file.py:name"
    there = [other.name for other in path.parent.glob("*.py")]
    close = difflib.get_close_matches(path.name, there, 1)
    hint = f"did you mean {str(path.with_name(close[0]))!r}?" if close else "a target is written path/to/file.py:name"
    return f"there is no file {str(path)!r}; {hint}"


def _from_package(place: str) -> ModuleType:
    with _on_path(Path.cwd()):
        if not _run(place, lambda: _is_module(place)):
            raise NotFound(f"there is no module {place!r}; a file is written path/to/file.py:name")
        return _run(place, lambda: importlib.import_module(place))


def _is_module(place: str) -> bool:
    """Return whether there is a module of that name; a package above it that does not load raises what it raises."""
    if not all(part.isidentifier() for part in place.split(".")):
        return False
    try:
        return importlib.util.find_spec(place) is not None
    except ModuleNotFoundError as error:
        if error.name is None or not f"{place}.".startswith(f"{error.name}."):
            raise
        return False


def _run(place: str, load: Callable[[], _T]) -> _T:
    """Load user code; whatever it raises becomes one sentence with the line it came from."""
    try:
        return load()
    except (Exception, SystemExit) as error:
        where, what = _line(error, place), f"{error}".strip()
        if isinstance(error, SyntaxError):
            where, what = f"{place}:{error.lineno}", str(error.msg)
        if isinstance(error, TunewiseError):
            raise type(error)(f"{where}: {what}") from error
        said = f"{type(error).__name__}: {what}" if what else type(error).__name__
        raise InvalidFile(f"{where} failed to load with {said}") from error


def _line(error: BaseException, place: str) -> str:
    """Return the last line of the target's own file that the error passed, or of any file that is not machinery."""
    frames = [(Path(frame.filename), frame.lineno) for frame in traceback.extract_tb(error.__traceback__)]
    own = [line for file, line in frames if file == Path(place).resolve()]
    if own:
        return f"{place}:{own[-1]}"
    is_machinery = ("importlib", "<frozen importlib._bootstrap>", "<frozen importlib._bootstrap_external>")
    users = [f for f in frames if _OURS not in f[0].parents and not set(is_machinery) & set(f[0].parts)]
    return f"{users[-1][0]}:{users[-1][1]}" if users else place


@contextmanager
def _on_path(directory: Path) -> Iterator[None]:
    """Let user code import what lies beside it while it loads."""
    sys.path.insert(0, str(directory))
    try:
        yield
    finally:
        if str(directory) in sys.path:
            sys.path.remove(str(directory))
