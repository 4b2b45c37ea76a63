"""Kernel Tuner's cache files: every config of a kernel on a device, with its time or what went wrong."""

from collections.abc import Mapping
from typing import Any

import msgspec

from tunewise.decision import Failure, FailureKind
from tunewise.formats.recording import Recording, Row, Spelling, number, recording, timed, times
from tunewise.formats.torn import Content, decode

_MS = 1e-3
FAILED_MS = 1e20  # how versions before 0.4 wrote that a config failed
KINDS: Mapping[str, FailureKind] = {
    "InvalidConfig": "constraints",
    "CompilationFailedConfig": "compile",
    "RuntimeFailedConfig": "runtime",
}


class _Cache(msgspec.Struct, frozen=True):
    """The fields of a cache file that a recording needs."""

    cache: dict[str, dict[str, Any]]
    device_name: Any = ""
    kernel_name: Any = ""
    tune_params_keys: list[str] = []
    tune_params: dict[str, list[Any]] = {}


def read(content: Content, name: str) -> tuple[Recording, ...]:
    """Return the recording of a cache file; one that was left unclosed is read up to its last whole record."""
    found = decode(content, _Cache)
    names = found.tune_params_keys or list(found.tune_params)
    if not names:
        raise ValueError("it has no `tune_params_keys` that names its parameters")
    spellings = {n: Spelling(found.tune_params.get(n, ())) for n in names}
    rows = [_row(key, record, spellings) for key, record in found.cache.items()]
    return (
        recording(
            name,
            rows,
            order={n: spelling.listed for n, spelling in spellings.items() if spelling.listed},
            kernel=str(found.kernel_name or ""),
            device=str(found.device_name or ""),
            remark=f"the file ends early; {len(rows)} configs were read" if content.is_cut else "",
        ),
    )


def _row(key: str, record: Mapping[str, Any], spellings: Mapping[str, Spelling]) -> Row:
    try:
        config = {name: spelling(record[name]) for name, spelling in spellings.items()}
    except KeyError as missing:
        raise ValueError(f"the record {key!r} has no value of {missing}") from None
    time_ms = number(record.get("time"))
    if time_ms is None or time_ms >= FAILED_MS:
        word = str(record.get("__error__", record.get("time")))
        return Row(config, Failure(KINDS.get(word, "runtime"), word))
    compile_ms = number(record.get("compile_time"))
    outcome = timed(time_ms * _MS, None if compile_ms is None else compile_ms * _MS)
    return Row(config, outcome, times(record.get("times"), _MS))
