"""Recordings from files: whose format it is shows in what the file holds, not in what it is called."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import msgspec

from tunewise.errors import InvalidFile
from tunewise.formats import exported, kerneltuner, t4
from tunewise.formats.outline import has
from tunewise.formats.recording import Recording, Row, recording
from tunewise.formats.torn import Content, decode, load

__all__ = ["READERS", "Reader", "Recording", "Row", "read", "recording"]


@dataclass(frozen=True, slots=True)
class Reader:
    """One format: how to know it, and how to read it. `name` is what people call it."""

    name: str
    knows: Callable[[Content], bool]
    read: Callable[[Content, str], tuple[Recording, ...]]


READERS: tuple[Reader, ...] = (
    Reader("tunewise export", exported.is_export, exported.read),
    Reader("Kernel Tuner cache", has("cache"), kerneltuner.read),
    Reader("T4 results", has("results"), t4.read),
)


def read(path: Path | str) -> tuple[Recording, ...]:
    """Return what a file recorded, plain or gzip: one recording, or one a problem for our own exports.

    Raises NotFound where there is no such file, and InvalidFile where it holds no recording we can read.
    """
    content = load(Path(path))
    for reader in READERS:
        if reader.knows(content):
            return _recordings(reader, content)
    known = ", ".join(reader.name for reader in READERS)
    raise InvalidFile(f"{path} is none of: {known}; {_trouble(content)}")


def _recordings(reader: Reader, content: Content) -> tuple[Recording, ...]:
    try:
        return reader.read(content, _name(content.path))
    except (ValueError, RecursionError) as error:
        raise InvalidFile(f"{content.path} is a {reader.name} that cannot be replayed: {error}") from None


def _name(path: Path) -> str:
    return path.name.removesuffix(".gz").removesuffix(".json").removesuffix(".jsonl")


def _trouble(content: Content) -> str:
    try:
        decode(content, msgspec.Raw)
    except ValueError as error:
        return f"it is not JSON: {error}"
    return "it is JSON with neither `cache` nor `results` in it"
