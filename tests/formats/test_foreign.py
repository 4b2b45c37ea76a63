"""Others' files are known by what they hold, keep all they tell from file to file, and break nothing when damaged."""

import gzip
import json
import os
import random
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from foreign_samples import CONFIG, HELION_BEST, SAMPLES, TRITON, VLLM, VLLM_NAME, damaged

from tunewise.decision import Failure, Timing
from tunewise.errors import InvalidData, InvalidFile, NotFound, TunewiseError
from tunewise.formats import foreign, helionlog
from tunewise.formats.findings import Finding

NAMES = [one.name for one in foreign.FORMATS]
SHARED = Path(os.environ.get("TUNEWISE_DATA", ""))
shared_only = pytest.mark.skipif(
    "TUNEWISE_DATA" not in os.environ, reason="TUNEWISE_DATA does not name the folder of shared data"
)


def sample(place: Path, name: str) -> Path:
    file, raw = SAMPLES[name]
    (place / file).write_bytes(raw)
    return place / file


def put(path: Path, document: Any) -> Path:
    path.write_text(document if isinstance(document, str) else json.dumps(document))
    return path


def told(path: Path, name: str | None = None) -> tuple[Finding, ...]:
    return foreign.read(path, name).findings


def again(findings: tuple[Finding, ...], name: str, place: Path) -> list[Finding]:
    """Return what is read of what is written of findings."""
    back = []
    for file in foreign.write(findings, name):
        for path, raw in file.files(place / file.name):
            path.write_bytes(raw)
        back += told(place / file.name, name)
    return back


def test_there_is_a_sample_of_every_format() -> None:
    assert set(NAMES) == set(SAMPLES)


@pytest.mark.parametrize("name", NAMES)
def test_a_file_is_known_by_what_it_holds(tmp_path: Path, name: str) -> None:
    found = foreign.read(sample(tmp_path, name))
    assert found.format.name == name
    assert not found.remark


@pytest.mark.parametrize("name", NAMES)
def test_what_is_written_tells_the_same(tmp_path: Path, name: str) -> None:
    found = told(sample(tmp_path, name))
    (tmp_path / "back").mkdir()
    assert again(found, name, tmp_path / "back") == list(found)


@pytest.mark.parametrize("name", NAMES)
def test_gzip_is_unpacked(tmp_path: Path, name: str) -> None:
    plain = sample(tmp_path, name)
    packed = plain.with_name(plain.name + ".gz")
    packed.write_bytes(gzip.compress(plain.read_bytes()))
    assert len(told(packed, name)) == len(told(plain))


def test_a_vllm_file_tells_its_shape_device_and_version_by_its_name(tmp_path: Path) -> None:
    found = told(sample(tmp_path, "vllm"))
    assert [dict(one.config) for one in found] == list(VLLM.values())
    shape = {"E": 8, "N": 14336, "dtype": "fp8_w8a8", "block_shape": "[128,128]"}
    assert dict(found[1].problem) == {**shape, "M": 64}
    assert (found[0].device, found[0].versions, found[0].outcome) == (
        "NVIDIA H100 80GB HBM3",
        {"triton": "3.4.0"},
        None,
    )
    (written,) = foreign.write(found, "vllm")
    assert written.name == VLLM_NAME
    assert json.loads(written.raw) == {**VLLM, "triton_version": "3.4.0"}


@pytest.mark.parametrize(
    "name",
    [
        "E=1,N=14336,device_name=NVIDIA_A100-SXM4-80GB.json",
        "N=1536,K=7168,device_name=NVIDIA_B200,dtype=fp8_w8a8,block_shape=[128,128].json",
        "E=256,N=256,device_name=AMD_Instinct_MI300X,per_channel_quant=True_down.json",
        "E=257,N=256,device_name=NVIDIA_H20-3e,dtype=fp8_w8a8,block_shape=[128, 128]_down.json",
        "E=8,inter_size=64,hidden_size=32,device_name=NVIDIA_H20_down.json",
        "headdim=64,dstate=128,device_name=Intel(R)_Arc(TM)_Pro_B60_Graphics,cache_dtype=float16.json",
    ],
)
def test_names_of_all_kinds_of_vllm_and_sglang_files_survive(tmp_path: Path, name: str) -> None:
    (tmp_path / "triton_3_1_0").mkdir()
    found = told(put(tmp_path / "triton_3_1_0" / name, VLLM))
    assert found[0].versions == {"triton": "3.1.0"}
    (written,) = foreign.write(found, "vllm")
    assert written.name == name


def test_the_down_projection_of_sglang_is_a_feature_and_no_part_of_a_device(tmp_path: Path) -> None:
    found = told(put(tmp_path / "E=8,N=64,device_name=NVIDIA_H20_down.json", VLLM))
    assert (found[0].device, dict(found[0].problem)) == ("NVIDIA H20", {"E": 8, "N": 64, "M": 1, "down_moe": "True"})


def test_a_vllm_file_of_configs_of_several_versions_names_none(tmp_path: Path) -> None:
    first, second, third = told(sample(tmp_path, "vllm"))
    (written,) = foreign.write((third, first, replace(second, versions={"triton": "3.5"})), "vllm")
    assert json.loads(written.raw) == VLLM
    assert list(json.loads(written.raw)) == ["1", "64", "1024"]


def test_a_tunable_result_keeps_validators_shapes_solutions_and_times(tmp_path: Path) -> None:
    first, second, third, fourth = told(sample(tmp_path, "tunable"))
    assert first.decision == "GemmTunableOp_float_NN"
    assert dict(first.problem) == {"layout": "nn", "m": 1024, "n": 512, "k": 2048}
    assert first.config == {"solution": "Gemm_Hipblaslt_NN_52565"}
    assert first.outcome == Timing((0.0653662 * 1e-3,))
    assert (first.device, list(first.versions)) == (
        "gfx942:sramecc+:xnack-",
        ["PT_VERSION", "ROCM_VERSION", "GCN_ARCH_NAME"],
    )
    assert second.problem["ldb"] == 512
    assert (third.outcome, dict(third.problem)) == (None, {"layout": "tn", "m": 64, "n": 64, "k": 64, "batch": 16})
    assert fourth.problem["params"] == "tn_64_64_64_ld_64_64_64_rw_1_bias_None"


@pytest.mark.parametrize(
    ("params", "features"),
    [
        ("nc_1_2_3", {"layout": "nc"}),
        ("tn_1_2_3_B_4", {"batch": 4}),
        ("tn_1_2_3_B_4_ld_5_6_7", {"batch": 4, "lda": 5, "ldc": 7}),
        ("tn_1_2_3_ld_5_6_7", {"lda": 5}),
        ("tn_1_2_3_ld_5_6_7_rw_1_bias_None", {"params": "tn_1_2_3_ld_5_6_7_rw_1_bias_None"}),
        ("tn_01_2_3", {"params": "tn_01_2_3"}),
    ],
)
def test_shapes_of_all_kinds_of_tunable_operators_survive(
    tmp_path: Path, params: str, features: dict[str, Any]
) -> None:
    (found,) = told(put(tmp_path / "t.csv", f"GemmTunableOp_x,{params},Default,1.0\n"))
    assert features.items() <= dict(found.problem).items()
    (written,) = foreign.write((found,), "tunable")
    assert written.raw.decode() == f"GemmTunableOp_x,{params},Default,1.0\n"


def test_a_triton_cache_tells_its_key_three_quantiles_and_failures(tmp_path: Path) -> None:
    first, second, third = told(sample(tmp_path, "triton"))
    assert first.decision == "matmul_kernel"
    assert dict(first.problem) == {"key_0": 1024, "key_1": 512, "key_2": "torch.float16"}
    assert first.config == {"BLOCK_M": 64, "EVEN_K": True, "num_warps": 4, "num_ctas": 1, "num_stages": 3}
    assert first.outcome == Timing((0.25e-3, 0.125e-3, 0.5e-3))
    assert second.time_s == 0.1e-3
    assert third.outcome == Failure("constraints", "Infinity")
    (written,) = foreign.write((first, second, third), "triton")
    document = json.loads(written.raw)
    assert document["key"] == TRITON["key"]
    assert document["configs_timings"][2][1] == [float("inf")] * 3
    assert document["configs_timings"][0][0]["kwargs"] == {"BLOCK_M": 64, "EVEN_K": True}


@pytest.mark.parametrize("name", ["softmax.autotune.json", "softmax.json"])
def test_a_triton_cache_is_about_the_kernel_it_is_named_after(tmp_path: Path, name: str) -> None:
    assert told(put(tmp_path / name, json.dumps(TRITON)))[0].decision == "softmax"


def test_a_kernel_tuner_cache_tells_its_problem_every_sample_and_why_a_config_failed(tmp_path: Path) -> None:
    found = told(sample(tmp_path, "kernel-tuner"))
    raw = json.loads(SAMPLES["kernel-tuner"][1])
    assert {dict(one.problem)["problem_size_x"] for one in found} == {4096}
    assert {(one.decision, one.device) for one in found} == {("convolution_kernel", "NVIDIA RTX A4000")}
    for finding, record in zip(found, raw["cache"].values(), strict=True):
        if isinstance(finding.outcome, Timing):
            assert finding.outcome.samples_s == tuple(sample * 1e-3 for sample in record["times"])
            assert finding.outcome.compile_s == record["compile_time"] * 1e-3
        else:
            assert isinstance(finding.outcome, Failure)
            assert finding.outcome.detail == record["time"]
    (written,) = foreign.write(found, "kernel-tuner")
    document = json.loads(written.raw)
    assert document["problem_size"] == raw["problem_size"]
    assert list(document["cache"]) == list(raw["cache"])
    for key, record in raw["cache"].items():
        if isinstance(record["time"], float):
            assert document["cache"][key]["time"] == pytest.approx(record["time"], rel=1e-12)
        assert document["cache"][key]["timestamp"] == record["timestamp"]


RECORD = {"a": 1, "energy": 2.5, "compile_time": 7.0}


def cache(record: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {"tune_params_keys": ["a"], "tune_params": {"a": [1]}, "cache": {"1": record}, **fields}


@pytest.mark.parametrize(
    ("name", "document"),
    [
        ("kernel-tuner", cache(RECORD, objective="energy")),
        ("kernel-tuner", cache({**RECORD, "time": None})),
        ("helion-log", f"{','.join(helionlog.FIELDS)}\nr,1,c,0,ok,,,Config(a=1)\n"),
        ("helion-trace", '{"run_id": 1, "event": "trial", "status": "ok", "perf_ms": null, "config": {"a": 1}}\n'),
        (
            "t4",
            {"results": [{"configuration": {"a": 1}, "times": {}, "measurements": [{"name": "energy", "value": 2}]}]},
        ),
    ],
)
def test_a_config_of_which_no_time_is_told_did_not_fail(tmp_path: Path, name: str, document: Any) -> None:
    found = foreign.read(put(tmp_path / "f.json", document))
    assert (found.format.name, found.findings[0].outcome) == (name, None)
    assert found.remark == "tells neither a time nor a failure of 1 of 1 configs"
    assert again(found.findings, name, tmp_path) == list(found.findings)


def test_how_long_a_config_was_compiled_that_failed_stays_from_file_to_file(tmp_path: Path) -> None:
    found = told(put(tmp_path / "c.json", cache({**RECORD, "time": "CompilationFailedConfig"})))
    (written,) = foreign.write(found, "kernel-tuner")
    assert json.loads(written.raw)["cache"]["1"] == {**RECORD, "time": "CompilationFailedConfig"}


@pytest.mark.parametrize(
    ("size", "problem"),
    [(80, {"problem_size_x": 80}), (None, {}), (["n", 1], {"problem_size": '["n",1]'}), ([1, 2, 3], None)],
)
def test_problem_sizes_of_all_kinds_are_read(tmp_path: Path, size: Any, problem: dict[str, Any] | None) -> None:
    (found,) = told(put(tmp_path / "c.json", cache({"a": 1, "time": 1.0}, problem_size=size)))
    assert dict(found.problem) == (problem if problem is not None else dict(zip(AXES, size, strict=True)))


AXES = ("problem_size_x", "problem_size_y", "problem_size_z")


def test_a_t4_file_says_what_the_cache_it_was_made_from_says(tmp_path: Path) -> None:
    theirs, ours = told(sample(tmp_path, "kernel-tuner")), told(sample(tmp_path, "t4"))
    assert [(one.config, one.time_s, one.at) for one in ours] == [(one.config, one.time_s, one.at) for one in theirs]
    kinds = [[one.outcome.kind for one in found if isinstance(one.outcome, Failure)] for found in (ours, theirs)]
    assert kinds[0] == kinds[1]


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_a_t4_file_keeps_its_unit(tmp_path: Path, unit: str) -> None:
    result = {"configuration": {"a": 1}, "times": {"runtimes": [2.0, 4.0]}, "invalidity": "correct"}
    found = told(put(tmp_path / "f.json", {"metadata": {"timeunit": unit}, "results": [result]}))
    assert found[0].unit == unit
    assert again(found, "t4", tmp_path) == list(found)


def test_a_helion_log_tells_each_config_once_and_takes_its_lists_apart(tmp_path: Path) -> None:
    first, second, third, fourth = told(sample(tmp_path, "helion-log"))
    parts = {"block_sizes_0": 16, "block_sizes_1": 64, "loop_orders_0": "[0,1]", "num_warps": 4, "flag": False}
    assert first.config == parts
    assert first.outcome == Timing((1629.968675 * 1e-3,), 0.52)
    assert [one.outcome for one in (second, third)] == [Failure("timeout", "timeout"), Failure("runtime", "error")]
    assert third.config["indexing"] == "[]"
    assert fourth.outcome == Failure("runtime", "started")


def test_the_hashes_that_helion_writes_beside_a_log_are_no_log(tmp_path: Path) -> None:
    hashes = "run_id,timestamp_s,config_id,generation,status,source_hash\nr,1,c,0,ok,ab\n"
    with pytest.raises(InvalidFile, match="of no format we know"):
        foreign.read(put(tmp_path / "log.sources.csv", hashes))


def test_what_helion_measured_again_is_kept_too(tmp_path: Path) -> None:
    row = {"run_id": "r", "event": "trial", "config_id": "c", "status": "ok", "perf_ms": 2.0, "config": {"a": 1}}
    lines = [row, {**row, "event": "rebenchmark", "perf_ms": 1.0}]
    found = told(put(tmp_path / "t.jsonl", "".join(json.dumps(line) + "\n" for line in lines)))
    assert [one.time_s for one in found] == [2.0e-3, 1.0e-3]
    (written,) = foreign.write(found, "helion-trace")
    assert [json.loads(line)["event"] for line in written.raw.splitlines()] == ["trial", "rebenchmark"]


def test_a_helion_trace_tells_when_and_what(tmp_path: Path) -> None:
    first, second = told(sample(tmp_path, "helion-trace"))
    assert (first.outcome, first.at) == (Timing((0.125e-3,), 1.5), 1794767540.5)
    assert second.outcome == Failure("correctness", "accuracy_error")


META = {
    "run_id": "r1",
    "kernel_name": "matmul",
    "input_shapes": "[(64, 32), (32, 8)]",
    "dtypes": "['torch.float32', 'torch.bfloat16']",
    "hardware": "NVIDIA H100",
}


def test_a_helion_log_is_about_what_is_told_beside_it(tmp_path: Path) -> None:
    log = sample(tmp_path, "helion-log")
    put(tmp_path / "helion.meta.jsonl", json.dumps(META) + "\n")
    found = told(log)
    assert (found[0].decision, found[0].device) == ("helion.matmul", "NVIDIA H100")
    sizes = {"arg0_dim0": 64, "arg0_dim1": 32, "arg1_dim0": 32, "arg1_dim1": 8}
    assert dict(found[0].problem) == {**sizes, "arg0_dtype": "float32", "arg1_dtype": "bfloat16"}
    (tmp_path / "back").mkdir()
    assert again(found, "helion-log", tmp_path / "back") == list(found)
    put(tmp_path / "helion.meta.jsonl", "not JSON")
    assert told(log)[0].decision == ""


@pytest.mark.parametrize("name", ["helion-log", "helion-trace", "tunable"])
def test_a_last_line_that_was_never_ended_is_left_out_and_told(tmp_path: Path, name: str) -> None:
    file, raw = SAMPLES[name]
    lines = raw.splitlines(keepends=True)
    kept = b"".join(lines[:-1])
    (tmp_path / file).write_bytes(kept)
    whole = foreign.read(tmp_path / file)
    (tmp_path / file).write_bytes(kept + lines[-1][:15])
    torn = foreign.read(tmp_path / file)
    assert torn.findings == whole.findings
    assert (whole.remark, torn.remark) == ("", f"ends early; {len(whole.findings)} configs were read")
    (tmp_path / file).write_bytes(kept + lines[-1][:15] + b"\n")
    with pytest.raises(InvalidFile, match=rf"line {len(lines)}\b"):
        foreign.read(tmp_path / file)


def test_a_whole_last_line_without_its_end_is_kept(tmp_path: Path) -> None:
    found = foreign.read(put(tmp_path / "t.csv", "GemmTunableOp_x,nn_1_2_3,a,1.0\nGemmTunableOp_x,nn_1_2_4,b,2.0"))
    assert (len(found.findings), found.remark) == (2, "")


@pytest.mark.parametrize("name", ["helion-log", "helion-trace", "tunable"])
def test_gzip_that_ends_early_is_read_up_to_its_last_whole_line(tmp_path: Path, name: str) -> None:
    file, raw = SAMPLES[name]
    plain = tmp_path / file
    plain.write_bytes(raw)
    packed = gzip.compress(raw)
    (tmp_path / f"{file}.gz").write_bytes(packed[: len(packed) - 30])
    cut = foreign.read(tmp_path / f"{file}.gz", name)
    assert cut.findings == foreign.read(plain).findings[: len(cut.findings)]
    assert "ends early" in cut.remark


def test_a_best_config_tells_its_arguments_device_and_versions(tmp_path: Path) -> None:
    (found,) = told(sample(tmp_path, "helion-best"))
    assert dict(found.problem) == {
        "arg0_dim0": 64,
        "arg0_dim1": 32,
        "arg0_dtype": "float32",
        "arg0_contiguous": 1,
        "arg1_dim0": 32,
        "arg1_dim1": 8,
        "arg1_dtype": "bfloat16",
        "arg1_contiguous": 0,
    }
    assert (found.device, found.versions["backend"]) == ("NVIDIA H100", "triton")
    (written,) = foreign.write((found,), "helion-best")
    document = json.loads(written.raw)
    assert json.loads(document["config"]) == CONFIG
    assert document["key"] == HELION_BEST["key"]
    assert document["flat_config"] == HELION_BEST["flat_config"]
    assert written.name == SAMPLES["helion-best"][0]


MALFORMED: list[tuple[str, str, Any, str]] = [
    ("vllm", "E=1,device_name=X.json", {"a": {"b": 1}}, "the key 'a'"),
    ("vllm", "E=1,device_name=X.json", {"16": [1]}, "M=16 is not a config"),
    ("vllm", "E=1,device_name=X.json", {"triton_version": "3"}, "no config for any M"),
    ("vllm", "E=1,device_name=X,odd.json", VLLM, "its name is not"),
    ("tunable", "t.csv", "Validator,PT_VERSION,1\nop,nn_1_1_1\n", "line 2 is not operator"),
    ("tunable", "t.csv", "op,nn_1_1_1,sol,fast\n", "line 1: 'fast' is not a number"),
    ("tunable", "t.csv", "op,nn_1_1_1,sol,-1\n", "line 1: '-1' is not a time"),
    ("triton", "k.autotune.json", {"key": [], "configs_timings": [[{"kwargs": {"a": 1}}, ["x"]]]}, "config 1:"),
    ("triton", "k.autotune.json", {"key": [], "configs_timings": [[{"kwargs": []}, [1]]]}, "config 1: its kwargs"),
    (
        "triton",
        "k.autotune.json",
        {"configs_timings": [[{"kwargs": {"num_warps": 1}}, [1]]]},
        "'num_warps' is an option",
    ),
    ("kernel-tuner", "c.json", {"cache": {}, "tune_params_keys": []}, "no `tune_params_keys`"),
    ("kernel-tuner", "c.json", {"tune_params_keys": ["a"], "cache": {"1": {"time": 1}}}, "'1' has no value of 'a'"),
    ("t4", "t.json", {"results": [{"configuration": {}}]}, "result 1, configuration is not a config"),
    ("t4", "t.json", {"results": [], "metadata": {"timeunit": "weeks"}}, "the time unit 'weeks'"),
    ("helion-log", "l.csv", "run_id,timestamp_s,config_id,generation,status\n1,2,3\n", "line 2 has 3 cells"),
    (
        "helion-log",
        "l.csv",
        "run_id,timestamp_s,config_id,generation,status,perf_ms,config\n1,2,3,4,ok,1,print(1)\n",
        "line 2: 'print(1)' is not a config",
    ),
    ("helion-trace", "l.jsonl", '{"run_id": 1, "event": "trial"}\n{"run_id": 1,\n', "line 2 is not JSON"),
    ("helion-trace", "l.jsonl", '{"run_id": 1, "event": "trial", "config": {"a": 1}}\n', "line 1 has no status"),
    ("helion-best", "b.best_config", {"config": "{", "key": {"fields": {}}}, "config: not JSON"),
    ("helion-best", "b.best_config", {"config": "[]", "key": {"fields": {}}}, "config is not a config"),
]


@pytest.mark.parametrize(("name", "file", "document", "said"), MALFORMED, ids=[said for *_, said in MALFORMED])
def test_what_is_malformed_is_one_sentence_with_the_place(
    tmp_path: Path, name: str, file: str, document: Any, said: str
) -> None:
    with pytest.raises(InvalidFile) as caught:
        foreign.read(put(tmp_path / file, document), name)
    assert said in str(caught.value)
    assert file in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_file_of_no_format_and_a_format_of_no_name_are_told(tmp_path: Path) -> None:
    with pytest.raises(InvalidFile, match="of no format we know"):
        foreign.read(put(tmp_path / "f.json", {"a": 1}))
    with pytest.raises(NotFound, match="there are vllm"):
        foreign.read(put(tmp_path / "f.json", {"a": 1}), "odd")
    with pytest.raises(NotFound):
        foreign.read(tmp_path / "missing.json")


def test_what_a_format_cannot_say_is_refused(tmp_path: Path) -> None:
    cache = told(sample(tmp_path, "kernel-tuner"))
    with pytest.raises(InvalidData, match="has a config for each M"):
        foreign.write(cache, "vllm")
    with pytest.raises(InvalidData, match="a tunable result is"):
        foreign.write(cache, "tunable")
    with pytest.raises(InvalidData, match="nothing to write"):
        foreign.write((), "t4")


def test_names_never_lead_out_of_a_directory(tmp_path: Path) -> None:
    hostile = "../../etc/passwd\0"
    found = [
        Finding(hostile, one.problem, one.config, one.outcome, hostile) for one in told(sample(tmp_path, "triton"))
    ]
    for name in ("triton", "kernel-tuner", "t4", "helion-log"):
        for file in foreign.write(found, name):
            assert Path(file.name).name == file.name
            assert not file.name.startswith(".")


def attempts(place: Path, name: str, count: int) -> tuple[int, list[str]]:
    """Return how many damaged files were read, and why the others were refused; anything else is raised."""
    rng = random.Random(f"{name} {count}")
    file, raw = SAMPLES[name]
    target, read, refused = place / file, 0, list[str]()
    for _ in range(count):
        target.write_bytes(damaged(raw[:6000] if rng.random() < 0.5 else raw, rng))
        try:
            found = foreign.read(target, name if rng.random() < 0.5 else None)
        except TunewiseError as error:
            refused.append(str(error))
            continue
        read += 1
        with suppress(InvalidData):  # a format may not be able to write what another one tells
            foreign.write(found.findings, found.format.name)
    assert not [said for said in refused if str(target) not in said or len(said.splitlines()) > 1]
    return read, refused


@pytest.mark.parametrize("name", NAMES)
def test_damaged_files_are_read_or_refused_in_one_sentence(tmp_path: Path, name: str) -> None:
    read, refused = attempts(tmp_path, name, 60)
    assert read
    assert refused


@pytest.mark.full
@pytest.mark.parametrize("name", NAMES)
def test_a_thousand_damaged_files_are_read_or_refused_in_one_sentence(tmp_path: Path, name: str) -> None:
    read, refused = attempts(tmp_path, name, 1000)
    assert read + len(refused) == 1000
    assert len(refused) > 100


@shared_only
@pytest.mark.parametrize(("file", "count"), [("helion-autotune.csv", 22), ("helion-autotune.trace.jsonl", 22 + 19)])
def test_the_shared_helion_logs_survive(tmp_path: Path, file: str, count: int) -> None:
    found = foreign.read(SHARED / "formats" / file)
    assert len(found.findings) == count
    assert all(isinstance(one.outcome, Timing) for one in found.findings)
    assert again(found.findings, found.format.name, tmp_path) == list(found.findings)


@shared_only
@pytest.mark.full
@pytest.mark.parametrize("file", sorted(path.name for path in (SHARED / "spaces").glob("*.gz")))
def test_the_shared_spaces_survive(tmp_path: Path, file: str) -> None:
    found = foreign.read(SHARED / "spaces" / file)
    assert again(found.findings, found.format.name, tmp_path) == list(found.findings)


@shared_only
def test_a_shared_space_survives(tmp_path: Path) -> None:
    found = foreign.read(SHARED / "spaces" / "pnpoly-RTX3090.json.gz")
    assert len(found.findings) == 4092
    assert again(found.findings, found.format.name, tmp_path) == list(found.findings)
