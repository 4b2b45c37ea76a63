"""Processes know what changes smoothly with a problem, and say honestly what they would have said without one."""

import numpy as np

from tunewise.formats.dataset import Floats
from tunewise.learn.process import Process, process_of

CHANCE = np.random.default_rng(0)
ROWS = CHANCE.uniform(0.0, 10.0, (80, 2))


def costs(rows: Floats) -> Floats:
    """Return what two choices cost, smoothly, by the first column alone."""
    return np.stack([np.sin(rows[:, 0] / 2), -np.sin(rows[:, 0] / 2)], axis=1)


def made(rows: Floats = ROWS, targets: Floats | None = None, weights: Floats | None = None) -> Process:
    found = process_of(rows, costs(rows) if targets is None else targets, _or_ones(weights, rows), seed=0)
    assert found is not None
    return found


def _or_ones(weights: Floats | None, rows: Floats) -> Floats:
    return np.ones(len(rows)) if weights is None else weights


def off(said: Floats, true: Floats) -> float:
    return float(np.sqrt(np.mean((said - true) ** 2)))


def test_what_changes_smoothly_is_known_between_problems() -> None:
    asked = np.random.default_rng(1).uniform(0.5, 9.5, (200, 2))
    assert off(made().costs(asked), costs(asked)) < 0.05


def test_a_problem_left_out_is_what_a_process_without_it_would_say() -> None:
    whole = made()
    place = int(np.flatnonzero(whole.known == 7)[0])
    exact = off(whole.costs(ROWS[[7]]), costs(ROWS[[7]]))
    said = off(whole.left_out[[place]], costs(ROWS[[7]]))
    assert exact < said < 0.05


def test_noise_is_not_learned_by_heart() -> None:
    noise = np.random.default_rng(2).normal(0.0, 1.0, (len(ROWS), 2))
    found = made(targets=noise)
    assert off(found.left_out, noise[found.known]) < 1.2


def test_problems_without_weight_are_not_looked_at() -> None:
    weights = np.where(np.arange(len(ROWS)) < 40, 1.0, 0.0)
    assert sorted(made(weights=weights).known) == list(range(40))


def test_columns_that_never_change_and_problems_that_are_alike_do_no_harm() -> None:
    rows = np.column_stack([np.repeat(ROWS[:10, 0], 3), np.full(30, 5.0)])
    found = made(rows)
    assert np.isfinite(found.left_out).all()
    assert off(found.costs(rows), costs(rows)) < 0.1


def test_more_problems_than_a_process_remembers_are_drawn_from() -> None:
    rows = np.random.default_rng(3).uniform(0.0, 10.0, (1500, 2))
    assert len(made(rows).known) == len(set(made(rows).known.tolist())) == 600


def test_too_little_and_too_wide_data_have_no_process() -> None:
    assert process_of(ROWS[:1], costs(ROWS[:1]), np.ones(1), seed=0) is None
    wide = np.random.default_rng(4).normal(size=(40, 100))
    assert process_of(wide, costs(wide), np.ones(40), seed=0) is None


def test_equal_seeds_make_equal_processes() -> None:
    assert np.array_equal(made().costs(ROWS), made().costs(ROWS))
