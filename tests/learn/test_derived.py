"""Derived columns: made for all that fits together, and the same in arrays as in the model that is asked."""

import re
from dataclasses import replace

import numpy as np
from tiled import tiled

from tunewise.formats.dataset import Column
from tunewise.learn.columns import needed, worked_out
from tunewise.learn.derived import combined, grids, matrix, simple
from tunewise.learn.keeping import offer
from tunewise.learn.options import Training
from tunewise.learn.pairs import Pairs, pairs


def table(problems: int = 6) -> Pairs:
    return pairs(tiled(problems), Training(), 10**6)


def names_of(known: Pairs, most: int = 4) -> list[str]:
    formulas, fits = simple(known)
    gains = [1.0] * 10_000
    grids(formulas, [*fits, *combined(formulas, fits, gains, most)], gains, most)
    columns, _ = needed(known.problem_inputs, known.config_inputs, formulas.derived, formulas.offered)
    return list(columns.names)


def test_every_size_is_set_against_every_tile_and_product_of_tiles() -> None:
    names = names_of(table())
    assert {"ceil(m / rows)", "n % columns", "ceil(n / (rows * columns))", "ceil(m / rows) * rows / m"} <= set(names)
    assert not any("pack" in name for name in names[6:])  # a flag that may be 0 divides nothing


def test_tiles_are_shared_out_over_the_cores_where_these_are_known() -> None:
    data = tiled(6)
    cores = Column("hardware.cores", np.array([4.0, 8, 16, 4, 8, 16]))
    known = pairs(replace(data, features=(*data.features, cores)), Training(), 10**6)
    names = names_of(known, most=12)
    assert any(name.endswith("/ hardware.cores") and "ceil" in name for name in names)
    assert not any("hardware.cores %" in name for name in names)


def test_arrays_hold_the_very_doubles_that_the_model_works_out() -> None:
    known = table()
    made = offer(known, seed=0)
    columns, _ = needed(
        known.problem_inputs, known.config_inputs, made.derived, range(len(known.inputs) + len(made.derived))
    )
    columns.check()
    every = np.stack(worked_out(known.values, columns.derived), axis=1)
    asked = [columns.row(list(values)) for values in known.values]
    assert (every == np.array(asked)).all()
    assert np.isfinite(every).all()


def test_a_column_brings_along_what_it_is_made_of_and_nothing_else() -> None:
    known = table()
    made = offer(known, seed=0)
    wanted = max(made.ranked)
    columns, places = needed(known.problem_inputs, known.config_inputs, made.derived, [wanted])
    columns.check()
    assert len(columns.derived) < len(made.derived)
    values = np.stack(worked_out(known.values, columns.derived), axis=1)[:, places[wanted]]
    assert (values == matrix(known.values, made.derived, [wanted])[:, 0]).all()


def test_the_columns_that_decide_come_first() -> None:
    known = table(30)
    made = offer(known, seed=0)
    columns, places = needed(known.problem_inputs, known.config_inputs, made.derived, made.ranked)
    foremost = [columns.names[places[number]] for number in made.ranked[:12]]
    assert any("rows" in name and "m" in name for name in foremost)


def test_a_feature_that_is_never_larger_than_another_may_be_a_window_in_it() -> None:
    data = tiled(6)
    window = Column("window", np.minimum(*(column.values for column in data.features)) // 2 + 1)
    names = names_of(pairs(replace(data, features=(*data.features, window)), Training(), 10**6), most=12)
    assert {"max(m - window + 1, 1)", "ceil(max(m - window + 1, 1) / rows)", "max(n - window + 1, 1) % columns"} <= set(
        names
    )
    assert not any("max(m - n" in name or "max(window" in name for name in names)


def test_sizes_in_order_do_not_make_windows_without_end() -> None:
    data = tiled(6)
    ordered = tuple(Column(f"s{place}", data.features[0].values + place) for place in range(8))
    names = names_of(pairs(replace(data, features=ordered), Training(), 10**6))
    assert len([name for name in names if re.fullmatch(r"max\(s. - s. \+ 1, 1\)", name)]) == 6
