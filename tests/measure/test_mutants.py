"""Fast but wrong kernels: none of them ever wins (the deterministic ones never, the racy ones hardly ever)."""

import itertools
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.lib.stride_tricks import as_strided

import tunewise as tw

Array = Any
BLOCK = 8


def slow(a: Array, b: Array) -> Array:
    """The default: right, and slower than all the cheats."""
    end = time.process_time() + 2e-4
    while time.process_time() < end:
        pass
    return a @ b


def no_op(a: Array, b: Array) -> Array:
    return np.zeros((a.shape[0], b.shape[1]), a.dtype)


def last_tile(a: Array, b: Array) -> Array:
    c = np.zeros((a.shape[0], b.shape[1]), a.dtype)
    c[:-BLOCK] = a[:-BLOCK] @ b
    return c


def ragged(a: Array, b: Array) -> Array:
    whole = a.shape[0] // BLOCK * BLOCK
    c = np.zeros((a.shape[0], b.shape[1]), a.dtype)
    c[:whole] = a[:whole] @ b
    return c


def make_stale() -> Callable[[Array, Array], Array]:
    kept: dict[tuple[int, ...], Array] = {}

    def stale(a: Array, b: Array) -> Array:
        key = (*a.shape, *b.shape)
        if key not in kept:
            kept[key] = a @ b
        return kept[key]

    return stale


def uninitialised(a: Array, b: Array) -> Array:
    c = np.empty((a.shape[0], b.shape[1]), a.dtype)
    c[:, :-1] = a @ b[:, :-1]
    return c


def wrong_dtype(a: Array, b: Array) -> Array:
    return (a @ b).astype(np.float64)


def changes_argument(a: Array, b: Array) -> Array:
    c = a @ b
    a[0, 0] = 0
    return c


def writes_outside(a: Array, b: Array) -> Array:
    c = a @ b
    as_strided(a, (a.size + 4,), (a.itemsize,))[-1] = 1.0
    return c


def nan_at_large(a: Array, b: Array) -> Array:
    c = a @ b
    if np.abs(a).max() > 1000:
        c[0, 0] = np.nan
    return c


def imprecise(a: Array, b: Array) -> Array:
    return (a @ b) * a.dtype.type(1.1)


def half_precision(a: Array, b: Array) -> Array:
    return (a.astype(np.float16) @ b.astype(np.float16)).astype(a.dtype)


def make_racy(share: float, seed: int) -> Callable[[Array, Array], Array]:
    """A function of its own luck: with one seed for all, every run would be wrong at the same calls."""
    rng = np.random.default_rng(seed)

    def racy(a: Array, b: Array) -> Array:
        c = a @ b
        if rng.random() < share:
            c[0, 0] += 1
        return c

    return racy


DETERMINISTIC: dict[str, Callable[[], Callable[[Array, Array], Array]]] = {
    "no_op": lambda: no_op,
    "last_tile": lambda: last_tile,
    "ragged": lambda: ragged,
    "stale": make_stale,
    "uninitialised": lambda: uninitialised,
    "wrong_dtype": lambda: wrong_dtype,
    "changes_argument": lambda: changes_argument,
    "writes_outside": lambda: writes_outside,
    "nan_at_large": lambda: nan_at_large,
    "imprecise": lambda: imprecise,
    "half_precision": lambda: half_precision,
}

_names = itertools.count()


def matrices(m: int, k: int, n: int, seed: int) -> tuple[Array, Array]:
    rng = np.random.default_rng(seed)
    return rng.random((m, k), dtype=np.float32), rng.random((k, n), dtype=np.float32)


def winner(cheat: Callable[[Array, Array], Array], isolation: Any, *, declares_inputs: bool = True) -> str:
    problem = {"m": 32, "k": 24, "n": 40}
    inputs = (lambda problem, seed: matrices(**problem, seed=seed)) if declares_inputs else None
    matmul = tw.choice(
        f"mutant-{next(_names)}",
        {"slow": slow, "cheat": cheat},
        default="slow",
        features=lambda a, b: {"m": a.shape[0], "k": a.shape[1], "n": b.shape[1]},
        inputs=inputs,
        check=tw.Check(inputs=lambda problem: [matrices(13, 7, 5, 3)]),
        policy=tw.Policy(isolation=isolation),
    )
    return str(matmul.tune(*matrices(**problem, seed=0)).answer.config["choice"])


def right(a: Array, b: Array) -> Array:
    return a @ b


def test_a_faster_right_kernel_does_win() -> None:
    assert winner(right, "worker") == "cheat"


@pytest.mark.parametrize("name", DETERMINISTIC)
@pytest.mark.parametrize("isolation", ["worker", "none"])
def test_a_deterministic_mutant_never_wins(name: str, isolation: str) -> None:
    assert winner(DETERMINISTIC[name](), isolation) == "slow"


@pytest.mark.parametrize("name", [name for name in DETERMINISTIC if name != "ragged"])
def test_arguments_alone_are_enough_to_find_it(name: str) -> None:
    assert winner(DETERMINISTIC[name](), "none", declares_inputs=False) == "slow"


def test_a_racy_mutant_hardly_ever_wins() -> None:
    assert winner(make_racy(0.05, 7), "none") == "slow"


@pytest.mark.full
@pytest.mark.parametrize("name", DETERMINISTIC)
def test_a_deterministic_mutant_never_wins_in_a_hundred_runs(name: str) -> None:
    assert [winner(DETERMINISTIC[name](), "worker") for _ in range(100)] == ["slow"] * 100


@pytest.mark.full
def test_a_mutant_wrong_one_time_in_twenty_escapes_at_most_four_percent() -> None:
    assert sum(winner(make_racy(0.05, seed), "none") == "cheat" for seed in range(100)) <= 4


@pytest.mark.full
def test_a_mutant_wrong_one_time_in_a_hundred_seldom_escapes() -> None:
    assert sum(winner(make_racy(0.01, seed), "none") == "cheat" for seed in range(50)) <= 10


def make_memo() -> Callable[[Array, Array], Array]:
    kept: dict[tuple[int, int], Array] = {}

    def memo(a: Array, b: Array) -> Array:
        key = (id(a), id(b))
        if key not in kept:
            kept[key] = (a, b, slow(a, b))
        return kept[key][2].copy()

    return memo


def make_first_calls_only() -> Callable[[Array, Array], Array]:
    calls = itertools.count()

    def lazy(a: Array, b: Array) -> Array:
        if next(calls) < 200:
            return slow(a, b)
        return np.zeros((a.shape[0], b.shape[1]), a.dtype)

    return lazy


def make_waiting() -> Callable[[Array, Array], Array]:
    def waiting(a: Array, b: Array) -> Array:
        time.sleep(0.002)  # as if another process did the work
        return a @ b

    return waiting


@pytest.mark.parametrize("make", [make_memo, make_first_calls_only, make_waiting])
@pytest.mark.parametrize("isolation", ["worker", "none"])
def test_a_cheat_that_skips_the_work_never_wins(make: Any, isolation: str) -> None:
    assert winner(make(), isolation) == "slow"


@pytest.mark.parametrize("isolation", ["worker", "none"])
def test_changing_the_clock_gains_nothing(isolation: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def spin(n: int, *, steps: int) -> None:
        if steps > 5000:
            monkeypatch.setattr(time, "process_time", lambda: 0.0)
            monkeypatch.setattr(time, "perf_counter", lambda: 0.0)
        for _ in range(steps):
            pass

    decision = tw.Decision(
        "bent",
        space=tw.Space({"steps": [5000, 8000]}),
        default={"steps": 5000},
        features=lambda n: {"n": n},
        policy=tw.Policy(isolation=isolation),
    )
    assert decision.implementation(spin).tune(1).answer.config == {"steps": 5000}


def test_work_that_only_waits_says_to_use_the_wall_clock() -> None:
    def wait(n: int, *, x: int) -> None:
        time.sleep(0.005)

    decision = tw.Decision("waits", space=tw.Space({"x": [1, 2]}), default={"x": 1}, features=lambda n: {"n": n})
    with pytest.warns(tw.TunewiseWarning, match="waits instead of computing .* use Policy\\(clock='wall'\\)"):
        decision.implementation(wait).tune(1)
