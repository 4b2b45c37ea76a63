import enum
import os
import subprocess
import sys
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tunewise.decision import canonical

plain = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text("abc.\u00e9", max_size=3), inner, max_size=4),
    max_leaves=12,
)


@settings(deadline=None, max_examples=200)
@given(plain)
def test_what_is_written_is_read_back_with_its_types(value):
    back = canonical.decode(canonical.encode(value))
    assert repr(back) == repr(value) or canonical.encode(back) == canonical.encode(value)
    assert canonical.digest(back) == canonical.digest(value)


def test_the_order_of_keys_does_not_matter():
    assert canonical.encode({"b": 1, "a": {"d": 2, "c": 3}}) == '{"a":{"c":3,"d":2},"b":1}'
    assert canonical.digest({"b": 1, "a": 2}) == canonical.digest({"a": 2, "b": 1})


def test_one_one_point_zero_and_true_are_three_values():
    assert len({canonical.encode(v) for v in (1, 1.0, True)}) == 3


@pytest.mark.parametrize(
    "value",
    [float("nan"), [1, float("inf")], {"a": (None, -float("inf"))}, "\ud800", {1: 2}, object(), {"a": {("b",): 1}}],
)
def test_what_json_cannot_say_is_refused(value):
    with pytest.raises(ValueError, match="JSON"):
        canonical.encode(value)
    with pytest.raises(ValueError, match="JSON"):
        canonical.digest(value)


def test_a_cycle_is_refused():
    ring = []
    ring.append(ring)
    with pytest.raises(ValueError, match="JSON"):
        canonical.encode(ring)


def test_none_is_written_as_null_beside_finite_floats():
    assert canonical.encode([None, 0.5]) == "[null,0.5]"


@pytest.mark.parametrize(
    "text",
    [
        *("", "nul", "NaN", "Infinity", "1e999", "[1,]", "{'a': 1}", '"\\ud800"', "\ud800", '"open', "[" * 31),
        *("[" * 40 + "]" * 40, "[" * 100_000, '{"a":' * 33 + "1" + "}" * 33, b"\xff\xfe", '"\\', "[[]," * 20_000),
    ],
    ids=lambda text: repr(text)[:20],
)
def test_what_is_not_json_or_too_deep_is_a_value_error(text):
    with pytest.raises(ValueError):  # noqa: PT011 - several reasons, one class
        canonical.decode(text)


def test_as_deep_as_allowed_is_read():
    value = 1
    for _ in range(canonical.MAX_DEPTH):
        value = [value]
    assert canonical.decode(canonical.encode(value)) == value


def test_brackets_inside_words_are_not_depth():
    value = {"[" * 50: '\\"[[{' * 50, "b": ['"' + "{" * 99]}
    assert canonical.decode(canonical.encode(value)) == value


def test_too_many_bytes_are_refused_before_they_are_parsed():
    with pytest.raises(ValueError, match="more than the 10 allowed"):
        canonical.decode("[" + "1," * 20 + "1]", limit_bytes=10)


@pytest.mark.parametrize("unit", ['\\"', '"\\"', "[", '"', "\\", "{}", '["[",'])
def test_no_megabyte_of_junk_takes_long(unit):
    started = time.process_time()
    with pytest.raises(ValueError):  # noqa: PT011
        canonical.decode(unit * (canonical.MAX_RECORD_BYTES // len(unit)))
    assert time.process_time() - started < 10


def test_digests_are_equal_in_processes_with_other_hash_seeds():
    value = "{'b': [1, 2.5, 'x'], 'a': {'z': None, 'y': True}}"
    code = f"from tunewise.decision import canonical; print(canonical.digest({value}))"
    runs = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": str(seed)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in (0, 1, 2)
    }
    assert runs == {canonical.digest({"a": {"y": True, "z": None}, "b": [1, 2.5, "x"]}) + "\n"}


class Word(enum.StrEnum):
    A = "a"


class Number(enum.IntEnum):
    ONE = 1


@pytest.mark.parametrize(
    ("given_", "expected"),
    [
        (np.int64(3), 3),
        (np.uint8(3), 3),
        (np.float32(0.5), 0.5),
        (np.float64(0.5), 0.5),
        (np.bool_(True), True),
        (np.str_("x"), "x"),
        (np.array(7), 7),
        (Word.A, "a"),
        (Number.ONE, 1),
        (None, None),
    ],
    ids=repr,
)
def test_numbers_and_words_of_other_libraries_become_plain(given_, expected):
    plain_value = canonical.scalar(given_)
    assert plain_value == expected
    assert type(plain_value) is type(expected)


@pytest.mark.parametrize("value", [[1], (1,), {}, object(), b"x", 1j, np.zeros(2), float("nan"), 2**64, -(2**63) - 1])
def test_what_is_no_scalar_is_refused(value):
    with pytest.raises(ValueError, match=r"is |does "):
        canonical.scalar(value)


@pytest.mark.parametrize("slice_bytes", [1, 2, 3, 7, 1 << 20])
@pytest.mark.parametrize(
    "hidden",
    ['"[[", ', '"]]", ', r'"\"]]", ', r'"]\\", ', '"", '],
    ids=["opened", "closed", "quote", "backslash", "empty"],
)
def test_brackets_in_words_are_no_depth(hidden: str, slice_bytes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(canonical, "_SLICE_BYTES", slice_bytes)
    allowed = canonical.MAX_DEPTH
    canonical.check_depth(("[" + hidden).encode() * allowed + b"0" + b"]" * allowed)
    with pytest.raises(ValueError, match="deeper than 32"):
        canonical.check_depth(("[" + hidden).encode() * (allowed + 1) + b"0" + b"]" * (allowed + 1))
