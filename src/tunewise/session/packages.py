"""Model packages at home: installed once their files are checked, asked only once somebody activates them."""

import difflib
import re
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from tunewise import settings
from tunewise.errors import InvalidFile, NotFound, TunewiseError
from tunewise.eventlog import logger
from tunewise.heuristics import Heuristic, load_path
from tunewise.models.whole import read_bounded, write_whole
from tunewise.session import context
from tunewise.store.locks import lock_file

if TYPE_CHECKING:  # opening wheels takes modules that nobody needs for an answer
    from tunewise.heuristics.packages import Package

_INDEX, _LOCK = "installed.json", "models.lock"
_MAX_BYTES = 1 << 20
_PLACE = re.compile(r"[a-z0-9][a-z0-9_-]{0,99}", re.ASCII)

_log = logger(__name__)


class _Slot(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where a package lies, below the directory of all of them, and whether it may answer."""

    directory: str
    is_active: bool = False


class _Index(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What is installed. It is replaced whole, so that a package is there or not and never in between."""

    format: int = 1
    packages: dict[str, _Slot] = {}


_DECODER = msgspec.json.Decoder(_Index)


@dataclass(frozen=True, slots=True)
class Installed:
    """A package at home: its name, its directory, and whether its models may answer."""

    name: str
    path: Path
    is_active: bool

    def package(self) -> "Package":
        """Return the package itself; raises NotFound or InvalidFile where somebody spoilt it."""
        from tunewise.heuristics.packages import of_directory

        return of_directory(self.path)


def home() -> Path:
    """Return the directory that packages are installed in."""
    return settings.current().home / "models"


def installed() -> list[Installed]:
    """Return the packages at home, by name; raises InvalidFile where their list is spoilt."""
    slots = _index().packages
    return [Installed(name, home() / slot.directory, slot.is_active) for name, slot in sorted(slots.items())]


def find(name: str) -> Installed:
    """Return a package at home; raises NotFound for one that is not installed."""
    slot = _named(_index().packages, name)
    return Installed(name, home() / slot.directory, slot.is_active)


def install(source: Path | str) -> Installed:
    """Copy a package home and return it: a directory, a wheel, or one that an installed distribution offers by name.

    Every file is checked first, by length, digest and, if it is a model, by loading it. Nothing is activated by this;
    a package that takes the place of another one is not active until somebody says so again. Raises NotFound, and
    InvalidFile where anything about it is not sound.
    """
    from tunewise.heuristics.packages import open_package

    package = open_package(source)
    files = package.files()
    manifest = package.manifest
    with _changing() as slots:
        before = slots.get(manifest.name)
        directory = f"{manifest.name}-{manifest.digest[:12]}"
        is_active = before is not None and before.is_active and before.directory == directory
        done = Installed(manifest.name, home() / directory, is_active)
        if before is None or before.directory != directory or not _is_whole(done):
            _place(done.path, package, files)
        slots[manifest.name] = _Slot(directory, is_active)
    _sweep(before, directory)
    return done


def activate(name: str) -> Installed:
    """Let the models of an installed package answer, in every program of this home; raises NotFound for any other."""
    return _switched(name, True)


def deactivate(name: str) -> Installed:
    """Let the models of a package answer no more; raises NotFound for one that is not installed."""
    return _switched(name, False)


def remove(name: str) -> Installed:
    """Take a package away and return what it was; raises NotFound for one that is not installed."""
    with _changing() as slots:
        gone = _named(slots, name)
        del slots[name]
    shutil.rmtree(home() / gone.directory, ignore_errors=True)
    return Installed(name, home() / gone.directory, gone.is_active)


def active_heuristics() -> tuple[Heuristic, ...]:
    """Return the models of all active packages; what is wrong with one is logged, and the others answer."""
    try:
        active = [one for one in installed() if one.is_active]
    except TunewiseError as error:
        _log.warning("no model package answers: %s", error)
        return ()
    return tuple(heuristic for one in active for heuristic in _or_logged(one))


def _or_logged(one: Installed) -> tuple[Heuristic, ...]:
    try:
        return load_path(one.path)
    except (TunewiseError, OSError) as error:
        _log.warning("the model package %s is left out: %s", one.name, error)
        return ()


def _switched(name: str, is_active: bool) -> Installed:
    with _changing() as slots:
        slot = _named(slots, name)
        slots[name] = _Slot(slot.directory, is_active)
    return Installed(name, home() / slot.directory, is_active)


def _named(slots: Mapping[str, _Slot], name: str) -> _Slot:
    if name not in slots:
        close = difflib.get_close_matches(name, slots, 1)
        hint = f"did you mean {close[0]!r}?" if close else f"installed are {', '.join(sorted(slots)) or 'none'}"
        raise NotFound(f"no model package {name!r:.100} is installed; {hint}")
    return slots[name]


@contextmanager
def _changing() -> Iterator[dict[str, _Slot]]:
    """Yield what is installed, to be changed; it is written at the end, unless that is an error, by one at a time."""
    try:
        home().mkdir(mode=0o700, parents=True, exist_ok=True)
        with lock_file(home() / _LOCK).writer():
            slots = dict(_index().packages)
            yield slots
            write_whole(home() / _INDEX, msgspec.json.encode(_Index(packages=slots), order="deterministic"))
    except OSError as error:
        raise InvalidFile(f"{home()} takes no packages: {error.strerror}; move what is there elsewhere") from None
    context.refresh()


def _index() -> _Index:
    path = home() / _INDEX
    if not path.exists():
        return _Index()
    try:
        found = _DECODER.decode(read_bounded(path, _MAX_BYTES))
    except (ValueError, RecursionError, TunewiseError) as error:
        raise InvalidFile(f"{path} is spoilt: {error}; remove it and install your packages again") from None
    for name, slot in found.packages.items():
        if not _PLACE.fullmatch(slot.directory) or not slot.directory.startswith(f"{name}-"):
            raise InvalidFile(f"{path} is spoilt: {slot.directory!r:.100} is no place of {name!r:.100}; remove it")
    return found


def _is_whole(one: Installed) -> bool:
    try:
        one.package().files()
    except TunewiseError:
        return False
    return True


def _place(path: Path, package: "Package", files: Mapping[str, bytes]) -> None:
    """Put a package into a directory, once its models are known to be sound."""
    from tunewise.heuristics.packages import check_models, write_directory

    staged = path.with_name(f"{path.name}-new")
    for left in (staged, path):  # by somebody who was killed while at it, or spoilt since
        shutil.rmtree(left, ignore_errors=True)
    try:
        check_models(write_directory(staged, package.manifest, files), package.manifest)
        staged.rename(path)
    finally:
        shutil.rmtree(staged, ignore_errors=True)


def _sweep(before: _Slot | None, directory: str) -> None:
    """Remove what a package replaced; another process that reads it right now logs a miss and answers without."""
    if before is not None and before.directory != directory:
        shutil.rmtree(home() / before.directory, ignore_errors=True)
