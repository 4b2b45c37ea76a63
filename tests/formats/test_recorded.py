"""Recordings are read whole, in any format, and as far as they go where their end is missing."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from tunewise.decision import Failure, Problem, Subject, Timing, Trial
from tunewise.decision.hardware import Environment, Part
from tunewise.errors import InvalidFile, NotFound
from tunewise.formats import records, torn
from tunewise.formats.recorded import Recording, read
from tunewise.formats.records import Record

DATA = Path(__file__).parents[1] / "data"
CACHE = DATA / "convolution.json"


def only(path: Path) -> Recording:
    (recording,) = read(path)
    return recording


def written(path: Path, document: Any) -> Path:
    path.write_text(json.dumps(document))
    return path


def cache(*records: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {"tune_params_keys": ["a"], "cache": {str(r["a"]): r for r in records}, **fields}


def test_a_cache_is_read_with_its_names_times_and_samples() -> None:
    raw, recording = json.loads(CACHE.read_text()), only(CACHE)
    assert (recording.name, recording.device) == ("convolution", "NVIDIA RTX A4000")
    assert recording.kernel == "convolution_kernel"
    assert len(recording.trials) == recording.space.count() == len(raw["cache"])
    for trial, samples_s, record in zip(recording.trials, recording.samples_s, raw["cache"].values(), strict=True):
        assert trial.config == {name: record[name] for name in raw["tune_params_keys"]}
        if isinstance(trial.outcome, Timing):
            assert trial.outcome.time_s == record["time"] * 1e-3
            assert trial.outcome.compile_s == pytest.approx(record["compile_time"] * 1e-3)
            assert samples_s == tuple(sample * 1e-3 for sample in record["times"])


def test_values_stand_in_the_order_of_the_file() -> None:
    params = json.loads(CACHE.read_text())["tune_params"]
    assert {param.name: list(param.values) for param in only(CACHE).space.params} == params


def test_error_words_become_failures_of_their_kind() -> None:
    failed = [t.outcome for t in only(CACHE).trials if isinstance(t.outcome, Failure)]
    assert {(f.kind, f.detail) for f in failed} == {
        ("runtime", "RuntimeFailedConfig"),
        ("compile", "CompilationFailedConfig"),
    }


@pytest.mark.parametrize(
    ("time", "kind"),
    [
        ("InvalidConfig", "constraints"),
        ("SomethingNew", "runtime"),
        (1e20, "runtime"),
        (None, "runtime"),
        (-1, "runtime"),
    ],
)
def test_what_is_no_time_is_a_failure(tmp_path: Path, time: object, kind: str) -> None:
    recording = only(written(tmp_path / "f.json", cache({"a": 1, "time": time}, {"a": 2, "time": 3.0})))
    (failure, timing) = (trial.outcome for trial in recording.trials)
    assert isinstance(failure, Failure)
    assert failure.kind == kind
    assert isinstance(timing, Timing)
    assert recording.times_s == (None, 0.003)


def test_not_a_number_as_python_writes_it_is_a_failure_and_no_damage(tmp_path: Path) -> None:
    path = tmp_path / "f.json"
    path.write_text(json.dumps(cache({"a": 1, "time": float("nan")}, {"a": 2, "time": 3.0}, kernel_name="NaN")))
    recording = only(path)
    assert recording.times_s == (None, 0.003)
    assert (recording.kernel, recording.remark) == ("NaN", "")


def test_a_t4_file_says_the_same_as_the_cache_it_was_made_from() -> None:
    ours, theirs = only(CACHE), only(DATA / "convolution.t4.json")
    assert theirs.times_s == ours.times_s
    assert theirs.samples_s == ours.samples_s
    assert [t.config for t in theirs.trials] == [t.config for t in ours.trials]
    kinds = [[t.outcome.kind for t in r.trials if isinstance(t.outcome, Failure)] for r in (ours, theirs)]
    assert kinds[0] == kinds[1]


@pytest.mark.parametrize(("unit", "second"), [("seconds", 1.0), ("milliseconds", 1e-3), ("miliseconds", 1e-3)])
def test_a_t4_file_tells_its_time_unit(tmp_path: Path, unit: str, second: float) -> None:
    result = {"configuration": {"a": 1}, "times": {"runtimes": [2.0, 4.0]}, "invalidity": "correct"}
    path = written(tmp_path / "f.json", {"metadata": {"timeunit": unit}, "results": [result]})
    assert only(path).times_s == (3.0 * second,)


def test_every_word_of_t4_for_an_invalid_config_is_a_failure(tmp_path: Path) -> None:
    words = ["compile", "runtime", "timeout", "correctness", "constraints", "odd", "correct"]
    results = [
        {"configuration": {"a": n}, "invalidity": word, "times": {"runtimes": [1.0]}} for n, word in enumerate(words)
    ]
    recording = only(written(tmp_path / "f.json", {"results": results}))
    kinds = [t.outcome.kind for t in recording.trials if isinstance(t.outcome, Failure)]
    assert kinds == [*words[:5], "runtime"]


def test_gzip_is_unpacked_whatever_the_name(tmp_path: Path) -> None:
    path = tmp_path / "cache"
    path.write_bytes(gzip.compress(CACHE.read_bytes()))
    assert only(path).trials[0].config == only(CACHE).trials[0].config


def test_an_unclosed_cache_is_whole() -> None:
    recording = only(DATA / "convolution-unclosed.json")
    assert len(recording.trials) == 12
    assert recording.remark == ""


def test_a_file_cut_anywhere_is_read_up_to_its_last_whole_record(tmp_path: Path) -> None:
    raw = (DATA / "convolution-unclosed.json").read_bytes()
    whole = only(DATA / "convolution-unclosed.json")
    ends = [i + 1 for i in range(len(raw)) if raw[i : i + 2] == b"},"][1:]  # the first one closes the parameters
    path = tmp_path / "cut.json"
    for cut in [*range(ends[0], len(raw), 97), *ends, *(end - 1 for end in ends[1:])]:
        path.write_bytes(raw[:cut])
        recording = only(path)
        count = sum(end <= cut for end in ends)
        assert [t.config for t in recording.trials] == [t.config for t in whole.trials[:count]]
        is_torn = raw[ends[count - 1] : cut].strip(b",\n") != b""
        assert bool(recording.remark) == is_torn


def test_a_torn_t4_file_is_read_up_to_its_last_whole_record(tmp_path: Path) -> None:
    raw = (DATA / "convolution.t4.json").read_bytes()
    path = tmp_path / "cut.json"
    path.write_bytes(raw[: len(raw) // 2])
    whole, half = only(DATA / "convolution.t4.json"), only(path)
    assert 0 < len(half.trials) < len(whole.trials)
    assert half.times_s == whole.times_s[: len(half.times_s)]
    assert half.remark


def test_a_gzip_cut_in_the_middle_is_read_as_far_as_it_goes(tmp_path: Path) -> None:
    packed = (DATA / "pnpoly.json.gz").read_bytes()
    path = tmp_path / "cut.json.gz"
    path.write_bytes(packed[: len(packed) // 2])
    whole, half = only(DATA / "pnpoly.json.gz"), only(path)
    assert 50 < len(half.trials) < len(whole.trials)
    assert half.times_s == whole.times_s[: len(half.times_s)]
    assert half.remark


def test_a_recorded_value_takes_the_spelling_of_the_parameter(tmp_path: Path) -> None:
    document = cache({"a": 1.0, "time": 1.0}, {"a": 2, "time": 2.0}, tune_params={"a": [1, 2]})
    assert [trial.config["a"] for trial in only(written(tmp_path / "f.json", document)).trials] == [1, 2]
    assert [type(trial.config["a"]) for trial in only(tmp_path / "f.json").trials] == [int, int]


def test_values_that_are_lists_are_words(tmp_path: Path) -> None:
    document = cache({"a": [1, 2], "time": 1.0}, {"a": [2, 1], "time": 2.0}, tune_params={"a": [[1, 2], [2, 1]]})
    assert [trial.config["a"] for trial in only(written(tmp_path / "f.json", document)).trials] == ["[1,2]", "[2,1]"]


SUBJECT = Subject("gemm", Problem({"m": 4}), (("clock", "cpu"),), Environment((Part("hardware.name", "box", "must"),)))


def test_an_export_gives_one_recording_a_problem(tmp_path: Path) -> None:
    other = Subject("gemm", Problem({"m": 8}), SUBJECT.policy, SUBJECT.environment)
    facts = [
        Record(SUBJECT, Trial({"a": 1}, Timing((1.0, 3.0)))),
        Record(SUBJECT, Trial({"a": 2}, Failure("crash"))),
        Record(other, Trial({"a": 1}, Timing((5.0,)))),
        Record(SUBJECT, Trial({"a": 1}, Timing((1.5, 9.0)))),
    ]
    records.write(tmp_path / "facts.jsonl", facts)
    four, eight = read(tmp_path / "facts.jsonl")
    assert (four.kernel, four.device) == ("gemm", "box")
    assert [four.name, eight.name] == ["facts: gemm m=4", "facts: gemm m=8"]
    assert four.times_s == (1.25, None)  # the lower half of all samples of a config
    assert four.samples_s[0] == (1.0, 3.0, 1.5, 9.0)
    assert eight.times_s == (5.0,)


def test_a_damaged_line_of_an_export_costs_that_record(tmp_path: Path) -> None:
    path = tmp_path / "facts.jsonl"
    records.write(path, [Record(SUBJECT, Trial({"a": n}, Timing((1.0 + n,)))) for n in range(3)])
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:-1]) + lines[-1].replace(b"3.0", b"3.5"))
    recording = only(path)
    assert recording.times_s == (1.0, 2.0)
    assert "1 damaged" in recording.remark


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "is empty"),
        (b" \n ", "is empty"),
        (b"hello", "is none of: .*it is not JSON"),
        (b"{", "it is not JSON"),
        (b"[1, 2]", "neither `cache` nor `results`"),
        (b'{"a": 1}', "neither `cache` nor `results`"),
        (b'{"cache": 7}', "Kernel Tuner cache that cannot be replayed"),
        (b'{"cache": {}}', "no `tune_params_keys`"),
        (b'{"tune_params_keys": ["a"], "cache": {}}', "not one of its 0 configs has a time"),
        (b'{"tune_params_keys": ["a"], "cache": {"1": {"time": 1}}}', "has no value of 'a'"),
        (b'{"tune_params_keys": ["a b"], "cache": {"1": {"a b": 1, "time": 1}}}', "'a b' is not an identifier"),
        (b'{"results": [{"configuration": {"a": 1}, "times": {}}]}', "not one of its 1 configs"),
        (b'{"results": [], "metadata": {"timeunit": "fortnights"}}', "the time unit 'fortnights' is not one of"),
        (
            b'{"results": [{"configuration": {"a": 1}, "times": {"runtimes": [1]}}, {"configuration": {"b": 1}}]}',
            "config",
        ),
        (b"\x1f\x8b\x08\x00", "is empty"),
        (b"\x1f\x8bxxxxxxxxxxxxxxxx", "cannot be unpacked"),
        (b'{"cache": ' + b"[" * 100_000, "is none of|cannot be replayed"),
    ],
)
def test_what_is_no_recording_is_refused_in_a_sentence(tmp_path: Path, content: bytes, reason: str) -> None:
    path = tmp_path / "file.json"
    path.write_bytes(content)
    with pytest.raises(InvalidFile, match=reason) as refused:
        read(path)
    assert str(path) in str(refused.value)
    assert "\n" not in str(refused.value)


def test_files_that_are_not_there_and_directories_are_told_apart(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="there is no file"):
        read(tmp_path / "none.json")
    with pytest.raises(InvalidFile, match="is a directory"):
        read(tmp_path)


def test_a_gzip_bomb_is_not_unpacked(tmp_path: Path) -> None:
    path = tmp_path / "bomb.gz"
    path.write_bytes(gzip.compress(b" " * (8 << 20)))
    with pytest.raises(InvalidFile, match="more than 1 MiB"):
        torn.load(path, limit_bytes=1 << 20)
