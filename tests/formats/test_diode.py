"""torch-diode's files: data sets of both schemas, JSON and msgpack, shapesets and solution files."""

import json
import os
import random
from collections.abc import Callable
from math import inf
from pathlib import Path
from typing import Any

import msgspec
import pytest
from foreign_samples import DIODE, DIODE_CONFIG, DIODE_SHAPE, DIODE_SOLUTION, damaged, diode_file

from tunewise.decision import Failure, Problem, Timing
from tunewise.errors import InvalidData, InvalidFile, NotFound, TunewiseError
from tunewise.formats import diode, diode_findings, foreign
from tunewise.formats.datasets import read, write
from tunewise.formats.diode_data import convert
from tunewise.formats.diode_shapes import read_shapeset, read_solutions
from tunewise.formats.findings import Finding
from tunewise.session.importing import carry_out, plan_import
from tunewise.store import MemoryStore

SHARED = Path(os.environ.get("TUNEWISE_DATA", "")) / "formats"
shared_only = pytest.mark.skipif(
    "TUNEWISE_DATA" not in os.environ, reason="TUNEWISE_DATA does not name the folder of shared data"
)
SHAPESET = {"operations": {"mm": {"shapes": [DIODE_SHAPE, DIODE_SHAPE]}, "bmm": {"shapes": [{**DIODE_SHAPE, "B": 7}]}}}
CONFIG = {
    "kernel": "triton",
    "BLOCK_K": 16,
    "BLOCK_M": 32,
    "BLOCK_N": 64,
    "GROUP_M": 8,
    "num_stages": 3,
    "num_warps": 4,
}


def put(path: Path, document: Any) -> Path:
    is_packed = path.suffix == ".msgpack"
    path.write_bytes(msgspec.msgpack.encode(document) if is_packed else json.dumps(document).encode())
    return path


def told(path: Path) -> tuple[Finding, ...]:
    return foreign.read(path).findings


def document(findings: Any) -> Any:
    (written,) = foreign.write(findings, "diode")
    return json.loads(written.raw)


@shared_only
def test_the_shared_data_set_has_84_rows_and_is_written_as_it_was() -> None:
    file = SHARED / "diode-matmul_dataset.json"
    found = foreign.read(file)
    assert (found.format.name, len(found.findings), found.remark) == ("diode", 84, "")
    assert {one.decision for one in found.findings} == {"torch.cuda.mm", "torch.cuda.addmm"}
    (written,) = foreign.write(found.findings, "diode")
    assert written.raw.strip() == file.read_bytes().strip()


@shared_only
def test_the_shared_data_set_goes_to_msgpack_and_back_unchanged(tmp_path: Path) -> None:
    file = SHARED / "diode-matmul_dataset.json"
    assert convert(file, tmp_path / "a.msgpack") == convert(tmp_path / "a.msgpack", tmp_path / "b.json") == 84
    assert (tmp_path / "b.json").read_bytes().strip() == file.read_bytes().strip()
    assert told(tmp_path / "a.msgpack") == told(file)


@shared_only
def test_the_shared_shapeset_has_1577_shapes_and_survives_msgpack(tmp_path: Path) -> None:
    shapes = read_shapeset(SHARED / "diode-operation_shapeset.json")
    assert len(shapes) == 1577
    assert {op for op, _ in shapes} == {"mm", "addmm", "bmm"}
    assert convert(SHARED / "diode-operation_shapeset.json", tmp_path / "s.msgpack") == 1577
    assert read_shapeset(tmp_path / "s.msgpack") == shapes


@shared_only
def test_the_shared_data_set_is_data_to_learn_from() -> None:
    data = read([SHARED / "diode-matmul_dataset.json"], decision="torch.cuda.mm")
    assert (len(data), len(data.rows), data.names) == (4, 42, ("dtype", "k", "m", "n"))
    assert data.devices[0]["hardware.name"] == "NVIDIA H100"


def test_both_schemas_tell_the_same(tmp_path: Path) -> None:
    old = diode_file((json.dumps(DIODE_CONFIG), 0.026))
    new = diode_file((DIODE_CONFIG, 0.026))
    (first,), (second,) = told(put(tmp_path / "old.json", old)), told(put(tmp_path / "new.json", new))
    assert first == second
    assert (first.config, first.outcome) == (CONFIG, Timing((0.026 * 1e-3,)))
    assert (document([first]), document([second])) == (old, new)


def test_a_problem_has_sizes_and_a_type_and_a_batch_where_there_is_one(tmp_path: Path) -> None:
    (found,) = told(put(tmp_path / "a.json", diode_file((DIODE_CONFIG, 1.0))))
    assert dict(found.problem) == {"m": 32, "n": 64, "k": 48, "dtype": "float16"}
    other = {**DIODE_SHAPE, "B": 3, "out_dtype": "float32"}
    (found,) = told(put(tmp_path / "a.json", diode_file((DIODE_CONFIG, 1.0), op="bmm", shape=other)))
    assert dict(found.problem) == {"b": 3, "m": 32, "n": 64, "k": 48, "dtype": "float16", "out_dtype": "float32"}


def test_a_time_that_no_clock_shows_is_a_failure_and_stays_one(tmp_path: Path) -> None:
    file = put(tmp_path / "a.msgpack", diode_file((DIODE_CONFIG, inf), ({**DIODE_CONFIG, "block_m": 64}, 1.0)))
    assert [type(one.outcome) for one in told(file)] == [Failure, Timing]
    convert(file, tmp_path / "b.json")
    assert told(tmp_path / "b.json") == told(file)


def test_what_was_measured_here_is_written_so_that_diode_reads_it() -> None:
    problem = Problem({"m": 32, "n": 64, "k": 48, "dtype": "float16"})
    told = [Finding("torch.cuda.mm", problem, CONFIG, Timing((2e-3, 1e-3)), "NVIDIA H100")]
    told += [Finding("torch.cuda.mm", problem, {**CONFIG, "BLOCK_K": 64}, Failure("compile"), "NVIDIA H100")]
    (solution,) = document(told)["hardware"]["NVIDIA H100"]["operation"]["mm"]["solution"].items()
    assert json.loads(solution[0]) == DIODE_SHAPE
    first, second = solution[1]["timed_configs"]
    assert first == {"config": {**DIODE_CONFIG, "ALLOW_TF32": False}, "time": 1.0, "version": 1}
    assert (second["config"]["EVEN_K"], second["time"]) == (False, inf)


def test_a_decision_of_a_cpu_and_its_configs_survive(tmp_path: Path) -> None:
    problem = Problem({"m": 8, "n": 16, "k": 4, "dtype": "bfloat16", "b_layout": "column"})
    configs = [{"kernel": "aten", "reg_m": 0, "reg_n": 0}, {"kernel": "cpp", "reg_m": 8, "reg_n": 16}]
    findings = [Finding("torch.linear", problem, config, Timing((1e-3,)), "AMD EPYC") for config in configs]
    for kind in ("diode", "diode-msgpack"):
        (written,) = foreign.write(findings, kind)
        (tmp_path / written.name).write_bytes(written.raw)
        back = told(tmp_path / written.name)
        assert [(b.decision, b.problem, dict(b.config)) for b in back] == [
            (f.decision, f.problem, dict(f.config)) for f in findings
        ]


def test_what_went_through_a_store_tells_the_same(tmp_path: Path) -> None:
    from tunewise.session.exporting import findings_for

    file, store = foreign.read(put(tmp_path / "a.json", DIODE)), MemoryStore()
    assert carry_out(plan_import([file], store), store) == 2
    assert carry_out(plan_import([file], store), store) == 0
    remembered = findings_for("torch.cuda.mm", foreign.named("diode"), store).findings
    put(tmp_path / "b.json", document(remembered))
    assert told(tmp_path / "b.json") == file.findings


def test_data_survives_both_forms_and_equal_content_has_one_fingerprint(tmp_path: Path) -> None:
    data = read([put(tmp_path / "a.json", DIODE)])
    for name in ("b.json", "c.msgpack"):
        write(data, tmp_path / name)
        assert read([tmp_path / name]).fingerprint == data.fingerprint
    assert foreign.read(tmp_path / "c.msgpack").format.name == "diode-msgpack"


def test_a_file_of_several_ops_wants_one_named(tmp_path: Path) -> None:
    both = diode_file((DIODE_CONFIG, 1.0))
    operations = both["hardware"]["NVIDIA H100"]["operation"]
    operations["addmm"] = operations["mm"]
    file = put(tmp_path / "a.json", both)
    with pytest.raises(InvalidData, match=r"is about torch.cuda.addmm, torch.cuda.mm; name one"):
        read([file])
    assert read([file], decision="torch.cuda.addmm").decision == "torch.cuda.addmm"


def test_what_nobody_knows_survives_a_conversion(tmp_path: Path) -> None:
    strange = {**DIODE, "collector": {"seed": 3, "times": [1.5, None]}}
    convert(put(tmp_path / "a.json", strange), tmp_path / "a.msgpack")
    convert(tmp_path / "a.msgpack", tmp_path / "b.json")
    assert json.loads((tmp_path / "b.json").read_text()) == strange


def test_a_conversion_is_named_by_its_target(tmp_path: Path) -> None:
    with pytest.raises(InvalidData, match=r"call it .json or .msgpack"):
        convert(put(tmp_path / "a.json", DIODE), tmp_path / "a.parquet")
    with pytest.raises(InvalidFile, match="neither a sound diode data set nor a shapeset"):
        convert(put(tmp_path / "b.json", DIODE_SOLUTION), tmp_path / "b.msgpack")
    assert not (tmp_path / "b.msgpack").exists()


def test_a_shape_that_comes_twice_comes_twice(tmp_path: Path) -> None:
    shapes = read_shapeset(put(tmp_path / "s.json", SHAPESET))
    assert [(op, problem.get("b")) for op, problem in shapes] == [("mm", None), ("mm", None), ("bmm", 7)]


def test_a_solution_file_tells_sizes_and_configs(tmp_path: Path) -> None:
    found = read_solutions(put(tmp_path / "s.json", DIODE_SOLUTION))
    (solution,) = found.solutions
    assert (found.name, dict(solution.sizes), solution.config) == ("mm", {"m": 32, "n": 64, "k": 48}, CONFIG)


def test_a_solution_file_becomes_a_table_that_answers(tmp_path: Path) -> None:
    store = MemoryStore()
    file = foreign.read(put(tmp_path / "s.json", DIODE_SOLUTION))
    assert (file.format.name, file.remark) == ("diode-solution", "")
    plan = plan_import([file], store, decision="torch.cuda.mm")
    (table,) = plan.tables.values()
    assert table.heuristic("t").choose({"m": 32, "n": 64, "k": 48, "dtype": "float16"}) == CONFIG
    other = Finding("torch.cuda.mm", Problem({"m": 1, "n": 1, "k": 1, "lhs": "row"}), CONFIG)
    with pytest.raises(InvalidData, match="a solution is for m, n, k, b and a dtype"):
        foreign.write([other], "diode-solution")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda shape: shape | {"M": "s0"}, "M='s0' of a shape is not a whole number"),
        (lambda shape: shape | {"K": True}, "K=True of a shape is not a whole number"),
        (lambda shape: {"M": 1, "N": 1, "K": 1}, "M_dtype of a shape: None is not a word"),
        (lambda shape: [1, 2], "is not an object with B, M, N, K"),
    ],
)
def test_a_shape_that_makes_no_sense_is_one_sentence(
    tmp_path: Path, change: Callable[[dict[str, Any]], Any], said: str
) -> None:
    file = put(tmp_path / "a.json", diode_file((DIODE_CONFIG, 1.0), shape=change(dict(DIODE_SHAPE))))
    for reader in (foreign.read, lambda path: read([path])):
        with pytest.raises(InvalidFile, match="no sound diode data set") as caught:
            reader(file)
        assert said in str(caught.value)


def test_a_config_is_named_by_its_place(tmp_path: Path) -> None:
    file = put(tmp_path / "a.json", diode_file((DIODE_CONFIG, 1.0), ("[1]", 1.0)))
    with pytest.raises(InvalidFile, match=r"mm dtype=float16, k=48, m=32, n=64, config 2 is not a config"):
        foreign.read(file)


def test_a_number_that_no_config_may_have_is_named(tmp_path: Path) -> None:
    file = put(tmp_path / "a.json", diode_file(({**DIODE_CONFIG, "block_m": 10**30}, 1.0)))
    with pytest.raises(InvalidFile, match=r"config 1, block_m=1000000000000000\d+ does not fit in 64 bits"):
        read([file])


def test_files_of_too_much_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = put(tmp_path / "a.msgpack", DIODE)
    monkeypatch.setattr(diode, "MAX_OBJECTS", 1)
    with pytest.raises(InvalidFile, match="more than 1 configs"):
        foreign.read(file)


def test_problems_that_diode_has_no_words_for_are_refused() -> None:
    with pytest.raises(InvalidData, match=r"whole m, n and k and a dtype, and the problem of sort is n=3"):
        foreign.write([Finding("sort", Problem({"n": 3}), {"choice": "a"}, Timing((1.0,)))], "diode")
    with pytest.raises(InvalidData, match="not one config of it was measured"):
        foreign.write([Finding("torch.cuda.mm", Problem({}), CONFIG)], "diode-msgpack")


def test_there_is_no_such_file(tmp_path: Path) -> None:
    for reader in (read_shapeset, read_solutions, lambda path: convert(path, tmp_path / "x.json")):
        with pytest.raises(NotFound):
            reader(tmp_path / "nowhere.json")


READERS: dict[str, tuple[Any, Callable[[Path], object]]] = {
    "data": (diode_file((json.dumps(DIODE_CONFIG), 0.5), (DIODE_CONFIG, 0.25)), lambda path: read([path])),
    "findings": (DIODE, lambda path: foreign.read(path, "diode")),
    "shapeset": (SHAPESET, read_shapeset),
    "solutions": (DIODE_SOLUTION, read_solutions),
    "convert": (DIODE, lambda path: convert(path, path.with_suffix(".mp"))),
}


@pytest.mark.parametrize("count", [60, pytest.param(1000, marks=pytest.mark.full)])
@pytest.mark.parametrize("packed", [False, True], ids=["json", "msgpack"])
@pytest.mark.parametrize("name", READERS)
def test_damaged_files_are_refused_or_read(tmp_path: Path, name: str, packed: bool, count: int) -> None:
    content, reader = READERS[name]
    raw = msgspec.msgpack.encode(content) if packed else json.dumps(content).encode()
    rng = random.Random(0)
    seen = []
    for _ in range(count):
        (tmp_path / "damaged").write_bytes(damaged(raw, rng))
        seen.append(trouble(reader, tmp_path / "damaged"))
    assert {type(error) for error in seen} <= {InvalidFile, InvalidData, type(None)}
    assert any(isinstance(error, InvalidFile) for error in seen)
    assert not [error for error in seen if "\n" in str(error)]


def trouble(reader: Callable[[Path], object], path: Path) -> TunewiseError | None:
    try:
        reader(path)
    except TunewiseError as error:
        return error
    return None


def test_findings_that_were_renamed_are_written_anew(tmp_path: Path) -> None:
    from dataclasses import replace

    (found, _) = told(put(tmp_path / "a.json", DIODE))
    other = replace(found, problem=Problem({**found.problem, "k": 64}), config={**CONFIG, "BLOCK_K": 32})
    file = diode_findings.file_of([other])
    (measured,) = diode.measured(file)
    assert (measured.problem["k"], measured.solution.timed_configs[0].config["block_k"]) == (64, 32)  # type: ignore[index]
