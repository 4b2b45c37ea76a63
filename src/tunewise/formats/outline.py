"""Whose JSON file it is: formats are told apart by the fields at their top, whatever the file is called."""

from collections.abc import Callable

import msgspec

from tunewise.formats.torn import Content, decode


class _Outline(msgspec.Struct, frozen=True):
    """Which of the fields that tell formats apart a JSON file has."""

    cache: msgspec.Raw = msgspec.Raw()
    results: msgspec.Raw = msgspec.Raw()
    configs_timings: msgspec.Raw = msgspec.Raw()
    config: msgspec.Raw = msgspec.Raw()
    configs: msgspec.Raw = msgspec.Raw()
    hardware: msgspec.Raw = msgspec.Raw()


def has(field: str) -> Callable[[Content], bool]:
    """Return a way to see whether a file is JSON with a field at its top."""
    assert field in _Outline.__struct_fields__

    def knows(content: Content) -> bool:
        try:
            outline = decode(content, _Outline)
        except ValueError:
            return False
        return bytes(getattr(outline, field)) != b""

    return knows
