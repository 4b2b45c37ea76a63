"""Arrow columns as ours: by distinct values, by distinct words, or as samples. pyarrow is imported here when needed."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from tunewise.decision import Scalar, canonical
from tunewise.errors import MissingPart
from tunewise.formats.cells import Coded, Codes, distinct, number, plain, spelled
from tunewise.formats.dataset import Flags, Floats, Numbers

JSON_MARK = {b"tunewise": b"json"}  # of a column whose values could not be told apart otherwise, each written as JSON


@dataclass(frozen=True, eq=False)
class Sheet:
    """A table as a file has it, before anything is known about its cells: arrow columns by name.

    The words of a file without types may spell numbers. Columns in `json` hold values of any kind, each as JSON.
    """

    columns: dict[str, Any]
    count: int
    is_typed: bool = False
    json: frozenset[str] = frozenset()

    def coded(self, name: str) -> Coded[Scalar]:
        """Return a column by its distinct values; words are read as the numbers or switches they all spell."""
        if name in self.json:
            column = self.words(name)
            return distinct(column.codes, [_parsed(word) for word in column.values])
        codes, values = _encoded(self.columns[name])
        if self.is_typed:
            return distinct(codes, plain(values))
        return distinct(codes, spelled(["" if value is None else value for value in values]))

    def tells_kinds(self, name: str) -> bool:
        """Return whether a column says of each value what kind it is."""
        return self.is_typed or name in self.json

    def words(self, name: str) -> Coded[str]:
        """Return a column by its distinct words, as they stand; a cell without a value is an empty word."""
        codes, values = _encoded(self.columns[name])
        return distinct(codes, ["" if value is None else str(value) for value in values])

    def floats(self, name: str) -> tuple[Floats, Flags]:
        """Return a column of samples as doubles, NaN where there is none, and where it holds what is no number."""
        arrow = arrow_library()
        column = self.columns[name]
        if arrow.types.is_integer(column.type) or arrow.types.is_floating(column.type):
            doubles = column.cast(arrow.float64()).to_numpy()
            return doubles, np.zeros(len(doubles), dtype=np.bool_)
        words = self.words(name)
        read = [_sample(word) for word in words.values]
        values = np.array([np.nan if value is None else value for value in read], dtype=np.float64)
        return values[words.codes], words.where([value is None for value in read])

    def drop(self, *names: str) -> None:
        """Let go of columns that are not needed any more: a large table would not fit twice."""
        for name in names:
            self.columns.pop(name, None)

    def is_listed(self, name: str) -> bool:
        """Return whether a column holds a list of samples a row."""
        types, kind = arrow_library().types, self.columns[name].type
        return bool(types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind))

    def lists(self, name: str) -> tuple[Floats, Numbers]:
        """Return the samples of a column of lists, and where those of each row start."""
        arrow = arrow_library()
        column = self.columns[name]
        if arrow.types.is_fixed_size_list(column.type):  # as arrays of numpy are written
            column = column.cast(arrow.list_(column.type.value_type))
        column = column.combine_chunks()
        if isinstance(column, arrow.ChunkedArray):
            column = column.chunk(0) if column.num_chunks else arrow.array([], column.type)
        counts = column.value_lengths().fill_null(0).to_numpy(zero_copy_only=False)
        starts = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        samples = column.flatten().cast(arrow.float64()).to_numpy(zero_copy_only=False)
        return samples, starts


def arrow_library() -> Any:
    """Return pyarrow; raises MissingPart, with the way to install it, where it is not there."""
    try:
        import pyarrow
    except ImportError:
        raise MissingPart("tables are read with pyarrow; run: pip install 'tunewise[learn]'") from None
    return pyarrow


def _encoded(column: Any) -> tuple[Codes, list[Any]]:
    """Return a column as numbers of its distinct values, one of which is None where cells are empty."""
    arrow = arrow_library()
    if not arrow.types.is_dictionary(column.type):
        column = column.dictionary_encode()
    column = column.unify_dictionaries().combine_chunks()
    if isinstance(column, arrow.ChunkedArray):
        if not column.num_chunks:
            return np.zeros(0, dtype=np.int32), []
        column = column.chunk(0)
    values = column.dictionary.to_pylist()
    indices = column.indices
    if indices.null_count:
        indices = indices.fill_null(len(values))
        values.append(None)
    return indices.to_numpy(zero_copy_only=False).astype(np.int32, copy=False), values


def _sample(word: str) -> float | None:
    """Return the time a word spells, NaN for none, and None for a word that is no time at all."""
    text = word.strip().lower()
    if text in ("", "nan", "none", "null"):
        return np.nan
    if text.lstrip("+") in ("inf", "infinity"):
        return np.inf
    value = number(text)
    return None if value is None else float(value)


def _parsed(word: str) -> Scalar:
    try:
        return plain([canonical.decode(word)])[0] if word else None
    except ValueError:
        return word
