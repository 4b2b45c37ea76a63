"""Files that cost far more than they weigh, by name: each is made when asked for."""

import gzip
import io
from collections.abc import Callable

MIB = 1 << 20


def packed(begin: bytes, part: bytes, end: bytes = b"", *, mib: int = 64) -> bytes:
    """Return a gzip file that repeats a part until it holds so many mebibytes."""
    raw = io.BytesIO()
    block = part * max(1, MIB // len(part))
    with gzip.GzipFile(fileobj=raw, mode="wb", compresslevel=9) as file:
        file.write(begin)
        for _ in range(mib - 1):
            file.write(block)
        file.write(end)
    return raw.getvalue()


def many(begin: bytes, part: bytes, end: bytes = b"", *, mib: int = 24) -> bytes:
    """Return a plain file that repeats a part until it holds so many mebibytes."""
    return begin + part * (mib * MIB // len(part)) + end


def numbered(begin: bytes, part: str, end: bytes, count: int) -> bytes:
    """Return a plain file of parts that are all different."""
    return begin + ",".join(part % number for number in range(count)).encode() + end


def _head(field: str) -> bytes:
    return b'{"%s":[' % field.encode()


JSON: dict[str, Callable[[], bytes]] = {
    "deep arrays, gzip": lambda: packed(b'{"cache":', b"[", mib=256),
    "deep objects, gzip": lambda: packed(b'{"cache":', b'{"a":'),
    "deep arrays that end, gzip": lambda: packed(b'{"cache":' + b"[" * 1_000, b" ", b"]" * 1_000 + b"}"),
    "empty arrays, gzip": lambda: packed(_head("cache"), b"[],", b"[]]}"),
    "empty arrays, torn, gzip": lambda: packed(_head("results"), b"[],"),
    "empty objects, gzip": lambda: packed(_head("results"), b"{},", b"{}]}"),
    "numbers, gzip": lambda: packed(_head("cache"), b"1,", b"1]}"),
    "numbers as a field nobody knows, gzip": lambda: packed(b'{"cache":{},"metadata":{"a":[', b"1,", b"1]}}"),
    "empty words, gzip": lambda: packed(_head("cache"), b'"",', b'""]}'),
    "words without commas, gzip": lambda: packed(_head("cache"), b'""'),
    "backslashes, gzip": lambda: packed(b'{"cache":"', b"\\"),
    "NaN, gzip": lambda: packed(_head("cache"), b"NaN,", b"NaN]}"),
    "spaces, gzip": lambda: packed(b"{", b" ", b"}"),
    "one long word, gzip": lambda: packed(b'{"cache":"', b"a", b'"}'),
    "one huge number, gzip": lambda: packed(b'{"cache":', b"1", b"}"),
    "one huge fraction, gzip": lambda: packed(b'{"cache":0.', b"1", b"}"),
    "fields, gzip": lambda: gzip.compress(numbered(b'{"cache":{"a":1},', '"%d":{"a":[]}', b"}", 700_000), mtime=0),
    "one key, many times, gzip": lambda: packed(b'{"cache":{"a":1},', b'"cache":{"a":1},', b'"cache":{}}'),
    "zeros, gzip": lambda: packed(b"", b"\0"),
    "new lines, gzip": lambda: packed(b"{}", b"\n"),
    "gzip in gzip": lambda: gzip.compress(packed(_head("cache"), b"[],")),
    "empty members": lambda: gzip.compress(b"{", mtime=0) + gzip.compress(b"", mtime=0) * 400_000,
    "small members": lambda: gzip.compress(b'{"cache":[', mtime=0) + gzip.compress(b"[]," * 9_000, mtime=0) * 9_000,
    "deep arrays": lambda: many(b'{"cache":', b"["),
    "deep objects in NaN": lambda: many(b'{"cache":NaN,"a":', b'{"a":'),
    "empty arrays": lambda: many(_head("cache"), b"[],", b"[]]}"),
    "empty arrays, torn": lambda: many(_head("cache"), b"[],"),
    "empty objects": lambda: many(b'{"cache":{"a":[', b"{},", b"{}]}}"),
    "numbers": lambda: many(b'{"cache":{"a":{"b":[', b"1,", b"1]}}}"),
    "empty words": lambda: many(b'{"cache":{"a":{"b":[', b'"",', b'""]}}}'),
    "words, torn": lambda: many(b'{"cache":{"a":{"b":[', b'"",'),
    "words without commas": lambda: many(_head("cache"), b'""'),
    "closing, gzip": lambda: packed(b'{"cache":', b"]"),
    "colons": lambda: many(b'{"cache":', b":"),
    "closing brackets": lambda: many(b'{"cache":', b"]"),
    "one huge number": lambda: many(b'{"cache":', b"1", b"}"),
    "many keys": lambda: numbered(b'{"cache":{"a":{', '"%d":0', b"}}}", 1_000_000),
    "many records": lambda: numbered(b'{"cache":{', '"%d":{}', b"}}", 1_000_000),
    "many fields at the top": lambda: numbered(b'{"cache":{},', '"%d":[[]]', b"}", 1_000_000),
    "many lines": lambda: many(b"", b'{"event":"x"}\n'),
    "a line of empty arrays": lambda: many(b'{"event":[', b"[],", b"[]]}\n"),
}
TABLES: dict[str, Callable[[], bytes]] = {
    "commas, gzip": lambda: packed(b"", b","),
    "one line, gzip": lambda: packed(b"f_m,", b"a"),
    "columns, gzip": lambda: packed(b"f_m,", b"a,", b"choice,t0\n"),
    "quotes, gzip": lambda: packed(b'f_m,choice,t0\n1,a,"', b'""'),
    "rows, gzip": lambda: packed(b"f_m,choice,t0\n", b"\n"),
    "torn rows, gzip": lambda: packed(b"f_m,choice,t0\n", b"1\n"),
    "commas": lambda: many(b"", b","),
    "cells": lambda: many(b"f_m,choice,t0\n", b"1234,"),
}
MSGPACK: dict[str, Callable[[], bytes]] = {
    "empty arrays, msgpack": lambda: _diode(b"\x81\xa1a\xdd" + (16 * MIB).to_bytes(4, "big") + b"\x90" * (16 * MIB)),
    "empty maps, msgpack": lambda: _diode(b"\x81\xa1a\xdd" + (16 * MIB).to_bytes(4, "big") + b"\x80" * (16 * MIB)),
    "claims of length, msgpack": lambda: _diode(b"\x81\xa1a\xdd\xff\xff\xff\xff" * 1_000),
    "deep arrays, msgpack": lambda: _diode(b"\x81\xa1a" + b"\x91" * (16 * MIB)),
    "keys, msgpack": lambda: _diode(b"\xdf" + (4 * MIB).to_bytes(4, "big") + _keys(4 * MIB)),
}


def _diode(config: bytes) -> bytes:
    operation = b"\x81\xa9operation\x81\xa2mm\x81\xa8solution\x81\xa1s\x81\xadtimed_configs\x91\x81\xa6config"
    return b"\x81\xa8hardware\x81\xa1h" + operation + config


def _keys(count: int) -> bytes:
    return b"".join(b"\xa4" + b"%04x" % (number & 0xFFFF) + b"\xc0" for number in range(count))
