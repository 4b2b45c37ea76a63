"""`tunewise import` and `export`: others' files in, after saying so, and out again as they were."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from tunewise.decision import detect
from tunewise.formats import foreign

Cli = Callable[..., Result]
Asked = Callable[..., Any]
CACHE = Path(__file__).parents[1] / "data" / "convolution.json"
T4 = CACHE.with_name("convolution.t4.json")
VLLM = {"1": {"work": 1}, "64": {"work": 2}, "triton_version": "3.4.0"}


@pytest.fixture
def vllm(tmp_path: Path) -> Path:
    """A tuned file for this very device."""
    path = tmp_path / f"E=8,N=64,device_name={detect().name.replace(' ', '_')}.json"
    path.write_text(json.dumps(VLLM))
    return path


def test_a_dry_run_says_what_would_be_added_and_adds_nothing(asked: Asked) -> None:
    for _ in range(2):
        told = asked("import", CACHE, "--dry-run")
        assert (told["added"], told["known"], told["is_done"]) == (38, 0, False)
    assert told["files"][0]["format"] == "kernel-tuner"
    assert told["files"][0]["timed"] + told["files"][0]["failed"] == 38


def test_what_is_imported_is_remembered_and_only_once(asked: Asked) -> None:
    assert asked("import", CACHE)["added"] == 38
    assert asked("import", CACHE)["known"] == 38
    assert asked("trials", "convolution_kernel", "--limit", 0)["total"] == 38


@pytest.mark.parametrize("name", ["kernel-tuner", "t4"])
def test_what_is_exported_tells_what_was_imported(cli: Cli, asked: Asked, tmp_path: Path, name: str) -> None:
    asked("import", CACHE)
    out = tmp_path / "out.json"
    told = asked("export", "convolution_kernel", "--format", name, "--out", out)
    assert told == {"files": [str(out)], "configs": 38, "left_out": 0}
    back = foreign.read(out)
    assert back.format.name == name
    ours, theirs = (
        [(one.config, one.outcome, one.at) for one in f] for f in (back.findings, foreign.read(CACHE).findings)
    )
    assert ours == theirs
    assert {(one.device, one.problem) for one in back.findings} == {
        (one.device, one.problem) for one in foreign.read(CACHE).findings
    }


def test_files_that_differ_are_told_and_settled(cli: Cli, asked: Asked, tmp_path: Path) -> None:
    document = json.loads(CACHE.read_text())
    for record in document["cache"].values():
        if "times" in record:
            record["times"] = [2 * sample for sample in record["times"]]
    slower = tmp_path / "slower.json"
    slower.write_text(json.dumps(document))
    result = cli("import", CACHE, slower, "--on-conflict", "fail")
    assert result.exit_code == 1
    assert "tell different things of convolution_kernel" in result.output
    told = asked("import", CACHE, slower)
    assert told["added"] == 38
    assert {conflict["kept"] for conflict in told["conflicts"]} == {str(CACHE)}
    said = cli("import", slower).output
    assert "the store stands" in said
    assert "more conflicts" in said


MOE = """
import tunewise as tw

space = tw.Space({"work": [1, 2, 4], "way": ["plain", "odd"]})
moe = tw.Decision("moe", space=space, default={"work": 4, "way": "odd"})
"""


def test_a_vllm_file_becomes_a_table_that_explain_names(cli: Cli, asked: Asked, tmp_path: Path, vllm: Path) -> None:
    (tmp_path / "moe.py").write_text(MOE)
    told = asked("import", vllm, "--decision", "moe", "--nearest", "M")
    assert told["tables"][0]["rules"] == 2
    question = ("explain", f"{tmp_path / 'moe.py'}:moe", "--problem", "M=70,E=8,N=64")
    answer = asked(*question)["explanations"][0]["answer"]
    assert answer["config"] == {"work": 2, "way": "odd"}
    assert answer["reason"] == "nearest M: 64 for M=70, as vLLM does"
    assert "nearest M: 64 for M=70, as vLLM does" in cli(*question).output


def test_a_table_is_exported_under_the_name_that_vllm_looks_for(asked: Asked, vllm: Path, tmp_path: Path) -> None:
    asked("import", vllm, "--decision", "toy")
    told = asked("export", "toy", "--format", "vllm", "--out", tmp_path / "configs")
    assert told["files"] == [str(tmp_path / "configs" / vllm.name)]
    assert json.loads(Path(told["files"][0]).read_text()) == VLLM


def test_a_second_file_beside_the_one_that_was_asked_for_is_told(cli: Cli, asked: Asked, tmp_path: Path) -> None:
    asked("import", CACHE)
    said = cli("export", "convolution_kernel", "--format", "helion-log", "--out", tmp_path / "log.csv").output
    assert f"written to {tmp_path / 'log.csv'} and {tmp_path / 'log.meta.jsonl'}" in said.replace("\n", "")


def test_several_problems_need_a_directory(cli: Cli, asked: Asked, tmp_path: Path, toy: str) -> None:
    asked("tune", toy, "--problem", "n=10", "--problem", "n=20", "--budget", 2)
    (tmp_path / "f.json").write_text("")
    result = cli("export", "toy", "--format", "kernel-tuner", "--out", tmp_path / "f.json")
    assert result.exit_code == 1
    assert "give a directory as --out" in result.output
    told = asked("export", "toy", "--format", "kernel-tuner", "--out", tmp_path / "d")
    assert len(told["files"]) == 2
    assert len({foreign.read(Path(file)).findings[0].problem for file in told["files"]}) == 2


def test_names_can_be_changed_on_the_way(asked: Asked, vllm: Path, tmp_path: Path) -> None:
    asked("import", vllm, "--decision", "toy", "--rename", "M=m,work=tile")
    told = asked("export", "toy", "--format", "vllm", "--out", tmp_path / "d", "--rename", "m=M,tile=work")
    assert json.loads(Path(told["files"][0]).read_text()) == VLLM


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["import", "missing.json"], "there is no file missing.json"),
        (["import", __file__], "of no format we know"),
        (["import", CACHE, "--format", "t4"], "no sound T4 results file"),
        (["import", T4], "does not say which decision it is about"),
        (["import", CACHE, "--rename", "blok=block"], "no feature or parameter 'blok' to rename"),
        (["export", "nothing", "--format", "t4", "--out", "x"], "nothing is remembered of 'nothing'"),
    ],
)
def test_what_cannot_be_done_is_one_sentence(cli: Cli, words: list[Any], said: str) -> None:
    result = cli(*words)
    assert result.exit_code == 1
    assert said in result.output
    assert len(result.output.strip().splitlines()) == 1


def test_a_file_that_ends_early_is_told(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "cut.json").write_bytes(CACHE.read_bytes()[:9000])
    result = cli("import", tmp_path / "cut.json")
    assert result.exit_code == 0
    assert "ends early" in result.output


def test_own_failures_are_exported_without_their_words(asked: Asked, tmp_path: Path) -> None:
    source = "import tunewise as tw\n" + TOY_THAT_FAILS
    (tmp_path / "bad.py").write_text(source)
    asked("tune", f"{tmp_path / 'bad.py'}:bad", "--problem", "n=5", "--budget", 2)
    asked("export", "bad", "--format", "t4", "--out", tmp_path / "out.json")
    text = (tmp_path / "out.json").read_text()
    assert '"invalidity": "runtime"' in text
    assert "/some/where" not in text
    assert os.sep + "tmp" not in text


TOY_THAT_FAILS = """
bad = tw.Decision("bad", space=tw.Space({"a": [1, 2]}), default={"a": 1}, features=lambda n: {"n": n},
                  inputs=lambda problem, seed: (int(problem["n"]),))

@bad.implementation
def run(n, *, a):
    if a == 2:
        raise RuntimeError("cannot open /some/where")
    return n
"""


def test_a_lookup_table_of_inductor_becomes_a_table_and_a_lookup_table_again(asked: Asked, tmp_path: Path) -> None:
    key = "NVIDIA H100+((torch.bfloat16, [64, 96], [96, 1]), (torch.bfloat16, [96, 32], [32, 1]))+mm"
    tile = {"BLOCK_M": 64, "BLOCK_N": 32, "BLOCK_K": 64, "GROUP_M": 8, "num_stages": 3, "num_warps": 4}
    given = {key: [{"template_id": "triton::mm", **tile, "EVEN_K": False}, {"template_id": "aten::mm"}]}
    (tmp_path / "given.json").write_text(json.dumps(given))
    assert len(asked("import", tmp_path / "given.json")["tables"]) == 1
    out = tmp_path / "lookup_table.json"
    assert asked("export", "torch.cuda.mm", "--format", "inductor-table", "--out", out)["configs"] == 1
    assert json.loads(out.read_text()) == given
