"""Drawn problems lie among the known ones."""

import numpy as np
from measured import crossing, measured

from tunewise.learn.columns import Frame, frame
from tunewise.learn.synthetic import around
from tunewise.models import Number


def known() -> Frame:
    return frame(crossing(60), margin=2.0)


def test_drawn_problems_stay_within_what_is_known() -> None:
    drawn, _ = around(known(), 500, seed=0)
    low, high = known().values.min(axis=0), known().values.max(axis=0)
    assert ((drawn.values >= low) & (drawn.values <= high)).all()


def test_where_a_law_answers_drawn_problems_lie_as_far_out_as_a_model_will_be_asked() -> None:
    drawn, _ = around(known(), 500, seed=0, by_law=True)
    for values, seen, column in zip(drawn.values.T, known().values.T, known().inputs, strict=True):
        if isinstance(column, Number):
            assert column.low <= values.min() < seen.min() or values.min() == 1
            assert seen.max() < values.max() <= column.high
    assert (drawn.values == np.round(drawn.values)).all()


def test_whole_numbers_stay_whole_and_words_are_those_of_the_origin() -> None:
    drawn, origin = around(known(), 500, seed=0)
    assert (drawn.values == np.round(drawn.values)).all()
    assert np.array_equal(drawn.values[:, 2], known().values[origin, 2])


def test_equal_seeds_draw_alike_and_others_do_not() -> None:
    one, again, other = (around(known(), 50, seed)[0].values for seed in (1, 1, 2))
    assert np.array_equal(one, again)
    assert not np.array_equal(one, other)


def test_a_lone_problem_has_itself_around_it() -> None:
    drawn, _ = around(frame(measured({"n": [7.0]}, np.ones((1, 2))), 2.0), 5, seed=0)
    assert drawn.values.tolist() == [[7.0]] * 5


def test_some_sizes_are_made_to_fit_a_tile_and_stay_within_what_is_known() -> None:
    whole = frame(crossing(60), margin=2.0)
    plain, fitted = (around(whole, 2000, 0, tiles)[0].values for tiles in ((), (16.0,)))
    low, high = whole.values.min(axis=0), whole.values.max(axis=0)
    assert ((fitted >= low) & (fitted <= high)).all()
    share = [(values[:, 0] % 16 == 0).mean() for values in (plain, fitted)]
    assert share[0] + 0.1 < share[1] < 0.6


def test_among_sizes_near_the_largest_doubles_drawn_problems_stay_within_what_is_known() -> None:
    sizes = [10.0**power for power in range(30, 310, 30)]
    drawn, _ = around(frame(measured({"n": sizes}, np.ones((len(sizes), 2))), 2.0), 2000, seed=0)
    assert ((drawn.values >= min(sizes)) & (drawn.values <= max(sizes))).all()
