"""Data sets from files and into files: whose format it is shows in what a file holds, not in what it is called."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal, get_args

from tunewise.decision import Config, canonical
from tunewise.decision.regular import open_regular
from tunewise.errors import InvalidData, InvalidFile, NotFound
from tunewise.formats import autoheuristic, delimited, diode, diode_data, exported, parquet, sheets, trials
from tunewise.formats.dataset import DataSet
from tunewise.formats.layout import Naming
from tunewise.formats.malformed import Loaded, sound
from tunewise.formats.merging import merge
from tunewise.formats.torn import Content, unpacked_head
from tunewise.formats.writing import replaced

Format = Literal["parquet", "csv", "autoheuristic", "diode", "diode-msgpack"]
FORMATS: tuple[Format, ...] = get_args(Format)
_SUFFIXES: dict[str, Format] = {
    ".parquet": "parquet",
    ".csv": "csv",
    ".txt": "autoheuristic",
    ".log": "autoheuristic",
    ".json": "diode",
    ".msgpack": "diode-msgpack",
}
_HEAD_BYTES = 1 << 20


def read(
    paths: Sequence[Path | str],
    *,
    decision: str | None = None,
    default: str | Config | None = None,
    naming: Naming | None = None,
    is_strict: bool = False,
) -> DataSet:
    """Return the data of some files as one data set, in seconds.

    Read are our exports, AutoHeuristic logs, diode's data sets, CSV and Parquet; `naming` says which columns are what
    where a header does not. `decision` picks one from a file of several, and names what the files hold. `default` is
    the config that the decision falls back to, where the data does not tell: a config, its one value, or `a=1,b=2`.
    Malformed rows are skipped and counted in `notes`; with `is_strict` they raise InvalidFile, by line. Raises
    InvalidData for files that do not fit together, NotFound and InvalidFile for those that cannot be read.
    """
    if not paths:
        raise InvalidData("no file of measurements is named")
    parts = [_read(Path(path), decision, naming or Naming(), is_strict) for path in paths]
    own = [part.decision for part in parts if part.decision]
    name = decision or (own[0] if own else Path(paths[0]).name.split(".")[0] or "data")
    if decision is None and len(set(own)) > 1:
        raise InvalidData(f"the files are about {', '.join(sorted(set(own)))}; give those of one decision")
    data = merge([replace(part, decision=name) for part in parts])
    return data if default is None else with_default(data, default)


def _read(path: Path, decision: str | None, naming: Naming, is_strict: bool) -> DataSet:
    return sound(_reader(path, decision, naming)(path), str(path), is_strict)


def _reader(path: Path, decision: str | None, naming: Naming) -> Callable[[Path], Loaded]:
    """Return what reads a file, by how the file begins."""
    head = _head(path)
    if parquet.is_parquet(head):
        return lambda file: parquet.read(file, naming)
    known = _known(path, head, decision)
    if known is not None and naming != Naming():
        raise InvalidData(f"{path} is {known[0]}, whose columns and unit are known; name none")
    if known is not None:
        return known[1]
    if head.lstrip()[:1] in (b"{", b"["):
        raise InvalidFile(f"{path} is JSON, and neither an export of ours nor an AutoHeuristic log or diode data set")
    return lambda file: delimited.read_data(file, naming)


def _known(path: Path, head: bytes, decision: str | None) -> tuple[str, Callable[[Path], Loaded]] | None:
    """Return what people call a file that tells its columns itself, and what reads it; None for a table."""
    if exported.is_export(Content(path, head)):
        return "an export", lambda file: trials.read(file, decision)
    if autoheuristic.is_log(head):
        return "a log", autoheuristic.read
    if diode.looks_like(head):
        return "a diode data set", lambda file: diode_data.read(file, decision)
    return None


def _head(path: Path) -> bytes:
    try:
        with open_regular(path) as stream:
            head = stream.read(_HEAD_BYTES)
    except FileNotFoundError:
        raise NotFound(f"there is no file {path}") from None
    except IsADirectoryError:
        raise InvalidFile(f"{path} is a directory; name the files in it") from None
    except (OSError, ValueError) as error:
        raise InvalidFile(f"{path} cannot be read: {getattr(error, 'strerror', None) or error}") from None
    if not head.strip():
        raise InvalidFile(f"{path} is empty")
    return unpacked_head(head)


def with_default(data: DataSet, default: str | Config) -> DataSet:
    """Return the data with another default: a config, the value of configs with one parameter, or `a=1,b=2`.

    Of several parameters it is enough to name those that tell the default from all other configs. Raises InvalidData
    where not exactly one config fits.
    """
    if not isinstance(default, str):
        return data.with_default(default)
    wanted = _pairs(default)
    fits = [config for config in data.configs if _is_named(config, default, wanted)]
    if len(fits) == 1:
        return data.with_default(fits[0])
    trouble = f"is {len(fits) or 'none'} of the {len(data.configs)} configs"
    shown = ", ".join(canonical.encode(dict(config)) for config in data.configs[:3])
    raise InvalidData(f"{data.decision}: the default {default!r} {trouble}, such as {shown}; name exactly one")


def _is_named(config: Config, word: str, wanted: dict[str, str]) -> bool:
    if len(config) == 1 and word in _spellings(next(iter(config.values()))):
        return True
    return bool(wanted) and all(name in config and word in _spellings(config[name]) for name, word in wanted.items())


def _spellings(value: object) -> tuple[str, ...]:
    """Return how people may write a value: True is `True` and `true`, 8 is `8`."""
    return (value,) if isinstance(value, str) else (canonical.encode(value), str(value))


def _pairs(text: str) -> dict[str, str]:
    """Return `a=1,b=2` as a mapping; empty where the text is something else."""
    parts = [part.partition("=") for part in text.split(",")]
    if not all(name.strip() and sign for name, sign, _ in parts):
        return {}
    return {name.strip(): value.strip() for name, _, value in parts}


def format_of(path: Path) -> Format:
    """Return the format a file is written in by its name: .parquet, .csv, a log for .txt, diode's for .json."""
    found = _SUFFIXES.get(path.suffix)
    if found is None:
        raise InvalidFile(f"{path} does not tell its format by its name; end it in one of {', '.join(_SUFFIXES)}")
    return found


def fields(data: DataSet, kind: Format) -> dict[str, str]:
    """Return the fields a file of some format would hold, each with what it says: all that leaves the machine."""
    if kind == "autoheuristic":
        return autoheuristic.fields(data)
    if kind in ("diode", "diode-msgpack"):
        return diode_data.fields(data)
    return sheets.fields(data, is_listed=kind == "parquet")


def write(data: DataSet, path: Path | str, kind: Format | None = None) -> None:
    """Write a data set to a file, whole or not at all, replacing an older one; what was read back equals it.

    In a log a config is one word, and comes back as one. Raises InvalidFile where the file cannot be written, and
    InvalidData where a log could not hold the data.
    """
    target = Path(path)
    kind = kind or format_of(target)
    with replaced(target) as part:
        _write(data, part, kind)


def _write(data: DataSet, path: Path, kind: Format) -> None:
    if kind == "parquet":
        parquet.write(sheets.table_of(data, is_listed=True), path)
    elif kind == "csv":
        delimited.write(sheets.table_of(data, is_listed=False), path)
    elif kind == "autoheuristic":
        path.write_text(autoheuristic.text_of(data), encoding="utf-8")
    else:
        path.write_bytes(diode_data.bytes_of(data, kind))
