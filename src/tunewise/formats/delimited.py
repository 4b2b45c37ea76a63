"""CSV files as sheets of arrow columns: every cell by its spelling, samples as doubles, torn rows set aside."""

import codecs
import csv
import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tunewise.decision.regular import open_regular
from tunewise.errors import InvalidFile
from tunewise.formats.arrow import JSON_MARK, Sheet, arrow_library
from tunewise.formats.dataset import DataSet
from tunewise.formats.layout import Naming, layout
from tunewise.formats.malformed import Faults, Loaded, Places
from tunewise.formats.tabular import data_of
from tunewise.formats.torn import load

MAX_COLUMNS = 20_000
_MAX_BYTES = 16 << 30
_MAX_HEADER = 4 << 20  # characters
_MAX_MENDED = 1 << 30  # of a file with bytes that are no text
MAX_TORN = 1_000_000  # beyond that a file is no table
_GZIP = b"\x1f\x8b"
_BLOCK_BYTES = 4 << 20
_JSON = ":json"  # after the name of a column whose cells are JSON, since the kinds of its values show in no other way


@dataclass(frozen=True, eq=False)
class Source:
    """A CSV text in a file: where it is, and how many lines come before its header."""

    path: Path
    skip: int = 0
    content: bytes | None = None  # where it is not the file's own: unpacked, or mended

    def lines(self, limit: int = -1) -> Iterator[str]:
        """Yield the lines of the table as text, the header first, one longer than `limit` in pieces."""
        with io.TextIOWrapper(self._stream(), "utf-8-sig", "replace", newline="") as text:
            for number, line in enumerate(iter(lambda: text.readline(limit), "")):
                if number >= self.skip:
                    yield line

    def _stream(self) -> Any:
        return io.BytesIO(self.content) if self.content is not None else open_regular(self.path)

    @property
    def readable(self) -> Any:
        """What pyarrow reads: a path, or bytes in memory."""
        return str(self.path) if self.content is None else arrow_library().BufferReader(self.content)


@dataclass(eq=False)
class Torn:
    """The texts of rows that have too few or too many cells."""

    texts: list[str] = field(default_factory=list)

    def __call__(self, row: Any) -> str:
        """Keep the row's text and tell pyarrow to go on."""
        if len(self.texts) >= MAX_TORN:
            return "error"
        self.texts.append(row.text or "")
        return "skip"


def source(path: Path) -> Source:
    """Return a CSV file, unpacked if it is a gzip one; bytes that are no text are marked as such."""
    if path.stat().st_size > _MAX_BYTES:
        raise InvalidFile(f"{path} holds more than {_MAX_BYTES >> 30} GiB; cut it into smaller files")
    with open_regular(path) as stream:
        is_gzip = stream.read(2) == _GZIP
    content = load(path).raw if is_gzip else None
    if content is None:
        if _is_text(path):
            return Source(path)
        content = load(path, _MAX_MENDED).raw
    return Source(path, content=content.decode(errors="replace").encode())


def _is_text(path: Path) -> bool:
    decoder = codecs.getincrementaldecoder("utf-8")()
    try:
        with open_regular(path) as stream:
            while block := stream.read(_BLOCK_BYTES):
                decoder.decode(block)
        decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        return False
    return True


def header(found: Source) -> list[str]:
    """Return the names in the first line of a table; raises InvalidFile where there is none."""
    try:
        names = next(csv.reader(_short(found)), [])
    except csv.Error as error:
        raise InvalidFile(f"{found.path} is no table: {error}") from None
    if not any(names) or len(names) > MAX_COLUMNS:
        raise InvalidFile(f"{found.path} has no header of names such as f_m,choice,t0")
    return names


def _short(found: Source) -> Iterator[str]:
    for line in found.lines(_MAX_HEADER):
        if len(line) >= _MAX_HEADER:
            raise InvalidFile(f"{found.path} is no table: a line of it has {_MAX_HEADER} characters or more")
        yield line


def read(found: Source, wanted: Sequence[str], samples: Sequence[str]) -> tuple[Sheet, Torn]:
    """Return the columns wanted and the rows that are torn; samples are doubles unless one of them is no number."""
    arrow = arrow_library()
    try:
        return _read(found, wanted, samples)
    except arrow.ArrowInvalid:  # one bad cell somewhere: read words, and find it later
        pass
    try:
        return _read(found, wanted, ())
    except arrow.ArrowInvalid as error:
        raise InvalidFile(f"{found.path} is no table: {error}") from None


def _read(found: Source, wanted: Sequence[str], doubles: Sequence[str]) -> tuple[Sheet, Torn]:
    arrow = arrow_library()
    from pyarrow import csv as arrow_csv

    torn = Torn()
    words = arrow.dictionary(arrow.int32(), arrow.string())
    kinds = {name: arrow.float64() if name in doubles else words for name in wanted}
    table = arrow_csv.read_csv(
        found.readable,
        read_options=arrow_csv.ReadOptions(skip_rows=found.skip, block_size=_BLOCK_BYTES),
        parse_options=arrow_csv.ParseOptions(newlines_in_values=True, invalid_row_handler=torn),
        convert_options=arrow_csv.ConvertOptions(column_types=kinds, include_columns=list(wanted)),
    )
    return Sheet({name: table.column(name) for name in wanted}, table.num_rows), torn


def read_data(path: Path, naming: Naming) -> Loaded:
    """Return the data of a CSV file, long or wide."""
    found = source(path)
    names = header(found)
    told = layout([name.removesuffix(_JSON) for name in names], naming, str(path))
    column = {name.removesuffix(_JSON): name for name in names}
    sheet, torn = read(found, [column[name] for name in told.columns], [column[name] for name in told.all_samples])
    sheet = Sheet(
        {name: sheet.columns[column[name]] for name in told.columns},
        sheet.count,
        json=frozenset(name for name in told.columns if column[name].endswith(_JSON)),
    )
    data, faults = data_of(sheet, told, str(path))
    return loaded(data, faults, torn.texts, found)


def write(table: Any, path: Path) -> None:
    """Write an arrow table; cells are quoted where they need it, and columns of JSON marked in the header."""
    arrow_library()
    from pyarrow import csv as arrow_csv

    names = [field.name + _JSON if field.metadata == JSON_MARK else field.name for field in table.schema]
    arrow_csv.write_csv(table.rename_columns(names), path, arrow_csv.WriteOptions(quoting_style="needed"))


def loaded(data: DataSet, faults: Faults, torn: Sequence[str], found: Source) -> Loaded:
    """Return the data of a table with what is wrong with its other rows."""
    return Loaded(data, int(faults.bad.sum()) + len(torn), lambda: _places(found, faults, torn))


def _places(found: Source, faults: Faults, torn: Sequence[str]) -> Places:
    """Return the lines of malformed rows: those that are torn for good, and those whose cells make no sense."""
    width = len(header(found))
    lost = {tuple(next(csv.reader([text]), [])) for text in torn}
    named: list[tuple[int, str]] = []
    row = 0
    for line, cells in _numbered(found):
        if len(cells) == width:
            if row in faults.reasons:
                named.append((line, faults.reasons[row]))
            row += 1
        elif tuple(cells) in lost:
            named.append((line, f"{len(cells)} cells, and the header has {width}"))
    return named


def _numbered(found: Source) -> Iterator[tuple[int, list[str]]]:
    """Yield the rows below the header with the number of the line on which each begins."""
    rows = csv.reader(found.lines())
    next(rows, None)
    begins = rows.line_num + 1
    for cells in rows:
        if cells:
            yield begins + found.skip, cells
        begins = rows.line_num + 1
