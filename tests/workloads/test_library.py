import numpy as np
import pytest

from tunewise.workloads import find, names
from tunewise.workloads.library import DECISIONS, convolve1d, isin, sort

PROBLEMS = {
    "convolve1d": [{"n": n, "k": k} for n, k in ((1, 1), (2, 1), (9, 9), (64, 5), (1000, 31), (515, 514), (3000, 700))],
    "isin": [
        {"n": n, "m": m, "span": span}
        for n, m, span in ((1, 1, 1), (5, 2, 7), (100, 3, 50), (40, 600, 90), (900, 30, 10**6), (50, 20, 1 << 40))
    ],
    "sort": [
        {"n": n, "dtype": dtype, "order": order}
        for n, order in ((1, "sorted"), (500, "random"), (700, "sorted"), (3000, "mixed"))
        for dtype in ("int16", "int64", "float32", "float64")
    ],
}
REFERENCE = {
    "convolve1d": lambda x, y: np.convolve(x, y),
    "isin": lambda values, members: np.array([value in set(members.tolist()) for value in values.tolist()]),
    "sort": lambda x: np.array(sorted(x.tolist()), x.dtype),
}
BARE = {"convolve1d": convolve1d, "isin": isin, "sort": sort}


def each_problem():
    return [pytest.param(name, problem, id=f"{name}-{problem}") for name in PROBLEMS for problem in PROBLEMS[name]]


@pytest.mark.parametrize(("name", "problem"), each_problem())
def test_every_way_gives_the_right_result(name, problem):
    decision = find(name)
    args = decision.make_inputs(problem)
    right = REFERENCE[name](*args)
    for config in decision.space:
        result = BARE[name].__wrapped__(*args, **config)
        assert result.shape == right.shape
        assert result.dtype == right.dtype
        np.testing.assert_allclose(result, right, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", DECISIONS)
def test_default_is_what_the_library_does_by_itself(name):
    assert find(name).default["choice"] in ("direct", "auto", "quick")


def test_table_over_a_huge_range_is_not_made():
    values, members = np.array([1, 1 << 60]), np.array([0, 1 << 60])
    assert isin.__wrapped__(values, members, choice="table").tolist() == [False, True]


def test_no_member_means_no_hit():
    values, none = np.arange(3), np.zeros(0, np.int64)
    assert [isin.__wrapped__(values, none, choice=way).tolist() for way in ("auto", "sort", "table", "search")] == [
        [False] * 3
    ] * 4


@pytest.mark.parametrize(
    ("x", "order"),
    [([1, 2, 1] * 300, "random"), ([2, 2, 3, 4, 1] * 99, "mixed"), (range(900), "sorted"), ([], "sorted")],
)
def test_order_is_told_from_a_few_neighbours(x, order):
    assert find("sort").features(np.array(x))["order"] == order


def test_library_choices_need_no_compiler(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CC", raising=False)
    assert set(names(backend="python")) == set(DECISIONS)
    for name in names(backend="python"):
        decision = find(name)
        assert decision.subject(decision.problem(PROBLEMS[name][0])).digest
