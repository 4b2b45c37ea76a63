"""What every choice costs on every problem: the logarithm of its regret, also where it failed or was never tried."""

import numpy as np

from tunewise.errors import InvalidData
from tunewise.formats.dataset import TIMED, DataSet, Flags, Floats, Numbers, Rows

WORST = 1.5  # log regret: a choice that is five times too slow is no worse to take than one that is ten times too slow
FAILED = float(np.log(2))  # what a failure costs beyond the slowest that ran: where one alone ran, it must not be a tie


def with_times(data: DataSet) -> DataSet:
    """Return the problems on which something ran; raises InvalidData where there is none."""
    ran = np.isfinite(data.best_s)
    if not ran.any():
        raise InvalidData(
            f"{data.decision}: nothing ran on any of the {len(data)} problems; give data of some with times"
        )
    return data if ran.all() else data.take(ran)


def log_regrets(data: DataSet) -> Floats:
    """Return the logarithm of chosen / best, a row a problem, a column a config; infinite: failed, NaN: never tried."""
    with np.errstate(divide="ignore"):
        regrets: Floats = np.log(data.times_s) - np.log(data.best_s)[:, None]
    return regrets


def charged(data: DataSet) -> Floats:
    """Return the log regret that each choice is charged when a model is judged.

    What failed costs twice as much as the slowest that ran. What was never tried cannot be judged and is taken as what
    a program would do then: the default, or the slowest where there is none.
    """
    regrets = log_regrets(data)
    slowest = _slowest(regrets)
    fallback = slowest
    if data.default is not None:
        default = regrets[:, data.default]
        fallback = np.where(np.isnan(default), slowest, _or(default, slowest + FAILED))
    judged: Floats = np.where(np.isnan(regrets), fallback[:, None], regrets)
    return _or(judged, (slowest + FAILED)[:, None])


def expected(data: DataSet) -> Floats:
    """Return the log regret to learn from, by lower quartiles, with an estimate where a choice was never tried.

    A choice that is tried almost everywhere is missing for a reason (it does not apply), and is taken as the slowest
    there; one that is tried now and then was just not sampled, and is taken as what it usually costs. In no case is
    it taken as better than the default, or than the median of what was tried.
    """
    times = np.full((len(data), len(data.configs)), np.nan)
    times[data.rows.problem, data.rows.config] = np.where(data.rows.status == TIMED, quick_s(data.rows), np.inf)
    regrets = np.log(times) - np.log(np.nanmin(times, axis=1, keepdims=True))
    missing = np.isnan(regrets)
    slowest = _slowest(regrets)
    regrets = np.where(np.isinf(regrets), (slowest + FAILED)[:, None], regrets)
    if not missing.any():
        return regrets
    floor = np.nanmedian(regrets, axis=1)
    if data.default is not None:
        floor = np.fmax(floor, regrets[:, data.default])
    share = 1 - missing.mean(axis=0)
    guess = share * slowest[:, None] + (1 - share) * _usual(regrets, missing)
    filled: Floats = np.where(missing, np.maximum(guess, floor[:, None]), regrets)
    return filled


def quick_s(rows: Rows) -> Floats:
    """Return the lower quartile of every row's samples; NaN where it has none.

    Other programs spoil samples to the slow side, and on a busy machine more than half of a row's: the mean of the
    lower half then tells of the neighbours, and learning from it is learning noise.
    """
    counts = np.diff(rows.starts)
    return _ordered_s(rows, (counts - 1) // 4)


def fastest_s(rows: Rows) -> Floats:
    """Return the fastest sample of every row; NaN where it has none.

    Rare samples are too fast, so one alone is no judge. Whoever learns one law from thousands of rows does not mind
    these, and learns what a busy machine hid from all samples of a row but one.
    """
    return _ordered_s(rows, np.zeros(len(rows), dtype=np.int64))


def _ordered_s(rows: Rows, place: Numbers) -> Floats:
    """Return of every row the sample that so many are faster than; NaN where it has none."""
    counts = np.diff(rows.starts)
    owner = np.repeat(np.arange(len(counts)), counts)
    ordered = rows.samples_s[np.lexsort((rows.samples_s, owner))]
    found = np.full(len(counts), np.nan)
    has = counts > 0
    found[has] = ordered[(rows.starts[:-1] + place)[has]]
    return found


def _usual(regrets: Floats, missing: Flags) -> Floats:
    """Return what each choice costs on average where it was tried; one that never was is as bad as can be."""
    tried = (~missing).sum(axis=0)
    sums = np.where(missing, 0.0, regrets).sum(axis=0)
    usual: Floats = np.where(tried > 0, sums / np.maximum(tried, 1), np.nanmax(regrets))
    return usual


def _slowest(regrets: Floats) -> Floats:
    slowest: Floats = np.where(np.isfinite(regrets), regrets, 0.0).max(axis=1)
    return slowest


def _or(values: Floats, otherwise: Floats) -> Floats:
    chosen: Floats = np.where(np.isfinite(values), values, otherwise)
    return chosen
