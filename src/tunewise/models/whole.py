"""Files that are read within a bound and appear whole or not at all."""

import os
from contextlib import suppress
from pathlib import Path

from tunewise.decision.drafts import draft
from tunewise.decision.regular import open_regular
from tunewise.errors import InvalidFile, InvalidModel, NotFound


def read_bounded(path: Path | str, limit_bytes: int) -> bytes:
    """Return what a file holds; raises NotFound, or InvalidModel for a file longer than the limit."""
    try:
        with open_regular(path) as file:
            raw = file.read(limit_bytes + 1)
    except (OSError, ValueError) as error:  # a ValueError is a name with a zero byte in it
        raise NotFound(f"{path} cannot be read: {getattr(error, 'strerror', None) or error}") from None
    if len(raw) > limit_bytes:
        raise InvalidModel(f"{path} is longer than {limit_bytes} bytes")
    return raw


def write_whole(path: Path | str, raw: bytes) -> None:
    """Write a file that replaces an older one whole or not at all; raises InvalidFile where the place takes none."""
    target = Path(path)
    beside = draft(target)
    try:
        with beside.open("wb") as file:
            file.write(raw)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(target)
    except OSError as error:
        raise InvalidFile(f"{target} cannot be written: {error.strerror}; choose another place for it") from None
    finally:
        with suppress(OSError):  # it is there only if something went wrong
            beside.unlink()
