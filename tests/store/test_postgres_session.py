"""A team's server as programs and people use it: by settings, under a file, on the command line, without secrets."""

import gc
import json
import subprocess
import sys
import time
import warnings
from dataclasses import replace

import postgres_server
import pytest
from click.testing import CliRunner
from crowd import crowd, errors

import tunewise as tw
from limits import HANG_S
from tunewise import settings
from tunewise.cli.app import app
from tunewise.decision import Environment, Part
from tunewise.decision.origin import run_id
from tunewise.errors import InvalidSetting, StoreError, StoreWarning
from tunewise.session.context import current_store
from tunewise.store import PostgresStore, SqliteStore, guard, open_store
from tunewise.testing.store_contract import subject, timed, won


@pytest.fixture
def decision():
    yield tw.Decision("shared", space=tw.Space({"tile": [8, 16, 32]}), default={"tile": 8})
    tw.configure()
    gc.collect()


def _conclude(place, url, about, tile):
    store = PostgresStore(url)
    store.conclude(about, replace(won(tile), challenger={"tile": tile}))
    store.close()


def test_answer_at_hand_is_dropped_when_another_process_concludes(url, decision):
    tw.configure(store=url)
    features = {"n": 1}
    about = decision.subject(decision.problem(features))
    assert decision.decide(features).config["tile"] == 8
    for tile in (16, 32):
        assert errors(crowd(1, _conclude, url, about, tile)) == []
        deadline = time.monotonic() + HANG_S
        while decision.decide(features).config["tile"] != tile:
            assert time.monotonic() < deadline
            time.sleep(0.02)
    assert decision.decide(features).rung == "memory"


def test_server_below_a_file_answers_exactly_only_where_the_environment_does_match(url, home, decision):
    here = decision.subject(decision.problem({"n": 1}))
    parts = tuple(part for part in here.environment.parts if part.name != "hardware.name")
    there = replace(
        decision.subject(decision.problem({"n": 2})),
        environment=Environment((*parts, Part("hardware.name", "another machine", "must"))),
    )
    _conclude(0, url, here, 16)
    _conclude(0, url, there, 32)
    tw.configure(layers=[url])
    assert decision.decide({"n": 1}).rung == "memory"
    assert decision.decide({"n": 1}).config["tile"] == 16
    assert decision.decide({"n": 2}).rung != "memory"
    assert there in current_store().subjects("shared")
    current_store().conclude(here, replace(won(32), challenger={"tile": 32}))
    tw.refresh()
    assert decision.decide({"n": 1}).config["tile"] == 32
    assert len(PostgresStore(url).verdicts(here)) == 1


def _tuned_by(processes, url):
    tw.configure(store=url)
    policy = tw.Policy(isolation="none", min_sample_s=1e-5)
    choice = tw.Decision(
        "crowded",
        space=tw.Space({"steps": [1, 4]}),
        default={"steps": 4},
        policy=policy,
        features=lambda n: {"n": n},
        inputs=lambda problem, seed: (problem["n"],),
    )

    @choice.implementation
    def run(n, *, steps):
        for _ in range(n * steps):
            pass
        return n

    def work(place):
        return run.tune(200 + place % 2).measured

    measured = crowd(processes, work)
    assert errors(measured) == []
    assert sum(count > 0 for count in measured) == 2
    store = PostgresStore(url)
    assert [len(store.verdicts(about)) for about in store.subjects("crowded")] == [1, 1]
    store.close()


def test_6_programs_tune_two_problems_once_each(url):
    _tuned_by(6, url)


@pytest.mark.full
def test_32_programs_tune_two_problems_once_each(url):
    _tuned_by(32, url)


def test_home_that_is_named_has_its_own_store(url, tmp_path, monkeypatch):
    monkeypatch.setenv("TUNEWISE_STORE", url)
    tw.configure(home=tmp_path / "mine")
    assert current_store().info().place == str(tmp_path / "mine" / "store.sqlite3")
    told = json.loads(_run("--home", tmp_path / "other", "store", "info", "--json").stdout)
    assert told["place"] == str(tmp_path / "other" / "store.sqlite3")


def test_doctor_finds_a_server_in_order_although_there_is_no_home_yet(url, home, monkeypatch):
    monkeypatch.setenv("TUNEWISE_STORE", url)
    tw.configure()
    found = {one["name"]: one for one in json.loads(_run("doctor", "--json").stdout)["findings"]}
    assert found["home"]["level"] == found["store"]["level"] == "ok"
    assert found["store"]["value"].startswith("postgresql:///store")
    assert not home.exists()


def test_service_file_names_the_server(url, server, tmp_path, monkeypatch):
    name = url.partition("@/")[2].partition("?")[0]
    file = tmp_path / "services.conf"
    file.write_text(f"[team]\nhost={server.place}\ndbname={name}\nuser=owner\n")
    monkeypatch.setenv("PGSERVICEFILE", str(file))
    for place in ("service=team", "postgresql:///?service=team"):
        store = open_store(settings.load({"HOME": str(tmp_path), "TUNEWISE_STORE": place}))
        store.add(subject(), [timed(8)])
        assert store.info().place == f"postgresql:///{name} on {server.place}:5432"
        store.close()
    assert len(PostgresStore(url).trials(subject())) == 2


def _run(*words):
    return CliRunner().invoke(app, [str(word) for word in words], prog_name="tunewise")


def test_migrate_verb_copies_both_ways_and_nothing_twice(url, tmp_path):
    source = SqliteStore(tmp_path / "a")
    source.add(subject(), [timed(tile) for tile in range(2500)])
    there = _run("store", "migrate", "--from", tmp_path / "a", "--to", url, "--json")
    assert json.loads(there.stdout) == {"added": 2500, "known": 0, "damaged": 0, "refused": 0, "misses": 0}
    assert "2000 of 2500 records looked at" in there.stderr
    back = _run("store", "migrate", "--from", url, "--to", tmp_path / "b")
    assert back.stdout == "2500 records added, 0 known already\n"
    again = _run("store", "migrate", "--from", url, "--to", tmp_path / "b", "--json")
    assert json.loads(again.stdout)["added"] == 0
    merged = _run("--home", tmp_path / "c", "store", "merge", url, "--json")
    assert json.loads(merged.stdout)["added"] == 2500


def test_store_of_the_setting_is_told_by_host_and_database(url, server, monkeypatch):
    name = url.partition("@/")[2].partition("?")[0]
    monkeypatch.setenv("TUNEWISE_STORE", url)
    tw.configure()
    told = json.loads(_run("store", "info", "--json").stdout)
    assert told["place"] == f"postgresql:///{name} on {server.place}:5432"
    assert told["postgres"]
    assert "PostgreSQL" in _run("store", "info").stdout


@pytest.mark.parametrize("variable", ["TUNEWISE_STORE", "TUNEWISE_LAYERS"])
@pytest.mark.parametrize("password", [postgres_server.PASSWORD, "wrong-0b1c"], ids=["right", "wrong"])
def test_no_output_holds_the_user_or_the_password(url, server, tmp_path, monkeypatch, password, variable):
    PostgresStore(url).info()
    guest = server.guest_url(url, password)
    server.sql("GRANT CREATE ON DATABASE " + url.partition("@/")[2].partition("?")[0] + " TO guest")
    monkeypatch.setenv(variable, guest)
    tw.configure()
    copying = ["store", "migrate", "--from", guest, "--to", tmp_path / "x"]
    for verb in (["doctor", "--json"], ["store", "info"], ["store", "info", "--json"], copying):
        said = _run(*verb).output
        assert said
        assert "guest" not in said
        assert password not in said


def test_program_that_cannot_log_in_says_nothing_of_the_user_or_the_password(url, server, home):
    guest = server.guest_url(url, "wrong-0b1c")
    program = (
        "from tunewise.session.context import current_store\n"
        "from tunewise.testing.store_contract import subject, timed\n"
        "current_store().add(subject(), [timed(8)])\n"
    )
    done = subprocess.run(
        [sys.executable, "-X", "dev", "-c", program],
        env={"TUNEWISE_HOME": str(home), "TUNEWISE_STORE": guest},
        capture_output=True,
        text=True,
        timeout=HANG_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "StoreWarning" in done.stderr
    assert "guest" not in done.stderr
    assert "wrong-0b1c" not in done.stderr


def test_no_error_or_warning_holds_the_user_or_the_password(url, server, monkeypatch):
    monkeypatch.setattr(guard, "_warned", guard.threading.Event())
    guest = server.guest_url(url, "wrong-0b1c")
    with pytest.raises(StoreError) as caught:
        PostgresStore(guest).info()
    assert "password authentication failed" in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__
    tw.configure(store=guest, layers=[guest])
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        current_store().trials(subject())
    said = [str(warning.message) for warning in heard if warning.category is StoreWarning]
    texts = [*said, str(caught.value), repr(settings.current()), str(current_store().info())]
    assert said
    assert not [text for text in texts if "guest" in text or "wrong-0b1c" in text]
    tw.configure()


@pytest.mark.parametrize(
    ("place", "seen"),
    [
        ("postgresql://u:p@h:5432/db", "postgresql://h:5432/db"),
        ("postgres://u:p@h,g:1/db?sslmode=require", "postgresql://h,g:1/db"),
        ("postgresql:///?service=team", "postgresql:///?service=team"),
        ("postgresql://h/db?user=u&password=p", "postgresql://h/db"),
        ("postgresql://u:p/q@h/db", "postgresql://h/db"),
        ("postgresql://u:p?q@h/db", "postgresql://h/db"),
        ("postgresql://u:p@q@[::1]:5432/db", "postgresql://[::1]:5432/db"),
        ("service=team password=p", "service=team"),
    ],
)
def test_address_is_shown_without_the_user(place, seen):
    assert settings.is_server(place)
    assert settings.shown(place) == seen
    assert settings.in_force({"TUNEWISE_STORE": place}) == {"TUNEWISE_STORE": seen}


def test_layers_may_be_paths_and_addresses():
    text = "/opt/tuned:postgresql://u:p@h:5432/db?sslmode=require:postgresql:///?service=team:service=other:/srv/x"
    found = settings.load({"HOME": "/h", "TUNEWISE_LAYERS": text})
    assert [str(place) for place in found.layers] == [
        "/opt/tuned",
        "postgresql://u:p@h:5432/db?sslmode=require",
        "postgresql:///?service=team",
        "service=other",
        "/srv/x",
    ]
    seen = settings.in_force({"TUNEWISE_LAYERS": text})["TUNEWISE_LAYERS"]
    assert seen == "/opt/tuned:postgresql://h:5432/db:postgresql:///?service=team:service=other:/srv/x"


def test_address_that_makes_no_sense_is_told_without_what_it_holds():
    pytest.importorskip("psycopg", reason="psycopg is not installed")
    with pytest.raises(
        StoreError, match="not an address of a PostgreSQL database; write postgresql://host/database"
    ) as it:
        PostgresStore("postgresql://bob:pa/ss@h/db?nonsense=1").info()
    assert "bob" not in str(it.value)
    assert "pa/ss" not in str(it.value)


def test_store_may_be_another_directory(tmp_path, home):
    tw.configure(store=tmp_path / "elsewhere")
    current_store().add(subject(), [timed(8)])
    assert (tmp_path / "elsewhere" / "store.sqlite3").exists()
    assert not (home / "store.sqlite3").exists()
    with pytest.raises(InvalidSetting, match="store='~no-such-user/x'"):
        tw.configure(store="~no-such-user/x")


def _forge(url, about, verdict):
    store = PostgresStore(url)
    store.conclude(about, verdict)
    store.close()


@pytest.mark.parametrize(
    ("forged", "reason"),
    [
        (replace(won(16), incumbent_s=(), challenger_s=(), gain=1e9), "it has no samples of the winner"),
        (replace(won(16), challenger_s=(5e-10,) * 10, gain=1e9), "its samples are not times that a call can take"),
        (replace(won(16), ending="failed"), "a tuning run failed on another host; it may succeed here"),
    ],
)
def test_forged_verdict_on_a_server_does_not_answer(url, decision, forged, reason):
    tw.configure(store=url)
    about = decision.subject(decision.problem({"n": 1}))
    _forge(url, about, replace(forged, challenger={"tile": 16}))
    assert decision.decide({"n": 1}).rung == "default"
    assert reason in str(decision.explain({"n": 1}))


def test_trust_tells_homes_on_one_server_apart(url, decision, tmp_path):
    about = decision.subject(decision.problem({"n": 1}))
    verdict = replace(won(16), challenger={"tile": 16}, run=run_id())
    tw.configure(home=tmp_path / "one", store=url)
    current_store().conclude(about, verdict)
    answered = {}
    for name in ("one", "two"):
        for trust in ("own", "host", "all"):
            tw.configure(home=tmp_path / name, store=url, trust=trust)
            answered[name, trust] = decision.decide({"n": 1}).rung == "memory"
    assert [pair for pair, is_answered in answered.items() if not is_answered] == [("two", "own")]
    tw.configure(home=tmp_path / "two", store=url, trust="own")
    assert "not trusted with trust='own'" in str(decision.explain({"n": 1}))
