"""Rows of values between commas, as text that every reader takes for the same rows."""

import csv
import io
from collections.abc import Iterable, Sequence
from typing import Any


def rows_text(rows: Iterable[Sequence[Any]]) -> str:
    """Return rows as lines that end with a line feed; a value with a comma, a quote or any end of a line is quoted."""
    return "".join(map(_line, rows))


def _line(cells: Sequence[Any]) -> str:
    out = io.StringIO()
    # The writer quotes the ends of lines that it makes itself, and a bare carriage return is one to most readers.
    csv.writer(out, lineterminator="\r\n").writerow(cells)
    return out.getvalue().removesuffix("\r\n") + "\n"
