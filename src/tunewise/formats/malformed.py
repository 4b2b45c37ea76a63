"""Rows that cannot be used: how many there are, what is wrong with them, and where they stand."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from tunewise.errors import InvalidFile
from tunewise.formats.dataset import DataSet, Flags, Numbers

_KEPT = 50  # rows remembered for each thing that is wrong
_SHOWN = 5  # rows named in an error

Places = Sequence[tuple[int, str]]  # line or row number, and what is wrong there


@dataclass(eq=False)
class Faults:
    """Rows that cannot be used, and for the first ones what is wrong with them."""

    bad: Flags
    reasons: dict[int, str] = field(default_factory=dict)

    def add(self, rows: Flags, reason: str) -> None:
        """Note that some rows have a fault; a row that has one already keeps it."""
        new = rows & ~self.bad
        if new.any():
            self.bad |= new
            self.reasons.update(dict.fromkeys(np.flatnonzero(new)[:_KEPT].tolist(), reason))

    @property
    def kept(self) -> Numbers | None:
        """The rows without a fault; None where that is all of them."""
        return np.flatnonzero(~self.bad) if self.bad.any() else None


@dataclass(frozen=True, eq=False)
class Loaded:
    """The data of one file, and how many of its rows were malformed; `places` finds them, which may take a while."""

    data: DataSet
    malformed: int = 0
    places: Callable[[], Places] = tuple


def sound(loaded: Loaded, file: str, is_strict: bool) -> DataSet:
    """Return the data with its malformed rows noted; raises InvalidFile where nothing is left, or if it is strict."""
    if not loaded.malformed:
        if not len(loaded.data.rows):
            raise InvalidFile(f"{file} holds no measurement: no row of it has a time or a failure")
        return loaded.data
    if is_strict or not len(loaded.data.rows):
        raise InvalidFile(_sentence(loaded, file, is_strict))
    return replace(loaded.data, notes={**loaded.data.notes, "malformed": loaded.malformed})


def _sentence(loaded: Loaded, file: str, is_strict: bool) -> str:
    shown = [f"line {line}: {reason}" for line, reason in sorted(loaded.places())[:_SHOWN]]
    more = [f"and {loaded.malformed - len(shown)} more"] if loaded.malformed > len(shown) else []
    rows = "1 malformed row" if loaded.malformed == 1 else f"{loaded.malformed} malformed rows"
    way_out = "correct them, or skip them by not being strict" if is_strict else "no row of it can be used"
    return f"{file} has {rows}: {'; '.join([*shown, *more])}; {way_out}"
