"""Data sets are read from any format by what a file holds, and written so that reading gives them back."""

import gzip
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tunewise.decision import Failure, Problem, Subject, Timing, Trial, Verdict
from tunewise.decision.hardware import Environment, Part
from tunewise.errors import InvalidData, InvalidFile, NotFound
from tunewise.formats import records
from tunewise.formats.dataset import TIMED, DataSet, status_of
from tunewise.formats.datasets import FORMATS, format_of, read, with_default, write
from tunewise.formats.layout import Naming
from tunewise.formats.records import Record

LONG = """pid,f_n,f_mode,choice,is_default,inner,t0,t1
0,8,valid,auto,1,3,2e-6,3e-6
0,8,valid,fft,0,3,4e-6,5e-6
1,16.0,full,auto,1,3,2e-6,3e-6
1,16,full,fft,0,3,1e-6,
"""
NUMBERED = """shape,cfg,VW,MR,ok,compile_s,inner,t0,t1
64x32,0,16,6,1,0.1,9,1e-5,2e-5
64x32,1,8,6,0,0.1,9,1e-6,1e-6
8x8,0,16,6,1,0.1,9,1e-5,2e-5
"""
WIDE = """shape,c0_r0,c0_r1,c7_r0,c7_r1
4096x16,3e-4,2e-4,7e-5,8e-5
16x8,3e-6,,,
"""


def written(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


def rows_of(data: DataSet) -> set[tuple[Any, ...]]:
    """Return a data set as a set of plain rows, so that the order of its parts does not matter."""
    found = set()
    for row in range(len(data.rows)):
        samples = data.rows.samples_s[data.rows.starts[row] : data.rows.starts[row + 1]].tolist()
        problem, config = int(data.rows.problem[row]), int(data.rows.config[row])
        device = 0 if data.device is None else int(data.device[problem])
        found.add(
            (
                tuple(data.problem(problem).items()),
                tuple((name, type(value), value) for name, value in sorted(data.configs[config].items())),
                int(data.rows.status[row]),
                tuple(float(f"{sample:.12g}") for sample in samples),
                tuple(sorted(data.devices[device].items())),
                config == data.default,
            )
        )
    return found


def test_a_long_table_has_features_a_choice_and_a_default(tmp_path: Path) -> None:
    data = read([written(tmp_path / "py_conv.csv", LONG)])
    assert data.decision == "py_conv"
    assert data.problem(0) == Problem({"n": 8, "mode": "valid"})
    assert data.configs == ({"choice": "auto"}, {"choice": "fft"})
    assert data.default == 0
    assert np.allclose(data.times_s, [[2e-6, 4e-6], [2e-6, 1e-6]], rtol=1e-12)


def test_whole_numbers_are_ints_however_they_are_spelled(tmp_path: Path) -> None:
    data = read([written(tmp_path / "a.csv", LONG)])
    assert [type(data.problem(1)["n"]), data.problem(1)["n"]] == [int, 16]


def test_numbers_beyond_64_bits_stay_what_they_are(tmp_path: Path) -> None:
    data = read([written(tmp_path / "vast.csv", "f_n,choice,t0\n1e200,a,1e-3\n-2e19,a,1e-3\n9e18,a,1e-3\n")])
    assert sorted(data.problem(number)["n"] for number in range(3)) == [-2e19, 9 * 10**18, 1e200]
    write(data, tmp_path / "again.csv")
    assert rows_of(read([tmp_path / "again.csv"])) == rows_of(data)


def test_a_table_of_numbered_configs_has_parameters_sizes_and_checks(tmp_path: Path) -> None:
    data = read([written(tmp_path / "a.csv", NUMBERED)])
    assert data.names == ("d0", "d1")
    assert data.configs == ({"VW": 16, "MR": 6}, {"VW": 8, "MR": 6})
    assert data.default == 0
    assert data.rows.status.tolist() == [TIMED, status_of("correctness"), TIMED]
    assert np.isinf(data.times_s[0, 1])
    assert np.isnan(data.times_s[1, 1])


def test_a_wide_table_has_a_choice_for_every_group_of_columns(tmp_path: Path) -> None:
    data = read([written(tmp_path / "a.csv", WIDE)])
    assert data.configs == ({"choice": "c0"}, {"choice": "c7"})
    assert (data.default, len(data.rows)) == (0, 3)  # what was never tried has no row
    assert data.times_s[0] == pytest.approx([2e-4, 7e-5])
    assert np.isnan(data.times_s[1, 1])


def test_columns_can_be_named(tmp_path: Path) -> None:
    text = "m,algo,tile,first,second,remark\n8,a,1,2,3,x\n9,b,2,4,5,y\n"
    naming = Naming(problem=("m",), config=("algo", "tile"), samples=("first", "second"), unit="ms")
    data = read([written(tmp_path / "a.csv", text)], naming=naming)
    assert data.names == ("m",)
    assert data.configs == ({"algo": "a", "tile": 1}, {"algo": "b", "tile": 2})
    assert data.rows.samples_s == pytest.approx([2e-3, 3e-3, 4e-3, 5e-3])


def test_a_header_that_does_not_speak_for_itself_is_refused_with_the_way_out(tmp_path: Path) -> None:
    with pytest.raises(InvalidFile, match=r"which of its columns are features \(a, b\); name them: --problem"):
        read([written(tmp_path / "a.csv", "a,b\n1,2\n")])
    with pytest.raises(InvalidFile, match="no column 'k'"):
        read([written(tmp_path / "a.csv", "a,b\n1,2\n")], naming=Naming(problem=("k",)))


@pytest.mark.parametrize("rows", ["", "8,1,2\n"])
def test_a_wide_table_of_one_config_is_told_so(tmp_path: Path, rows: str) -> None:
    with pytest.raises(InvalidFile, match=r"one config only, c0 \(c0_r0, c0_r1\); add those of a second one"):
        read([written(tmp_path / "a.csv", "f_n,c0_r0,c0_r1\n" + rows)])


@pytest.mark.parametrize("mark", [";", "\t"])
def test_cells_between_other_marks_than_commas_are_told_so(tmp_path: Path, mark: str) -> None:
    with pytest.raises(InvalidFile, match="put commas between its cells"):
        read([written(tmp_path / "x.csv", "f_n,choice,t0\n1,a,1e-3\n".replace(",", mark))])


def test_units_named_by_columns_are_seconds_inside(tmp_path: Path) -> None:
    data = read([written(tmp_path / "a.csv", "f_n,choice,time_us\n8,a,5\n")])
    assert data.rows.samples_s == pytest.approx([5e-6])
    data = read([written(tmp_path / "a.csv", "f_n,choice,t0,unit\n8,a,5,ns\n")])
    assert data.rows.samples_s == pytest.approx([5e-9])


@pytest.mark.parametrize(
    ("text", "naming"),
    [
        ("f_n,choice,t0_ms,t1_us\n8,a,5,5\n", Naming()),
        ("f_n,choice,t0_ms,t1\n8,a,5,5\n", Naming()),
        ("f_n,choice,t0_ms\n8,a,5\n", Naming(unit="s")),
        ("f_n,choice,t0,unit\n8,a,5,ms\n8,b,5,s\n", Naming()),
        ("f_n,choice,t0,unit\n8,a,5,ms\n", Naming(unit="s")),
    ],
)
def test_a_mix_of_units_is_refused(tmp_path: Path, text: str, naming: Naming) -> None:
    with pytest.raises(InvalidData, match="one unit"):
        read([written(tmp_path / "a.csv", text)], naming=naming)


def test_switches_are_numbers_of_a_problem_and_switches_of_a_config(tmp_path: Path) -> None:
    data = read([written(tmp_path / "a.csv", "f_even,p_fast,t0\nTrue,false,1\nFalse,true,1\n")])
    assert data.problem(0) == Problem({"even": 1})
    assert data.configs == ({"fast": False}, {"fast": True})


def test_repeated_rows_are_merged_and_counted(tmp_path: Path) -> None:
    text = "f_n,choice,t0,t1\n8,a,1,2\n9,a,1,1\n8,a,1,1\n"
    data = read([written(tmp_path / "a.csv", text)])
    assert (len(data), len(data.rows), dict(data.notes)) == (2, 2, {"duplicates": 1})
    assert data.rows.samples_s[: data.rows.starts[1]].tolist() == [1, 2, 1, 1]


@pytest.mark.parametrize(("other", "conflicts"), [("1.9,1.9,", 0), ("2.1,2.1,", 1), (",,timeout", 1)])
def test_rows_that_contradict_each_other_are_counted(tmp_path: Path, other: str, conflicts: int) -> None:
    text = f"f_n,choice,t0,t1,failure\n8,a,1,1,\n8,a,{other}\n"
    data = read([written(tmp_path / "a.csv", text)])
    assert data.notes.get("conflicts", 0) == conflicts
    assert data.notes["duplicates"] == 1


@pytest.mark.parametrize("suffix", ["csv", "txt", "parquet"])
def test_samples_that_scatter_are_no_conflict_in_any_format(tmp_path: Path, suffix: str) -> None:
    data = read([written(tmp_path / "a.csv", "f_n,choice,t0,t1,t2\n8,a,1,2.5,9\n")])
    write(data, tmp_path / f"b.{suffix}")
    assert dict(read([tmp_path / f"b.{suffix}"]).notes) == {}


@pytest.mark.parametrize(("other", "conflicts"), [("9,", 0), (",timeout", 1)])
def test_rows_of_one_sample_are_repeats_unless_one_failed(tmp_path: Path, other: str, conflicts: int) -> None:
    data = read([written(tmp_path / "a.csv", f"f_n,choice,t0,failure\n8,a,1,\n8,a,{other}\n")])
    assert data.notes.get("conflicts", 0) == conflicts


def test_what_fails_now_and_then_is_a_failure(tmp_path: Path) -> None:
    data = read([written(tmp_path / "a.csv", "f_n,choice,t0,failure\n8,a,1,\n8,a,,timeout\n9,a,1,\n")])
    assert data.rows.status.tolist() == [status_of("timeout"), TIMED]
    assert data.rows.starts.tolist() == [0, 0, 1]


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ("8,a,fast,1", "t0 is not a time"),
        ("8,a,0,1", "t0 is not a time above 0"),
        ("8,a,1,-1", "t1 is not a time above 0"),
        (",a,1,1", "f_n has no value"),
        ("8,a,1", "3 cells, and the header has 4"),
        ("8,a,1,1,1", "5 cells, and the header has 4"),
    ],
)
def test_malformed_rows_are_skipped_and_counted_or_named_by_line(tmp_path: Path, row: str, reason: str) -> None:
    path = written(tmp_path / "a.csv", f'f_n,choice,t0,t1\n\n9,"a\nb",1,1\n{row}\n9,c,1,1\n')
    data = read([path])
    assert (len(data.rows), dict(data.notes)) == (2, {"malformed": 1})
    with pytest.raises(InvalidFile, match=f"a.csv has 1 malformed row: line 5: {reason}"):
        read([path], is_strict=True)


def test_a_file_without_a_single_sound_row_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidFile, match="no row of it can be used"):
        read([written(tmp_path / "a.csv", "f_n,choice,t0\n8,a,x\n")])
    with pytest.raises(InvalidFile, match="holds no measurement"):
        read([written(tmp_path / "a.csv", "f_n,choice,t0\n")])


@pytest.mark.parametrize("text", ["", "\n\n", "{}", "[1]", '{"numerical_features": 3}\na,b\n', "x,x,t0\n1,2,3\n"])
def test_what_is_no_data_is_refused_in_a_sentence(tmp_path: Path, text: str) -> None:
    with pytest.raises(InvalidFile, match=r"a\.csv"):
        read([written(tmp_path / "a.csv", text)])


def test_a_missing_file_and_a_directory_are_named(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="nowhere"):
        read([tmp_path / "nowhere"])
    with pytest.raises(InvalidFile, match="is a directory"):
        read([tmp_path])
    with pytest.raises(InvalidData, match="no file"):
        read([])


def test_a_packed_table_is_read(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes(gzip.compress(LONG.encode()))
    assert len(read([tmp_path / "a.csv"]).rows) == 4


def test_several_files_are_one_data_set(tmp_path: Path) -> None:
    one = written(tmp_path / "a.csv", LONG)
    more = "f_mode,f_n,choice,t0,t1\nsame,8,oa,1e-6,1e-6\nvalid,8,fft,4e-6,5e-6\n"
    data = read([one, written(tmp_path / "b.csv", more)])
    assert data.decision == "a"
    assert (len(data), len(data.configs), len(data.rows)) == (3, 3, 5)
    assert dict(data.notes) == {"duplicates": 1}
    assert data.configs[data.default or 0] == {"choice": "auto"}
    assert data.problem(2) == Problem({"n": 8, "mode": "same"})


@pytest.mark.parametrize(
    ("other", "difference"),
    [
        ("f_n,choice,t0\n8,a,1\n", "mode is in one only"),
        ("f_n,f_mode,choice,t0\nx,valid,a,1\n", "n is a number in one file and a word in another"),
        ("f_n,f_mode,p_tile,t0\n8,valid,3,1\n", "choice, tile is in one only"),
        ("f_n,f_mode,choice,is_default,t0\n8,valid,fft,1,1\n", "the default is"),
        ("decision,f_n,f_mode,choice,t0\nd,8,valid,fft,1\n", None),
    ],
)
def test_files_that_do_not_fit_together_are_told_what_differs(
    tmp_path: Path, other: str, difference: str | None
) -> None:
    files = [written(tmp_path / "a.csv", LONG), written(tmp_path / "b.csv", other)]
    if difference is None:
        assert read(files).decision == "d"  # the one that says its name
        return
    with pytest.raises(InvalidData, match=difference):
        read(files)


def test_files_of_two_decisions_do_not_mix_unless_they_are_named(tmp_path: Path) -> None:
    files = [written(tmp_path / f"{n}.csv", f"decision,f_n,choice,t0\n{n},8,fft,1\n") for n in ("one", "two")]
    with pytest.raises(InvalidData, match="about one, two"):
        read(files)
    assert read(files, decision="both").decision == "both"


@pytest.mark.parametrize("default", ["fft", {"choice": "fft"}, "choice=fft"])
def test_a_default_can_be_named(tmp_path: Path, default: Any) -> None:
    data = read([written(tmp_path / "a.csv", LONG)], default=default)
    assert data.configs[data.default or 0] == {"choice": "fft"}


def test_of_several_parameters_the_telling_ones_name_the_default(tmp_path: Path) -> None:
    data = read([written(tmp_path / "a.csv", NUMBERED)], default="VW=8")
    assert data.configs[data.default or 0] == {"VW": 8, "MR": 6}
    with pytest.raises(InvalidData, match=r"'MR=6' is 2 of the 2 configs.*name exactly one"):
        with_default(data, "MR=6")
    with pytest.raises(InvalidData, match="is none of the 2 configs"):
        with_default(data, "nothing")


@pytest.mark.parametrize("default", ["true", "True", "is_fast=True"])
def test_a_switch_is_named_as_people_write_it(tmp_path: Path, default: str) -> None:
    data = read([written(tmp_path / "a.csv", "f_n,p_is_fast,t0\n8,false,1\n8,true,1\n")], default=default)
    assert data.configs[data.default or 0] == {"is_fast": True}


def subject(n: int, host: str = "cpu-a", **more: Any) -> Subject:
    parts = {"hardware.name": host, "compiler": "/opt/secret/cc", **more}
    environment = Environment(tuple(Part(name, value, "must") for name, value in parts.items()))
    return Subject("sort", Problem({"n": n, "dtype": "f4"}), (("clock", "cpu"),), environment)


def exported(path: Path, *found: Record) -> Path:
    records.write(path, found)
    return path


def test_an_export_is_read_with_its_failures_devices_and_default(tmp_path: Path) -> None:
    quick, heap = {"choice": "quick"}, {"choice": "heap"}
    path = exported(
        tmp_path / "facts",
        Record(subject(8), Trial(quick, Timing((1e-6, 2e-6)))),
        Record(subject(8), Trial(quick, Timing((1.5e-6,)))),
        Record(subject(8), Trial(heap, Failure("timeout", "in /opt/secret"))),
        Record(subject(8, "cpu-b"), Trial(heap, Timing((1e-6,)))),
        Record(subject(8), Verdict("tie", heap, quick)),
    )
    data = read([path])
    assert (data.decision, len(data), len(data.rows), dict(data.notes)) == ("sort", 2, 3, {})
    assert data.configs[data.default or 0] == heap
    assert data.rows.samples_s.tolist() == [1e-6, 2e-6, 1.5e-6, 1e-6]
    assert data.rows.status.tolist() == [TIMED, status_of("timeout"), TIMED]
    assert [facts["hardware.name"] for facts in data.devices] == ["cpu-a", "cpu-b"]
    assert data.devices[0]["policy.clock"] == "cpu"


def test_an_export_of_several_decisions_needs_a_name(tmp_path: Path) -> None:
    other = Subject("isin", Problem({"n": 1}), (), Environment(()))
    trial = Trial({"choice": "a"}, Timing((1.0,)))
    path = exported(tmp_path / "facts", Record(subject(8), trial), Record(other, trial))
    with pytest.raises(InvalidData, match="about isin, sort; name one of them"):
        read([path])
    assert read([path], decision="isin").names == ("n",)
    with pytest.raises(InvalidData, match="about isin, sort"):
        read([path], decision="gemm")


def test_the_one_decision_of_an_export_can_be_renamed(tmp_path: Path) -> None:
    path = exported(tmp_path / "facts", Record(subject(8), Trial({"choice": "a"}, Timing((1.0,)))))
    assert read([path], decision="gemm").decision == "gemm"


def test_columns_of_an_export_are_not_for_naming(tmp_path: Path) -> None:
    path = exported(tmp_path / "facts", Record(subject(8), Trial({"choice": "a"}, Timing((1.0,)))))
    with pytest.raises(InvalidData, match="columns and unit are known"):
        read([path], naming=Naming(unit="ms"))


def test_what_an_older_declaration_measured_is_left_out_and_counted(tmp_path: Path) -> None:
    path = exported(
        tmp_path / "facts",
        Record(subject(8), Trial({"tile": 8}, Timing((1.0,)))),
        Record(subject(8), Trial({"tile": 8, "unroll": 2}, Timing((1.0,)))),
    )
    data = read([path])
    assert data.configs == ({"tile": 8, "unroll": 2},)
    assert dict(data.notes) == {"outdated": 1}


def test_damage_in_an_export_costs_one_record_and_is_counted(tmp_path: Path) -> None:
    trial = Trial({"choice": "a"}, Timing((1.0,)))
    path = exported(tmp_path / "facts", *(Record(subject(n), trial) for n in (8, 16, 32)))
    raw = bytearray(path.read_bytes())
    raw[len(raw) // 2] ^= 1
    path.write_bytes(raw)
    data = read([path])
    assert (len(data), dict(data.notes)) == (2, {"malformed": 1})
    path.write_bytes(gzip.compress(bytes(raw)))
    assert len(read([path])) == 2


def everything(tmp_path: Path) -> DataSet:
    """Return data with all there is: words and numbers, mixed values, failures, two devices, odd names."""
    odd = 'a,"b"\n'
    trials = [
        Record(subject(8), Trial({odd: 1, "kind": None, "is": True}, Timing((1e-6, 2.5e-6)))),
        Record(subject(8), Trial({odd: "8", "kind": "x,y", "is": False}, Failure("memory"))),
        Record(subject(1 << 40, "cpu,b"), Trial({odd: 0.5, "kind": "x", "is": True}, Timing((1 / 3,)))),
        Record(subject(8), Verdict("win", {odd: 0.5, "kind": "x", "is": True}, {odd: 1, "kind": None, "is": True})),
    ]
    return read([exported(tmp_path / "facts", *trials)])


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_a_table_gives_back_exactly_what_was_written(tmp_path: Path, suffix: str) -> None:
    data = everything(tmp_path)
    write(data, tmp_path / f"a.{suffix}")
    again = read([tmp_path / f"a.{suffix}"])
    assert rows_of(again) == rows_of(data)
    assert again.rows.samples_s.tolist() == data.rows.samples_s.tolist()
    assert again.decision == "sort"


@pytest.mark.parametrize("text", [LONG, NUMBERED, WIDE])
@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_tables_give_back_what_was_written(tmp_path: Path, text: str, suffix: str) -> None:
    data = read([written(tmp_path / "a.csv", text)])
    write(data, tmp_path / f"b.{suffix}")
    again = read([tmp_path / f"b.{suffix}"])
    assert rows_of(again) == rows_of(data)
    assert again.rows.samples_s.tolist() == data.rows.samples_s.tolist()
    assert not again.notes


def test_one_device_written_in_two_formats_is_one_device(tmp_path: Path) -> None:
    text = "policy.steps,hardware.name,hardware.note,f_n,choice,t0,t1\n,X,,8,a,1e-3,2e-3\n,X,,9,a,2e-3,2e-3\n"
    data = read([written(tmp_path / "a.csv", text)])
    files = [tmp_path / "b.csv", tmp_path / "b.parquet"]
    for file in files:
        write(data, file)
    assert read(files).devices == ({"policy.steps": None, "hardware.name": "X", "hardware.note": None},)
    assert len(read(files)) == len(data) == 2


def test_the_format_shows_in_the_content(tmp_path: Path) -> None:
    data = read([written(tmp_path / "a.csv", LONG)])
    for kind in [kind for kind in FORMATS if not kind.startswith("diode")]:  # which is about matrix products only
        write(data, tmp_path / f"data-{kind}", kind)
        assert len(read([tmp_path / f"data-{kind}"]).rows) == 4
    assert format_of(Path("x.log")) == "autoheuristic"
    with pytest.raises(InvalidFile, match=r"end it in one of \.parquet"):
        write(data, tmp_path / "data.unknown")


def test_a_file_appears_whole_or_not_at_all(tmp_path: Path) -> None:
    data = read([written(tmp_path / "a.csv", LONG)])
    with pytest.raises(InvalidFile, match="cannot be written"):
        write(data, tmp_path / "nowhere" / "a.parquet")
    write(data, tmp_path / "a.parquet")
    assert sorted(path.name for path in tmp_path.iterdir() if path.is_file()) == ["a.csv", "a.parquet"]


def test_samples_may_be_lists_of_one_length_as_arrays_are_written(tmp_path: Path) -> None:
    pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    kind = pyarrow.list_(pyarrow.float64(), 2)
    samples = pyarrow.array([[1e-3, 2e-3], None, [3e-3, 4e-3]], kind)
    columns = {"f_n": [1, 1, 2], "choice": ["a", "b", "a"], "samples_s": samples}
    parquet.write_table(pyarrow.table(columns), tmp_path / "a.parquet")
    rows = read([tmp_path / "a.parquet"]).rows
    assert rows.samples_s.tolist() == [1e-3, 2e-3, 3e-3, 4e-3]
    assert rows.starts.tolist() == [0, 2, 2, 4]


def test_several_columns_of_lists_are_refused_with_the_way_out(tmp_path: Path) -> None:
    pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    columns = {"f_n": [1], "choice": ["a"], "t0": [[1e-3]], "t1": [[1e-3]]}
    parquet.write_table(pyarrow.table(columns), tmp_path / "a.parquet")
    with pytest.raises(InvalidFile, match=r"write times as numbers \(double\), or as one column of lists"):
        read([tmp_path / "a.parquet"])


def test_a_damaged_parquet_file_is_refused(tmp_path: Path) -> None:
    write(read([written(tmp_path / "a.csv", LONG)]), tmp_path / "a.parquet")
    raw = (tmp_path / "a.parquet").read_bytes()
    (tmp_path / "a.parquet").write_bytes(raw[: len(raw) // 2])
    with pytest.raises(InvalidFile, match="not a sound Parquet file"):
        read([tmp_path / "a.parquet"])


def test_equal_data_has_an_equal_fingerprint(tmp_path: Path) -> None:
    path = written(tmp_path / "a.csv", LONG)
    assert read([path]).fingerprint == read([path]).fingerprint
    other = written(tmp_path / "b.csv", LONG.replace("5e-6", "6e-6"))
    assert read([other], decision="a").fingerprint != read([path]).fingerprint


SHARED = os.environ.get("TUNEWISE_DATA", "")


@pytest.mark.skipif(not SHARED, reason="TUNEWISE_DATA does not name the folder of shared data")
@pytest.mark.parametrize(
    ("name", "problems", "configs", "default"),
    [
        ("py_conv1d", 299, 4, {"choice": "auto"}),
        ("py_isin", 112, 5, {"choice": "auto"}),
        ("port_gemm", 170, 9, {"choice": "c0"}),
        ("port_softmax", 150, 7, {"choice": "c0"}),
    ],
)
def test_shared_decisions_are_read_whole(name: str, problems: int, configs: int, default: dict[str, Any]) -> None:
    data = read([Path(SHARED) / "choices" / f"{name}.csv"], is_strict=True)
    assert (len(data), len(data.configs), data.configs[data.default or 0]) == (problems, configs, default)
