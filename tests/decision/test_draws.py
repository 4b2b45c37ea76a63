import math
import statistics

import pytest

from tunewise.decision.draws import LogNormal, LogUniform, OneOf, drawn, grid
from tunewise.errors import InvalidProblem


def test_a_grid_has_every_combination() -> None:
    problems = grid({"m": [1, 2], "dtype": ["f4", "f8", "i4"]})
    assert [dict(problem) for problem in problems[:2]] == [{"dtype": "f4", "m": 1}, {"dtype": "f8", "m": 1}]
    assert len(set(problems)) == 6


def test_every_order_of_magnitude_is_as_likely() -> None:
    problems = drawn({"m": LogUniform(1000, 10**9)}, 3000, seed=1)
    logs = [math.log10(problem["m"]) for problem in problems]  # type: ignore[arg-type]
    assert abs(statistics.median(logs) - 6) < 0.2
    assert all(1000 <= problem["m"] <= 10**9 for problem in problems)  # type: ignore[operator]


def test_whole_bounds_give_whole_multiples_within_them() -> None:
    problems = drawn({"m": LogUniform(16, 4096, multiple=16)}, 100)
    assert all(isinstance(problem["m"], int) for problem in problems)
    assert all(problem["m"] % 16 == 0 and 16 <= problem["m"] <= 4096 for problem in problems)  # type: ignore[operator]


def test_sizes_are_multiples_also_where_the_bounds_are_none() -> None:
    sizes = {problem["m"] for problem in drawn({"m": LogUniform(70, 240, multiple=64)}, 100)}
    assert sizes == {128, 192}


def test_bounds_without_a_multiple_between_them_are_refused() -> None:
    with pytest.raises(InvalidProblem, match="sizes from 1 to 8 cannot be drawn: none is a multiple of 16"):
        LogUniform(1, 8, multiple=16)


def test_a_broken_bound_gives_numbers_that_are_not_whole() -> None:
    problems = drawn({"density": LogUniform(0.001, 0.5)}, 20)
    assert all(isinstance(problem["density"], float) for problem in problems)


def test_the_logarithm_of_normal_sizes_is_normal() -> None:
    logs = [math.log(p["m"]) for p in drawn({"m": LogNormal(9.0, 1.0)}, 2000, seed=2)]  # type: ignore[arg-type]
    assert abs(statistics.mean(logs) - 9.0) < 0.1
    assert abs(statistics.stdev(logs) - 1.0) < 0.1


def test_a_longer_list_begins_with_the_shorter_one() -> None:
    features = {"m": LogUniform(1, 1000), "dtype": OneOf(("f4", "f8"))}
    assert drawn(features, 50, seed=3)[:20] == drawn(features, 20, seed=3)
    assert drawn(features, 20, seed=3) != drawn(features, 20, seed=4)


def test_problems_are_different_and_fewer_where_no_more_exist() -> None:
    assert len(drawn({"m": OneOf((1, 2, 3))}, 10)) == 3


@pytest.mark.parametrize(("low", "high"), [(0, 5), (5, 4), (-1, 3), (1, math.inf), (math.nan, 2)])
def test_bounds_that_make_no_sense_are_refused(low: float, high: float) -> None:
    with pytest.raises(InvalidProblem, match="cannot be drawn"):
        LogUniform(low, high)


def test_a_deviation_that_makes_no_sense_is_refused() -> None:
    with pytest.raises(InvalidProblem, match="log deviation of -1"):
        LogNormal(5.0, -1)
    assert max(problem["m"] for problem in drawn({"m": LogNormal(36.0, 9.0)}, 20)) <= 1 << 54  # type: ignore[type-var]


def test_a_size_given_for_the_mean_of_its_logarithm_is_refused() -> None:
    with pytest.raises(InvalidProblem, match=r"log mean of 1000 is beyond .* such as 6\.9 for a size of 1000"):
        LogNormal(1000, 2)
