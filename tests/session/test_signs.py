import json
import subprocess
import sys
import time

import pytest

import tunewise as tw
from tunewise.decision import Failure, Timing, Verdict
from tunewise.errors import InvalidSetting
from tunewise.session import events, signs
from tunewise.session.context import current_store
from tunewise.store import MemoryStore
from tunewise.testing.store_contract import subject


def evaluated(done: int, best_s: float, outcome: Timing | Failure | None = None) -> events.Evaluated:
    return events.Evaluated({"tile": done}, outcome or Timing((best_s,)), "random", done, 50, best_s, 2.0)


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore()


@pytest.fixture
def run(store: MemoryStore) -> signs.RunSigns:
    return signs.RunSigns(store, subject(), "a chip", "r1")


def said(store: MemoryStore) -> dict:
    (sign,) = store.signs("run")
    return dict(sign.body)


def test_run_says_how_far_it_is_and_what_it_has_found(store, run, monkeypatch):
    monkeypatch.setattr(signs, "_PAUSE_S", 0.0)
    run.hear(events.Started(subject(), 50, 0))
    run.hear(evaluated(1, 2.0))
    run.hear(evaluated(2, 2.0, Failure("crash", "SIGSEGV")))
    run.hear(evaluated(3, 1.0))
    body = said(store)
    assert (body["state"], body["done"], body["budget"], body["failed"]) == ("running", 3, 50, 1)
    assert (body["best_s"], body["default_s"]) == (1.0, 2.0)
    assert body["curve"] == [[1, 2.0], [3, 1.0]]
    assert body["problem"] == {"m": 64, "ratio": 0.5, "dtype": "float32"}


def test_signs_in_quick_succession_are_not_given(store, run):
    run.hear(events.Started(subject(), 50, 0))
    for done in range(1, 40):
        run.hear(evaluated(done, 1.0))
    assert said(store)["done"] == 0


def test_end_is_told_at_once_with_the_gain_and_who_proposed_it(store, run):
    run.hear(evaluated(1, 2.0))
    run.hear(events.Concluded(Verdict("win", {"tile": 1}, {"tile": 2}, (5.0,), (2.0,), gain=2.5, source="seed")))
    run.end()
    assert (said(store)["state"], said(store)["gain"], said(store)["source"]) == ("won", 2.5, "seed")
    assert (said(store)["default_s"], said(store)["best_s"]) == (5.0, 2.0)


def test_run_that_is_broken_off_says_so_and_claims_no_winner(store, run):
    run.hear(evaluated(1, 2.0))
    run.end()
    run.hear(events.Concluded(Verdict("win", {"tile": 1}, {"tile": 2}, gain=2.5)))
    assert (said(store)["state"], said(store)["gain"]) == ("stopped", None)


def test_name_without_end_costs_the_sign_and_nothing_else(store):
    endless = signs.RunSigns(store, subject("x" * 50_000), "a chip", "r1")
    endless.hear(events.Started(subject(), 50, 0))
    assert store.signs() == []


def test_curve_keeps_the_latest_improvements(store, run, monkeypatch):
    monkeypatch.setattr(signs, "_PAUSE_S", 0.0)
    for done in range(1, 301):
        run.hear(evaluated(done, 1.0 / done))
    assert len(said(store)["curve"]) == 100
    assert said(store)["curve"][-1] == [300, 1.0 / 300]


def test_tuning_gives_signs_and_look_ups_are_counted_by_rung(quick):
    quick.decide({"n": 7})
    quick.tune({"n": 4}, budget=3)
    for _ in range(5):
        quick.decide({"n": 4})
    store = current_store()
    (given,) = store.signs("run")
    assert given.body["decision"] == quick.name
    assert given.body["state"] in ("won", "tied")
    rungs = [sign.body["decisions"].get(quick.name) for sign in store.signs("ladder")]
    assert {"default": 1, "memory": 1} in rungs


def test_nothing_is_told_where_signs_are_off(quick):
    tw.configure(signs=False)
    quick.tune({"n": 4}, budget=3)
    quick.decide({"n": 5})
    assert current_store().signs() == []


def test_other_words_than_on_and_off_are_refused(monkeypatch):
    monkeypatch.setenv("TUNEWISE_SIGNS", "perhaps")
    with pytest.raises(InvalidSetting, match="TUNEWISE_SIGNS='perhaps'"):
        tw.configure()
    monkeypatch.delenv("TUNEWISE_SIGNS")


@pytest.fixture
def quick():
    decision = tw.Decision(
        f"signs_{time.monotonic_ns()}",
        space=tw.Space({"tile": [1, 2, 3, 4]}),
        default={"tile": 1},
        inputs=lambda problem, seed: (problem["n"],),
        features=lambda n: {"n": n},
        policy=tw.Policy(isolation="none"),
    )

    @decision.implementation
    def work(n, *, tile):
        return n

    return decision


def test_look_ups_between_two_signs_are_told_when_the_program_ends(tmp_path):
    program = """
import tunewise as tw
asked = tw.Decision("asked", space=tw.Space({"tile": [1, 2]}), default={"tile": 1})
for n in range(7):
    asked.decide({"n": n})
"""
    environment = {"TUNEWISE_HOME": str(tmp_path), "PATH": "/usr/bin:/bin"}
    subprocess.run([sys.executable, "-c", program], check=True, env=environment)
    tw.configure(home=tmp_path)
    (sign,) = current_store().signs("ladder")
    assert json.loads(json.dumps(sign.body["decisions"])) == {"asked": {"default": 7}}
