"""Kernel sources: all the text that goes into one, and the `-D` parameters it is built with."""

import re
from collections.abc import Mapping
from pathlib import Path

from tunewise.errors import InvalidConfig, MissingPart

Define = int | str | bool

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}", re.ASCII)
_WORD = re.compile(r"[A-Za-z0-9_]{1,64}", re.ASCII)
_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*"([^"\n]+)"', re.MULTILINE)
_LABEL = re.compile(r"[\w.-]+")
_INT_LIMIT = 1 << 63


def options(defines: Mapping[str, Define]) -> list[str]:
    """Return the compiler options; nothing but plain words and whole numbers gets as far as a command line.

    Raises InvalidConfig for any other name or value.
    """
    found = []
    for name, value in defines.items():
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise InvalidConfig(f"define {name!r} is not a C identifier such as 'TILE_M'")
        is_number = isinstance(value, int) and -_INT_LIMIT <= value < _INT_LIMIT
        if not is_number and not (isinstance(value, str) and _WORD.fullmatch(value)):
            raise InvalidConfig(f"define {name}={value!r} is not a whole number, a bool or a plain word")
        found.append(f"-D{name}={int(value) if is_number else value}")
    return found


def texts(source: Path | str, language: str) -> list[str]:
    """Return a source, then every local header it includes, directly or through another.

    Raises MissingPart if the file cannot be read, and for a text that is rather the name of one.
    """
    if not isinstance(source, Path):
        if not any(sign in source for sign in "(#\n"):
            raise MissingPart(f"{source!r} is no {language} source; the name of a file is given as a pathlib.Path")
        return [source]
    try:
        found = {source.resolve(): source.read_text()}
    except (OSError, UnicodeDecodeError) as error:
        raise MissingPart(f"the {language} source {str(source)!r} cannot be read: {error}") from None
    _add_headers(source.resolve(), found)
    return list(found.values())


def labelled(text: str, name: str, otherwise: str) -> str:
    """Return a source whose compiler messages will carry the kernel's name instead of a temporary file's."""
    return f'#line 1 "{name if _LABEL.fullmatch(name) else otherwise}"\n{text}'


def _add_headers(file: Path, found: dict[Path, str]) -> None:
    for included in _INCLUDE.findall(found[file]):
        header = (file.parent / included).resolve()
        if header not in found and header.is_file():
            found[header] = header.read_text(errors="replace")
            _add_headers(header, found)
