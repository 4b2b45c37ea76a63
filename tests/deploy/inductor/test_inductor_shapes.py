"""Shapes to measure: different ones, within their limits, and the same for the same seed."""

import json
import os
import statistics
import subprocess
import sys
from collections import Counter
from math import log
from pathlib import Path

import pytest

from tunewise.deploy.inductor.shapes import SAMPLERS, Limits, Sampler, Shape, merged, shapeset_shapes
from tunewise.errors import InvalidProblem

each = pytest.mark.parametrize("sampler", SAMPLERS.values(), ids=SAMPLERS)
LIMITS = Limits(low=8, high=2048, batch=16, memory_bytes=8 << 20, multiply_adds=1 << 27)


@each
def test_drawn_shapes_differ_and_are_within_their_limits(sampler: Sampler) -> None:
    shapes = sampler(120, ["mm", "linear", "bmm"], ["float32", "bfloat16"], 3, LIMITS)
    assert len(set(shapes)) == len(shapes) == 120
    assert not [shape for shape in shapes if LIMITS.why_not(shape) is not None]
    assert set(Counter((shape.op, shape.dtype) for shape in shapes).values()) == {20}
    assert {shape.b for shape in shapes if shape.op != "bmm"} == {1}


@each
def test_the_seed_decides_and_a_longer_list_begins_like_a_shorter_one(sampler: Sampler) -> None:
    shapes = sampler(30, ["mm"], ["float32"], 7, LIMITS)
    assert sampler(10, ["mm"], ["float32"], 7, LIMITS) == shapes[:10]
    assert sampler(30, ["mm"], ["float32"], 8, LIMITS) != shapes


@each
def test_where_there_are_no_more_shapes_the_list_is_shorter(sampler: Sampler) -> None:
    shapes = sampler(50, ["mm", "bmm"], ["float32"], 0, Limits(low=8, high=8, batch=4))
    assert {(shape.op, shape.b) for shape in shapes} == {("mm", 1), *(("bmm", b) for b in (1, 2, 3, 4))}


def test_sizes_are_powers_of_two_or_multiples_of_eight() -> None:
    for name, is_right in {"power-of-two": lambda n: n & (n - 1) == 0, "log-normal": lambda n: n % 8 == 0}.items():
        shapes = SAMPLERS[name](200, ["mm"], ["float32"], 0, Limits(low=8, high=4096))
        assert all(is_right(size) for shape in shapes for size in (shape.m, shape.n, shape.k))


def test_log_normal_sizes_are_those_of_real_programs() -> None:
    wide = Limits(low=1, high=1 << 40, memory_bytes=1 << 90)
    shapes = SAMPLERS["log-normal"](4000, ["mm"], ["float16"], 1, wide)
    for name, mean, deviation in (("m", 6.573, 2.556), ("n", 5.914, 1.670), ("k", 6.205, 2.165)):
        logs = [log(getattr(shape, name)) for shape in shapes]
        assert statistics.median(logs) == pytest.approx(mean, abs=0.2)
        upper = statistics.quantiles(logs, n=100)[83]  # the lower side is rounded up to 8
        assert upper - mean == pytest.approx(deviation, abs=0.2)


def test_every_order_of_magnitude_is_as_likely() -> None:
    shapes = SAMPLERS["random"](2000, ["mm"], ["float32"], 0, Limits(low=1, high=10**4, memory_bytes=1 << 60))
    decades = Counter(int(log(shape.m, 10) + 1e-9) for shape in shapes)
    assert all(400 < decades[decade] < 600 for decade in range(4))


def test_a_shape_is_a_problem() -> None:
    assert Shape("bmm", 4, 5, 6, 2, "float16").features == {"b": 2, "m": 4, "n": 5, "k": 6, "dtype": "float16"}
    assert Shape("linear", 4, 5, 6).features == {"m": 4, "n": 5, "k": 6, "dtype": "float32"}
    assert Shape("bmm", 4, 5, 6, 2, "float16").memory_bytes == 2 * 2 * (24 + 30 + 20)


def test_limits_say_why() -> None:
    limits = Limits(low=8, high=64, batch=2, memory_bytes=4 * 3 * 64 * 64, multiply_adds=10**5)
    said = [limits.why_not(Shape("bmm", *sizes)) for sizes in ((4, 8, 8), (8, 8, 8, 3), (64, 64, 64, 2), (64, 64, 64))]
    assert [reason.split(",")[0] if reason else None for reason in said] == [
        "m=4 is not from 8 to 64",
        "b=3 is not from 1 to 2",
        "it takes 98304 bytes",
        "it takes 262144 multiply-adds",
    ]


def shapeset(path: Path) -> Path:
    plain = {"M_dtype": "float16", "K_dtype": "float16", "out_dtype": "float16", "out_size": [], "out_stride": []}
    mm = [{"B": 1, "M": m, "N": 8, "K": 8, **plain} for m in (16, 32, 16, 16)]
    path.write_text(json.dumps({"operations": {"mm": {"shapes": mm}, "bmm": {"shapes": [{**mm[0], "B": 2}]}}}))
    return path


def test_shapes_of_a_shapeset_are_weighted_by_how_often_they_come(tmp_path: Path) -> None:
    shapes = shapeset_shapes(shapeset(tmp_path / "s.json"))
    assert [(shape.op, shape.m, shape.b, shape.weight) for shape in shapes] == [
        ("mm", 16, 1, 3.0),
        ("mm", 32, 1, 1.0),
        ("bmm", 16, 2, 1.0),
    ]


def test_shapes_of_a_shapeset_may_be_of_some_ops_and_other_types(tmp_path: Path) -> None:
    file = shapeset(tmp_path / "s.json")
    shapes = shapeset_shapes(file, ops=["mm"], dtypes=["float32", "bfloat16"], limits=Limits(high=16))
    assert [(shape.m, shape.dtype, shape.weight) for shape in shapes] == [(16, "float32", 3.0), (16, "bfloat16", 3.0)]
    drawn = shapeset_shapes(file, 2, seed=5)
    assert len(drawn) == 2
    assert drawn == shapeset_shapes(file, 2, seed=5)


@pytest.mark.skipif("TUNEWISE_DATA" not in os.environ, reason="TUNEWISE_DATA does not name the folder of shared data")
def test_the_shared_shapeset_has_its_shapes_with_all_their_weight() -> None:
    file = Path(os.environ["TUNEWISE_DATA"]) / "formats" / "diode-operation_shapeset.json"
    shapes = shapeset_shapes(file, limits=Limits(high=1 << 40, batch=1 << 20, memory_bytes=1 << 60))
    assert len(shapes) == len(set(shapes)) == 1402
    assert sum(shape.weight for shape in shapes) == 1577


def test_weights_add_up() -> None:
    assert [one.weight for one in merged([Shape("mm", 1, 2, 3, weight=2), Shape("mm", 1, 2, 3, weight=0.5)])] == [2.5]


@pytest.mark.parametrize(
    ("ops", "dtypes", "said"),
    [(["conv"], ["float32"], "op 'conv' is not one of"), (["mm"], ["float"], "dtype 'float' is not one of")],
)
def test_what_does_not_exist_is_named(ops: list[str], dtypes: list[str], said: str) -> None:
    with pytest.raises(InvalidProblem, match=said):
        SAMPLERS["random"](3, ops, dtypes, 0, LIMITS)
    with pytest.raises(InvalidProblem, match="give 1 <= low <= high"):
        Limits(low=9, high=8)
    with pytest.raises(InvalidProblem, match="no power of two from 9 to 15"):
        SAMPLERS["power-of-two"](3, ["mm"], ["float32"], 0, Limits(low=9, high=15))


def test_shapes_need_no_torch() -> None:
    code = "import sys, tunewise.deploy.inductor.shapes; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
