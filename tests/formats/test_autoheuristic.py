"""AutoHeuristic logs are read and written; commas and odd names survive, and what is torn is mended or counted."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tunewise.decision import Problem
from tunewise.errors import InvalidData, InvalidFile
from tunewise.formats.autoheuristic import choice_word, text_of
from tunewise.formats.dataset import TIMED, DataSet, status_of
from tunewise.formats.datasets import read, write
from tunewise.formats.layout import Naming

META: dict[str, Any] = {
    "shared_memory": 232448,
    "device_capa": [9, 0],
    "name": "mm",
    "numerical_features": ["m", "k"],
    "categorical_features": ["dtype"],
}
TRITON = "type=triton_BLOCK-M=32_BLOCK-K=16_BLOCK-N=32_numstages=1_numwarps=2"


def log(path: Path, *rows: str, header: str = "m,k,dtype,choice,feedback", **changes: Any) -> Path:
    path.write_text("\n".join([json.dumps(META | changes), header, *rows, ""]))
    return path


def test_a_log_has_the_device_the_name_and_words_as_choices(tmp_path: Path) -> None:
    path = log(
        tmp_path / "log.txt", "2048,32,torch.bfloat16,extern_mm,0.0304", f"2048,32,torch.bfloat16,{TRITON},0.00886"
    )
    data = read([path])
    assert data.decision == "mm"
    assert data.devices == ({"hardware.capability": "9.0", "hardware.shared_memory": 232448},)
    assert data.problem(0) == Problem({"m": 2048, "k": 32, "dtype": "torch.bfloat16"})
    assert data.configs == ({"choice": "extern_mm"}, {"choice": TRITON})
    assert data.rows.samples_s == pytest.approx([3.04e-5, 8.86e-6])
    assert data.default is None
    assert read([path], default="extern_mm").default == 0


def test_kinds_are_those_of_the_metadata(tmp_path: Path) -> None:
    data = read([log(tmp_path / "log", "1,True,32,7,1.0")])
    assert data.problem(0) == Problem({"m": 1, "k": 1, "dtype": "32"})
    assert data.configs == ({"choice": "7"},)


def test_repeats_are_samples_and_only_copies_are_duplicates(tmp_path: Path) -> None:
    data = read([log(tmp_path / "log", *(f"1,2,f,a,{time}" for time in ("1.0", "1.1", "1.0", "1.2", "1.0")))])
    assert (len(data.rows), dict(data.notes)) == (1, {"duplicates": 2})
    assert data.rows.samples_s == pytest.approx([1e-3, 1.1e-3, 1e-3, 1.2e-3, 1e-3])


def test_an_endless_time_is_a_failure(tmp_path: Path) -> None:
    data = read([log(tmp_path / "log", "1,2,f,a,inf", "1,2,f,b,1")])
    assert data.rows.status.tolist() == [status_of("runtime"), TIMED]


def test_a_comma_that_was_not_quoted_is_recovered_where_only_one_reading_makes_sense(tmp_path: Path) -> None:
    data = read([log(tmp_path / "log", "1,2,(8, 8),a,1.0", "1,2,f,a,1.0", "3,4,x,y,a,1.0", "5,6,x,y,z,b,1.0")])
    words = [data.problem(number)["dtype"] for number in range(len(data))]
    assert words == ["f", "(8, 8)", "x,y"]  # of the last row nobody can tell which part is the choice
    assert dict(data.notes) == {"malformed": 1}


def test_a_comma_in_a_choice_is_recovered_where_there_is_no_other_word(tmp_path: Path) -> None:
    path = log(tmp_path / "log", "1,2,tile(8,8),1.0", header="m,k,choice,feedback", categorical_features=[])
    assert read([path]).configs == ({"choice": "tile(8,8)"},)


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ("x,2,f,a,1.0", "m is not a number"),
        ("1,2,f,a,soon", "feedback is not a time above 0"),
        ("1,2,f,a,-1", "feedback is not a time above 0"),
        ("1,2,f,a,nan", "feedback is not a time above 0"),
        ("1,2,f", "3 cells, and the header has 5"),
        ("x,2,f,g,a,1.0", "6 cells, and the header has 5"),
    ],
)
def test_malformed_rows_are_counted_or_named(tmp_path: Path, row: str, reason: str) -> None:
    path = log(tmp_path / "log", "1,2,f,a,1.0", "1,2,(8,8),a,1.0", row)
    data = read([path])
    assert (len(data.rows), dict(data.notes)) == (2, {"malformed": 1})
    with pytest.raises(InvalidFile, match=f"1 malformed row: line 5: {reason}"):
        read([path], is_strict=True)


@pytest.mark.parametrize("header", ["m,k,dtype,choice", "m,m,dtype,choice,feedback", "choice,feedback"])
def test_a_log_without_its_header_is_refused(tmp_path: Path, header: str) -> None:
    with pytest.raises(InvalidFile, match="not a header of features"):
        read([log(tmp_path / "log", "1,2,f,a,1.0", header=header)])


def test_columns_of_a_log_are_not_for_naming(tmp_path: Path) -> None:
    with pytest.raises(InvalidData, match="columns and unit are known"):
        read([log(tmp_path / "log", "1,2,f,a,1.0")], naming=Naming(unit="s"))


def test_logs_of_two_decisions_do_not_mix(tmp_path: Path) -> None:
    paths = [log(tmp_path / name, "1,2,f,a,1.0", name=name) for name in ("mm", "bmm")]
    with pytest.raises(InvalidData, match="about bmm, mm"):
        read(paths)


def test_logs_of_two_devices_stay_apart(tmp_path: Path) -> None:
    paths = [log(tmp_path / str(capability), "1,2,f,a,1.0", device_capa=[capability, 0]) for capability in (8, 9)]
    data = read(paths)
    assert (len(data), len(data.devices), len(data.rows)) == (2, 2, 2)
    with pytest.raises(InvalidData, match="a log is about one device"):
        text_of(data)


def as_rows(data: DataSet) -> list[tuple[Any, ...]]:
    starts = data.rows.starts
    return sorted(
        (
            str(data.problem(int(data.rows.problem[row]))),
            str(data.configs[int(data.rows.config[row])]),
            int(data.rows.status[row]),
            tuple(f"{sample:.9g}" for sample in data.rows.samples_s[starts[row] : starts[row + 1]]),
        )
        for row in range(len(data.rows))
    )


WORDS = st.text(st.characters(codec="utf-8", exclude_characters="\r\0"), min_size=1, max_size=8)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    rows=st.lists(
        st.tuples(st.integers(1, 9), WORDS, WORDS, st.floats(1e-6, 1e6)),
        min_size=1,
        max_size=6,
        unique_by=lambda r: r[:3],
    ),
    name=WORDS,
    feature=WORDS.filter(lambda word: word not in ("m", "choice", "feedback") and word.strip()),
)
def test_a_log_gives_back_what_was_written(
    tmp_path: Path, rows: list[tuple[int, str, str, float]], name: str, feature: str
) -> None:
    import csv
    import io

    out = io.StringIO()
    meta = META | {"name": name, "numerical_features": ["m"], "categorical_features": [feature]}
    out.write(json.dumps(meta) + "\n")
    csv.writer(out, lineterminator="\n").writerows([["m", feature, "choice", "feedback"], *rows])
    (tmp_path / "log").write_text(out.getvalue(), encoding="utf-8")
    data = read([tmp_path / "log"], is_strict=True)
    assert len(data.rows) == len(rows)
    write(data, tmp_path / "again", "autoheuristic")
    again = read([tmp_path / "again"], is_strict=True)
    assert as_rows(again) == as_rows(data)
    assert (again.decision, again.names, again.devices) == (data.decision, data.names, data.devices)


def test_a_feature_with_a_name_that_a_log_keeps_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("f_feedback,choice,t0\n1,a,1\n")
    with pytest.raises(InvalidData, match="rename that feature"):
        text_of(read([tmp_path / "a.csv"]))


def test_configs_of_several_parameters_become_a_word() -> None:
    assert choice_word({"choice": "extern_mm"}) == "extern_mm"
    assert choice_word({"tile": 8, "kind": "x"}) == "tile=8_kind=x"
