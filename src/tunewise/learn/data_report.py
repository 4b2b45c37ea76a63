"""What a data set is worth before anything is learned from it: coverage, noise, headroom, and what its reader met."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from tunewise.decision import FAILURE_KINDS, Config
from tunewise.formats.dataset import TIMED, Column, DataSet, Floats, Numbers, Rows, lower_half_means

_ENOUGH = 500_000  # rows that tell the noise of all
_MOST_WORDS = 20  # of a categorical feature, listed; the rest is counted


@dataclass(frozen=True, slots=True)
class FeatureRange:
    """One feature over all problems: its bounds if it is a number, its first words if not."""

    name: str
    distinct: int
    low: float | None = None
    high: float | None = None
    words: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Headroom:
    """How much longer the default takes than the best config measured: ratios over the problems where both ran."""

    geomean: float
    p95: float
    max: float
    problems: int


@dataclass(frozen=True, slots=True)
class Winner:
    """A config, and on how many problems it is the fastest measured."""

    config: Config
    problems: int


@dataclass(frozen=True, slots=True)
class DataReport:
    """A data set in numbers.

    `coverage` is the share of problems x configs that was tried. `noise_floor` is the typical ratio of two estimates of
    one time, each from half of a row's samples: differences below it mean nothing; None where rows have one sample.
    """

    decision: str
    problems: int
    configs: int
    rows: int
    samples: int
    coverage: float
    failures: Mapping[str, int]  # by kind
    noise_floor: float | None
    default: Config | None
    headroom: Headroom | None  # None without a default that ran anywhere
    duplicates: int
    conflicts: int
    malformed: int
    notes: Mapping[str, int]
    features: tuple[FeatureRange, ...]
    devices: tuple[Mapping[str, Any], ...]
    winners: tuple[Winner, ...]  # most often best first
    fingerprint: str

    def to_json(self) -> dict[str, Any]:
        """Return the report as plain values."""
        return asdict(self)


def report_of(data: DataSet) -> DataReport:
    """Return the report of a data set; works on columns, however many rows there are."""
    rows = data.rows
    pairs = len(data) * len(data.configs)
    return DataReport(
        decision=data.decision,
        problems=len(data),
        configs=len(data.configs),
        rows=len(rows),
        samples=len(rows.samples_s),
        coverage=len(rows) / pairs if pairs else 0.0,
        failures=_failures(rows),
        noise_floor=noise_floor(rows),
        default=None if data.default is None else dict(data.configs[data.default]),
        headroom=_headroom(data),
        duplicates=data.notes.get("duplicates", 0),
        conflicts=data.notes.get("conflicts", 0),
        malformed=data.notes.get("malformed", 0),
        notes=dict(data.notes),
        features=tuple(_range(column) for column in data.features),
        devices=tuple(dict(facts) for facts in data.devices),
        winners=_winners(data),
        fingerprint=data.fingerprint,
    )


def noise_floor(rows: Rows) -> float | None:
    """Return the geometric mean, over rows, of the larger over the smaller of two half-sample estimates.

    The halves are every other sample, so that a machine that slows down meanwhile slows both. None where no row has
    two samples.
    """
    several = np.flatnonzero((np.diff(rows.starts) >= 2) & (rows.status == TIMED))
    chosen = rows.take(several[:: len(several) // _ENOUGH + 1])
    if not len(chosen):
        return None
    one, other = _half(chosen, 0), _half(chosen, 1)
    return float(np.exp(np.mean(np.abs(np.log(one / other)))))


def _half(rows: Rows, parity: int) -> Floats:
    counts = np.diff(rows.starts)
    place = np.arange(len(rows.samples_s)) - np.repeat(rows.starts[:-1], counts)
    halves = (counts + 1 - parity) // 2
    starts = np.concatenate([[0], np.cumsum(halves)]).astype(np.int64)
    return lower_half_means(rows.samples_s[place % 2 == parity], starts)


def _failures(rows: Rows) -> dict[str, int]:
    counts = np.bincount(rows.status, minlength=len(FAILURE_KINDS) + 1)[1:].tolist()
    return {kind: count for kind, count in zip(FAILURE_KINDS, counts, strict=True) if count}


def _headroom(data: DataSet) -> Headroom | None:
    if data.default is None:
        return None
    rows = data.rows
    mine = np.flatnonzero((rows.config == data.default) & (rows.status == TIMED))
    if not len(mine):
        return None
    ratio = rows.time_s[mine] / data.best_s[rows.problem[mine]]
    return Headroom(
        geomean=float(np.exp(np.log(ratio).mean())),
        p95=float(np.quantile(ratio, 0.95)),
        max=float(ratio.max()),
        problems=len(ratio),
    )


def _winners(data: DataSet) -> tuple[Winner, ...]:
    counts = np.bincount(best_config(data), minlength=len(data.configs))
    order = np.argsort(-counts, kind="stable")
    return tuple(Winner(dict(data.configs[number]), int(counts[number])) for number in order if counts[number])


def best_config(data: DataSet) -> Numbers:
    """Return the fastest config of every problem where one ran; of equals the one that comes first."""
    rows = data.rows
    is_best = (rows.status == TIMED) & (rows.time_s == data.best_s[rows.problem])
    best = np.full(len(data), len(data.configs), dtype=np.int64)
    np.minimum.at(best, rows.problem[is_best], rows.config[is_best])
    return best[best < len(data.configs)]


def _range(column: Column) -> FeatureRange:
    distinct = np.unique(column.values)
    if column.words is None:
        low, high = (float(distinct[0]), float(distinct[-1])) if len(distinct) else (None, None)
        return FeatureRange(column.name, len(distinct), low, high)
    words = tuple(column.words[int(number)] for number in distinct[:_MOST_WORDS])
    return FeatureRange(column.name, len(distinct), words=words)
