"""The system's C compiler: which one it is, and a run of it that cannot hang or leave anything behind."""

import contextlib
import functools
import os
import shlex
import shutil
import signal
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tunewise import settings
from tunewise.errors import BuildError, MissingPart

_NAMES = ("cc", "gcc", "clang")
_LAST_LINES = 12
_MAX_OUTPUT = 4000


@dataclass(frozen=True, slots=True)
class Compiler:
    """A C compiler: the command that runs it, and the version it reports."""

    command: tuple[str, ...]
    version: str

    def run(self, arguments: Sequence[str], source: str, *, cwd: Path, timeout_s: float) -> None:
        """Compile `source`, given on stdin; raises BuildError that ends with the compiler's last lines."""
        process = subprocess.Popen(
            [*self.command, *arguments],
            cwd=cwd,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,  # a compiler is several processes: they end together
        )
        try:
            said, _ = process.communicate(source.encode(), timeout=timeout_s)
        except subprocess.TimeoutExpired:
            raise BuildError(f"the compiler was stopped after {timeout_s:g} s") from None
        finally:
            if process.returncode is None:
                _end(process)
        if process.returncode != 0:
            raise BuildError(f"the compiler refused:\n{_tail(said)}")


def find_compiler() -> Compiler:
    """Return the C compiler: the one `CC` names, otherwise the first of cc, gcc and clang on the PATH.

    Raises MissingPart, with what to do, if there is none that runs.
    """
    chosen = settings.load().cc
    words = _words(chosen) if chosen else [next((name for name in _NAMES if shutil.which(name)), "")]
    path = shutil.which(words[0]) if words else None
    if path is None and chosen:
        raise MissingPart(f"the C compiler CC={chosen!r} does not exist; set CC to one that does, such as CC=gcc")
    if path is None:
        raise MissingPart(
            f"C kernels need a C compiler and none of {', '.join(_NAMES)} is on the PATH; "
            "install one (such as apt install gcc) or set CC to its path"
        )
    return _identified((path, *words[1:]), os.stat(path).st_mtime_ns)


def _words(chosen: str) -> list[str]:
    try:
        return shlex.split(chosen)
    except ValueError:  # an unclosed quote: no command at all
        return []


@functools.cache
def _identified(command: tuple[str, ...], changed_ns: int) -> Compiler:
    """Ask a compiler for its version, once per process and per installed file."""
    try:
        asked = subprocess.run(
            [*command, "--version"], stdin=subprocess.DEVNULL, capture_output=True, timeout=30, check=True
        )
        version = asked.stdout.decode(errors="replace").splitlines()[0].strip()
    except (OSError, subprocess.SubprocessError, IndexError) as error:
        raise MissingPart(
            f"the C compiler {shlex.join(command)!r} does not answer --version ({error}); set CC to one that works"
        ) from None
    return Compiler(command, version)


def _end(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(ProcessLookupError):
        if hasattr(os, "killpg"):
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()
    process.communicate()


def _tail(said: bytes) -> str:
    lines = said[-_MAX_OUTPUT:].decode(errors="replace").strip().splitlines()
    return "\n".join(lines[-_LAST_LINES:]) or "(it said nothing)"
