"""Damaged data files are refused in a sentence or read as far as they make sense; nothing else comes of them."""

import json
import random
from pathlib import Path

import numpy as np
import pytest

from tunewise.errors import TunewiseError
from tunewise.formats.dataset import TIMED
from tunewise.formats.datasets import read, write

TABLE = "pid,f_n,f_mode,choice,is_default,inner,t0,t1\n" + "".join(
    f"{n},{8 * n},{mode},{choice},{int(choice == 'auto')},3,{n}e-6,3e-6\n"
    for n, mode in ((1, "valid"), (2, "full"), (3, "same"))
    for choice in ("auto", "fft")
)
META = {"name": "mm", "numerical_features": ["m"], "categorical_features": ["dtype"], "device_capa": [9, 0]}
LOG = json.dumps(META) + '\nm,dtype,choice,feedback\n1,f,a,1.0\n1,(8,8),a,1.0\n3,"x,y",b,2\n'
WIDE = "shape,c0_r0,c0_r1,c7_r0,c7_r1\n4096x16,3e-4,2e-4,7e-5,8e-5\n16x8,3e-6,,,\n"
PIECES = [b",", b"\n", b'"', b"\0", b"nan", b"inf", b"-", b"1e999", b"\xff", b"x", b"0", b"[" * 40, b"9" * 30]


def damaged(raw: bytes, chance: random.Random) -> bytes:
    changed = bytearray(raw)
    for _ in range(chance.randint(1, 4)):
        place = chance.randrange(len(changed) + 1)
        match chance.randrange(5):
            case 0:
                changed[place : place + 1] = bytes([chance.randrange(256)])
            case 1:
                changed[place:place] = chance.choice(PIECES)
            case 2:
                del changed[place : place + chance.randint(1, 9)]
            case 3:
                changed = changed[:place] + changed[max(0, place - chance.randint(1, 30)) :]
            case _:
                changed = changed[:place] if chance.random() < 0.3 else changed
    return bytes(changed)


def originals(tmp_path: Path) -> list[bytes]:
    (tmp_path / "a.csv").write_text(TABLE)
    write(read([tmp_path / "a.csv"]), tmp_path / "a.parquet")
    return [TABLE.encode(), LOG.encode(), WIDE.encode(), (tmp_path / "a.parquet").read_bytes()]


def outcome(path: Path, is_strict: bool) -> str:
    try:
        data = read([path], is_strict=is_strict)
    except TunewiseError as error:
        return type(error).__name__
    timed = data.rows.status == TIMED
    assert np.isfinite(data.rows.time_s[timed]).all()
    assert (data.rows.samples_s > 0).all()
    assert data.rows.problem.max() < len(data)
    assert data.rows.config.max() < len(data.configs)
    return "data"


@pytest.mark.parametrize("count", [400, pytest.param(10_000, marks=pytest.mark.full)])
def test_damaged_files_are_refused_or_read(tmp_path: Path, count: int) -> None:
    chance = random.Random(0)
    sources = originals(tmp_path)
    path = tmp_path / "damaged"
    seen = []
    for _ in range(count):
        path.write_bytes(damaged(chance.choice(sources), chance))
        seen.append(outcome(path, is_strict=chance.random() < 0.3))
    assert set(seen) <= {"data", "InvalidFile", "InvalidData"}
    assert seen.count("data") > count / 10


def test_bytes_that_are_no_text_cost_their_row_only(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(TABLE.encode().replace(b"2,16,full,fft", b"2,16,f\xffll,fft"))
    data = read([path])
    assert (len(data.rows), dict(data.notes)) == (5, {"malformed": 1})
