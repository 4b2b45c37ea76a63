"""Blocks that are cut into tiles are found out, by what a law that knows of them explains better."""

import math
from dataclasses import replace

import numpy as np
from tiled import tiled

from tunewise.decision import Config
from tunewise.formats.dataset import TIMED, Column, DataSet, Rows
from tunewise.learn.blocks import blocked
from tunewise.learn.derived import Cut, Size
from tunewise.learn.law import law_of
from tunewise.learn.options import Training
from tunewise.learn.pairs import Pairs, pairs
from tunewise.learn.regret import fastest_s

CONFIGS: tuple[Config, ...] = tuple(
    {"rows": rows, "columns": columns, "block": block, "ahead": ahead}
    for rows in (4, 6, 8, 12)
    for columns in (8, 16, 48)
    for block in (16, 64, 1 << 20)
    for ahead in (32, 256)
)
CUTS = (Cut(Size(0), (2,)), Cut(Size(1), (3,)))


def left_over(size: int, block: int, tile: int) -> int:
    return size // block * (block % tile) + size % block % tile


def seconds(m: int, n: int, config: Config) -> float:
    """Return what a kernel takes that cuts m into blocks, and whose edges are five times slower than its tiles."""
    rows, columns, block = (int(config[name]) for name in ("rows", "columns", "block"))
    edges = m * n - (m - left_over(m, block, rows)) * (n - n % columns)
    overhead = 1 + 4 / rows + 8 / columns  # so that no tile is best everywhere
    return (m * n + 4 * edges) * overhead * 1e-9 + math.ceil(m / block) * 2e-8


def measured(problems: int, *, seed: int = 0) -> DataSet:
    rng = np.random.default_rng(seed)
    sizes = np.round(np.exp(rng.uniform(np.log(8), np.log(600), (problems, 2))))
    problem, config = (part.ravel() for part in np.mgrid[:problems, : len(CONFIGS)])
    true = np.array([seconds(*map(int, sizes[p]), CONFIGS[c]) for p, c in zip(problem, config, strict=True)])
    samples = true * np.exp(0.02 * np.abs(rng.standard_normal(len(true))))
    status = np.full(len(true), TIMED, dtype=np.int8)
    rows = Rows(problem.astype(np.int64), config.astype(np.int64), status, samples, np.arange(len(true) + 1))
    return DataSet("blocks", (Column("m", sizes[:, 0]), Column("n", sizes[:, 1])), CONFIGS, rows, default=0)


def table(data: DataSet) -> Pairs:
    return pairs(data, Training(), 10**6, fastest_s)


def test_the_parameter_that_cuts_a_size_into_blocks_is_found_out() -> None:
    assert blocked(table(measured(24)), CUTS) == (replace(CUTS[0], block=4), CUTS[1])


def test_a_law_that_knows_of_blocks_tells_more_of_problems_that_it_never_saw() -> None:
    known, asked = table(measured(24)), table(measured(60, seed=7))

    def off(cuts: tuple[Cut, ...]) -> float:
        law = law_of(known, cuts)
        assert law is not None
        return float(np.abs(replace(asked, cost=law.log_seconds(asked.values)).target - asked.target).mean())

    assert off(blocked(known, CUTS)) < 0.8 * off(CUTS)


def test_where_nothing_may_be_a_block_cuts_stay_as_they_are() -> None:
    known = table(tiled(16))
    assert blocked(known, CUTS) is CUTS
    assert blocked(known, ()) == ()
