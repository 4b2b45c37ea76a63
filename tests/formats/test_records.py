import io
import random
import zlib

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tunewise.decision import Environment, Failure, Part, Problem, Subject, Timing, Trial
from tunewise.decision.canonical import MAX_RECORD_BYTES
from tunewise.errors import InvalidTrial
from tunewise.formats import facts, records
from tunewise.formats.records import Record, Tally
from tunewise.testing.store_contract import subject, timed, won


def _some(count):
    made = [Record(subject(m=m), timed(m, 0.1 * (m + 1), run=f"r{m}")) for m in range(count - 2)]
    return [*made, Record(subject(), Trial({"tile": 3}, Failure("timeout", "10 s"))), Record(subject(), won())]


def _read(raw):
    tally = Tally()
    return list(records.read(io.BytesIO(raw), tally)), tally


def _line(body):
    return b"\n%08x %s\n" % (zlib.crc32(body), body)


def test_records_come_back_equal_and_in_order(tmp_path):
    given_records = _some(10)
    assert records.write(tmp_path / "x.jsonl", given_records) == 10
    read, tally = _read((tmp_path / "x.jsonl").read_bytes())
    assert read == given_records
    assert tally == Tally(read=10)


def test_failed_write_leaves_the_old_file_and_no_other(tmp_path):
    path = tmp_path / "x.jsonl"
    records.write(path, _some(3))
    before = path.read_bytes()

    def breaks():
        yield from _some(5)
        raise RuntimeError("no more")

    with pytest.raises(RuntimeError):
        records.write(path, breaks())
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["x.jsonl"]


def test_file_cut_at_any_byte_keeps_every_whole_record_and_what_is_appended():
    frames = [records.frame(record) for record in _some(40)]
    raw, extra = b"".join(frames), records.frame(Record(subject("appended"), timed(1)))
    assert len(raw) >= 20_000
    whole_at, length = [], 0
    for each in frames:
        length += len(each)
        whole_at.append(length - 1)  # the last byte is only the newline
    for cut in range(len(raw) + 1):
        # Only the last records matter at each cut; reading all of them 20,000 times would take minutes.
        start = max(0, sum(end + 1 <= cut for end in whole_at) - 2)
        skipped = sum(len(f) for f in frames[:start])
        read, tally = _read(raw[skipped:cut] + extra)
        expected = sum(end <= cut for end in whole_at) - start
        assert len(read) == expected + 1
        assert read[-1].subject.decision == "appended"
        assert tally.damaged <= 1


def test_whole_cut_file_is_read_from_its_first_record_on():
    frames = [records.frame(record) for record in _some(40)]
    raw = b"".join(frames)
    for cut in range(0, len(raw), 997):
        read, _ = _read(raw[:cut])
        assert read == _some(40)[: len(read)]
        assert sum(len(f) for f in frames[: len(read)]) <= cut + 1


def test_1000_bit_flips_return_no_wrong_record():
    given_records = _some(12)
    raw = b"".join(records.frame(record) for record in given_records)
    rng = random.Random(5)
    for _ in range(1000):
        flipped = bytearray(raw)
        flipped[rng.randrange(len(raw))] ^= 1 << rng.randrange(8)
        read, tally = _read(bytes(flipped))
        assert all(record in given_records for record in read)
        assert len(read) >= len(given_records) - 2
        assert tally.refused == 0


@pytest.mark.parametrize(
    "change",
    [
        {"outcome": {"is": "timing", "samples_s": [-1.0]}},
        {"outcome": {"is": "timing", "samples_s": [0.0]}},
        {"outcome": {"is": "timing", "samples_s": []}},
        {"outcome": {"is": "timing", "samples_s": ["1"]}},
        {"outcome": {"is": "timing", "samples_s": [None]}},
        {"outcome": {"is": "timing", "samples_s": [True]}},
        {"outcome": {"is": "timing", "samples_s": [1.0], "compile_s": -1.0}},
        {"outcome": {"is": "failure", "kind": "tired"}},
        {"outcome": {"is": "rumour"}},
        {"outcome": 1.0},
        {"config": ["tile", 8]},
        {"config": {"tile": {"nested": 1}}},
        {"config": {"tile": [[1]]}},
        {"at": "noon"},
        {"surprise": 1},
    ],
)
def test_whole_record_with_senseless_values_is_refused_and_counted(change):
    body = msgspec.json.decode(records.frame(Record(subject(), timed(8))).strip()[9:])
    body["trial"].update(change)
    read, tally = _read(_line(msgspec.json.encode(body)) + records.frame(Record(subject(), won())))
    assert len(read) == 1
    assert tally == Tally(read=1, refused=1)


@pytest.mark.parametrize("number", [b"NaN", b"Infinity", b"1e999", b"-1e999"])
def test_numbers_that_json_does_not_have_are_refused(number):
    raw = records.frame(Record(subject(), timed(8, 0.5))).strip()[9:]
    read, tally = _read(_line(raw.replace(b"[0.5]", b"[" + number + b"]")))
    assert (read, tally.refused) == ([], 1)


@pytest.mark.parametrize(
    "body",
    [
        b"{}",
        b"[]",
        b"null",
        b'"' + b"x" * 1000 + b'"',
        b"[" * 100_000,
        b'{"version":2}',
        b'{"version":1,"subject":' + b'{"decision":"x","problem":{},"policy":[],"environment":[]}}',
        b'{"version":1,"subject":{"decision":"x","problem":{},"policy":[],"environment":[["e",'
        + b"[" * 50_000
        + b"]" * 50_000
        + b',"must"]]},"trial":{"config":{},"outcome":{"is":"failure","kind":"crash"}}}',
    ],
)
def test_bombs_and_strangers_are_refused(body):
    read, tally = _read(_line(body))
    assert (read, tally.refused) == ([], 1)


def test_record_longer_than_any_is_passed_over_without_being_held():
    class Endless(io.RawIOBase):
        longest, left = 0, 64 << 20

        def readline(self, size=-1):
            self.longest = max(self.longest, size)
            take = min(size, self.left)
            self.left -= take
            return b"x" * take

    stream, tally = Endless(), Tally()
    assert list(records.read(stream, tally)) == []
    assert tally == Tally(damaged=1)
    assert stream.longest <= MAX_RECORD_BYTES + 16


@pytest.mark.parametrize("raw", [b"", b"\n\n\r\n", b"\0" * 5000, b"deadbeef {}\n", b"not a record\n" * 3])
def test_any_other_file_reads_as_nothing(raw):
    read, tally = _read(raw)
    assert (read, tally.read, tally.refused) == ([], 0, 0)


def test_export_names_no_host_user_or_path(tmp_path, monkeypatch):
    monkeypatch.setenv("SECRET", "hunter2")
    raw = b"".join(records.frame(record) for record in _some(5)).decode()
    for planted in ("hunter2", str(tmp_path), __import__("socket").gethostname(), __import__("getpass").getuser()):
        assert f'"{planted}' not in raw


def test_text_of_a_dying_process_is_kept_readable():
    torn = Trial({"tile": 1}, Failure("crash", "x" * 1_000_000 + "\ud800 the end"))
    read = facts.read_trial(facts.write_trial(torn))
    assert isinstance(read.outcome, Failure)
    assert read.outcome.detail.endswith("the end")
    assert len(read.outcome.detail) <= facts.MAX_DETAIL


def test_value_that_json_cannot_hold_is_refused_by_name():
    with pytest.raises(InvalidTrial, match="trial"):
        facts.write_trial(Trial({"tile": object()}, Timing((1.0,))))  # type: ignore[dict-item]


_TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
_INTEGERS = st.integers(-(2**63), 2**64 - 1)
_SCALAR = st.one_of(st.none(), st.booleans(), _INTEGERS, st.floats(allow_nan=False, allow_infinity=False), _TEXT)
_CONFIGS = st.dictionaries(_TEXT, st.one_of(_SCALAR, st.lists(_SCALAR, max_size=4).map(tuple)), max_size=5)
_FEATURES = st.dictionaries(
    _TEXT.filter(bool), st.one_of(_INTEGERS, st.floats(allow_nan=False, allow_infinity=False), _TEXT), max_size=5
)
_SECONDS = st.floats(min_value=5e-324, allow_infinity=False, allow_nan=False)


def _same_after_the_trip(decision, features, config, samples, text):
    about = Subject(
        decision, Problem(features), (("clock", text),), Environment((Part("x." + text, [text, 1], "must"),))
    )
    record = Record(about, Trial(config, Timing(tuple(samples)), text, text, 1.5))
    read, tally = _read(records.frame(record))
    assert tally == Tally(read=1)
    assert read == [record]
    assert [type(v) for v in read[0].fact.config.values()] == [type(v) for v in config.values()]
    assert read[0].subject.digest == about.digest


_ANY = (_TEXT.filter(bool), _FEATURES, _CONFIGS, st.lists(_SECONDS, min_size=1, max_size=4), _TEXT)


@given(*_ANY)
@settings(max_examples=300, deadline=None)
def test_any_names_and_values_make_the_trip(decision, features, config, samples, text):
    _same_after_the_trip(decision, features, config, samples, text)


@pytest.mark.full
@given(*_ANY)
@settings(max_examples=10_000, deadline=None)
def test_10000_names_and_values_make_the_trip(decision, features, config, samples, text):
    _same_after_the_trip(decision, features, config, samples, text)


@given(st.binary(max_size=400))
@settings(max_examples=300, deadline=None)
def test_any_bytes_behind_a_right_checksum_are_refused_or_read(body):
    read, tally = _read(_line(body.replace(b"\n", b" ").replace(b"\r", b" ")))
    assert len(read) + tally.refused == 1
