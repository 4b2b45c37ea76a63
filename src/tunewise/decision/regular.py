"""How files that people name are opened: a pipe would be waited for, and a device may have no end."""

import errno
import os
import stat
from pathlib import Path
from typing import BinaryIO

from tunewise import system


def open_regular(path: Path | str) -> BinaryIO:
    """Return a regular file to be read, after links; raises OSError for anything else, without waiting for it."""
    stream = open(path, "rb", opener=_at_once)  # noqa: SIM115  # whoever asked closes it
    if not stat.S_ISREG(os.fstat(stream.fileno()).st_mode):
        stream.close()
        raise OSError(errno.EINVAL, "it is a pipe or a device, not a regular file", str(path))
    return stream


def _at_once(path: str, flags: int) -> int:
    return os.open(path, flags | system.NONBLOCK)
