"""Which question to ask next: the split of some problems after which the best choices of both sides cost least."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from tunewise.formats.dataset import Flags, Floats, Numbers

_MOST_BINS = 512  # thresholds that are looked at per column
_SPREAD = 0.03  # how much it counts that costs become more alike, besides that the best choice becomes cheaper
_LEAST_GAIN = 1e-9
_WEIGHT = -2  # in sums over rows, the place of their weight; costs are before it, and how many were measured after it


@dataclass(frozen=True)
class Sample:
    """Rows to ask about: their columns, what every choice costs there, and how much each row counts."""

    table: Floats
    words: Flags  # which columns hold words
    costs: Floats
    weights: Floats
    worth: Floats  # of each column, see Bins
    measured: int  # so many of the rows, the first ones, were measured: there is one on each side of a question


@dataclass(frozen=True)
class Question:
    """A split: rows whose column is up to the threshold, or is among the words, are on the low side."""

    column: int
    gain: float
    threshold: float = 0.0
    words: tuple[int, ...] = ()

    def low(self, rows: Floats) -> Flags:
        """Return which rows are on the low side."""
        values = rows[:, self.column]
        side: Flags = np.isin(values, self.words) if self.words else values <= self.threshold
        return side


@dataclass(frozen=True)
class Bins:
    """Every column cut into bins, numbered through: a row's bin in each, and what values the bins hold."""

    codes: NDArray[np.int32]
    starts: Numbers  # of each column, the number of its first bin; one more at the end
    least: Floats
    most: Floats
    words: Flags  # which columns hold words
    worth: Floats  # of each column: a question about it counts for so much of what it saves

    def sums(self, rows: Numbers, amounts: Floats) -> Floats:
        """Return the amounts (a row each, several columns) added up per bin."""
        codes = self.codes[rows].ravel()
        width, total = self.codes.shape[1], int(self.starts[-1])
        return np.stack(
            [np.bincount(codes, weights=np.repeat(column, width), minlength=total) for column in amounts.T], axis=1
        )


def bins(sample: Sample) -> Bins:
    """Return a sample cut into bins: one a value where values are few or the column holds words, else quantiles."""
    codes, starts, least, most = [], [0], [], []
    for column, is_word in zip(sample.table.T, sample.words, strict=True):
        distinct, place = np.unique(column, return_inverse=True)
        if len(distinct) > _MOST_BINS and not is_word:
            rank = np.searchsorted(np.sort(column), distinct)  # equal shares of the rows, not of the values
            bin_of = np.unique(rank * _MOST_BINS // len(column), return_inverse=True)[1]
            place = bin_of[place]
            cuts = np.flatnonzero(np.diff(bin_of)) + 1
            least.append(distinct[np.concatenate([[0], cuts])])
            most.append(distinct[np.concatenate([cuts - 1, [len(distinct) - 1]])])
        else:
            least.append(distinct)
            most.append(distinct)
        codes.append(place + starts[-1])
        starts.append(starts[-1] + len(least[-1]))
    return Bins(
        np.stack(codes, axis=1).astype(np.int32),
        np.array(starts, dtype=np.int64),
        np.concatenate(least),
        np.concatenate(most),
        sample.words,
        sample.worth,
    )


def ask(cut: Bins, sample: Sample, rows: Numbers, least_weight: float) -> Question | None:
    """Return the best question about some rows of a sample, or None where no question helps.

    Each side of the split keeps at least `least_weight`, and a row that was measured: nobody could say otherwise how
    well an answer does there.
    """
    weights = sample.weights[rows]
    weighed = np.column_stack([sample.costs[rows] * weights[:, None], weights, rows < sample.measured])
    sums = cut.sums(rows, weighed)
    total = weighed.sum(axis=0)
    best: Question | None = None
    for column in range(len(cut.starts) - 1):
        first, end = int(cut.starts[column]), int(cut.starts[column + 1])
        present = first + np.flatnonzero(sums[first:end, _WEIGHT] > 0)
        if len(present) > 1 and cut.worth[column] > 0:
            try_ = _word_question if cut.words[column] else _number_question
            found = try_(cut, column, present, sums[present], total, least_weight)
            found = replace(found, gain=found.gain * float(cut.worth[column]))
            if found.gain > (best.gain if best else _LEAST_GAIN):
                best = found
    return best


def short_between(low: float, high: float) -> float:
    """Return a number with few digits in [low, high), near the geometric middle of two sizes."""
    middle = sqrt(low) * sqrt(high) if low > 0 else (low + high) / 2
    for digits in range(1, 17):
        short = float(f"{middle:.{digits}g}")
        if low <= short < high:
            return short
    return low


def _number_question(
    cut: Bins, column: int, present: Numbers, sums: Floats, total: Floats, least_weight: float
) -> Question:
    gains = _gains(np.cumsum(sums, axis=0)[:-1], total, least_weight)
    place = int(gains.argmax())
    threshold = short_between(float(cut.most[present[place]]), float(cut.least[present[place + 1]]))
    return Question(column, float(gains[place]), threshold=threshold)


def _word_question(
    cut: Bins, column: int, present: Numbers, sums: Floats, total: Floats, least_weight: float
) -> Question:
    """Return the best of the subsets that come in order of some choice's cost, or along the main direction of all."""
    means = sums[:, :_WEIGHT] / sums[:, [_WEIGHT]] - total[:_WEIGHT] / total[_WEIGHT]
    main = np.linalg.svd(means * np.sqrt(sums[:, [_WEIGHT]]), full_matrices=False)[2][0]
    orders = [np.argsort(keys, kind="stable") for keys in (means @ main, *means.T)]
    gains = np.stack([_gains(np.cumsum(sums[order], axis=0)[:-1], total, least_weight) for order in orders])
    best, place = np.unravel_index(int(gains.argmax()), gains.shape)
    words = cut.least[present[orders[best][: place + 1]]].astype(int)
    return Question(column, float(gains[best, place]), words=tuple(sorted(words.tolist())))


def _gains(low: Floats, total: Floats, least_weight: float) -> Floats:
    """Return what each split saves, given what adds up on its low side: costs, weight, and rows that were measured."""
    high = total - low
    saved = total[:_WEIGHT].min() - low[:, :_WEIGHT].min(axis=1) - high[:, :_WEIGHT].min(axis=1)
    alike = _square(low) + _square(high) - _square(total[None])
    enough = (np.minimum(low, high)[:, _WEIGHT:] >= (least_weight, 1)).all(axis=1)
    gains: Floats = np.where(enough, saved + _SPREAD * alike, 0.0)
    return gains


def _square(sums: Floats) -> Floats:
    square: Floats = (sums[:, :_WEIGHT] ** 2).sum(axis=1) / np.maximum(sums[:, _WEIGHT], 1e-12)
    return square


def sides(question: Question, rows: Numbers, table: Floats) -> Sequence[Numbers]:
    """Return the rows on the low side and those on the high side."""
    low = question.low(table[rows])
    return rows[low], rows[~low]
