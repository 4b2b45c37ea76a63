"""One spelling for every value that is compared, hashed or written: canonical JSON and its digest."""

import hashlib
import math
import re
from collections.abc import Iterator
from itertools import accumulate
from typing import Any

import msgspec

_ENCODER = msgspec.json.Encoder(order="deterministic")

MAX_RECORD_BYTES = 1 << 20
MAX_DEPTH = 32
INT_MIN, INT_MAX = -(1 << 63), (1 << 64) - 1  # what every JSON reader, database and C header of ours can hold

# It matches unclosed strings too, so that no text makes it look at a byte twice.
_STRING = re.compile(rb'"(?:[^"\\]++|\\.?)*+"?', re.DOTALL)
_NO_BRACKET = bytes(byte for byte in range(256) if byte not in b"[]{}")
_STEP = {byte: 1 if byte in b"[{" else -1 for byte in b"[]{}"}
_SLICE_BYTES = 1 << 20
_EXACT = (int, str, float, bool, type(None))


def encode(value: Any) -> str:
    """Return canonical JSON: keys sorted, no spaces, tuples as lists; 1, 1.0 and true stay three different values.

    Equal values of equal types give equal text in every process. Raises ValueError for what JSON cannot say: NaN,
    infinity, half a surrogate pair, a cycle, or an object that is not plain data.
    """
    return _encoded(value).decode()


def digest(value: Any) -> str:
    """Return the SHA-256 of the canonical JSON as 64 hex digits."""
    return hashlib.sha256(_encoded(value)).hexdigest()


def decode(text: str | bytes, limit_bytes: int = MAX_RECORD_BYTES) -> Any:
    """Return the value of JSON text; raises ValueError for anything too long, too deep, or not JSON."""
    raw = text.encode() if isinstance(text, str) else text
    if len(raw) > limit_bytes:
        raise ValueError(f"{len(raw)} bytes of JSON, more than the {limit_bytes} allowed")
    check_depth(raw)
    try:
        return msgspec.json.decode(raw)
    except (msgspec.DecodeError, RecursionError) as error:
        raise ValueError(f"not JSON: {error}") from None


def check_depth(raw: bytes) -> None:
    """Raise ValueError for JSON text nested deeper than MAX_DEPTH levels, sound or not."""
    if raw.count(b"[") + raw.count(b"{") <= MAX_DEPTH:
        return
    depth = 0
    for brackets in _brackets(raw):
        depths = list(accumulate(map(_STEP.__getitem__, brackets), initial=depth))
        if max(depths) > MAX_DEPTH:
            raise ValueError(f"JSON nested deeper than {MAX_DEPTH} levels")
        depth = depths[-1]


def scalar(value: Any) -> int | float | str | bool | None:
    """Return a number, word, bool or None as exactly that Python type, also from numpy, an enum or a subclass.

    Raises ValueError, with the end of a sentence such as "is not a finite number", for what no JSON can hold.
    """
    if type(value) not in _EXACT:
        value = _plain(value)
    if isinstance(value, str):
        if not value.isascii() and any("\ud800" <= c <= "\udfff" for c in value):
            raise ValueError("holds half a surrogate pair, which cannot be written")
    elif isinstance(value, float):
        if not math.isfinite(value):
            raise ValueError("is not a finite number")
    elif isinstance(value, int) and not INT_MIN <= value <= INT_MAX:
        raise ValueError("does not fit in 64 bits")
    return value  # type: ignore[no-any-return]


def _plain(value: Any) -> Any:
    if hasattr(value, "dtype") and hasattr(value, "item") and getattr(value, "ndim", 1) == 0:
        try:
            value = value.item()
        except Exception as error:  # a tensor without data, for one
            raise ValueError(f"cannot be read: {type(error).__name__}: {error}") from None
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return str.__str__(value)  # str() of an enum would be its name
    if isinstance(value, float):
        return float.__float__(value)
    try:
        return int(value.__index__())
    except (AttributeError, TypeError):
        raise ValueError(f"is a {type(value).__name__}, not a number or a word") from None


def _encoded(value: Any) -> bytes:
    try:
        raw = _ENCODER.encode(value)
    except (TypeError, OverflowError, RecursionError, UnicodeEncodeError) as error:
        raise ValueError(f"cannot be written as JSON: {error}") from None
    if b"null" in raw:  # msgspec writes NaN and infinity as null: another value
        _refuse_non_finite(value)
    return raw


def _refuse_non_finite(value: Any) -> None:
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"cannot be written as JSON: {value!r} is not a finite number")
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list | tuple | set | frozenset):
        for item in value:
            _refuse_non_finite(item)


def _brackets(raw: bytes) -> Iterator[bytes]:
    """Yield the brackets outside of strings, slice by slice, so that a long text is never there twice."""
    if b"\\" in raw:
        yield _STRING.sub(b"", raw).translate(None, _NO_BRACKET)
        return
    is_string = 0
    for start in range(0, len(raw), _SLICE_BYTES):
        pieces = raw[start : start + _SLICE_BYTES].split(b'"')
        yield b"".join(pieces[is_string::2]).translate(None, _NO_BRACKET)
        is_string ^= (len(pieces) - 1) & 1
