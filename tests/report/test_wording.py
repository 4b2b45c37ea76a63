"""Numbers in words: no more digits than mean something."""

import pytest

from tunewise.report.wording import amount, count, factor, percent, seconds, size, span


@pytest.mark.parametrize(
    ("share", "said"),
    [
        (0, "0 %"),
        (0.0004, "< 0.1 %"),
        (0.05, "5 %"),
        (0.0713, "7.1 %"),
        (0.333, "33 %"),
        (0.996, "99.6 %"),
        (1, "100 %"),
    ],
)
def test_a_share_is_never_rounded_to_all_or_none(share: float, said: str) -> None:
    assert percent(share) == said


@pytest.mark.parametrize(
    ("value", "said"),
    [(1.0, "1.000"), (1.2345, "1.234"), (3.456, "3.46"), (123.4, "123"), (float("inf"), "fails"), (float("nan"), "-")],
)
def test_a_factor_has_the_digits_that_mean_something(value: float, said: str) -> None:
    assert factor(value) == said


@pytest.mark.parametrize(
    ("value", "said"),
    [(4096.0, "4,096"), (17.5, "17.5"), (1e-7, "1e-07"), (0, "0"), (1234567.5, "1,234,567.5"), (1e15, "1e+15")],
)
def test_an_amount_groups_its_digits(value: float, said: str) -> None:
    assert amount(value) == said


@pytest.mark.parametrize(
    ("value", "said"),
    [(None, "-"), (7.8, "7.8 s"), (0.00456, "4.56 ms"), (12.3e-6, "12.3 us"), (5e-10, "0.5 ns")],
)
def test_a_time_has_the_unit_that_fits(value: float | None, said: str) -> None:
    assert seconds(value) == said


@pytest.mark.parametrize(
    ("value", "said"),
    [(-3, "0 s"), (8.9, "8 s"), (119, "119 s"), (120, "2 min"), (7_200, "2 h"), (200_000, "2 days")],
)
def test_a_span_is_one_round_number(value: float, said: str) -> None:
    assert span(value) == said


@pytest.mark.parametrize(
    ("value", "said"), [(0, "0 bytes"), (999, "999 bytes"), (69_600, "69.6 KB"), (2 * 10**9, "2 GB"), (10**13, "10 TB")]
)
def test_bytes_have_the_unit_that_fits(value: int, said: str) -> None:
    assert size(value) == said


def test_one_thing_is_not_many() -> None:
    assert [count(1, "problem"), count(1200, "problem")] == ["1 problem", "1,200 problems"]
