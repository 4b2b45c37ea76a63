"""A law knows how work makes time: it tells of problems that it never saw, and of nothing where it cannot."""

from dataclasses import replace

import numpy as np
import pytest
from tiled import tiled

from tunewise.formats.dataset import Column, DataSet
from tunewise.learn.derived import Cut, Size
from tunewise.learn.keeping import cuts_of
from tunewise.learn.law import held_out, law_of, trust
from tunewise.learn.options import Training
from tunewise.learn.pairs import Pairs, pairs, top_costs
from tunewise.learn.regret import fastest_s

CUTS = (Cut(Size(0), (2,)), Cut(Size(1), (3,)))  # of a tiled kernel: m by rows, n by columns


def table(data: DataSet) -> Pairs:
    return pairs(data, Training(), 10**6, fastest_s)


def test_which_parameter_cuts_which_size_is_found_out() -> None:
    found = cuts_of(table(tiled(30)), seed=0)
    assert {(cut.size, cut.parameters) for cut in found} == {(Size(0), (2,)), (Size(1), (3,))}


def test_a_law_tells_the_times_of_problems_that_it_never_saw() -> None:
    law, asked = law_of(table(tiled(16)), CUTS), table(tiled(60, seed=7))
    assert law is not None
    ran = asked.ran & (asked.cost < np.log(2))
    off = law.log_seconds(asked.values) - asked.cost - asked.log_best
    assert np.median(np.abs(off[ran])) < 0.15  # the kernel's 30 % for the wrong order follow no amount of work
    single = top_costs(asked, asked.cost, np.bincount(asked.config, weights=asked.cost)[asked.config], 1).mean()
    assert top_costs(asked, asked.cost, law.log_seconds(asked.values), 1).mean() < single


def test_a_config_that_is_slower_than_its_parameters_say_is_known_by_itself() -> None:
    def slowed(data: DataSet) -> Pairs:
        found = table(data)
        return replace(found, cost=found.cost + np.where(found.config == 9, np.log(2), 0.0))

    plain, law = law_of(table(tiled(16)), CUTS), law_of(slowed(tiled(16)), CUTS)
    assert plain is not None
    assert law is not None
    asked = table(tiled(60, seed=7))
    longer = law.log_seconds(asked.values) - plain.log_seconds(asked.values)
    assert np.median(longer[asked.config == 9]) > 0.5 * np.log(2)
    assert np.abs(np.median(longer[asked.config != 9])) < 0.1
    strange = asked.values.copy()
    strange[:, 2] += 1  # rows that no config had
    assert np.isfinite(law.log_seconds(strange)).all()


def test_failures_are_no_times() -> None:
    known = table(tiled(16))
    one, other = law_of(known, CUTS), law_of(known.of(known.ran), CUTS)
    assert one is not None
    assert other is not None
    assert np.array_equal(one.slopes, other.slopes)


def test_what_no_problem_left_over_costs_nothing_where_another_does() -> None:
    data = tiled(16)
    whole = tuple(replace(column, values=np.round(column.values / 64 + 1) * 64) for column in data.features)
    known = table(replace(data, features=whole))
    law = law_of(known, CUTS)
    assert law is not None
    beside = known.values.copy()
    beside[:, :2] += 1
    assert np.abs(law.log_seconds(beside) - law.log_seconds(known.values)).max() < 1.0


def test_equal_tables_have_equal_laws() -> None:
    one, other = (law_of(table(tiled(12)), CUTS) for _ in range(2))
    assert one is not None
    assert other is not None
    assert np.array_equal(one.slopes, other.slopes)


@pytest.mark.parametrize("count", [0, 7])
def test_there_is_no_law_of_problems_without_sizes_or_with_very_many(count: int) -> None:
    data = tiled(8)
    sizes = tuple(Column(f"s{number}", data.features[0].values + number) for number in range(count))
    known = table(replace(data, features=sizes or (Column("share", np.linspace(0.1, 0.9, 8)),)))
    assert law_of(known, ()) is None
    assert held_out(known, (), seed=0) is None


def test_three_problems_are_too_few_to_hold_one_out() -> None:
    assert held_out(table(tiled(3)), CUTS, seed=0) is None


@pytest.mark.parametrize(("told", "share"), [(1.0, 1.0), (2.0, 0.5), (-1.0, 0.0), (0.0, 0.0), (0.5, 1.0)])
def test_a_law_is_trusted_as_far_as_differences_follow_it(told: float, share: float) -> None:
    known = table(tiled(10))
    levels = np.arange(10.0)[known.problem]  # how long a problem takes on the whole is no difference between configs
    assert trust(known, told * known.cost + levels) == pytest.approx(share)


def test_the_fastest_sample_is_what_a_law_learns_from() -> None:
    data = tiled(4)
    every = [data.rows.samples_s[a:b] for a, b in zip(data.rows.starts[:-1], data.rows.starts[1:], strict=True)]
    found = fastest_s(data.rows)
    assert np.array_equal(found, [samples.min() if len(samples) else np.nan for samples in every], equal_nan=True)


def windowed(problems: int, seed: int = 0) -> DataSet:
    """Return the tiled kernel over the places of a window: what it does in each grows with the window's square."""
    data = tiled(problems, seed=seed)
    window = np.random.default_rng(seed).integers(2, 12, problems).astype(float)
    sizes = [column.values + window - 1 for column in data.features]
    features = (Column("height", sizes[0]), Column("width", sizes[1]), Column("window", window))
    lengths = np.diff(data.rows.starts)
    squared = np.repeat(window[data.rows.problem] ** 2, lengths)
    return replace(data, features=features, rows=replace(data.rows, samples_s=data.rows.samples_s * squared))


def test_tiles_that_cut_the_places_of_a_window_are_found_out() -> None:
    found = cuts_of(table(windowed(40)), seed=0)
    assert {(cut.size, cut.parameters) for cut in found} == {(Size(0, 2), (3,)), (Size(1, 2), (4,))}


def test_a_law_of_windows_tells_the_times_of_others() -> None:
    cuts = (Cut(Size(0, 2), (3,)), Cut(Size(1, 2), (4,)))
    law, asked = law_of(table(windowed(24)), cuts), table(windowed(60, seed=7))
    assert law is not None
    assert law.sizes == (Size(0, 2), Size(1, 2), Size(2), Size(2))
    ran = asked.ran & (asked.cost < np.log(2))
    off = law.log_seconds(asked.values) - asked.cost - asked.log_best
    assert np.median(np.abs(off[ran])) < 0.15


def test_work_that_grows_with_a_cube_has_its_size_three_times() -> None:
    data = tiled(16)
    side = np.round(np.geomspace(8, 600, 16))
    lengths = np.diff(data.rows.starts)
    seconds = np.repeat(side[data.rows.problem] ** 3 * 1e-9, lengths)
    cubed = replace(data, features=(Column("side", side),), rows=replace(data.rows, samples_s=seconds))
    law = law_of(table(cubed), ())
    assert law is not None
    assert law.sizes == (Size(0),) * 3
