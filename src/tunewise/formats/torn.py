"""Files from elsewhere that may be compressed, too large or cut off: their bytes, and the JSON that can be saved."""

import io
import re
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, TypeVar

import msgspec

from tunewise.decision.regular import open_regular
from tunewise.errors import InvalidFile, NotFound

MAX_BYTES = 256 << 20  # unpacked: a cache of 250,000 configs with 32 samples each
MAX_OBJECTS = 4_000_000
_GZIP, _GZIP_WINDOW = b"\x1f\x8b", 31
_CHUNK = 1 << 16
_CLOSES = {b"{": b"}", b"[": b"]"}
_WHOLE = 2  # records lie two levels deep in every format we know
# Unclosed strings match too: what looks like a bracket in the torn end is none.
_STRING = rb'"(?:[^"\\]++|\\.?)*+"?'
_TOKEN = re.compile(_STRING + rb"|[\[\]{}]", re.DOTALL)
_NO_NUMBER = re.compile(rb"(" + _STRING + rb")|-?\bInfinity\b|\bNaN\b", re.DOTALL)
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Content:
    """What a file holds, unpacked; where its end was torn off, JSON is closed after the last whole record."""

    path: Path
    raw: bytes
    is_cut: bool = False  # more than closing brackets was missing


def load(path: Path, limit_bytes: int = MAX_BYTES) -> Content:
    """Return the content of a plain or gzip file as far as it can be read.

    Raises NotFound where there is no such file, and InvalidFile where it cannot be read, is empty or is too large.
    """
    packed = _bytes(path, limit_bytes)
    content = _unpacked(path, packed, limit_bytes) if packed.startswith(_GZIP) else Content(path, packed)
    if len(content.raw) > limit_bytes:
        raise InvalidFile(f"{path} holds more than {limit_bytes >> 20} MiB; cut it into smaller files")
    if not content.raw.strip():
        raise InvalidFile(f"{path} is empty")
    if content.raw.lstrip().startswith(b"{"):
        return _mended(content)
    return (whole_lines(content) or content) if content.is_cut else content


def whole_lines(content: Content) -> Content | None:
    """Return a content without its last line, if that has no end: somebody was killed while writing it, maybe."""
    end = content.raw.rfind(b"\n") + 1
    return Content(content.path, content.raw[:end], is_cut=True) if 0 < end < len(content.raw) else None


def unpacked_head(head: bytes) -> bytes:
    """Return the beginning of a file unpacked, as far as it goes, if it is a gzip one."""
    if not head.startswith(_GZIP):
        return head
    try:
        return zlib.decompressobj(_GZIP_WINDOW).decompress(head, len(head))
    except zlib.error:
        return head


def opened(path: Path) -> BinaryIO:
    """Return a file to read from its beginning, unpacked in memory if it is a gzip one."""
    with open_regular(path) as stream:
        is_gzip = stream.read(len(_GZIP)) == _GZIP
    return io.BytesIO(load(path).raw) if is_gzip else open_regular(path)


def decode(content: Content, kind: type[_T]) -> _T:
    """Return the JSON of a file as `kind`; raises ValueError if it is something else or far too much."""
    if content.raw.count(b"{") > MAX_OBJECTS:
        raise ValueError(f"more than {MAX_OBJECTS} JSON objects")
    try:
        return msgspec.json.decode(content.raw, type=kind)
    except (msgspec.DecodeError, RecursionError) as error:
        raise ValueError(f"{error}") from None


def _bytes(path: Path, limit_bytes: int) -> bytes:
    try:
        with open_regular(path) as stream:
            return stream.read(limit_bytes + 1)
    except FileNotFoundError:
        raise NotFound(f"there is no file {path}") from None
    except IsADirectoryError:
        raise InvalidFile(f"{path} is a directory; name the files in it") from None
    except (OSError, ValueError) as error:
        raise InvalidFile(f"{path} cannot be read: {getattr(error, 'strerror', None) or error}") from None


def _unpacked(path: Path, packed: bytes, limit_bytes: int) -> Content:
    raw, unpacker = bytearray(), zlib.decompressobj(_GZIP_WINDOW)
    for start in range(0, len(packed), _CHUNK):
        chunk = packed[start : start + _CHUNK]
        while chunk and len(raw) <= limit_bytes:
            if unpacker.eof:  # several members in a row are one file
                unpacker = zlib.decompressobj(_GZIP_WINDOW)
            try:
                raw += unpacker.decompress(chunk, limit_bytes + 1 - len(raw))
            except zlib.error as error:
                if not raw:
                    raise InvalidFile(f"{path} cannot be unpacked: {error}") from None
                return Content(path, bytes(raw), is_cut=True)
            chunk = unpacker.unused_data
    return Content(path, bytes(raw), is_cut=not unpacker.eof)


def _mended(content: Content) -> Content:
    """Return a content whose JSON is whole: Python's NaN as null, and closed after the last whole record."""
    try:
        decode(content, msgspec.Raw)
    except ValueError:
        raw = _NO_NUMBER.sub(lambda found: found[1] or b"null", content.raw)
        end, closing = _last_whole(raw)
        is_lossy = bool(closing) and bool(raw[end:].strip(b" \t\r\n,"))
        return Content(content.path, raw[:end] + closing if closing else raw, content.is_cut or is_lossy)
    return content


def _last_whole(raw: bytes) -> tuple[int, bytes]:
    """Return where the last whole record ends and the brackets that close it all there; none if nothing is open."""
    end, open_, closing = 0, list[bytes](), b""
    for token in _TOKEN.finditer(raw):
        text = token.group()
        if text in _CLOSES:
            open_.append(_CLOSES[text])
        elif open_ and text == open_[-1]:
            open_.pop()
            if len(open_) <= _WHOLE:
                end, closing = token.end(), b"".join(reversed(open_))
    return end, closing
