"""Packages made: models and their data in a directory with a manifest, or in a wheel that pip installs."""

import base64
import hashlib
import io
import re
import shutil
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from tunewise import models
from tunewise.decision import Scalar
from tunewise.decision.drafts import draft
from tunewise.errors import InvalidData, InvalidFile, InvalidModel
from tunewise.heuristics import versions
from tunewise.heuristics.loading import PACKAGES
from tunewise.heuristics.packages.manifest import (
    MANIFEST,
    MAX_FILE_BYTES,
    FileEntry,
    Manifest,
    ModelEntry,
    check_file,
    dump,
)
from tunewise.models.model import beside
from tunewise.models.whole import read_bounded, write_whole

_TORCH = "torch"
_EPOCH = (1980, 1, 1, 0, 0, 0)  # the first day a zip file knows: equal content gives equal wheels
_INIT = b'"""Models for tunewise: manifest.json says which."""\n'
_WHEEL = b"Wheel-Version: 1.0\nGenerator: tunewise\nRoot-Is-Purelib: true\nTag: py3-none-any\n"


def pack(
    model_files: Sequence[Path | str],
    target: Path | str,
    *,
    name: str,
    version: str = "1.0",
    about: str = "",
    fence: Mapping[str, Scalar] | None = None,
    requires: Mapping[str, str] | None = None,
    extras: Sequence[Path | str] = (),
) -> Path:
    """Make a package of models and return where it is: a new directory, or a wheel where `target` ends in .whl.

    `fence` holds facts of the hardware for all models, by default those that all of them are fenced by; `requires`
    ranges of versions, by default the minor release of torch installed here if the models are about torch. `extras`
    come along: data, a licence. Raises InvalidModel for models and names that are not sound, and InvalidFile where
    the place takes no package.
    """
    files, entries = _gathered(model_files)
    for extra in map(Path, extras):
        _put(files, extra.name, read_bounded(extra, MAX_FILE_BYTES))
    manifest = Manifest(
        name=name,
        version=version,
        about=about,
        fence=_fence(entries) if fence is None else _agreed(fence, entries),
        requires=_requires(entries) if requires is None else dict(requires),
        models=tuple(entries),
        files={file: FileEntry(hashlib.sha256(raw).hexdigest(), len(raw)) for file, raw in sorted(files.items())},
    )
    manifest.check()
    if Path(target).suffix == ".whl":
        return _write_wheel(Path(target), manifest, files)
    return write_directory(Path(target), manifest, files)


def wheel_name(name: str, version: str) -> str:
    """Return what pip wants the wheel of a package to be called."""
    return f"{_module(name)}-{version}-py3-none-any.whl"


def write_directory(target: Path, manifest: Manifest, files: Mapping[str, bytes]) -> Path:
    """Write a package into a new directory, which appears whole or not at all; raises InvalidFile where one is."""
    part = draft(target)
    try:
        shutil.rmtree(part, ignore_errors=True)
        part.mkdir(parents=True)
        for file, raw in {**files, MANIFEST: dump(manifest)}.items():
            write_whole(part / file, raw)
        part.rename(target)
    except OSError as error:
        raise InvalidFile(f"{target} takes no package: {error.strerror}; choose a place that is not there") from None
    finally:
        shutil.rmtree(part, ignore_errors=True)
    return target


def _gathered(paths: Sequence[Path | str]) -> tuple[dict[str, bytes], list[ModelEntry]]:
    files: dict[str, bytes] = {}
    entries = []
    if not paths:
        raise InvalidData("a package needs at least one model; name its file")
    for path in map(Path, paths):
        model = models.load(path)
        _put(files, path.name, read_bounded(path, MAX_FILE_BYTES))
        if isinstance(model.body, models.Net) and beside(path).exists():
            _put(files, beside(path).name, read_bounded(beside(path), MAX_FILE_BYTES))
        entries.append(_entry(path.name, model))
    return files, entries


def _put(files: dict[str, bytes], name: str, raw: bytes) -> None:
    check_file(name)
    if name in files:
        raise InvalidData(f"two files of the package are called {name}; rename one")
    files[name] = raw


def _entry(file: str, model: models.Model) -> ModelEntry:
    card = model.card
    return ModelEntry(
        file=file,
        decision=card.decision,
        learner=card.learner,
        created=card.created,
        choices=len(model.choices),
        fence=dict(card.fence),
        fingerprint=card.fingerprint,
        scores=dict(card.scores),
    )


def _fence(entries: Sequence[ModelEntry]) -> dict[str, Scalar]:
    first, *others = entries
    return {
        fact: value
        for fact, value in first.fence.items()
        if all(fact in other.fence and other.fence[fact] == value for other in others)
    }


def _agreed(fence: Mapping[str, Scalar], entries: Sequence[ModelEntry]) -> dict[str, Scalar]:
    for entry in entries:
        for fact, value in fence.items():
            if entry.fence.get(fact, value) != value:
                raise InvalidModel(f"{entry.file} is for {fact}={entry.fence[fact]!r}, and the package for {value!r}")
    return dict(fence)


def _requires(entries: Sequence[ModelEntry]) -> dict[str, str]:
    """Return the release of torch that is installed, for models about it: the next may compile other kernels."""
    here = versions.installed(_TORCH)
    if here is None or not any(entry.decision.startswith(f"{_TORCH}.") for entry in entries):
        return {}
    wanted = versions.minor_range(here)
    return {_TORCH: wanted} if wanted is not None else {}


def _write_wheel(target: Path, manifest: Manifest, files: Mapping[str, bytes]) -> Path:
    wanted = wheel_name(manifest.name, manifest.version)
    if target.name != wanted:
        raise InvalidFile(f"pip installs no wheel called {target.name}; call it {wanted}")
    if not target.parent.is_dir():
        raise InvalidFile(f"there is no directory {target.parent} for the wheel; make it first")
    write_whole(target, _wheel(manifest, files))
    return target


def _wheel(manifest: Manifest, files: Mapping[str, bytes]) -> bytes:
    module = _module(manifest.name)
    info = f"{module}-{manifest.version}.dist-info"
    held = {f"{module}/__init__.py": _INIT, f"{module}/{MANIFEST}": dump(manifest)}
    held |= {f"{module}/{file}": raw for file, raw in sorted(files.items())}
    held |= {
        f"{info}/METADATA": _metadata(manifest),
        f"{info}/WHEEL": _WHEEL,
        f"{info}/entry_points.txt": f"[{PACKAGES}]\n{manifest.name} = {module}\n".encode(),
    }
    record = [f"{member},sha256={_digest(raw)},{len(raw)}" for member, raw in held.items()]
    held[f"{info}/RECORD"] = "\n".join([*record, f"{info}/RECORD,,", ""]).encode()
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as wheel:
        for member, raw in held.items():
            entry = zipfile.ZipInfo(member, _EPOCH)
            entry.compress_type, entry.external_attr = zipfile.ZIP_DEFLATED, 0o644 << 16
            wheel.writestr(entry, raw)
    return packed.getvalue()


def _metadata(manifest: Manifest) -> bytes:
    summary = " ".join(manifest.about.split()) or f"Models for tunewise: {manifest.name}"
    lines = ["Metadata-Version: 2.1", f"Name: {_module(manifest.name).replace('_', '-')}"]
    lines += [f"Version: {manifest.version}", f"Summary: {summary}", "Requires-Dist: tunewise"]
    return ("\n".join(lines) + "\n").encode()


def _module(name: str) -> str:
    return "tunewise_model_" + re.sub(r"[-_]+", "_", name)


def _digest(raw: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(raw).digest()).rstrip(b"=").decode()
