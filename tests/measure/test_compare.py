"""The final switches only for a gain beyond the noise and the margin."""

import random
from collections.abc import Callable

import pytest

from tunewise.measure.compare import compare, sign_test


def noisy(incumbent_s: float, noise: float, seed: int) -> Callable[[int | None], tuple[float, float]]:
    rng = random.Random(seed)
    return lambda turns: (incumbent_s * (1 + abs(rng.gauss(0, noise))), 1 + abs(rng.gauss(0, noise)))


def steady(incumbent_s: float, challenger_s: float) -> Callable[[int | None], tuple[float, float]]:
    return lambda turns: (incumbent_s, challenger_s)


def test_a_clear_gain_wins_after_ten_pairs() -> None:
    result = compare(steady(2.0, 1.0))
    assert result.is_win
    assert result.gain == 2.0
    assert len(result.challenger_s) == len(result.incumbent_s) == 10


def test_equal_sides_never_switch() -> None:
    assert not compare(steady(1.0, 1.0)).is_win


def test_a_gain_below_the_margin_is_a_tie_however_certain() -> None:
    result = compare(steady(1.005, 1.0))
    assert result.p_value < 0.001
    assert not result.is_win


def test_a_gain_that_the_place_of_objects_in_memory_makes_is_a_tie_however_certain() -> None:
    assert not compare(steady(200e-9, 195e-9)).is_win
    assert compare(steady(200e-9, 185e-9)).is_win


def test_a_case_that_is_not_clear_is_settled_by_careful_pairs() -> None:
    asked: list[int | None] = []

    def pair(turns: int | None) -> tuple[float, float]:
        asked.append(turns)
        return (1.03, 1.0)

    result = compare(pair)
    assert result.is_win
    assert asked == [1] * 10 + [None] * 10
    assert len(result.incumbent_s) == 10


def test_a_slower_challenger_is_given_up_early() -> None:
    result = compare(steady(1.0, 1.2))
    assert not result.is_win
    assert len(result.challenger_s) == 10


def test_noise_between_equals_switches_less_than_once_in_a_hundred() -> None:
    switches = sum(compare(noisy(1, 0.05, i)).is_win for i in range(1000))
    assert switches <= 10


def test_three_percent_is_found_in_moderate_noise() -> None:
    found = sum(compare(noisy(1.03, 0.02, i)).is_win for i in range(300))
    assert found >= 270


def test_a_fixed_number_of_pairs_is_kept_exactly() -> None:
    assert len(compare(steady(2.0, 1.0), pairs=7).incumbent_s) == 7


def test_as_few_pairs_as_advised_can_be_won() -> None:
    assert compare(steady(2.0, 1.0), pairs=5).is_win


def test_of_few_pairs_every_one_must_be_won() -> None:
    rest = [(2.0, 1.0)] * 4
    assert not compare(lambda turns: rest.pop() if rest else (1.0, 2.0), pairs=5).is_win


@pytest.mark.parametrize(("wins", "trials", "chance"), [(0, 0, 1.0), (10, 10, 2**-10), (0, 10, 1.0), (5, 10, 0.623)])
def test_sign_test_gives_the_binomial_tail(wins: int, trials: int, chance: float) -> None:
    assert sign_test(wins, trials) == pytest.approx(chance, abs=1e-3)
