"""What runs, look-ups and stores in trouble tell those who operate them."""

import json
import logging

import pytest

import tunewise as tw
from tunewise.errors import MeasureWarning
from tunewise.store import SafeStore, SqliteStore
from tunewise.testing.store_contract import subject, timed


@pytest.fixture
def events(tmp_path):
    """Write events to a file; give what has been told so far."""
    tw.configure(events=tmp_path / "events.jsonl", events_level="debug")

    def told():
        if not (tmp_path / "events.jsonl").exists():
            return []
        return [json.loads(line) for line in (tmp_path / "events.jsonl").read_text().splitlines()]

    yield told
    tw.configure(events_level="info")


def counting(name, run=None):
    def work(n, *, work):
        for _ in range(n * work):
            pass
        return n

    decision = tw.Decision(
        name,
        space=tw.Space({"work": [1, 2, 40]}),
        default={"work": 40},
        features=lambda n: {"n": n},
        inputs=lambda problem, seed: (int(problem["n"]),),
    )
    return decision.implementation(run or work)


def of(found, *names):
    return [line for line in found if line["event"] in names]


def test_a_run_tells_when_it_begins_and_how_it_ends(events):
    run = counting("journal-a")
    tuning = run.tune(500)
    began, ended = of(events(), "run-started", "run-concluded")
    assert (began["decision"], began["problem"], began["budget"]) == ("journal-a", {"n": 500}, 100)
    assert ended["ending"] == tuning.verdict.ending == "win"
    assert ended["run"] == began["run"] == tuning.verdict.run
    assert (ended["evaluations"], ended["done"], ended["failed"]) == (3, 3, 0)
    assert ended["gain"] > 1
    assert ended["seconds"] >= 0
    assert began["level"] == ended["level"] == "info"


def test_a_run_that_fails_is_a_warning_without_the_words_of_exceptions(events):
    def broken(n, *, work):
        raise OSError("/home/alice/secret is missing")

    run = counting("journal-b", broken)
    with pytest.warns(MeasureWarning, match="journal-b"):
        run.tune(500)
    (ended,) = of(events(), "run-concluded")
    assert (ended["level"], ended["ending"]) == ("warning", "failed")
    assert "alice" not in json.dumps(events())


def test_a_run_that_is_broken_off_is_told_as_stopped(events):
    run = counting("journal-c")

    def interrupt(event):
        if type(event).__name__ == "Evaluated":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run.tune(500, listener=interrupt)
    (stopped,) = of(events(), "run-stopped")
    assert stopped["done"] == 1
    assert not of(events(), "run-concluded")


def test_first_look_ups_tell_their_rung_and_the_hot_path_tells_nothing(events):
    run = counting("journal-d")
    run.tune(500)
    for _ in range(3):
        run(500)
        run(90_000)
    told = [(line["problem"]["n"], line["rung"]) for line in of(events(), "answered")]
    assert sorted(told) == [(500, "memory"), (90_000, "default")]


def test_no_line_names_the_host_the_user_or_the_home(events, home):
    run = counting("journal-e")
    run.tune(500)
    names = {name for line in events() for name in line}
    assert not names & {"host", "hostname", "user", "home", "path"}
    assert str(home) not in json.dumps(events())


def test_a_store_in_trouble_tells_once_when_it_begins_and_once_when_it_ends(events, tmp_path):
    place, clock = tmp_path / "store", [0.0]
    place.write_text("no directory")
    store = SafeStore(SqliteStore(place), warn=lambda text: None, clock=lambda: clock[0])
    for step in range(3):
        clock[0] += 1000.0
        store.add(subject(), [timed(step)])
    place.unlink()
    clock[0] += 1000.0
    store.add(subject(), [timed(9)])
    began, ended = of(events(), "store-trouble", "store-recovered")
    assert (began["doing"], began["level"], ended["level"]) == ("writing", "warning", "info")
    assert ended["failures"] == 3
    assert str(tmp_path) not in json.dumps([began, ended])
    store.close()


def test_a_damaged_store_that_is_set_aside_is_told(events, tmp_path):
    store = SqliteStore(tmp_path / "store")
    store.add(subject(), [timed(8)])
    store.close()
    (tmp_path / "store" / "store.sqlite3").write_bytes(b"nonsense" * 2000)
    safe = SafeStore(SqliteStore(tmp_path / "store"), warn=lambda text: None)
    safe.add(subject(), [timed(8)])
    (aside,) = of(events(), "store-set-aside")
    assert aside["file"] == "store.sqlite3.damaged-1"
    safe.close()


def test_without_the_setting_a_run_makes_no_records(caplog):
    run = counting("journal-f")
    with caplog.at_level(logging.WARNING, "tunewise"):
        run.tune(500)
    assert caplog.records == []
    with caplog.at_level(logging.INFO, "tunewise"):
        run.tune(501)
    assert [vars(record)["event"] for record in caplog.records] == ["run-started", "run-concluded"]
