"""A table is distilled: problems that one config serves share a rule, nothing is answered beyond what was measured."""

import pytest

from tunewise.decision import Problem
from tunewise.errors import InvalidData
from tunewise.heuristics.table_building import Built, Known, build
from tunewise.heuristics.table_reading import dump, parse

CONFIGS = [{"tile": 1}, {"tile": 2}, {"tile": 4}]


def known(*rows: tuple[dict[str, object], dict[int, float]]) -> list[Known]:
    return [Known(Problem(problem), costs) for problem, costs in rows]


def distilled(found: list[Known], **options: float) -> Built:
    return build("gemm", found, CONFIGS, **options)  # type: ignore[arg-type]


SIZES = known(
    *(({"m": m, "dtype": "f"}, {0: 1.0 if m < 100 else 3.0, 1: 2.0 if m < 100 else 1.0}) for m in range(10, 200, 10))
)


def test_problems_whose_best_config_is_one_share_a_rule() -> None:
    built = distilled(SIZES)
    assert len(built.table.rules) == 2
    assert set(built.regrets) == {1.0}
    assert built.table.rank({"m": 50, "dtype": "f"})[0] == CONFIGS[0]
    assert built.table.rank({"m": 150, "dtype": "f"})[0] == CONFIGS[1]


def test_every_number_between_two_rules_has_an_answer() -> None:
    table = distilled(SIZES).table
    assert all(table.rank({"m": m, "dtype": "f"}) for m in range(10, 191))


@pytest.mark.parametrize(
    "features", [{"m": 9, "dtype": "f"}, {"m": 191, "dtype": "f"}, {"m": 50, "dtype": "g"}, {"m": 50}]
)
def test_beyond_what_was_measured_it_is_silent(features: dict[str, object]) -> None:
    assert distilled(SIZES).table.rank(features) == []


def test_problems_share_a_rule_within_the_tolerance_only() -> None:
    rows = known(({"m": 1}, {0: 1.0, 1: 1.04}), ({"m": 2}, {0: 1.08, 1: 1.0}))
    assert len(distilled(rows, tolerance=0.05).table.rules) == 1
    assert len(distilled(rows, tolerance=0.01).table.rules) == 2
    assert distilled(rows, tolerance=0.05).regrets == (1.04, 1.0)


def test_few_rules_cost_regret_and_it_is_told() -> None:
    built = distilled(SIZES, max_rules=1)
    assert len(built.table.rules) == 1
    assert built.regret > 1.3
    assert built.at(1.0) == 2.0


def test_words_are_told_apart() -> None:
    rows = known(
        *(
            ({"m": m, "d": d}, {n: 1.0 if n == w else 2.0 for n in range(3)})
            for m in (1, 2)
            for w, d in enumerate("abc")
        )
    )
    built = distilled(rows)
    assert [built.table.rank({"m": 1, "d": d})[0] for d in "abc"] == CONFIGS
    assert len(built.table.rules) == 3


def test_a_config_that_was_never_measured_there_is_not_believed_in() -> None:
    rows = known(({"m": 1}, {0: 1.0, 1: 1.5}), ({"m": 2}, {1: 1.0}))
    assert len(distilled(rows).table.rules) == 2
    forced = distilled(known(({"m": 1}, {0: 1.0}), ({"m": 2}, {1: 1.0})), max_rules=1)
    assert (len(forced.regrets), forced.untried) == (1, 1)


def test_what_is_built_is_sound_and_the_same_every_time() -> None:
    built = distilled(SIZES, tolerance=0.1)
    assert parse(dump(built.table)) == built.table
    assert dump(distilled(list(SIZES), tolerance=0.1).table) == dump(built.table)


def test_numbers_with_fractions_and_signs_are_cut_too() -> None:
    rows = known(*(({"x": x}, {0: 1.0 if x < 0 else 2.0, 1: 1.0 if x > 0 else 2.0}) for x in (-2.5, -0.5, 0.25, 8.5)))
    built = distilled(rows)
    assert set(built.regrets) == {1.0}
    assert len(built.table.rules) == 2


def test_problems_with_other_features_cannot_share_a_table() -> None:
    with pytest.raises(InvalidData, match="different features"):
        distilled(known(({"m": 1}, {0: 1.0}), ({"n": 1}, {0: 1.0})))
