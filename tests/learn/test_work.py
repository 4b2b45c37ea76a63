"""Work is counted: whole sizes, what tiles leave over, passes over data, and tiles."""

import numpy as np

from tunewise.learn.derived import Cut, Formulas, Size
from tunewise.learn.work import Ledger, Pieces, amounts, ledger
from tunewise.models import Number

PROBLEM = (Number("m", 1, 100), Number("n", 1, 100))
TILES = (Number("rows", 1, 8), Number("wide", 1, 4))
M, N = Size(0), Size(1)
CUTS = (Cut(M, (2,)), Cut(N, (2, 3)))


def counted(
    values: list[float], cuts: tuple[Cut, ...] = CUTS, sizes: tuple[Size, ...] = (M, N)
) -> dict[tuple[int, ...], float]:
    known = ledger((*PROBLEM, *TILES), sizes, cuts)
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
    every = amounts(formulas, (M, N), {M: Pieces(4.0), N: Pieces(4.0)})
    alone = Ledger(len(PROBLEM), tuple(formulas.derived), tuple(every)).counted(np.array([[10.0, 7.0]]))
    assert alone[0].tolist() == list(counted([10, 7, 4, 1]).values())


def test_a_window_is_counted_by_its_places() -> None:
    # A window of 4 has 7 places in 10, in tiles of 3: one is left over, and there are 3 tiles.
    places = Size(0, 1)
    found = sorted(counted([10, 4, 3, 1], (Cut(places, (2,)),), (places, N)).values())
    assert found == sorted([1, 7 * 4, 1 * 4, 4, 3 * 4, 7, 1, 3])


def test_a_size_that_is_there_twice_is_squared_and_cut_but_once() -> None:
    found = sorted(counted([10, 7, 4, 1], (Cut(M, (2,)),), (M, M)).values())
    assert found == sorted([1, 10 * 10, 2 * 10, 10, 2, 10 * 3, 3])


def test_tiles_that_do_not_fill_a_block_leave_something_over_in_every_block() -> None:
    # 23 in blocks of 10, in tiles of 4: 2 + 2 + 3 are left over, and there are 3 + 3 + 1 tiles.
    found = sorted(counted([23, 7, 4, 10], (Cut(M, (2,), block=3),), (M, N)).values())
    assert found == sorted([1, 23 * 7, 7 * 7, 7, 7 * 7, 23, 7, 7])


def test_blocks_of_one_config_may_be_numbers() -> None:
    formulas = Formulas(PROBLEM)
    every = amounts(formulas, (M, N), {M: Pieces(4.0, 10.0)})
    alone = Ledger(len(PROBLEM), tuple(formulas.derived), tuple(every)).counted(np.array([[23.0, 7.0]]))
    assert alone[0].tolist() == list(counted([23, 7, 4, 10], (Cut(M, (2,), block=3),)).values())


def test_blocks_that_tiles_fill_need_no_formula_of_their_own() -> None:
    plain, filled = Formulas(PROBLEM), Formulas(PROBLEM)
    assert amounts(plain, (M, N), {M: Pieces(4.0)}) == amounts(filled, (M, N), {M: Pieces(4.0, 12.0)})
    assert plain.derived == filled.derived
