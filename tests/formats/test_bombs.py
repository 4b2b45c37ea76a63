"""Small files that unpack to much, and large ones of nothing, are refused before they cost memory or time."""

import gzip
import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from bombs import JSON, MSGPACK, TABLES, numbered

from tunewise.cli.problems import read as read_problems
from tunewise.errors import InvalidFile
from tunewise.formats import foreign, recorded, torn

MAX_MIB = 256
MAX_S = 5.0  # of processor: alone each takes less than 0.5 s

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="what a process held at most is read from /proc")


@pytest.mark.parametrize("kind", [JSON, TABLES, MSGPACK], ids=["json", "tables", "msgpack"])
def test_bombs_are_refused_in_little_memory_and_time(kind: Mapping[str, Callable[[], bytes]], tmp_path: Path) -> None:
    for name, make in kind.items():
        (tmp_path / name).write_bytes(make())
    for name, readers in costs(sorted(tmp_path.iterdir())).items():
        for reader, (outcome, seconds, mib) in readers.items():
            assert outcome.startswith("refused: "), (name, reader)
            assert mib <= MAX_MIB, (name, reader, outcome)
            assert seconds <= MAX_S, (name, reader, outcome)


def test_parquet_that_unpacks_to_much_is_refused(tmp_path: Path) -> None:
    arrow = pytest.importorskip("pyarrow", reason="pyarrow is not installed: pip install 'tunewise[learn]'")
    from pyarrow import parquet

    def save(name: str, **columns: Any) -> None:
        parquet.write_table(arrow.table(columns), tmp_path / name, compression="zstd", use_dictionary=name != "words")

    zeros = np.zeros(4_000_000, np.int32)
    one_word = arrow.DictionaryArray.from_arrays(arrow.array(zeros), arrow.array(["a"]))
    save("rows", f_m=zeros, choice=one_word, t0=np.ones(len(zeros)))
    save("words", f_m=[1] * 100, choice=["x" * 1_000_000 + str(n) for n in range(100)], t0=np.ones(100))
    save("columns", **{f"f_{n}": [1] for n in range(20_001)}, choice=["a"], t0=[1.0])
    for name, readers in costs(sorted(tmp_path.iterdir())).items():
        assert readers["datasets"][0].startswith("refused: "), name
        assert readers["datasets"][2] <= MAX_MIB, name


def costs(paths: list[Path]) -> dict[str, dict[str, tuple[str, float, int]]]:
    """Return by file and reader: what became of it, the seconds of processor, and the most MiB held so far."""
    command = [sys.executable, str(Path(__file__).with_name("bomb_reader.py")), *map(str, paths)]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False, env={**os.environ})
    assert ran.returncode == 0, ran.stderr
    found: dict[str, dict[str, tuple[str, float, int]]] = json.loads(ran.stdout)
    return found


def test_a_file_that_packs_well_is_read(tmp_path: Path) -> None:
    record = '"%d": {"block_size_x": %d, "time": 1.25, "times": [1.25, 1.25, 1.25], "compile_time": 100.5}'
    text = ",\n".join(record % (n, n) for n in range(20_000))
    path = tmp_path / "cache.json.gz"
    path.write_bytes(gzip.compress(b'{"tune_params_keys": ["block_size_x"], "cache": {%s}}' % text.encode(), 9))
    assert path.stat().st_size * 10 < len(torn.load(path).raw)
    assert len(recorded.read(path)[0].rows) == 20_000


@pytest.mark.parametrize(
    ("begin", "record", "end"),
    [
        (b'{"cache":{', '"%d,2":{"x":1,"y":2,"time":0.123}', b"}}"),
        (b'{"results":[', '{"configuration":{"x":%d},"times":{"runtimes":[1.5]},"objectives":["time"]}', b"]}"),
    ],
    ids=["cache", "t4"],
)
def test_short_records_without_a_space_between_are_no_bomb(begin: bytes, record: str, end: bytes) -> None:
    torn.check_weight(numbered(begin, record, end, 250_000))


def test_gzip_files_in_a_row_are_one_file(tmp_path: Path) -> None:
    text = b'{"tune_params_keys": ["x"], "cache": {"1": {"x": 1, "time": 2.5}}}'
    path = tmp_path / "cache.json.gz"
    path.write_bytes(b"".join(gzip.compress(text[n : n + 1]) for n in range(len(text))) + gzip.compress(b"") * 500)
    assert len(recorded.read(path)[0].rows) == 1


@pytest.mark.parametrize("read", [recorded.read, foreign.read])
@pytest.mark.parametrize("depth", [100, 500, 900, 990, 2_000])
def test_a_deep_value_is_refused_in_a_sentence(read: Callable[[Path], Any], depth: int, tmp_path: Path) -> None:
    value = b"[" * depth + b"]" * depth
    path = tmp_path / "deep.json"
    path.write_bytes(b'{"tune_params_keys": ["x"], "cache": {"1": {"x": %s, "time": 1.5}}}' % value)
    with pytest.raises(InvalidFile) as refused:
        read(path)
    assert "\n" not in str(refused.value)


def test_a_list_of_nothing_is_no_list_of_problems(tmp_path: Path) -> None:
    path = tmp_path / "problems.json"
    path.write_bytes(b"[" + b"[]," * 4_000_000 + b"[]]")
    with pytest.raises(InvalidFile, match="far more JSON values"):
        read_problems(path)
