"""Versions of libraries: which is installed, and whether it is within a range such as >=2.6,<2.14."""

import functools
import re
from importlib import metadata

from tunewise.errors import InvalidModel

_PART = re.compile(r"\s*(>=|<=|==|!=|<|>)\s*(\d{1,9}(?:\.\d{1,9}){0,5})\s*", re.ASCII)
_RELEASE = re.compile(r"\s*v?(\d{1,9}(?:\.\d{1,9}){0,5})", re.ASCII)
_LIBRARY = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,98}[A-Za-z0-9])?", re.ASCII)
_MOST_PARTS = 8

Numbers = tuple[int, ...]


def check_range(library: str, wanted: str) -> None:
    """Raise InvalidModel unless a library has a name and the range is one, such as >=2.6,<2.14."""
    if not _LIBRARY.fullmatch(library):
        raise InvalidModel(f"{library!r:.100} is not the name of a library, such as torch")
    _bounds(library, wanted)


def why_unfit(library: str, wanted: str) -> str | None:
    """Return why the installed version of a library is not within a range, or None if it is; nothing is imported."""
    here = installed(library)
    if here is None:
        return f"needs {library} {wanted}, which is not installed"
    if is_within(library, wanted, here):
        return None
    return f"needs {library} {wanted}, and here it is {here}"


@functools.cache
def installed(library: str) -> str | None:
    """Return the installed version of a library, or None where there is none."""
    try:
        return metadata.version(library)
    except (metadata.PackageNotFoundError, ValueError):
        return None


@functools.lru_cache(maxsize=256)
def is_within(library: str, wanted: str, version: str) -> bool:
    """Return whether a version is within a range; what follows its numbers, as in 2.13.0+cpu, does not count.

    A release to come, such as 2.14.0a0, counts as that release: what it was not made for, it may not answer in.
    """
    found = _RELEASE.match(version)
    return found is not None and all(
        _holds(sign, _numbers(found[1]), bound) for sign, bound in _bounds(library, wanted)
    )


def minor_range(version: str) -> str | None:
    """Return the range of all patches of a version, such as >=2.13,<2.14 of 2.13.0+cpu; None where it has no minor."""
    found = _RELEASE.match(version)
    numbers = _numbers(found[1]) if found else ()
    return f">={numbers[0]}.{numbers[1]},<{numbers[0]}.{numbers[1] + 1}" if len(numbers) > 1 else None


def _bounds(library: str, wanted: str) -> list[tuple[str, Numbers]]:
    parts = [_PART.fullmatch(part) for part in wanted.split(",", _MOST_PARTS)]
    if not all(parts) or len(parts) > _MOST_PARTS:
        raise InvalidModel(f"{library} {wanted!r:.100} is not a range of versions, such as >=2.6,<2.14")
    return [(part[1], _numbers(part[2])) for part in parts if part is not None]


def _numbers(text: str) -> Numbers:
    return tuple(int(number) for number in text.split("."))


def _holds(sign: str, version: Numbers, bound: Numbers) -> bool:
    width = max(len(version), len(bound))
    one, other = (numbers + (0,) * (width - len(numbers)) for numbers in (version, bound))
    return {
        ">=": one >= other,
        "<=": one <= other,
        "==": one == other,
        "!=": one != other,
        "<": one < other,
        ">": one > other,
    }[sign]
