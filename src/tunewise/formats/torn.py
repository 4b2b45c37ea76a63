"""Files from elsewhere that may be compressed, too large or cut off: their bytes, and the JSON that can be saved."""

import io
import re
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, TypeVar

import msgspec

from tunewise.decision import canonical
from tunewise.decision.regular import open_regular
from tunewise.errors import InvalidFile, NotFound

MAX_BYTES = 256 << 20  # unpacked: a cache of 250,000 configs with 32 samples each
MAX_OBJECTS = 4_000_000
# Of a packed file: recorded spaces unpack to 3 to 8 times their size, and a bomb to 1,000 times.
_MAX_RATIO, _ANY_RATIO_BYTES, _MAX_MEMBERS = 100, 16 << 20, 10_000
# What JSON takes in memory shows in these before it is read. A byte of a recorded space weighs 0.12, in the shortest
# records that make sense 0.35, and of `[],` 1.67.
_WEIGHTS = {b"[": 3, b"{": 3, b"]": 1, b"}": 1, b",": 1, b":": 1}
_FREE_WEIGHT, _MAX_WEIGHT_A_BYTE, _MAX_QUOTES_A_BYTE = 2_000_000, 1 / 3, 1 / 2
_COUNTED_BYTES = 4 << 20
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
    content = Content(path, packed)
    if packed.startswith(_GZIP):
        most = max(_ANY_RATIO_BYTES, _MAX_RATIO * len(packed))
        content = _unpacked(path, packed, min(limit_bytes, most))
        if most < min(limit_bytes, len(content.raw)):
            raise InvalidFile(f"{path} unpacks to more than {_MAX_RATIO} times its size; unpack it first")
    if len(content.raw) > limit_bytes:
        raise InvalidFile(f"{path} holds more than {limit_bytes >> 20} MiB; cut it into smaller files")
    begin = content.raw[:_CHUNK].lstrip()[:1] or content.raw.lstrip()[:1]
    if not begin:
        raise InvalidFile(f"{path} is empty")
    if begin in _CLOSES:
        try:
            check_weight(content.raw)
            canonical.check_depth(content.raw)
        except ValueError as error:
            raise InvalidFile(f"{path} is none of the files we read: {error}") from None
    if begin == b"{":
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


def check_weight(raw: bytes) -> None:
    """Raise ValueError for JSON of so many values that reading it would fill the memory."""
    weight = quotes = 0
    for start in range(0, len(raw), _COUNTED_BYTES):
        end = min(start + _COUNTED_BYTES, len(raw))
        weight += sum(each * raw.count(mark, start, end) for mark, each in _WEIGHTS.items())
        quotes += raw.count(b'"', start, end)
        is_heavy = weight > _FREE_WEIGHT + _MAX_WEIGHT_A_BYTE * end
        if is_heavy or quotes > _FREE_WEIGHT + _MAX_QUOTES_A_BYTE * end:
            raise ValueError("it holds far more JSON values than a text of its length may; split it")


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
    raw, unpacker, members = bytearray(), zlib.decompressobj(_GZIP_WINDOW), 1
    for start in range(0, len(packed), _CHUNK):
        chunk = packed[start : start + _CHUNK]
        while chunk and len(raw) <= limit_bytes:
            if unpacker.eof:  # several members in a row are one file
                unpacker, members = zlib.decompressobj(_GZIP_WINDOW), members + 1
                if members > _MAX_MEMBERS:
                    raise InvalidFile(f"{path} is made of more than {_MAX_MEMBERS} gzip files; unpack it first")
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
        raw = content.raw
        if b"NaN" in raw or b"Infinity" in raw:
            raw = _NO_NUMBER.sub(lambda found: found[1] or b"null", raw)
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
