"""The report of a data set counts what it holds and tells noise and headroom."""

import json
from pathlib import Path

import numpy as np
import pytest

from tunewise.formats.dataset import DataSet
from tunewise.formats.datasets import read
from tunewise.learn.data_report import noise_floor, report_of

TABLE = """f_n,f_mode,choice,is_default,t0,t1,t2,t3,failure
8,full,auto,1,4,4,4,4,
8,full,fft,0,2,2,2,2,
9,full,auto,1,1,1,1,1,
9,full,fft,0,,,,,timeout
10,same,auto,1,8,8,8,8,
10,same,oa,0,1,1,1,1,
10,same,oa,0,3,3,3,3,
"""


def data_of(tmp_path: Path, text: str) -> DataSet:
    (tmp_path / "toy.csv").write_text(text)
    return read([tmp_path / "toy.csv"])


def test_a_report_counts_what_there_is(tmp_path: Path) -> None:
    report = report_of(data_of(tmp_path, TABLE))
    assert (report.decision, report.problems, report.configs, report.rows) == ("toy", 3, 3, 6)
    assert report.samples == 24
    assert report.coverage == pytest.approx(6 / 9)
    assert report.failures == {"timeout": 1}
    assert (report.duplicates, report.conflicts, report.malformed) == (1, 1, 0)
    assert [(feature.name, feature.distinct) for feature in report.features] == [("n", 3), ("mode", 2)]
    assert (report.features[0].low, report.features[0].high) == (8, 10)
    assert report.features[1].words == ("full", "same")


def test_headroom_is_the_default_over_the_best(tmp_path: Path) -> None:
    headroom = report_of(data_of(tmp_path, TABLE)).headroom
    assert headroom is not None
    assert headroom.geomean == pytest.approx((2 * 1 * 8) ** (1 / 3))
    assert (headroom.max, headroom.problems) == (pytest.approx(8), 3)


def test_winners_are_counted_and_equals_go_to_the_first(tmp_path: Path) -> None:
    report = report_of(data_of(tmp_path, TABLE + "11,same,auto,1,1,1,1,1,\n11,same,oa,0,1,1,1,1,\n"))
    assert [(dict(winner.config)["choice"], winner.problems) for winner in report.winners] == [
        ("auto", 2),
        ("fft", 1),
        ("oa", 1),
    ]


def test_the_noise_floor_is_one_without_noise_and_near_the_truth_with_it(tmp_path: Path) -> None:
    steady = data_of(tmp_path, "f_n,choice,t0,t1\n8,a,2,2\n9,a,3,3\n")
    assert noise_floor(steady.rows) == pytest.approx(1)
    noise = np.exp(np.random.default_rng(0).normal(0, 0.1, (2000, 2)))
    lines = [f"{n},a,{one},{two}" for n, (one, two) in enumerate(noise.tolist())]
    noisy = data_of(tmp_path, "\n".join(["f_n,choice,t0,t1", *lines]))
    assert np.log(noise_floor(noisy.rows) or 0) == pytest.approx(0.2 / np.sqrt(np.pi), rel=0.05)


def test_one_sample_a_row_tells_no_noise(tmp_path: Path) -> None:
    assert report_of(data_of(tmp_path, "f_n,choice,t0\n8,a,1\n")).noise_floor is None


def test_without_a_default_there_is_no_headroom(tmp_path: Path) -> None:
    report = report_of(data_of(tmp_path, "f_n,choice,t0\n8,a,1\n"))
    assert (report.default, report.headroom) == (None, None)


def test_a_report_is_json(tmp_path: Path) -> None:
    document = json.loads(json.dumps(report_of(data_of(tmp_path, TABLE)).to_json(), allow_nan=False))
    assert document["headroom"]["problems"] == 3
    assert document["winners"][0] == {"config": {"choice": "auto"}, "problems": 1}
