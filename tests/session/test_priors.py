"""What the store holds of other problems and machines is told to a search: nearest first, and each config once."""

from dataclasses import replace
from typing import Any

from tunewise.decision import (
    Config,
    Declaration,
    Failure,
    Outcome,
    Problem,
    Space,
    Subject,
    Timing,
    Trial,
    detect,
    environment,
)
from tunewise.measure import Replay, Work
from tunewise.session import priors
from tunewise.session.plan import Plan, Task
from tunewise.session.tune import tune
from tunewise.store import MemoryStore

SPACE = Space({"a": list(range(16)), "b": list(range(16))})
DEFAULT = {"a": 0, "b": 0}


def subject(n: int = 100, kind: str = "float32", decision: str = "valley", **hardware: Any) -> Subject:
    there = environment(replace(detect(), **hardware))
    return Subject(decision, Problem({"n": n, "kind": kind}), (), there)


def origins(store: MemoryStore, of: Subject) -> list[str]:
    return [prior.origin for prior in priors.of(store, of, SPACE)]


def told(config: Config) -> Trial:
    return Trial(config, Timing((1.0,)))


def test_the_nearest_problem_comes_first() -> None:
    store = MemoryStore()
    others = [subject(n) for n in (800, 101, 30)] + [subject(101, kind="float64")]
    for other in others:
        store.add(other, [told(DEFAULT)])
    expected = [others[1], others[2], others[0], others[3]]
    assert origins(store, subject()) == [other.digest for other in expected]


def test_of_equal_problems_the_more_similar_machine_comes_first() -> None:
    store = MemoryStore()
    others = [subject(name="another CPU", cores=77), subject(name="another CPU")]
    for other in others:
        store.add(other, [told(DEFAULT)])
    assert origins(store, subject()) == [others[1].digest, others[0].digest]


def test_its_own_trials_and_other_decisions_are_not_told() -> None:
    store = MemoryStore()
    for known in (subject(), subject(decision="hill")):
        store.add(known, [told(DEFAULT)])
    assert origins(store, subject()) == []


def test_each_config_of_our_space_is_told_once() -> None:
    store, other = MemoryStore(), subject(7)
    slow, broken = {"a": 1, "b": 1}, {"a": 2, "b": 2}
    store.add(other, [told(slow), Trial(slow, Timing((3.0,))), Trial(broken, Failure("crash")), told({"c": 1})])
    (prior,) = priors.of(store, subject(), SPACE)
    assert [trial.config for trial in prior.trials] == [slow, broken]
    assert prior.trials[0].outcome == Timing((1.0, 3.0))
    assert isinstance(prior.trials[1].outcome, Failure)


def test_only_so_many_are_told() -> None:
    store = MemoryStore()
    for n in range(priors.MOST + 5):
        store.add(subject(200 + n), [told(DEFAULT)])
    assert len(origins(store, subject())) == priors.MOST


def valley(config: Config) -> Outcome:
    return Timing((1.0 + abs(int(config["a"]) - 11) + abs(int(config["b"]) - 5),))  # type: ignore[arg-type]


def tuned(store: MemoryStore, n: int, budget: int) -> Config:
    declaration = Declaration("valley", space=SPACE, default=DEFAULT)
    work = Work(lambda config: lambda: None, (), DEFAULT, declaration.check)
    measurer = Replay([Trial(config, valley(config)) for config in SPACE])
    task = Task(declaration, subject(n), work)
    return tune(task, Plan(budget=budget), store, lambda _: measurer).answer.config


def test_a_neighbouring_problem_helps_from_the_first_evaluation() -> None:
    store = MemoryStore()
    assert tuned(store, 100, budget=256) == {"a": 11, "b": 5}
    assert tuned(store, 120, budget=3) == {"a": 11, "b": 5}
    assert tuned(MemoryStore(), 120, budget=3) != {"a": 11, "b": 5}
