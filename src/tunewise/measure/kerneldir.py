"""Where compiled kernels lie: a private directory under the home, or one that lasts as long as the process."""

import atexit
import contextlib
import functools
import os
import shutil
import stat
import tempfile
import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tunewise import settings, system
from tunewise.errors import MeasureWarning

_UNFINISHED = ".unfinished-"
_ABANDONED_S = 3600.0  # an unfinished file this old belongs to a process that died


@dataclass(frozen=True, slots=True)
class KernelDir:
    """A directory that nobody else may write to: what lies in it is code that we will run."""

    path: Path

    def find(self, name: str) -> Path | None:
        """Return the path of a finished file, or None if it is not there."""
        path = self.path / name
        return path if path.is_file() else None

    @contextlib.contextmanager
    def new_file(self, name: str) -> Iterator[Path]:
        """Give the path of an unfinished file that becomes `name`, whole, if the block ends without an error."""
        self.path.mkdir(mode=0o700, exist_ok=True)  # someone may have swept the cache since we looked
        handle, text = tempfile.mkstemp(prefix=_UNFINISHED, dir=self.path)
        os.close(handle)
        unfinished = Path(text)
        try:
            yield unfinished
            unfinished.replace(self.path / name)
        finally:
            unfinished.unlink(missing_ok=True)


def kernel_dir() -> KernelDir:
    """Return `<home>/kernels` if it is ours alone to write, otherwise a directory of this process, with one warning."""
    return _resolved(settings.current().home / "kernels")


@functools.cache
def _resolved(path: Path) -> KernelDir:
    reason = _why_not(path)
    if reason is None:
        _sweep(path)
        return KernelDir(path)
    warnings.warn(
        f"compiled kernels are kept for this process only: {reason}; set TUNEWISE_HOME to a directory of your own",
        MeasureWarning,
        stacklevel=2,
    )
    return KernelDir(_temporary())


def _why_not(path: Path) -> str | None:
    """Return why compiled code cannot lie here, or None if it can; the directory is made if it is missing."""
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with contextlib.suppress(FileExistsError):
            path.mkdir(mode=0o700)
        facts = path.lstat()
    except OSError as error:
        return f"{str(path)!r} cannot be made ({error.strerror or error})"
    if not stat.S_ISDIR(facts.st_mode):
        return f"{str(path)!r} is not a directory"
    if not system.is_ours(facts):
        return f"{str(path)!r} belongs to another user"
    if system.is_written_by_others(facts.st_mode):
        return f"{str(path)!r} can be written by other users"
    if not os.access(path, os.W_OK | os.X_OK):
        return f"{str(path)!r} is not writable"
    return None


def _sweep(path: Path) -> None:
    oldest = time.time() - _ABANDONED_S
    for unfinished in path.glob(f"{_UNFINISHED}*"):
        with contextlib.suppress(OSError):
            if unfinished.stat().st_mtime < oldest:
                unfinished.unlink()


@functools.cache
def _temporary() -> Path:
    path = Path(tempfile.mkdtemp(prefix="tunewise-kernels-"))
    owner = os.getpid()

    def remove() -> None:
        if os.getpid() == owner:  # a forked child that exits must not take its parent's kernels away
            shutil.rmtree(path, ignore_errors=True)

    atexit.register(remove)
    return path
