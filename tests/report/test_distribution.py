"""Regret curves rise from the lower left, end where all problems are answered, and hold whatever was measured."""

import re

import pytest

from tunewise.report.distribution import Regrets, figure

INF = float("inf")


def points(markup: str) -> list[list[tuple[float, float]]]:
    paths = re.findall(r'points="([^"]*)"', markup)
    return [[(float(x), float(y)) for x, y in (pair.split(",") for pair in path.split())] for path in paths]


def test_the_share_within_a_factor_counts_problems() -> None:
    assert Regrets.of("x", [1.0, 1.04, 2.0, 1.0]).within(1.05) == 0.75


def test_problems_without_a_known_regret_are_left_out() -> None:
    assert Regrets.of("x", [2.0, float("nan"), 1.0]).values == [1.0, 2.0]


def test_steps_end_with_every_problem() -> None:
    steps = list(Regrets.of("x", [1 + n / 1000 for n in range(1000)]).steps())
    assert len(steps) == 200
    assert steps[-1] == (1.999, 1.0)
    assert steps == sorted(steps)


def test_a_curve_rises_from_left_to_right() -> None:
    ((*path,),) = points(figure([Regrets.of("x", [1.0, 1.2, 1.5, 3.0])], title="t"))
    assert [x for x, _ in path] == sorted(x for x, _ in path)
    assert [-y for _, y in path] == sorted(-y for _, y in path)


def test_a_better_way_lies_above_a_worse_one() -> None:
    worse, better = points(figure([Regrets.of("good", [1.1, 1.2]), Regrets.of("bad", [2.0, 3.0])], title="t"))
    assert better[1][0] < worse[1][0]


def test_what_failed_keeps_a_curve_below_the_top() -> None:
    all_ran, half_failed = points(figure([Regrets.of("half", [1.1, INF]), Regrets.of("all", [1.1, 1.2])], title="t"))
    assert half_failed[-1][1] > all_ran[-1][1]


@pytest.mark.parametrize("values", [[1.0], [1.0] * 5, [1e9], [INF, INF], [1.0, 1.0000001]])
def test_odd_regrets_are_drawn_too(values: list[float]) -> None:
    assert points(figure([Regrets.of("x", values)], title="t", noise_floor=1.05))


def test_the_picture_tells_its_figures_in_words() -> None:
    assert "ours 50%, default 0%" in figure([Regrets.of("ours", [1.0, 2.0]), Regrets.of("default", [2.0])], title="t")
