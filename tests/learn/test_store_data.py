"""What a store remembers becomes a data set with the hardware of every problem."""

from collections.abc import Sequence
from itertools import product
from pathlib import Path

import pytest

from tunewise.decision import Declaration, Problem, Space, Subject, Timing, Trial
from tunewise.decision.hardware import Environment, Part
from tunewise.errors import InvalidData, NotFound
from tunewise.formats.datasets import read, write
from tunewise.learn.store_data import from_store
from tunewise.store import MemoryStore


def remembered(*cores: int, sources: Sequence[str] = ("one",)) -> MemoryStore:
    store = MemoryStore()
    for count, source in product(cores, sources):
        environment = Environment((Part("hardware.cores", count, "must"), Part("source", source, "must")))
        subject = Subject("sort", Problem({"n": 8, "k": 3}), (), environment)
        store.add(subject, [Trial({"choice": "a"}, Timing((1.0,))), Trial({"choice": "b"}, Timing((2.0,)))])
    return store


def test_every_trial_of_a_decision_is_in_the_data_with_its_device() -> None:
    data = from_store(remembered(2, 4), "sort")
    assert (data.decision, len(data), len(data.rows)) == ("sort", 2, 4)
    assert data.device is not None
    assert [data.devices[number] for number in data.device] == [{"hardware.cores": 2}, {"hardware.cores": 4}]


def test_times_from_before_and_after_a_change_are_never_merged(tmp_path: Path) -> None:
    data = from_store(remembered(2, sources=("old", "new")), "sort")
    write(data, tmp_path / "a.parquet")
    for known in (data, read([tmp_path / "a.parquet"])):
        assert (len(known), len(known.rows), dict(known.notes)) == (2, 4, {})
        assert len({facts["environment.digest"] for facts in known.devices}) == 2


def test_derived_features_are_added_by_the_declaration_itself() -> None:
    declared = Declaration(
        "sort",
        space=Space({"choice": ["a", "b"]}),
        default={"choice": "a"},
        derived={"work": lambda problem: problem["n"] * problem["k"], "pair": lambda problem, config: 1},
    )
    data = from_store(remembered(2), "sort", derive=declared.derive)
    assert data.problem(0) == Problem({"n": 8, "k": 3, "work": 24})


def test_an_unknown_decision_is_named_with_those_that_are_known() -> None:
    with pytest.raises(NotFound, match="nothing of 'srot'; it knows sort"):
        from_store(remembered(2), "srot")


def test_data_of_nothing_but_verdicts_is_refused() -> None:
    from tunewise.decision import Verdict

    store = MemoryStore()
    store.conclude(Subject("sort", Problem({"n": 1}), (), Environment(())), Verdict("tie", {"choice": "a"}, {}))
    with pytest.raises(InvalidData, match="no trial of 'sort'"):
        from_store(store, "sort")
