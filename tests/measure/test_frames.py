import struct
from math import inf, isfinite, nan

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tunewise.decision import Failure, Outcome, Timing
from tunewise.measure import frames
from tunewise.measure.frames import BadFrame, Job, Receiver, Reply

TOKEN = b"0123456789abcdef"
FIRST = Job(verb="first", config={"tile": 8})
SAMPLE = Job(verb="sample", config={"tile": 8}, n=3)
VERIFY = Job(verb="verify", config={"tile": 8})


def believed(job: Job, data: bytes) -> Outcome | BadFrame | None:
    """Return what the tuner makes of some bytes, as BadFrame if they are turned away or not enough."""
    try:
        payload = Receiver(TOKEN).feed(data)
        return BadFrame("not whole") if payload is None else frames.outcome_of(job, frames.read_reply(payload))
    except BadFrame as error:
        return error


def framed(payload: bytes, token: bytes = TOKEN) -> bytes:
    return struct.pack("<16sI", token, len(payload)) + payload


def test_a_reply_comes_back_as_it_was_sent() -> None:
    reply = frames.reply_of(Timing((1.5, 2.5, 3.5), 0.25))
    assert believed(SAMPLE, frames.pack(TOKEN, reply)) == Timing((1.5, 2.5, 3.5), 0.25)


def test_a_failure_comes_back_as_it_was_sent() -> None:
    failure = Failure("correctness", "the result is wrong")
    assert believed(FIRST, frames.pack(TOKEN, frames.reply_of(failure))) == failure


def test_a_check_that_found_nothing_is_none() -> None:
    assert believed(VERIFY, frames.pack(TOKEN, frames.reply_of(None))) is None


def test_lone_surrogates_in_a_detail_are_spelled_out() -> None:
    outcome = believed(FIRST, frames.pack(TOKEN, frames.reply_of(Failure("runtime", "bad \udcff name"))))
    assert outcome == Failure("runtime", "bad \\udcff name")


def test_a_config_keeps_its_tuples_and_types() -> None:
    config = {"order": (2, 0, 1), "flag": True, "scale": 1.0, "word": "x", "none": None, "big": 2**70}
    payload = Receiver().feed(frames.pack(TOKEN, Job(verb="first", config=config)))
    assert payload is not None
    assert [(v, type(v)) for v in frames.read_job(payload).config.values()] == [(v, type(v)) for v in config.values()]


def test_a_frame_may_arrive_byte_by_byte() -> None:
    receiver = Receiver(TOKEN)
    frame = frames.pack(TOKEN, Reply(samples_s=[1.0]))
    parts = [receiver.feed(frame[i : i + 1]) for i in range(len(frame))]
    assert parts[:-1] == [None] * (len(frame) - 1)
    assert parts[-1] == frame[20:]


@pytest.mark.parametrize("sample", [nan, inf, -inf, -1.0, 0.0, -0.0, "fast", None, True, [1.0], "1.0"])
def test_a_time_that_no_clock_shows_is_refused(sample: object) -> None:
    payload = msgspec.json.encode({"samples_s": [sample]})
    assert isinstance(believed(FIRST, framed(payload)), BadFrame)


@pytest.mark.parametrize(
    "payload",
    [
        b'{"samples_s":[1e999]}',
        b'{"samples_s":[NaN]}',
        b'{"samples_s":[1.0,1.0]}',
        b'{"samples_s":[]}',
        b'{"samples_s":[1.0],"compile_s":-1}',
        b'{"samples_s":[1.0],"extra":1}',
        b'{"kind":"bored"}',
        b"[" * 100_000,
        b"",
        b"null",
        b"\xff\xfe",
    ],
)
def test_json_that_is_no_reply_is_refused(payload: bytes) -> None:
    assert isinstance(believed(FIRST, framed(payload)), BadFrame)


def test_a_reply_to_another_job_is_refused_at_its_first_byte() -> None:
    with pytest.raises(BadFrame, match="token"):
        Receiver(TOKEN).feed(b"x")


def test_a_frame_that_announces_too_much_is_refused_before_it_is_read() -> None:
    with pytest.raises(BadFrame, match="more than"):
        Receiver(TOKEN).feed(struct.pack("<16sI", TOKEN, 200 << 20))


def test_bytes_behind_a_frame_are_refused() -> None:
    assert isinstance(believed(FIRST, frames.pack(TOKEN, Reply(samples_s=[1.0])) + b"x"), BadFrame)


def test_a_reply_too_large_is_not_packed() -> None:
    with pytest.raises(BadFrame, match="more than"):
        frames.pack(TOKEN, Reply(samples_s=[1e-3] * 1_000_000))


def test_a_reply_with_an_object_in_it_is_not_packed() -> None:
    with pytest.raises(BadFrame, match="JSON"):
        frames.pack(TOKEN, Reply(samples_s=[object()]))  # type: ignore[list-item]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=8,
)
SHAPED = st.fixed_dictionaries(
    {},
    optional={
        "samples_s": st.lists(st.floats() | JSON, max_size=4) | JSON,
        "compile_s": st.floats() | JSON,
        "kind": st.sampled_from(["runtime", "crash"]) | JSON,
        "detail": JSON,
        "taint": JSON,
        "is_refused": JSON,
    },
)
PAYLOADS = st.binary(max_size=200) | JSON.map(msgspec.json.encode) | SHAPED.map(msgspec.json.encode)
FRAMES = st.binary(max_size=200) | PAYLOADS.map(framed) | st.builds(framed, PAYLOADS, st.binary(max_size=16))


def assert_only_sound_outcomes(job: Job, data: bytes) -> None:
    outcome = believed(job, data)
    if isinstance(outcome, Timing):
        assert all(type(s) is float and isfinite(s) and s > 0 for s in outcome.samples_s)
        assert outcome.compile_s is None or (isfinite(outcome.compile_s) and outcome.compile_s >= 0)
    else:
        assert outcome is None or isinstance(outcome, Failure | BadFrame)


@settings(max_examples=1000, deadline=None)
@given(st.sampled_from([FIRST, SAMPLE, VERIFY]), FRAMES)
def test_no_bytes_are_believed_that_are_no_sound_reply(job: Job, data: bytes) -> None:
    assert_only_sound_outcomes(job, data)


@pytest.mark.full
@settings(max_examples=10_000, deadline=None)
@given(st.sampled_from([FIRST, SAMPLE, VERIFY]), FRAMES)
def test_no_bytes_of_ten_thousand_are_believed_that_are_no_sound_reply(job: Job, data: bytes) -> None:
    assert_only_sound_outcomes(job, data)
