"""Learned seeds: what to try first on a problem, from what others taught."""

import pytest

from tunewise.decision import Problem, Subject, Timing, Trial, detect, environment
from tunewise.errors import InvalidData
from tunewise.formats.dataset import DataSet
from tunewise.learn.options import Training
from tunewise.learn.seeds import train_seeds
from tunewise.learn.store_data import from_store
from tunewise.store import MemoryStore


def tuned(*sizes: int) -> DataSet:
    """Return what tuning runs leave: on every problem other configs, of which `direct` is the best of small ones."""
    store = MemoryStore()
    for n in sizes:
        times = {"direct": n * 1e-6, "table": 5e-5, "sorted": 8e-5}
        ways = [way for place, way in enumerate(times) if (place + n) % 4]
        subject = Subject("find", Problem({"n": n}), (), environment(detect()))
        store.add(subject, [Trial({"choice": way}, Timing((times[way],))) for way in ways])
    return from_store(store, "find")


def test_what_is_best_for_problems_like_it_is_proposed_first() -> None:
    model = train_seeds(tuned(*range(5, 200, 3)))
    assert model.choose({"n": 10}) == {"choice": "direct"}
    assert model.choose({"n": 190}) == {"choice": "table"}


def test_the_model_answers_nothing_and_holds_everywhere_unless_it_is_fenced() -> None:
    data = tuned(5, 30, 100)
    assert train_seeds(data).card.only_seeds
    assert train_seeds(data).card.fence == {}
    assert train_seeds(data, Training(fence={"hardware.kind": "cpu"})).card.fence == {"hardware.kind": "cpu"}


def test_two_problems_are_enough_and_one_is_not() -> None:
    assert train_seeds(tuned(5, 30)).rank({"n": 10})
    with pytest.raises(InvalidData, match="tune another one first"):
        train_seeds(tuned(5))
