"""A made-up tiled kernel: what it costs is known exactly, so what is learned of it can be judged."""

import math

import numpy as np

from tunewise.decision import Config
from tunewise.formats.dataset import TIMED, Column, DataSet, Rows, status_of

CONFIGS: tuple[Config, ...] = tuple(
    {"rows": rows, "columns": columns, "order": order, "pack": pack}
    for rows in (4, 8, 16, 32)
    for columns in (8, 16, 64)
    for order in ("row", "column")
    for pack in (0, 1)
)


def seconds(m: int, n: int, config: Config) -> float:
    """Return what a config takes: whole tiles, an overhead for each, packing that pays only for large problems."""
    tiles = math.ceil(m / int(config["rows"])) * math.ceil(n / int(config["columns"]))
    work = tiles * (int(config["rows"]) * int(config["columns"]) + 20) * 1e-9
    packed = work * 0.7 + 2e-6 if config["pack"] else work
    return packed * (1.3 if (config["order"] == "row") == (m > n) else 1.0)


def tiled(problems: int = 40, *, seed: int = 0, missing: float = 0.0, noise: float = 0.02) -> DataSet:
    """Return measurements of the kernel: three samples a row; tiles of 2048 fail, and some rows may be missing."""
    rng = np.random.default_rng(seed)
    sizes = np.round(np.exp(rng.uniform(np.log(4), np.log(600), (problems, 2))))
    problem, config = (part.ravel() for part in np.mgrid[:problems, : len(CONFIGS)])
    true = np.array([seconds(*map(int, sizes[p]), CONFIGS[c]) for p, c in zip(problem, config, strict=True)])
    samples = true[:, None] * np.exp(noise * np.abs(rng.standard_normal((len(true), 3))))
    failed = np.array([int(c["rows"]) * int(c["columns"]) >= 2048 for c in CONFIGS])[config]
    status = np.where(failed, status_of("runtime"), TIMED).astype(np.int8)
    counts = np.where(failed, 0, 3)
    starts = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    rows = Rows(problem.astype(np.int64), config.astype(np.int64), status, samples[~failed].ravel(), starts)
    features = (Column("m", sizes[:, 0]), Column("n", sizes[:, 1]))
    kept = np.flatnonzero(rng.random(len(true)) >= missing)
    return DataSet("tiled", features, CONFIGS, rows.take(kept), default=0)
