"""The manifest of a model package: what its models are for, what they were made from, and a digest of every file."""

import hashlib
import re
from math import isfinite
from typing import Annotated

import msgspec

from tunewise.decision import Scalar
from tunewise.errors import InvalidFile, InvalidModel
from tunewise.heuristics.versions import check_range

MANIFEST = "manifest.json"
MAX_BYTES = 1 << 20
MAX_FILES = 64
MAX_FILE_BYTES = 64 << 20
MAX_TOTAL_BYTES = 256 << 20
MAX_TEXT = 1000
# Data that no reader runs: models, weights, measurements and text.
SUFFIXES = (".json", ".safetensors", ".parquet", ".csv", ".md", ".txt")
_NAME = re.compile(r"[a-z0-9](?:[a-z0-9_-]{0,62}[a-z0-9])?", re.ASCII)
_FILE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}", re.ASCII)
_VERSION = re.compile(r"\d{1,9}(?:\.\d{1,9}){0,3}(?:(?:a|b|rc|\.post|\.dev)\d{1,9})?", re.ASCII)
_SHA256 = re.compile(r"[0-9a-f]{64}", re.ASCII)

Size = Annotated[int, msgspec.Meta(ge=0, le=MAX_FILE_BYTES)]


class FileEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a file must be: its SHA-256 and its length."""

    sha256: str
    size_bytes: Size


class ModelEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A model of the package, with what its card says: who looks for one need not load it."""

    file: str
    decision: str
    learner: str = ""
    created: str = ""
    choices: int = 0
    fence: dict[str, Scalar] = {}
    fingerprint: str = ""  # of the data it was learned from
    scores: dict[str, float] = {}


class Manifest(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What a package is called, where it may answer, and all that is in it.

    `fence` holds facts of the hardware that must be equal, for all models of the package; `requires` ranges of the
    versions of libraries, such as {"torch": ">=2.6,<2.14"}.
    """

    format: int = 1
    name: str
    version: str = "1.0"
    about: str = ""
    fence: dict[str, Scalar] = {}
    requires: dict[str, str] = {}
    models: tuple[ModelEntry, ...]
    files: dict[str, FileEntry]

    def check(self) -> None:
        """Raise InvalidModel, with the value, unless every name is harmless and every model's file is listed."""
        if self.format != 1:
            raise InvalidModel(f"a package of format {self.format}; this version reads format 1")
        check_name(self.name)
        if not _VERSION.fullmatch(self.version):
            raise InvalidModel(f"version={self.version!r:.100} is not a version, such as 1.0")
        for library, wanted in self.requires.items():
            check_range(library, wanted)
        self._check_files()
        for text in (self.about, *self.fence, *(t for m in self.models for t in (m.decision, m.learner, *m.fence))):
            if len(text) > MAX_TEXT:
                raise InvalidModel(f"the text {text[:40]!r}... is longer than {MAX_TEXT} characters")
        if not all(isfinite(score) for model in self.models for score in model.scores.values()):
            raise InvalidModel("a score is not a finite number")

    def _check_files(self) -> None:
        if not self.models or len(self.files) > MAX_FILES:
            raise InvalidModel(f"{len(self.models)} models in {len(self.files)} files; it needs 1 to {MAX_FILES}")
        for file, entry in self.files.items():
            check_file(file)
            if not _SHA256.fullmatch(entry.sha256):
                raise InvalidModel(f"the SHA-256 of {file} is not 64 hex digits")
        if sum(entry.size_bytes for entry in self.files.values()) > MAX_TOTAL_BYTES:
            raise InvalidModel(f"its files hold more than {MAX_TOTAL_BYTES >> 20} MiB")
        for model in self.models:
            if model.file not in self.files or not model.file.endswith(".json"):
                raise InvalidModel(f"the model {model.file!r:.100} is not among its files")

    @property
    def digest(self) -> str:
        """A digest of all that the package is."""
        return hashlib.sha256(dump(self)).hexdigest()


_DECODER = msgspec.json.Decoder(Manifest)


def check_name(name: str) -> None:
    """Raise InvalidModel unless a package may be called so."""
    if not _NAME.fullmatch(name):
        raise InvalidModel(f"{name!r:.100} is not a name of a package: small letters, digits, - and _, such as mm-epyc")


def check_file(file: str) -> None:
    """Raise InvalidModel unless a file may be in a package: a plain name that leads nowhere, of data that runs not."""
    if not _FILE.fullmatch(file) or file == MANIFEST or not file.endswith(SUFFIXES):
        raise InvalidModel(f"the file {file!r:.100} may not be in a package: plain names that end in {_ENDINGS} may")


def parse(raw: bytes, where: str) -> Manifest:
    """Return a manifest; raises InvalidFile, beginning with `where`, for what is none or is not sound."""
    if len(raw) > MAX_BYTES:
        raise InvalidFile(f"{where}: {MANIFEST} is longer than {MAX_BYTES} bytes")
    try:
        found = _DECODER.decode(raw)
        found.check()
    except (ValueError, RecursionError, InvalidModel) as error:
        raise InvalidFile(f"{where}: {MANIFEST} is not sound: {error}") from None
    return found


def dump(manifest: Manifest) -> bytes:
    """Return a manifest as JSON text."""
    return msgspec.json.format(msgspec.json.encode(manifest, order="deterministic"), indent=1) + b"\n"


_ENDINGS = ", ".join(SUFFIXES)
