"""What a writer of a format makes: files with a name and bytes, JSON as others write it."""

import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tunewise.decision.drafts import draft
from tunewise.errors import InvalidFile


@dataclass(frozen=True, slots=True)
class Written:
    """A file to be: what it is called where a directory is given, and what it holds.

    A format may tell a part in a second file; `beside` says where that lies, given where the first one does.
    """

    name: str
    raw: bytes
    second: bytes = b""
    beside: Callable[[Path], Path] | None = None

    def files(self, path: Path) -> Iterator[tuple[Path, bytes]]:
        """Yield the files that it is, each with its place, when the first one lies at `path`."""
        yield path, self.raw
        if self.beside is not None and self.second:
            yield self.beside(path), self.second


def json_text(document: Mapping[str, Any], indent: int | None = None) -> bytes:
    """Return a document as JSON the way Python's own writer does, which is what these formats are read and written by.

    Infinity stays Infinity: Triton writes its failures so.
    """
    return (json.dumps(document, indent=indent) + "\n").encode()


@contextmanager
def replaced(target: Path) -> Iterator[Path]:
    """Yield a file beside a target that becomes it at the end, whole or not at all; raises InvalidFile otherwise."""
    beside = draft(target)
    try:
        yield beside
        os.replace(beside, target)
    except OSError as error:
        raise InvalidFile(f"{target} cannot be written: {error.strerror or error}; choose another place") from None
    finally:
        with suppress(OSError):  # it is there only if something went wrong
            beside.unlink()
