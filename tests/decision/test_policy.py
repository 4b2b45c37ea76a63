import warnings

import pytest

from tunewise.decision import Policy
from tunewise.errors import InvalidPolicy, MeasureWarning
from tunewise.settings import brief


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("clock", "cpu2"), ("clock", None), ("clock", []), ("cache", "hot"), ("isolation", "jail")),
        *(("threads", 0), ("threads", None), ("threads", 1.0), ("threads", True), ("threads", "1")),
        *(("steps", 0), ("steps", 2.5), ("warmup_steps", -1), ("memory_limit_bytes", 5), ("memory_limit_bytes", 1e9)),
        *(("timeout_s", 0), ("timeout_s", -1), ("timeout_s", float("nan")), ("timeout_s", float("inf"))),
        *(("timeout_s", "10"), ("timeout_s", True), ("compile_timeout_s", None), ("min_sample_s", 0)),
        *((name, 10**400) for name in ("timeout_s", "compile_timeout_s", "min_sample_s")),
        *((name, 2**63) for name in ("threads", "steps", "warmup_steps", "memory_limit_bytes")),
        *(("timeout_s", 10**5000), ("threads", 10**5000)),
    ],
    ids=brief,
)
def test_a_policy_that_makes_no_sense_is_refused_by_name(name, value):
    with pytest.raises(InvalidPolicy, match=rf"^{name}="):
        Policy(**{name: value})


def test_an_integer_that_python_does_not_write_out_is_told_by_its_size():
    with pytest.raises(InvalidPolicy, match=r"^timeout_s=an integer of \d+ bits is not a positive number of seconds$"):
        Policy(timeout_s=10**5000)


def test_few_steps_warn_at_the_line_that_asks_for_them():
    with pytest.warns(MeasureWarning, match="steps=3 is too few") as caught:
        Policy(steps=3)
    assert caught[0].filename == __file__


def test_five_steps_are_enough():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert Policy(steps=5, warmup_steps=0).steps == 5


def test_only_what_makes_times_comparable_enters_the_key():
    assert Policy(timeout_s=1, isolation="none", min_sample_s=1).key == Policy().key
    changed = [{"clock": "wall"}, {"cache": "cold"}, {"threads": 2}, {"warmup_steps": 2}, {"steps": 9}]
    assert all(Policy(**change).key != Policy().key for change in changed)
