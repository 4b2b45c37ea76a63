"""Pins files: answers that were frozen, one for each problem, in JSON that people read and edit."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from tunewise.decision import Problem
from tunewise.decision.regular import open_regular
from tunewise.errors import InvalidFile, InvalidProblem

FORMAT, VERSION = "tunewise-pins", 1
MAX_BYTES = 16 << 20

Scalar = bool | int | float | str | None
Value = Scalar | tuple[Scalar, ...]


class PinnedAnswer(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One answer: the config for exactly this problem, on the device named; `source` is for people."""

    decision: str
    problem: dict[str, int | float | str]
    config: dict[str, Value]
    device: dict[str, Scalar] = {}  # parts of the environment that must be equal; empty: anywhere
    source: str = ""

    def why_elsewhere(self, facts: Mapping[str, object]) -> str | None:
        """Return in words why it does not count where these facts hold, or None if it does."""
        for name, value in self.device.items():
            if facts.get(name) != value:
                return f"is for {name} {value!r}, and here it is {facts.get(name)!r}"
        return None


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    format: str
    version: int
    pins: list[PinnedAnswer]


_DECODER = msgspec.json.Decoder(_File)


def encode(pins: Sequence[PinnedAnswer]) -> bytes:
    """Return pins as a file: indented, in the order given."""
    raw = msgspec.json.encode(_File(FORMAT, VERSION, list(pins)))
    return msgspec.json.format(raw, indent=2) + b"\n"


def read(path: Path | str) -> tuple[PinnedAnswer, ...]:
    """Return the pins of a file, in its order; raises InvalidFile where it cannot be read or is no pins file."""
    try:
        with open_regular(path) as file:
            raw = file.read(MAX_BYTES + 1)
    except (OSError, ValueError) as error:  # a ValueError is a name with a zero byte in it
        raise InvalidFile(f"{path} cannot be read: {getattr(error, 'strerror', None) or error}") from None
    if len(raw) > MAX_BYTES:
        raise InvalidFile(f"{path} is longer than the {MAX_BYTES} bytes that a pins file may have")
    return _parsed(raw, path)


def _parsed(raw: bytes, path: Path | str) -> tuple[PinnedAnswer, ...]:
    try:
        found = _DECODER.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InvalidFile(f"{path} is not a pins file: {error}; make one with: tunewise pin > {path}") from None
    if (found.format, found.version) != (FORMAT, VERSION):
        told = f"{found.format!r} version {found.version}"
        raise InvalidFile(f"{path} is {told}, not {FORMAT!r} version {VERSION}: make it anew with: tunewise pin")
    for pin in found.pins:
        _check(pin, path)
    return tuple(found.pins)


def _check(pin: PinnedAnswer, path: Path | str) -> None:
    try:
        Problem(pin.problem)
    except InvalidProblem as error:
        raise InvalidFile(f"{path}: a pin of {pin.decision} is for no problem: {error}") from None


def facts_of_device(must: Mapping[str, Any]) -> dict[str, Scalar]:
    """Return the parts of an environment that say which device it is."""
    return {name: must[name] for name in ("hardware.kind", "hardware.name", "hardware.capability") if name in must}
