"""Work is counted: whole sizes, what tiles leave over, passes over data, and tiles."""

import numpy as np

from tunewise.learn.derived import Cut, Formulas
from tunewise.learn.work import Ledger, amounts, ledger
from tunewise.models import Number

PROBLEM = (Number("m", 1, 100), Number("n", 1, 100))
TILES = (Number("rows", 1, 8), Number("wide", 1, 4))
CUTS = (Cut(0, (2,)), Cut(1, (2, 3)))


def counted(values: list[float], cuts: tuple[Cut, ...] = CUTS) -> dict[tuple[int, ...], float]:
    known = ledger((*PROBLEM, *TILES), (0, 1), cuts)
    return dict(zip(known.amounts, known.counted(np.array([values]))[0].tolist(), strict=True))


def test_all_work_its_edges_its_data_and_its_tiles_are_counted() -> None:
    # 10 by 7, in tiles of 4 by 4 * 1: two rows and three columns are left over, and there are 3 by 2 tiles.
    found = sorted(counted([10, 7, 4, 1]).values())
    work, data, tiles = [10 * 7, 2 * 7, 10 * 3, 2 * 3], [7, 3, 7 * 3, 10, 2, 10 * 2], [3 * 2]
    assert found == sorted([1, *work, *data, *tiles])


def test_without_tiles_there_are_work_and_data_alone() -> None:
    assert sorted(counted([10, 7, 4, 1], ()).values()) == [1, 7, 10, 70]


def test_the_tile_of_one_config_may_be_a_number() -> None:
    formulas = Formulas(PROBLEM)
    every = amounts(formulas, (0, 1), {0: 4.0, 1: 4.0})
    alone = Ledger(len(PROBLEM), tuple(formulas.derived), tuple(every)).counted(np.array([[10.0, 7.0]]))
    assert alone[0].tolist() == list(counted([10, 7, 4, 1]).values())
