"""Files that a verb is about to write: none of them may be what it reads, and each has a place that takes it."""

import os
from collections.abc import Iterable, Mapping
from itertools import combinations
from pathlib import Path

import click

from tunewise.errors import InvalidFile


def check_outputs(outputs: Mapping[str, Path | None], inputs: Iterable[Path | None] = ()) -> None:
    """Refuse, before any work is done, to write one file twice, over what is read, or where no file can be made.

    `outputs` are files by the options that name them; None is an option that was not given. Raises UsageError for a
    file that is named twice, and InvalidFile for a place without a directory that may be written to.
    """
    given = [(name, path) for name, path in outputs.items() if path is not None]
    read = [path for path in inputs if path is not None]
    for (name, path), (other, beside) in combinations(given, 2):
        if _is_one(path, beside):
            raise click.UsageError(f"{name} and {other} are one file; give two.")
    for name, path in given:
        if any(_is_one(path, source) for source in read):
            raise click.UsageError(f"{name} {path} is a file that is read, and would replace it; name another.")
        _check_place(path)


def _is_one(path: Path, other: Path) -> bool:
    try:
        return path.samefile(other)
    except OSError:  # one of them is not there yet
        return path.resolve() == other.resolve()


def _check_place(path: Path) -> None:
    folder = path.parent
    if not folder.is_dir():
        raise InvalidFile(f"{path} cannot be written: {folder} is not a directory; choose another place for it")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise InvalidFile(f"{path} cannot be written: {folder} may not be written to; choose another place for it")
