"""A snapshot tells what signs and facts say, bounded, whatever those hold."""

import random
import shutil
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from live_samples import fill, ladder, node, plan, run

from tunewise.decision import Proposal, Subject, Verdict
from tunewise.errors import StoreError
from tunewise.report import live_state
from tunewise.report.live_board import Board
from tunewise.report.live_state import Most, snapshot
from tunewise.report.live_watch import Watch
from tunewise.report.live_wins import Concluded
from tunewise.session import provenance
from tunewise.store import MemoryStore, Prune, Sign, SqliteStore
from tunewise.testing.store_contract import subject, timed, won

NOW = time.time()


def store_with(*signs: Sign) -> MemoryStore:
    store = MemoryStore()
    for sign in signs:
        store.show(sign)
    return store


def test_an_empty_store_tells_that_there_is_nothing() -> None:
    seen = snapshot(MemoryStore(), NOW)
    assert (seen.running.total, seen.finished.total, seen.evaluations, seen.nodes.total) == (0, 0, 0, 0)
    assert seen.health.trouble is None
    assert seen.health.info is not None


def test_runs_that_go_on_come_newest_first_and_silent_ones_last() -> None:
    signs = [
        run("old", NOW, name="old", began=NOW - 500),
        run("silent", NOW - 16, name="silent", began=NOW - 1),
        run("new", NOW - 14, name="new", began=NOW - 50),
    ]
    seen = snapshot(store_with(*signs), NOW)
    assert [(one.decision, one.is_stale) for one in seen.running.rows] == [
        ("new", False),
        ("old", False),
        ("silent", True),
    ]
    assert dict(seen.runs) == {"running": 2, "stale": 1}


def test_a_run_that_fell_silent_long_ago_is_not_waited_for() -> None:
    seen = snapshot(store_with(run("killed", NOW - 3_601), run("won", NOW - 5_000, state="won")), NOW)
    assert seen.running.total == 0
    assert [one.is_stale for one in seen.finished.rows] == [True, False]
    assert seen.runs == {"stopped": 1, "won": 1}


def test_runs_that_ended_come_latest_first() -> None:
    signs = [run(str(ago), NOW - ago, name=f"d{ago}", state="won") for ago in (300, 5, 60)]
    seen = snapshot(store_with(*signs), NOW)
    assert [one.decision for one in seen.finished.rows] == ["d5", "d60", "d300"]
    assert seen.running.total == 0


def test_lists_are_bounded_and_the_rest_is_counted() -> None:
    store = MemoryStore()
    fill(store, iter(f"name-{number}" for number in range(1_000)).__next__, NOW, each=30)
    most = Most(running=4, finished=5, ladder=6, plans=7, nodes=8)
    seen = snapshot(store, NOW, most=most)
    lists = (seen.running, seen.finished, seen.ladder, seen.plans, seen.nodes)
    assert [len(one.rows) for one in lists] == [4, 5, 6, 7, 8]
    assert [one.total for one in lists] == [30] * 5


def test_look_ups_of_all_processes_add_up_by_decision_and_rung() -> None:
    signs = [
        ladder("a", NOW, gemm={"memory": 5, "default": 1}, sort={"near": 2}),
        ladder("b", NOW, gemm={"memory": 1, "pin": 3, "no such rung": 9}),
    ]
    seen = snapshot(store_with(*signs), NOW)
    gemm, sort = seen.ladder.rows
    assert (gemm.decision, dict(gemm.rungs), gemm.hits, gemm.misses) == (
        "gemm",
        {"memory": 6, "default": 1, "pin": 3},
        9,
        1,
    )
    assert (sort.lookups, sort.hits) == (2, 2)
    assert {rung: number for rung, number in seen.rungs.items() if number} == {
        "pin": 3,
        "memory": 6,
        "near": 2,
        "default": 1,
    }


def test_what_was_asked_in_vain_is_told_by_decision() -> None:
    store = MemoryStore()
    store.miss(subject("gemm", 1), 5)
    store.miss(subject("gemm", 2), 1)
    store.miss(subject("sort", 1), 9)
    rows = snapshot(store, NOW).missing.rows
    assert [(one.decision, one.problems, one.asked) for one in rows] == [("sort", 1, 9), ("gemm", 2, 6)]


def test_win_rates_are_those_that_the_heuristics_verb_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    store = MemoryStore()
    proposals = (Proposal("wide", "expert", 1, {"tile": 32}), Proposal("rules", "table", 1, {"tile": 8}))
    for m, source in enumerate(["wide", "wide", "auto", "rules"]):
        store.add(subject(m=m), [timed(8), timed(32, 0.1)])
        store.conclude(subject(m=m), replace(won(), source=source, proposals=proposals))
    monkeypatch.setattr(provenance, "current_store", lambda: store)
    counted = {(r.name, r.kind): (r.runs, r.wins) for r in provenance.records(provenance.seedings("gemm"))}
    shown = {(r.name, r.kind): (r.runs, r.wins) for r in snapshot(store, NOW).heuristics.rows}
    assert shown == counted == {("wide", "expert"): (4, 2), ("rules", "table"): (4, 1)}


def test_nodes_and_plans_that_fell_silent_are_marked() -> None:
    signs = [
        node("a", NOW - 60, name="a"),
        node("b", NOW, name="b"),
        node("c", NOW - 60, name="c", state="gone"),
        node("d", NOW - 60, name="d", state="idle"),
        plan("p", NOW - 60),
    ]
    seen = snapshot(store_with(*signs), NOW)
    assert [(one.name, one.state, one.is_stale) for one in seen.nodes.rows] == [
        ("b", "busy", False),
        ("c", "gone", False),
        ("d", "gone", False),  # idle, and its plan is over
        ("a", "busy", True),
    ]
    assert seen.node_states == {"busy": 1, "gone": 2, "stale": 1}
    assert seen.plans.rows[0].is_stale


ODD: tuple[Any, ...] = (
    None,
    True,
    -1,
    10**400,
    float("inf"),
    1e308,
    "running",
    "x" * 10_000,
    "\ud800<b>",
    [],
    [[1, 2], [1, 1], ["a", {}], [3], 7, [5, -1]],
    {},
    {"a": {"memory": "many"}, "b": 4, "": {"memory": 2}},
)


def test_whatever_a_sign_holds_a_snapshot_comes_out() -> None:
    chance = random.Random(0)
    names = list(run("", NOW).body) + list(node("", NOW).body) + list(plan("", NOW).body) + ["decisions"]
    store = MemoryStore()
    monkey = [
        Sign(kind, f"{kind}{number}", NOW, {name: chance.choice(ODD) for name in names})
        for kind in ("run", "ladder", "node", "plan", "of tomorrow")
        for number in range(200)
    ]
    seen = live_state.told(Board(monkey), live_state.count(store, NOW), NOW)
    assert seen.nodes.total == seen.plans.total == 200
    assert seen.running.total + seen.finished.total == 200
    for one in (*seen.running.rows, *seen.finished.rows):
        assert len(one.decision) <= 160
        assert all(0 < time_s < 1e12 for _, time_s in one.curve)
        assert [at for at, _ in one.curve] == sorted({at for at, _ in one.curve})


class Broken(MemoryStore):
    """A store whose disk comes and goes."""

    is_broken = False
    since: float = -1.0

    def signs(self, kind: str | None = None, since: float = 0.0) -> list[Sign]:
        if self.is_broken:
            raise StoreError("the store cannot be used: disk I/O error")
        self.since = since
        return super().signs(kind, since)


def test_trouble_with_the_store_is_told_and_not_raised() -> None:
    store = Broken()
    store.is_broken = True
    assert snapshot(store, NOW).health.trouble == "the store cannot be used: disk I/O error"


def test_while_a_store_is_in_trouble_what_was_known_stays() -> None:
    store = Broken()
    store.show(run("r", NOW))
    watch = Watch(store)
    assert watch.snapshot(NOW).running.total == 1
    store.is_broken = True
    seen = watch.snapshot(NOW + 1)
    assert (seen.running.total, seen.health.trouble) == (1, "the store cannot be used: disk I/O error")
    store.is_broken = False
    assert watch.snapshot(NOW + 2).health.trouble is None


def test_a_tick_reads_only_the_latest_signs() -> None:
    store = Broken()
    for number in range(100):
        store.show(run(str(number), NOW - 10 * number, state="won"))
    watch = Watch(store)
    assert watch.snapshot(NOW).finished.total == 100
    store.show(run("new", NOW + 1, state="won"))
    assert watch.snapshot(NOW + 1).finished.total == 101
    assert store.since > NOW - 60


def test_a_sign_of_a_clock_that_lags_is_seen_in_the_end() -> None:
    store = Broken()
    store.show(run("ours", NOW))
    watch = Watch(store)
    watch.snapshot(NOW)
    store.show(run("lagging", NOW - 600, state="won"))
    assert watch.snapshot(NOW + 60).finished.total == 1


def test_a_sign_of_a_clock_that_is_ahead_hides_nothing() -> None:
    store = Broken()
    store.show(run("ahead", NOW + 3_600))
    watch = Watch(store)
    watch.snapshot(NOW)
    store.show(run("ours", NOW + 1))
    assert watch.snapshot(NOW + 1).running.total == 2


def test_a_store_that_was_replaced_is_found(tmp_path: Path) -> None:
    home = tmp_path / "watched"
    SqliteStore(home).show(run("r", NOW, name="old"))
    watch = Watch(SqliteStore(home))
    assert [one.decision for one in watch.snapshot(NOW).running.rows] == ["old"]
    shutil.rmtree(home)
    SqliteStore(home).show(run("r", NOW + 60, name="new"))
    assert [one.decision for one in watch.snapshot(NOW + 61).running.rows] == ["new"]


class Counted(MemoryStore):
    """A store that knows how often verdicts were asked for."""

    asked = 0

    def verdicts(self, subject: Subject) -> list[Verdict]:
        self.asked += 1
        return super().verdicts(subject)


def test_verdicts_that_are_known_are_not_read_again() -> None:
    store, concluded = Counted(), Concluded()
    verdict = replace(won(), source="wide", proposals=(Proposal("wide", "expert", 1, {"tile": 32}),))

    def counted() -> tuple[int, int]:
        before = store.asked
        (row,) = live_state.count(store, NOW, concluded).heuristics
        return row.wins, store.asked - before

    for m in range(10):
        store.conclude(subject(m=m), verdict)
    assert counted() == (10, 10)
    assert counted() == (10, 0)
    store.conclude(subject(m=10), verdict)
    assert counted() == (11, 1)
    store.conclude(subject(m=0), replace(verdict, run="again"))  # of a problem that is known: all are read
    assert counted() == (12, 11)
    store.prune(Prune(where=lambda about: about.problem["m"] == 3))
    assert counted() == (11, 10)
