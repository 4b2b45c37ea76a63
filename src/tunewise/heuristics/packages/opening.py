"""Packages opened where they lie: in a directory, a wheel or an installed distribution; no code of theirs runs."""

import difflib
import hashlib
import importlib.util
import re
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path, PurePosixPath

from tunewise import models
from tunewise.decision.regular import open_regular
from tunewise.errors import InvalidFile, InvalidModel, NotFound, TunewiseError
from tunewise.heuristics.base import Heuristic
from tunewise.heuristics.loading import PACKAGES, load_path
from tunewise.heuristics.packages.manifest import MANIFEST, MAX_BYTES, Manifest, ModelEntry, parse
from tunewise.models.whole import read_bounded

_MOST_MEMBERS = 10_000
_MAX_DIRECTORY_BYTES = 4 << 20  # of the list of members, which is read as a whole
_LAST_BYTES = (1 << 16) + 42  # that say where the list is: with the longest comment, and what stands before for zip64
# Others are unpacked without a bound.
_PACKINGS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)


@dataclass(frozen=True, slots=True)
class Package:
    """A package and how its files are read; `where` is what people call the place."""

    manifest: Manifest
    where: str
    read: Callable[[str, int], bytes] = field(repr=False)

    def files(self) -> dict[str, bytes]:
        """Return all files, each exactly what the manifest says; raises InvalidFile for the first that is not."""
        found = {}
        for name, entry in self.manifest.files.items():
            raw = self.read(name, entry.size_bytes)
            if len(raw) != entry.size_bytes or hashlib.sha256(raw).hexdigest() != entry.sha256:
                raise InvalidFile(f"{self.where}: {name} is not the file that {MANIFEST} tells of; get it once more")
            found[name] = raw
        return found

    def why_elsewhere(self, entry: ModelEntry, facts: Mapping[str, object]) -> str | None:
        """Return which fact or library keeps a model of it from answering here, or None where it may."""
        fence = {**self.manifest.fence, **entry.fence}
        fenced = Heuristic(entry.file, entry.decision, lambda _: (), fence, requires=self.manifest.requires)
        return fenced.why_elsewhere(facts)


def open_package(source: Path | str) -> Package:
    """Return the package of a directory, a wheel, or one that an installed distribution offers by its name.

    Raises NotFound where there is none, and InvalidFile where it is not sound.
    """
    path = Path(source)
    if path.is_dir():
        return of_directory(path)
    if path.is_file():
        return of_wheel(path)
    return of_offer(str(source))


def of_offer(name: str) -> Package:
    """Return the package that an installed distribution offers by its name; raises NotFound where none does."""
    points = {point.name: point for point in entry_points(group=PACKAGES)}
    if name not in points:
        close = difflib.get_close_matches(name, points, 1)
        hint = f"did you mean {close[0]!r}?" if close else f"installed are {', '.join(sorted(points)) or 'none'}"
        raise NotFound(f"there is no directory, wheel or installed package {name!r}; {hint}")
    return _of_point(points[name])


def of_directory(path: Path) -> Package:
    """Return the package of a directory; raises NotFound without a manifest, and InvalidFile for one not sound."""

    def read(name: str, limit_bytes: int) -> bytes:
        if not (path / name).is_file():  # a pipe would keep us waiting
            raise NotFound(f"{path} has no file {name}")
        try:
            return read_bounded(path / name, limit_bytes)
        except InvalidModel as error:
            raise InvalidFile(f"{error}, which {MANIFEST} says it has at most") from None

    return Package(parse(read(MANIFEST, MAX_BYTES), str(path)), str(path), read)


def of_wheel(path: Path) -> Package:
    """Return the package in a wheel; nothing is unpacked but what the manifest names, each within its length."""
    prefix = _place_in(path)

    def read(name: str, limit_bytes: int) -> bytes:
        with _opened(path) as wheel, wheel.open(prefix + name) as member:
            return member.read(limit_bytes + 1)

    guarded = _guarded(path, read)
    return Package(parse(guarded(MANIFEST, MAX_BYTES), str(path)), str(path), guarded)


def offered() -> Iterator[tuple[str, Package | TunewiseError]]:
    """Yield what installed distributions offer, by name: a package, or what is wrong with it."""
    for point in sorted(entry_points(group=PACKAGES), key=lambda one: one.name):
        try:
            yield point.name, _of_point(point)
        except TunewiseError as error:
            yield point.name, error


def heuristics_of(path: Path) -> tuple[Heuristic, ...]:
    """Return the models of a package in a directory as the ladder asks them, after a look at every file.

    They are fenced by the package besides their own fences. Raises NotFound, InvalidFile or InvalidModel.
    """
    package = of_directory(path)
    package.files()
    manifest = package.manifest
    return tuple(
        replace(
            one,
            name=f"{manifest.name}/{entry.file}",
            fence={**manifest.fence, **one.fence},
            requires=manifest.requires,
        )
        for entry in manifest.models
        for one in load_path(path / entry.file)
    )


def check_models(path: Path, manifest: Manifest) -> None:
    """Raise InvalidFile unless every model in a directory loads and is what the manifest says of it."""
    for entry in manifest.models:
        try:
            model = models.load(path / entry.file)
        except (InvalidModel, NotFound) as error:
            raise InvalidFile(f"the model {entry.file} of {manifest.name} is not sound: {error}") from None
        card = model.card
        told = (card.decision, dict(card.fence), card.fingerprint)
        if told != (entry.decision, entry.fence, entry.fingerprint):
            raise InvalidFile(f"the model {entry.file} of {manifest.name} is not what {MANIFEST} says of it")


def _of_point(point: EntryPoint) -> Package:
    """Return the package that lies in the directory of a module; the module itself is not imported."""
    module = point.value.partition(":")[0].strip()
    package = of_directory(_directory(point, module))
    if package.manifest.name != point.name:
        raise InvalidFile(f"the package offered as {point.name!r:.100} calls itself {package.manifest.name!r:.100}")
    return package


def _directory(point: EntryPoint, module: str) -> Path:
    places = [Path(str(point.dist.locate_file(module.replace(".", "/"))))] if point.dist is not None else []
    if "." not in module:  # to look for a part of a package would import the package
        with suppress(ImportError, ValueError):
            spec = importlib.util.find_spec(module)
            places += [Path(place) for place in (spec.submodule_search_locations or ())] if spec is not None else []
    for place in places:
        if (place / MANIFEST).is_file():
            return place
    raise NotFound(f"the installed package {point.name!r:.100} has no {MANIFEST} in {module!r:.100}")


def _place_in(path: Path) -> str:
    """Return the directory of a wheel that holds the manifest, with its slash; raises InvalidFile for a hostile one."""
    try:
        _check_directory(path)
        with _opened(path) as wheel:
            members = wheel.infolist()
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError) as error:
        raise InvalidFile(f"{path} is neither a package's directory nor a wheel: {error}") from None
    names = [member.filename for member in members]
    if any(member.compress_type not in _PACKINGS for member in members):
        raise InvalidFile(f"{path} is refused: a wheel's members are stored or deflated, and not packed in other ways")
    if len(names) > _MOST_MEMBERS or len(set(names)) < len(names):
        raise InvalidFile(f"{path} holds one name twice or more than {_MOST_MEMBERS} of them")
    for name in names:
        if name.startswith("/") or "\\" in name or ":" in name or ".." in PurePosixPath(name).parts:
            raise InvalidFile(f"{path} is refused: its member {name!r:.100} leads out of it")
    found = [n for n in names if PurePosixPath(n).name == MANIFEST and n.count("/") <= 1]
    if len(found) != 1:
        raise InvalidFile(f"{path} holds {len(found)} files {MANIFEST}; a package's wheel has one")
    return found[0].removesuffix(MANIFEST)


def _check_directory(path: Path) -> None:
    """Raise ValueError for a zip file whose list of members is far too long to be read."""
    with open_regular(path) as stream:
        stream.seek(max(path.stat().st_size - _LAST_BYTES, 0))
        last = stream.read()
    for found in re.finditer(rb"PK\x05\x06", last):
        length = int.from_bytes(last[found.end() + 8 : found.end() + 12], "little")
        is_zip64 = last[max(found.start() - 20, 0) : found.start()].startswith(b"PK\x06\x07")
        if is_zip64 or length > _MAX_DIRECTORY_BYTES:
            raise ValueError("its list of members is too long")


def _opened(path: Path) -> zipfile.ZipFile:
    return zipfile.ZipFile(path)


def _guarded(path: Path, read: Callable[[str, int], bytes]) -> Callable[[str, int], bytes]:
    def guarded(name: str, limit_bytes: int) -> bytes:
        try:
            raw = read(name, limit_bytes)
        except KeyError:
            raise NotFound(f"{path} has no file {name}") from None
        except (zipfile.BadZipFile, zlib.error, EOFError, OSError, RuntimeError, ValueError) as error:
            raise InvalidFile(f"{path}: {name} cannot be unpacked: {error}") from None
        if len(raw) > limit_bytes:
            raise InvalidFile(f"{path}: {name} is longer than the {limit_bytes} bytes it may have")
        return raw

    return guarded
