"""Cells of a table are numbers, switches or words, and come back as what they were written as."""

from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet
import pytest

from tunewise.decision import Problem
from tunewise.errors import InvalidFile
from tunewise.formats.datasets import read, write


def written(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


def test_words_that_spell_numbers_stay_words_in_a_csv_file(tmp_path: Path) -> None:
    log = """{"shared_memory":1,"device_capa":[9,0],"name":"mm",
"numerical_features":["m"],"categorical_features":["a","b"]}
m,a,b,choice,feedback
8,True,0,16,0.5
8,True,0,32,0.25
9,False,1,16,0.5
"""
    data = read([written(tmp_path / "a.txt", log.replace(",\n", ",", 1))])
    write(data, tmp_path / "b.csv")
    again = read([tmp_path / "b.csv"], is_strict=True)
    assert again.fingerprint == data.fingerprint
    assert again.configs == ({"choice": "16"}, {"choice": "32"})
    assert again.problem(1) == Problem({"m": 9, "a": "False", "b": "1"})
    assert again.devices == data.devices == ({"hardware.capability": "9.0", "hardware.shared_memory": 1},)
    header = (tmp_path / "b.csv").read_text().splitlines()[0].replace('"', "").split(",")
    assert [name for name in header if ":" in name] == [
        "hardware.capability:json",
        "f_a:json",
        "f_b:json",
        "choice:json",
    ]


def test_words_that_spell_numbers_where_others_are_left_out_stay_words(tmp_path: Path) -> None:
    lines = [f'{n},"{mode}",a,1e-3' for n, mode in enumerate(["1", "2", "auto"])]
    data = read([written(tmp_path / "a.csv", "\n".join(["f_n,f_mode,choice,t0", *lines, ""]))])
    write(data.take([0, 1]), tmp_path / "b.csv")
    assert read([tmp_path / "b.csv"]).problem(1) == Problem({"n": 1, "mode": "2"})


def test_numbers_that_others_quote_are_numbers(tmp_path: Path) -> None:
    data = read([written(tmp_path / "a.csv", '"f_n","choice","t0"\n"8","16","1e-3"\n')])
    assert (data.problem(0), data.configs) == (Problem({"n": 8}), ({"choice": 16},))


def test_a_stray_word_in_a_column_of_numbers_is_a_malformed_row(tmp_path: Path) -> None:
    lines = [f"{'5O0' if n == 500 else n},a,1" for n in range(490, 510)]
    path = written(tmp_path / "a.csv", "\n".join(["f_n,choice,t0", *lines, ""]))
    data = read([path])
    assert (data.features[0].words, len(data), dict(data.notes)) == (None, 19, {"malformed": 1})
    with pytest.raises(InvalidFile, match="line 12: f_n is '5O0', and a number in nearly all other rows"):
        read([path], is_strict=True)


def test_one_row_in_ten_may_be_astray(tmp_path: Path) -> None:
    lines = [f"{'l' * (n % 2) or 'O' if n < 2 else n},a,1" for n in range(20)]
    data = read([written(tmp_path / "a.csv", "\n".join(["f_n,choice,t0", *lines, ""]))])
    assert dict(data.notes) == {"malformed": 2}


@pytest.mark.parametrize("values", [["auto", *range(11)], ["auto"] * 3 + list(range(20))])
def test_words_among_few_numbers_or_in_many_rows_are_words(tmp_path: Path, values: list[Any]) -> None:
    lines = [f"{n},{value},a,1" for n, value in enumerate(values)]
    data = read([written(tmp_path / "a.csv", "\n".join(["f_n,f_mode,choice,t0", *lines, ""]))], is_strict=True)
    assert data.features[1].is_word


def test_words_that_are_nearly_all_numbers_are_written_as_words(tmp_path: Path) -> None:
    rows = "".join(f"{'none' if n == 7 else n},a,1\n" for n in range(20))
    head = '{"name":"x","numerical_features":[],"categorical_features":["id"]}\nid,choice,feedback\n'
    data = read([written(tmp_path / "a.txt", head + rows)])
    write(data, tmp_path / "b.csv")
    assert read([tmp_path / "b.csv"], is_strict=True).fingerprint == data.fingerprint


@pytest.mark.parametrize("column", ["f_n", "p_tile"])
@pytest.mark.parametrize(("value", "kind"), [(Decimal("1.5"), "decimal128"), (datetime(2020, 1, 1), "timestamp")])
def test_values_that_are_no_numbers_or_words_are_refused_by_their_kind(
    tmp_path: Path, column: str, value: object, kind: str
) -> None:
    columns = {"f_n": [8, 9], "p_tile": [1, 2], "t0": [1.0, 2.0], column: [value, value]}
    pyarrow.parquet.write_table(pyarrow.table(columns), tmp_path / "a.parquet")
    with pytest.raises(InvalidFile, match=rf"holds {kind}.* in its column {column}; write it as numbers"):
        read([tmp_path / "a.parquet"])
