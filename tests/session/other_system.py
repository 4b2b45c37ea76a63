"""Makes this process look like one on Windows or macOS, as far as Python code can tell; for programs of the tests."""

import ast
import asyncio
import concurrent.futures
import ctypes.util
import importlib.metadata
import importlib.util
import logging
import multiprocessing.connection
import os
import platform
import random
import select
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import sysconfig
import tempfile
import time
import uuid
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType

import click
import msgspec
import rich.live
import rich.markup
import rich.progress
import rich.table

# What is not ours has to find out where it really runs before anything is taken away.
LOADED = (asyncio, concurrent.futures, ctypes.util, importlib.metadata, logging, multiprocessing.connection, platform)
LOADED += (random, shutil, sqlite3, subprocess, tempfile, uuid, click, msgspec, rich)
sysconfig.get_paths()
_MISSING = {
    "win32": {"pwd", "grp", "fcntl", "resource", "termios", "tty", "pty", "syslog", "readline", "curses", "nis"},
    "darwin": {"nis", "spwd", "ossaudiodev"},
}
_CHANGED = {os: "os/__init__.pyi", signal: "signal.pyi", time: "time.pyi", select: "select.pyi", socket: "_socket.pyi"}


class _Missing:
    """Refuses to import what the system does not have."""

    def __init__(self, names: set[str]) -> None:
        self._names = names

    def find_spec(self, name: str, *_: object) -> ModuleSpec | None:
        if name in self._names:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        return None


def imitate(system: str) -> None:
    """Take away what a system (`win32` or `darwin`) does not have: modules, functions, constants, /proc."""
    missing = _MISSING[system]
    for name in missing:
        sys.modules.pop(name, None)
    sys.meta_path.insert(0, _Missing(missing))
    for module, stub in _CHANGED.items():
        for name in _absent(module, stub, system):
            delattr(module, name)
    platform.system = lambda: {"win32": "Windows", "darwin": "Darwin"}[system]
    sys.platform = system
    sys.addaudithook(_refuse)


def _refuse(event: str, arguments: tuple[object, ...]) -> None:
    path = arguments[0] if event in ("open", "os.listdir") and arguments else None
    if not isinstance(path, str):
        return
    if path.startswith(("/proc/", "/sys/")):
        raise FileNotFoundError(2, "there is no such thing here", path)
    if sys.platform == "win32" and event == "open" and os.path.isdir(path):
        raise PermissionError(13, "Windows opens no directories", path)


def _absent(module: ModuleType, stub: str, system: str) -> set[str]:
    """Return the names that a module has here and, by the type stubs that mypy brings along, not on a system."""
    spec = importlib.util.find_spec("mypy")
    assert spec is not None
    assert spec.origin is not None
    tree = ast.parse((Path(spec.origin).parent / "typeshed" / "stdlib" / stub).read_text())
    gone = _names(tree.body, "linux") - _names(tree.body, system)
    return {name for name in gone if hasattr(module, name)}


def _names(body: list[ast.stmt], system: str) -> set[str]:
    found: set[str] = set()
    for part in body:
        if isinstance(part, ast.If):
            found |= _names(part.body if _holds(part.test, system) else part.orelse, system)
        elif isinstance(part, ast.FunctionDef | ast.ClassDef):
            found.add(part.name)
        elif isinstance(part, ast.AnnAssign):
            found.add(ast.unparse(part.target))
        elif isinstance(part, ast.Assign):
            found |= {ast.unparse(target) for target in part.targets}
        elif isinstance(part, ast.ImportFrom):
            found |= {alias.asname or alias.name for alias in part.names}
    return found


def _holds(test: ast.expr, system: str) -> bool:
    """Return what a condition of a stub says on a system: comparisons of sys.platform and sys.version_info."""
    if isinstance(test, ast.BoolOp):
        joined = all if isinstance(test.op, ast.And) else any
        return joined(_holds(value, system) for value in test.values)
    if not isinstance(test, ast.Compare):
        return True
    value = ast.literal_eval(test.comparators[0])
    known = {"sys.platform": system, "sys.version_info": sys.version_info}[ast.unparse(test.left)]
    held = {ast.Eq: known == value, ast.NotEq: known != value}
    if not isinstance(known, str):
        held |= {ast.GtE: known >= value, ast.Lt: known < value}
    return held[type(test.ops[0])]
