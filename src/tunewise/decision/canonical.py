"""One spelling for every value that is compared, hashed or written: canonical JSON and its digest."""

import hashlib
from typing import Any

import msgspec

_ENCODER = msgspec.json.Encoder(order="deterministic")

MAX_RECORD_BYTES = 1 << 20
MAX_DEPTH = 32


def encode(value: Any) -> str:
    """Return canonical JSON: keys sorted, no spaces, tuples as lists. Equal values give equal text in every process."""
    return _ENCODER.encode(value).decode()


def digest(value: Any) -> str:
    """Return the SHA-256 of the canonical JSON as 64 hex digits."""
    return hashlib.sha256(_ENCODER.encode(value)).hexdigest()


def decode(text: str | bytes, limit_bytes: int = MAX_RECORD_BYTES) -> Any:
    """Return the value of JSON text; raises ValueError for anything too long, too deep, or not JSON."""
    raw = text.encode() if isinstance(text, str) else text
    if len(raw) > limit_bytes:
        raise ValueError(f"{len(raw)} bytes of JSON, more than the {limit_bytes} allowed")
    _limit_depth(raw)
    try:
        return msgspec.json.decode(raw)
    except (msgspec.DecodeError, RecursionError) as error:
        raise ValueError(f"not JSON: {error}") from None


def _limit_depth(raw: bytes) -> None:
    # Brackets inside strings only make the estimate higher than the truth; look closer only then.
    if raw.count(b"[") + raw.count(b"{") <= MAX_DEPTH:
        return
    depth = 0
    in_string = escaped = False
    for byte in raw:
        if in_string:
            if escaped:
                escaped = False
            elif byte == 0x5C:
                escaped = True
            elif byte == 0x22:
                in_string = False
        elif byte == 0x22:
            in_string = True
        elif byte in b"[{":
            depth += 1
            if depth > MAX_DEPTH:
                raise ValueError(f"JSON nested deeper than {MAX_DEPTH} levels")
        elif byte in b"]}":
            depth -= 1
