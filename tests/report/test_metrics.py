"""A real parser reads what is told, whatever names it is told of, and there are never many series."""

import re
import time
from dataclasses import replace
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

import tunewise
from tunewise.decision import Proposal
from tunewise.report import metrics
from tunewise.report.live_signs import Ladder
from tunewise.report.live_state import Health, Listed, Snapshot, snapshot
from tunewise.store import LayeredStore, MemoryStore, SafeStore, Sign, SqliteStore, open_store
from tunewise.testing.store_contract import subject, timed, won

_HOSTILE = [
    'a"b',
    "x\\ny",
    "new\nline",
    "\\",
    '\\"',
    "{}",
    "\r",
    "\u2028",
    "\0",
    "other",
    ",",
    "=",
    'a="b",c="d"} 1',
    "",
]
_NAMES = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=60) | st.sampled_from(_HOSTILE[:-1])


def read(seen):
    """Return the samples of a snapshot as a real parser reads them: {name: {labels: value}}."""
    found = {}
    for family in text_string_to_metric_families(metrics.text(seen)):
        assert family.type == "gauge"
        assert family.documentation
        values = {tuple(sorted(sample.labels.items())): sample.value for sample in family.samples}
        assert len(values) == len(family.samples)
        found[family.name] = values
    return found


def asked(name, number, **rungs):
    return Sign("ladder", f"p{number}", time.time(), {"decisions": {name: rungs or {"memory": number}}})


def test_numbers_of_a_store_are_told():
    store = MemoryStore()
    store.add(subject("gemm", 1), [timed(8, at=50.0), timed(16, at=60.0)])
    store.conclude(subject("conv", 2), won(at=70.0))
    store.miss(subject("sort", 3), 5)
    store.miss(subject("sort", 4), 1)
    store.show(Sign("run", "a", time.time(), {"state": "running", "done": 7, "failed": 2}))
    store.show(Sign("run", "b", time.time() - 100, {"state": "running"}))
    store.show(Sign("node", "n", time.time(), {"state": "busy"}))
    store.show(Sign("plan", "p", time.time(), {"name": "night", "units": 9, "done": 3, "failed": 1, "running": 2}))
    store.show(asked("gemm", 1, memory=4, default=2))
    found = read(snapshot(store, time.time()))
    assert found["tunewise_build_info"] == {(("version", tunewise.__version__),): 1}
    assert found["tunewise_store_up"] == {(): 1}
    assert found["tunewise_trials"] == {(("decision", "gemm"),): 2, (("decision", "conv"),): 0}
    assert (found["tunewise_verdicts"], found["tunewise_problems"]) == ({(): 1}, {(): 2})
    assert found["tunewise_last_trial_timestamp_seconds"] == {(): 60.0}
    assert found["tunewise_last_verdict_timestamp_seconds"] == {(): 70.0}
    assert found["tunewise_misses"] == {(("decision", "sort"),): 2}
    assert found["tunewise_misses_asked"] == {(("decision", "sort"),): 6}
    assert found["tunewise_runs_active"] == {(): 1}
    assert found["tunewise_runs"][("state", "stale"),] == 1
    assert (found["tunewise_evaluations"], found["tunewise_evaluation_failures"]) == ({(): 7}, {(): 2})
    assert found["tunewise_fleet_nodes"][("state", "busy"),] == 1
    states = {labels[1][1]: value for labels, value in found["tunewise_plan_units"].items()}
    assert states == {"done": 3, "failed": 1, "running": 2, "waiting": 3}
    lookups = {labels: value for labels, value in found["tunewise_lookups"].items() if value}
    assert lookups == {(("decision", "gemm"), ("rung", "memory")): 4, (("decision", "gemm"), ("rung", "default")): 2}


def test_the_page_about_monitoring_names_every_metric_and_no_other():
    layered = LayeredStore(MemoryStore(), [MemoryStore()])
    layered.add(subject(), [timed(8)])
    layered.conclude(subject(), replace(won(), proposals=(Proposal("h", "expert", 1, {"tile": 8}),)))
    layered.miss(subject(m=2))
    for kind in ("run", "node", "plan"):
        layered.show(Sign(kind, "k", time.time(), {"units": 1}))
    layered.show(asked("gemm", 1))
    told = {family.name for family in metrics.families(snapshot(layered, time.time()))}
    page = (Path(__file__).parents[2] / "docs" / "how-to" / "monitoring.md").read_text()
    assert set(re.findall(r"\btunewise_\w+", page)) == told


def names_come_back(names):
    store = MemoryStore()
    for number, name in enumerate(names, 1):
        store.show(asked(name, number))
        store.miss(subject(name), number)
        store.add(subject(name), [timed(8)] * number)
    found = read(snapshot(store, time.time()))
    for metric, label in (("lookups", 0), ("misses_asked", 0), ("trials", 0)):
        told = {labels[label][1]: value for labels, value in found[f"tunewise_{metric}"].items() if value}
        assert told == {name or "?": number for number, name in enumerate(names, 1)}


def test_hostile_names_come_back():
    names_come_back([name for name in _HOSTILE if name])


@given(st.lists(_NAMES, min_size=1, max_size=12, unique=True))
@settings(max_examples=60, deadline=None)
def test_any_names_come_back(names):
    names_come_back(names)


def test_names_that_no_text_can_hold_are_told_all_the_same():
    rungs = {"memory": 3}
    seen = Snapshot(time.time(), ladder=Listed((Ladder("\ud800", rungs),)), rungs=rungs)
    assert read(seen)["tunewise_lookups"] == {(("decision", "?"), ("rung", "memory")): 3}


def test_names_that_are_alike_once_they_are_cut_off_are_one_series():
    store = MemoryStore()
    store.show(asked("x" * 500 + "1", 3))
    store.show(asked("x" * 500 + "2", 4))
    assert sum(read(snapshot(store, time.time()))["tunewise_lookups"].values()) == 7


def test_a_thousand_decisions_are_few_series_and_nothing_is_left_uncounted():
    store = MemoryStore()
    for number in range(1, 1001):
        store.show(asked(f"d{number}", number))
        store.miss(subject(f"d{number}"), number)
    text = metrics.text(snapshot(store, time.time()))
    assert len(text.splitlines()) < 200
    found = read(snapshot(store, time.time()))
    assert sum(found["tunewise_lookups"].values()) == 500_500
    assert sum(found["tunewise_misses"].values()) == 1000
    assert ("decision", metrics.REST) in [label for labels in found["tunewise_misses"] for label in labels]


def test_store_in_trouble_is_down_and_what_it_holds_is_not_told(tmp_path):
    (tmp_path / "home").write_text("no directory")
    store = SafeStore(SqliteStore(tmp_path / "home"), warn=lambda text: None)
    found = read(snapshot(store, time.time()))
    assert found["tunewise_store_up"] == {(): 0}
    assert "tunewise_verdicts" not in found


def test_layer_in_trouble_is_told_apart_from_the_store(tmp_path):
    layers = [SafeStore(SqliteStore(tmp_path / name, is_shared=True), warn=lambda text: None) for name in ("a", "b")]
    SqliteStore(tmp_path / "a").add(subject(), [timed(8)])
    found = read(snapshot(LayeredStore(open_store(tmp_path / "home"), layers), time.time()))
    assert found["tunewise_store_up"] == {(): 1}
    assert found["tunewise_layer_up"] == {(("layer", "1"),): 1, (("layer", "2"),): 0}


def test_snapshot_of_a_store_that_never_answered_is_told():
    found = read(Snapshot(time.time(), health=Health(trouble="it did not answer")))
    assert found["tunewise_store_up"] == {(): 0}
