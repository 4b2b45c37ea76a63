"""A table is made of verdicts where there are any, of the fastest trials otherwise, and for one device."""

import pytest

from tunewise.decision import Environment, Failure, Outcome, Part, Problem, Subject, Timing, Trial, Verdict
from tunewise.errors import InvalidData, NotFound
from tunewise.session.distilling import distil
from tunewise.store.memory import MemoryStore


def subject(m: int, device: str = "H100", version: str = "1") -> Subject:
    parts = (Part("hardware.name", device, "must"), Part("version", version, "must"))
    return Subject("gemm", Problem({"m": m}), (), Environment(parts))


def measured(store: MemoryStore, about: Subject, times_s: dict[int, float | None]) -> MemoryStore:
    outcomes: dict[int, Outcome] = {
        tile: Timing((time_s,)) if time_s is not None else Failure("crash") for tile, time_s in times_s.items()
    }
    store.add(about, [Trial({"tile": tile}, outcome) for tile, outcome in outcomes.items()])
    return store


def answer(store: MemoryStore, m: int, **options: float) -> object:
    return distil("gemm", store, **options).table.rank({"m": m})[0]["tile"]  # type: ignore[arg-type]


def test_the_fastest_trial_is_the_answer_and_what_failed_is_none() -> None:
    store = measured(MemoryStore(), subject(1), {1: None, 2: 3.0, 4: 2.0})
    assert answer(store, 1) == 4


def test_a_tuning_run_is_believed_before_a_time() -> None:
    store = measured(MemoryStore(), subject(1), {1: 1.0, 2: 1.1})
    store.conclude(subject(1), Verdict("win", {"tile": 1}, {"tile": 2}, (1.2,), (1.1,)))
    assert answer(store, 1) == 2
    assert distil("gemm", store).regrets == (1.0,)


def test_the_winner_of_a_run_without_its_trials_is_known_too() -> None:
    store = MemoryStore()
    store.conclude(subject(1), Verdict("tie", {"tile": 1}, {"tile": 2}, (1.0,), (1.0,)))
    assert answer(store, 1) == 1


def test_a_failed_run_says_nothing() -> None:
    store = measured(MemoryStore(), subject(1), {2: 1.0})
    store.conclude(subject(1), Verdict("failed", {"tile": 1}, {"tile": 1}))
    assert answer(store, 1) == 2


def test_of_two_measurements_of_one_problem_the_later_counts() -> None:
    store = measured(MemoryStore(), subject(1), {1: 1.0, 2: 2.0})
    measured(store, subject(1, version="2"), {1: 2.0, 2: 1.0})
    built = distil("gemm", store)
    assert (len(built.regrets), answer(store, 1)) == (1, 2)


def test_a_table_is_fenced_by_its_device() -> None:
    store = measured(MemoryStore(), subject(1), {1: 1.0})
    assert distil("gemm", store).table.hardware == {"name": "H100"}
    measured(store, subject(1, device="A100"), {2: 1.0})
    with pytest.raises(InvalidData, match="A100, H100; name one of them with --device"):
        distil("gemm", store)
    assert distil("gemm", store, device="A100").table.rules[0].configs == ({"tile": 2},)
    with pytest.raises(NotFound, match="never measured on 'B200'"):
        distil("gemm", store, device="B200")


def test_where_nothing_ran_there_is_no_table() -> None:
    with pytest.raises(InvalidData, match="nothing ran"):
        distil("gemm", measured(MemoryStore(), subject(1), {1: None}))
    with pytest.raises(NotFound, match="nothing is remembered"):
        distil("gemm", MemoryStore())


def test_many_problems_make_few_rules_within_the_tolerance() -> None:
    store = MemoryStore()
    for m in range(1, 65):
        measured(store, subject(m), {1: 1.0 if m <= 32 else 1.5, 2: 1.03 if m > 16 else 1.4, 4: 9.0})
    built = distil("gemm", store, tolerance=0.05)
    assert len(built.table.rules) == 2
    assert built.at(1.0) <= 1.05
    assert len(distil("gemm", store, tolerance=0.0).table.rules) >= 2


def test_problems_with_other_features_are_left_out_and_counted() -> None:
    store = MemoryStore()
    for features in ({"m": 1, "n": 1}, {"m": 2, "n": 1}, {"m": 3}):
        measured(store, Subject("gemm", Problem(features), (), Environment(())), {1: 1.0})
    built = distil("gemm", store)
    assert (len(built.regrets), built.left_out, built.table.about) == (1, 2, "distilled from 1 measured problem")
