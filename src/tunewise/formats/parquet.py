"""Parquet files as data sets and back: columns named as in our CSV files, samples as a list a row."""

from pathlib import Path
from typing import Any

from tunewise.errors import InvalidFile
from tunewise.formats.arrow import JSON_MARK, Sheet, arrow_library
from tunewise.formats.delimited import MAX_COLUMNS
from tunewise.formats.layout import Layout, Naming, layout
from tunewise.formats.malformed import Faults, Loaded, Places
from tunewise.formats.tabular import data_of

MAGIC = b"PAR1"
_MAX_ROWS, _MAX_CELLS, _MAX_BYTES = 100_000_000, 4_000_000_000, 16 << 30
# A file that repeats one value says little and fills the memory; a row of times takes some bytes even when packed.
_ANY_ROWS, _MAX_ROWS_A_BYTE = 1_000_000, 4
_ANY_BYTES, _MAX_RATIO = 64 << 20, 100


def is_parquet(head: bytes) -> bool:
    """Return whether a file begins like a Parquet one."""
    return head.startswith(MAGIC)


def read(path: Path, naming: Naming) -> Loaded:
    """Return the data of a Parquet file; raises InvalidFile where it is none, or far too large."""
    arrow = arrow_library()
    from pyarrow import parquet

    try:
        with parquet.ParquetFile(path) as file:
            _check_size(path, file.metadata)
            told = layout(file.schema_arrow.names, naming, str(path))
            _check_kinds(path, file.schema_arrow, told)
            words = [name for name in told.columns if _is_word(file.schema_arrow.field(name).type)]
        with parquet.ParquetFile(path, read_dictionary=words) as file:  # rows share the words they have
            table = file.read(columns=list(told.columns))
    except (arrow.ArrowException, OSError, UnicodeDecodeError) as error:
        raise InvalidFile(f"{path} is not a sound Parquet file: {str(error).splitlines()[0]}") from None
    marked = frozenset(name for name in told.columns if table.schema.field(name).metadata == JSON_MARK)
    sheet = Sheet({name: table.column(name) for name in told.columns}, table.num_rows, is_typed=True, json=marked)
    del table
    try:
        data, faults = data_of(sheet, told, str(path))
    except (arrow.ArrowException, UnicodeDecodeError) as error:
        way = "write times as numbers (double), or as one column of lists"
        raise InvalidFile(f"{path} holds columns of a kind we cannot use: {error}; {way}") from None
    return Loaded(data, int(faults.bad.sum()), lambda: _places(faults))


def write(table: Any, path: Path) -> None:
    """Write an arrow table."""
    from pyarrow import parquet

    parquet.write_table(table, path, compression="zstd")


def _check_size(path: Path, metadata: Any) -> None:
    unpacked = sum(metadata.row_group(number).total_byte_size for number in range(metadata.num_row_groups))
    cells = metadata.num_rows * metadata.num_columns  # asking columns for more ends the process where they are damaged
    if metadata.num_rows > _MAX_ROWS or cells > _MAX_CELLS or unpacked > _MAX_BYTES:
        raise InvalidFile(
            f"{path} holds {metadata.num_rows} rows of {cells} cells; at most {_MAX_ROWS} rows, {_MAX_CELLS} cells and "
            f"{_MAX_BYTES >> 30} GiB are read at once: cut it into smaller files"
        )
    size = path.stat().st_size
    if metadata.num_rows > _ANY_ROWS + _MAX_ROWS_A_BYTE * size or unpacked > max(_ANY_BYTES, _MAX_RATIO * size):
        raise InvalidFile(
            f"{path} unpacks to far more than a file of {size} bytes may; write it without compression and dictionaries"
        )
    if metadata.num_columns > MAX_COLUMNS:
        raise InvalidFile(f"{path} has {metadata.num_columns} columns; at most {MAX_COLUMNS} are read")


def _check_kinds(path: Path, schema: Any, told: Layout) -> None:
    """Raise InvalidFile for a feature or parameter whose values are no numbers, switches or words."""
    for name in (*told.features.values(), *told.params.values()):
        kind = schema.field(name).type
        if not _is_scalar(kind):
            raise InvalidFile(
                f"{path} holds {kind} in its column {name}; write it as numbers (double) or words (string)"
            )


def _is_scalar(kind: Any) -> bool:
    types = arrow_library().types
    if types.is_dictionary(kind):
        return _is_scalar(kind.value_type)
    is_number = types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind)
    return bool(is_number or types.is_null(kind) or str(kind) in ("string", "large_string", "string_view"))


def _is_word(kind: Any) -> bool:
    return str(kind) in ("string", "large_string")


def _places(faults: Faults) -> Places:
    return [(row + 1, reason) for row, reason in faults.reasons.items()]
