"""Columns as scikit-learn's trees are shown them: whole numbers, which are the same in single and double precision."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tunewise.formats.dataset import Floats

Flag = tuple[int, int | None]  # the number of a column, and the word whose presence it flags, if it is one of words


@dataclass(frozen=True)
class Coding:
    """How columns become codes: a flag for every word, and for a number its place among the values seen."""

    flags: tuple[Flag, ...]
    middles: Mapping[int, Floats]  # of a numeric column: half way between each two neighbours of the values seen

    def encode(self, columns: Sequence[Floats]) -> Floats:
        """Return the codes, a column for every flag."""
        return np.stack([self._codes(columns[number], number, word) for number, word in self.flags], axis=1)

    def threshold(self, flag: int, code: float) -> float:
        """Return the number up to which values have at most this code."""
        return float(self.middles[self.flags[flag][0]][int(np.floor(code))])

    def _codes(self, values: Floats, number: int, word: int | None) -> Floats:
        is_word = word is not None
        codes = values == word if is_word else np.searchsorted(self.middles[number], values, side="left")
        return np.asarray(codes, dtype=np.float64)


def coding(columns: Sequence[Floats], numbers: Sequence[int], words: Mapping[int, int]) -> Coding:
    """Return how the columns named in `numbers` are coded; `words` has the number of words of those that are words."""
    flags: list[Flag] = []
    middles = {}
    for number in numbers:
        if number in words:
            flags += [(number, word) for word in range(words[number])]
        else:
            flags.append((number, None))
            seen = np.unique(columns[number])
            middles[number] = seen[1:] / 2 + seen[:-1] / 2  # their sum may be beyond all doubles
    return Coding(tuple(flags), middles)
