from dataclasses import replace
from pathlib import Path

import pytest
from fleets import RECORDING, counts

from tunewise.decision import Environment, Part, Verdict
from tunewise.fleet.doing import Doer, table
from tunewise.fleet.plans import FleetPlan, Unit, Work, units
from tunewise.fleet.rehearsal import Rehearsed
from tunewise.store import MemoryStore
from tunewise.testing.store_contract import won

PROBLEM = {"size": 1}


@pytest.fixture(scope="module")
def target():
    return Rehearsed(Path(RECORDING), 0.0)


def plan(kind, budget=40):
    size = budget if kind == "collect" else 0
    return FleetPlan("p", kind, budget, (Work(replay=str(RECORDING), problems=(PROBLEM,), size=size),))


def doer(target, store, kind, **more):
    return Doer(plan(kind), [target], store, **more)


def test_tune_unit_concludes_a_problem_and_is_known_after_that(target):
    store = MemoryStore()
    (unit,) = units(plan("tune"))
    first, again = (doer(target, store, "tune").do(unit) for _ in range(2))
    assert (first.state, first.known, first.measured) == ("done", False, 40)
    assert (again.state, again.known, again.measured) == ("done", True, 0)
    assert len(store.verdicts(target.subject(PROBLEM))) == 1


def test_slices_measure_every_config_once_and_the_end_concludes(target):
    store, told = MemoryStore(), []
    worker = doer(target, store, "collect", tell=lambda: told.append(1))
    reports = [worker.do(unit) for unit in units(plan("collect"))]
    assert [report.measured for report in reports] == [16, 16, 8, 0]
    assert len(told) == 40
    (counted,) = counts(store)
    assert (len(counted), set(counted.values())) == (40, {1})
    assert store.verdicts(target.subject(PROBLEM))[0].evaluations >= 40
    assert [doer(target, store, "collect").do(unit).known for unit in units(plan("collect"))] == [True] * 4


def test_slice_goes_on_where_it_was_stopped(target):
    store = MemoryStore()
    unit = units(plan("collect"))[0]
    stops = iter([False, True])
    stopped = doer(target, store, "collect", stop=lambda: next(stops)).do(unit)
    assert (stopped.state, stopped.measured) == ("stopped", 8)
    assert doer(target, store, "collect").do(unit).measured == 8
    (counted,) = counts(store)
    assert (len(counted), set(counted.values())) == (16, {1})


def test_slice_that_another_device_has_is_busy_and_its_neighbour_is_not(target):
    store, (first, second, *_) = MemoryStore(), units(plan("collect"))
    subject = target.subject(PROBLEM)
    with store.flight(replace(subject, policy=(*subject.policy, ("fleet.slice", "0-16")))):
        assert doer(target, store, "collect").do(first).state == "busy"
        assert doer(target, store, "collect").do(second).state == "done"


def test_tuned_by_somebody_else_is_busy(target):
    store = MemoryStore()
    with store.flight(target.subject(PROBLEM)):
        assert doer(target, store, "tune").do(units(plan("tune"))[0]).state == "busy"


def elsewhere(subject, name="other"):
    parts = [replace(part, value=name) if part.name == "hardware.name" else part for part in subject.environment.parts]
    return replace(subject, environment=Environment(tuple(parts)))


def test_verify_tries_what_won_on_another_machine_and_little_else(target):
    store, subject = MemoryStore(), target.subject(PROBLEM)
    best = min(target._trials, key=lambda trial: getattr(trial.outcome, "time_s", 1e9)).config
    store.conclude(elsewhere(subject), replace(won(), incumbent=target.declaration.default, challenger=best))
    report = doer(target, store, "verify").do(Unit("0.0", "verify", 0, 0))
    assert (report.state, report.measured) == ("done", 2)
    (verdict,) = store.verdicts(subject)
    assert verdict.winner == best


def test_verify_has_nothing_to_do_where_nobody_tuned(target):
    store = MemoryStore()
    report = doer(target, store, "verify").do(Unit("0.0", "verify", 0, 0))
    assert (report.state, report.known, report.measured) == ("done", True, 0)
    assert store.subjects() == []


def test_verify_lets_all_winners_of_other_machines_meet_the_default(target):
    store, subject, default = MemoryStore(), target.subject(PROBLEM), target.declaration.default
    configs = [config for config in target.declaration.space if config != default][:5]
    for name, config in zip("abcde", configs, strict=True):
        store.conclude(elsewhere(subject, name), replace(won(), incumbent=default, challenger=config))
    assert doer(target, store, "verify").do(Unit("0.0", "verify", 0, 0)).measured == 6
    tried = {str(dict(trial.config)) for trial in store.trials(subject)}
    assert tried == {str(dict(config)) for config in (default, *configs)}


def test_verify_measures_the_default_alone_where_nothing_else_won(target):
    store, subject, default = MemoryStore(), target.subject(PROBLEM), target.declaration.default
    store.conclude(elsewhere(subject), Verdict("tie", default, default))
    assert doer(target, store, "verify").do(Unit("0.0", "verify", 0, 0)).measured == 1
    assert [verdict.winner for verdict in store.verdicts(subject)] == [default]


def test_verify_has_nothing_to_do_where_tuning_failed_elsewhere(target):
    store, subject, default = MemoryStore(), target.subject(PROBLEM), target.declaration.default
    store.conclude(elsewhere(subject), Verdict("failed", default, default))
    report = doer(target, store, "verify").do(Unit("0.0", "verify", 0, 0))
    assert (report.state, report.known, report.measured) == ("done", True, 0)


def test_table_within_the_budget_is_the_space_and_beyond_it_a_draw_that_all_devices_share(target):
    assert table(target, 10_000, 0) == list(target.declaration.space)
    drawn = table(target, 50, 3)
    assert len({str(config) for config in drawn}) == 50
    assert drawn == table(target, 50, 3)
    assert drawn != table(target, 50, 4)


def test_unknown_part_of_an_environment_is_a_subject_of_its_own(target):
    subject = target.subject(PROBLEM)
    assert Part("rehearsal.pause_s", 0.0, "must") in subject.environment.parts
