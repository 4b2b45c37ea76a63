"""A PostgreSQL server that hangs, vanishes, restarts, or is set up in ways nobody told us of."""

import os
import signal
import threading
import time
from collections import Counter

import postgres_server
import pytest
from crowd import crowd, errors

from limits import HANG_S, stretched
from tunewise.errors import InvalidSetting, StoreError, UnreachableStore
from tunewise.formats.records import Record
from tunewise.settings import parse_place
from tunewise.store import PostgresStore, Prune, SafeStore, Sign, keeping, listening, postgres
from tunewise.store import server as server_module
from tunewise.store.connecting import said
from tunewise.testing.store_contract import subject, timed, won


@pytest.fixture
def store(url):
    made = PostgresStore(url)
    yield made
    made.close()


@pytest.fixture
def quick(monkeypatch):
    monkeypatch.setattr(server_module, "KEEP_S", 0.05)
    monkeypatch.setattr(keeping, "PATIENCE_S", stretched(1.0))


def _name(url):
    return url.partition("@/")[2].partition("?")[0]


def _ask(store, statement):
    return store._server.read(lambda db: db.execute(statement).fetchone()[0])


def _end_sessions(server, url):
    server.sql(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{_name(url)}'")


def _locks(server, url):
    found = server.sql(
        "SELECT l.pid FROM pg_locks l JOIN pg_database d ON d.oid = l.database"
        f" WHERE l.locktype = 'advisory' AND l.granted AND d.datname = '{_name(url)}'"
    )
    return [pid for (pid,) in found]


def _until(holds, limit_s=HANG_S):
    deadline = time.monotonic() + limit_s
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_server_that_stops_replying_costs_a_bounded_time_and_no_fact(store):
    told = []
    safe = SafeStore(store, warn=told.append, retry_s=0.0)
    safe.add(subject(), [timed(1)])
    session = _ask(store, "SELECT pg_backend_pid()")
    store._server._db.limit_s = stretched(0.3)
    os.kill(session, signal.SIGSTOP)
    try:
        safe.add(subject(), [timed(2)])
    finally:
        os.kill(session, signal.SIGCONT)
    assert "does not reply" in told[0]
    safe.add(subject(), [timed(3)])
    assert [trial.config["tile"] for trial in store.trials(subject())] == [1, 2, 3]


def test_pruning_may_take_as_long_as_it_takes(store, monkeypatch):
    store.add(subject(), [timed(1)])
    store._server._db.limit_s = -1.0
    monkeypatch.setattr(postgres, "_STOP_WRITERS", "SELECT pg_sleep(0.3)")
    assert store.prune(Prune(decision="gemm")).trials == 1
    with pytest.raises(UnreachableStore):
        store._server.read(lambda db: db.execute("SELECT pg_sleep(0.3)"))


def test_server_that_is_away_is_asked_once_by_all_who_want_something(monkeypatch):
    asked = []

    def silent(place):
        asked.append(place)
        raise UnreachableStore("nobody answers")

    monkeypatch.setattr(server_module, "connect", silent)
    store = SafeStore(PostgresStore("postgresql://host/team"), warn=lambda text: None)
    store.verdicts(subject())
    store.miss(subject())
    for m in range(3):
        with store.flight(subject(m=m)):
            store.add(subject(m=m), [timed(8)])
    assert len(asked) == 1


def _tune(place, url, is_begun):
    store = SafeStore(PostgresStore(url), warn=lambda text: None, retry_s=0.1)
    flight = store.flight(subject())
    while not flight.acquire(0.2):
        pass
    try:
        if store.verdicts(subject()):
            return "heard"
        for step in range(8):
            is_begun.set()
            time.sleep(0.25)
            store.add(subject(), [timed(step, run=str(place))])
        store.conclude(subject(), won(place + 1))
        return "tuned"
    finally:
        flight.release()
        store.close()


def test_server_that_restarts_makes_nobody_tune_what_another_is_tuning(url, server, quick):
    import multiprocessing

    PostgresStore(url).info()
    is_begun = multiprocessing.get_context("fork").Event()

    def restart():
        is_begun.wait(HANG_S)
        time.sleep(0.5)
        server.stop("immediate")
        server.start()

    restarting = threading.Thread(target=restart)
    restarting.start()
    came_to = crowd(6, _tune, url, is_begun)
    restarting.join()
    assert errors(came_to) == []
    assert Counter(came_to) == {"tuned": 1, "heard": 5}
    assert len(PostgresStore(url).trials(subject())) == 8


def test_flight_is_taken_again_although_its_holder_does_not_use_the_store(store, url, server, quick):
    with store.flight(subject()):
        before = _locks(server, url)
        _end_sessions(server, url)
        _until(lambda: _locks(server, url) not in ([], before))
    assert _locks(server, url) == []


def test_flight_that_another_session_had_is_taken_again_once_that_ends(store, url, server, quick):
    import psycopg

    flight = store.flight(subject())
    with flight, psycopg.connect(url, autocommit=True) as other:
        ours = _ask(store, "SELECT pg_backend_pid()")
        with store._server._threads:
            server.sql(f"SELECT pg_terminate_backend({ours})")
            other.execute("SELECT pg_advisory_lock(%s)", (flight._byte,))
        _until(lambda: _ask(store, "SELECT pg_backend_pid()") != ours)
        assert _locks(server, url) == [other.info.backend_pid]
        other.close()
        _until(lambda: _locks(server, url) != [])


def test_flight_that_only_the_server_thinks_is_held_is_taken_again_at_once(store, url, server):
    with store.flight(subject()):
        silent, store._server._db = store._server._db, None  # as after a cut that the server did not see
        store.add(subject(), [timed(8)])
        _until(lambda: _locks(server, url) == [_ask(store, "SELECT pg_backend_pid()")])
    silent.close()


def test_listener_that_hears_nothing_finds_out_that_it_was_cut_off(url, monkeypatch):
    monkeypatch.setattr(listening, "_SILENCE_S", 0.1)
    heard = []
    store = PostgresStore(url, heard=heard.append)
    store.trials(subject())
    _until(lambda: heard == [None] and store._listener._db is not None)
    session = store._listener._db.info.backend_pid
    store._listener._db.limit_s = stretched(0.3)
    os.kill(session, signal.SIGSTOP)
    try:
        _until(lambda: heard == [None, None])
    finally:
        os.kill(session, signal.SIGCONT)
    store.close()


def test_who_waited_lets_the_last_holder_go_first_after_a_loss(store, url, server, monkeypatch):
    monkeypatch.setattr(server_module, "KEEP_S", 600.0)
    waiting = PostgresStore(url)
    with store.flight(subject()):
        assert not waiting.flight(subject()).acquire(0)
        _end_sessions(server, url)
        assert not waiting.flight(subject()).acquire(0)
        monkeypatch.setattr(waiting._server._holding, "_patient_until", 0.0)
        with waiting.flight(subject()) as taken:
            assert taken
    waiting.close()


def test_transaction_that_a_server_never_heard_of_is_done_again(store):
    store.add(subject(), [timed(1)])
    store._server._unsure["what"] = ("999999999999", "old")
    assert store._server.write(lambda db: "new", "what") == "new"


@pytest.mark.parametrize("write", ["add", "conclude", "absorb"])
def test_transaction_whose_number_another_got_after_a_crash_is_done_again(store, url, monkeypatch, write):
    store.add(subject(m=2), [timed(1)])
    others = PostgresStore(url)
    number = others._server.write(lambda db: db.execute("SELECT pg_current_xact_id()::text").fetchone()[0], "other")
    kind, lost = type(store._server._db), []
    original = kind.execute

    def losing(db, statement, *values):
        if statement == "COMMIT" and not lost:
            ((token, (_, result)),) = store._server._unsure.items()
            lost.append(token)
            store._server._unsure[token] = number, result
            db.close()
            raise server_module.driver().OperationalError("the connection is gone")
        return original(db, statement, *values)

    monkeypatch.setattr(kind, "execute", losing)
    if write == "add":
        store.add(subject(), [timed(2)])
    elif write == "conclude":
        store.conclude(subject(), won())
    else:
        assert store.absorb([Record(subject(), timed(2))]) == 1
    assert lost
    assert len(others.trials(subject())) + len(others.verdicts(subject())) == 1
    others.close()


def test_sign_that_cannot_be_given_costs_no_fact(store, url, server):
    safe = SafeStore(store)
    safe.add(subject(), [timed(1)])
    server.sql("DROP TABLE tunewise.signs", _name(url))
    safe.show(Sign("run", "a", 1.0, {}))
    safe.add(subject(), [timed(2)])
    assert len(store.trials(subject())) == 2
    assert safe.info().trouble is None


@pytest.mark.parametrize(
    ("setting", "given", "found"),
    [("idle_session_timeout", "1s", "0"), ("synchronous_commit", "off", "on"), ("lock_timeout", "0", "30s")],
)
def test_settings_of_the_database_that_would_break_a_promise_do_not_count(url, server, setting, given, found):
    server.sql(f"ALTER DATABASE {_name(url)} SET {setting} = '{given}'")
    store = PostgresStore(url)
    try:
        assert _ask(store, f"SHOW {setting}") == found
    finally:
        store.close()
        server.sql(f"ALTER DATABASE {_name(url)} RESET ALL")


def test_role_that_may_not_change_an_older_store_reads_it_until_somebody_else_has(store, url, server):
    store.add(subject(), [timed(1)])
    guest = server.guest_url(url, postgres_server.PASSWORD)
    server.sql("GRANT USAGE ON SCHEMA tunewise TO guest", _name(url))
    server.sql("GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA tunewise TO guest", _name(url))
    server.sql("DROP TABLE tunewise.signs, tunewise.points", _name(url))
    server.sql("DROP INDEX tunewise.subjects_decision", _name(url))
    server.sql("UPDATE tunewise.schema_number SET number = 1", _name(url))
    mine = PostgresStore(guest)
    assert mine.trials(subject()) == [timed(1)]
    with pytest.raises(StoreError, match=r"schema 1, older than the .* until the role that began the store has run"):
        mine.add(subject(), [timed(2)])
    PostgresStore(url).info()
    mine.add(subject(), [timed(2)])
    assert len(store.trials(subject())) == 2
    mine.close()


def test_role_that_may_not_begin_a_store_is_told_what_it_needs(url, server):
    with pytest.raises(StoreError, match="may not begin one: GRANT CREATE ON DATABASE"):
        PostgresStore(server.guest_url(url, postgres_server.PASSWORD)).info()


@pytest.mark.parametrize("signs", ["p@se-cret", "p/se-cret", "p?x@se-cret", "p?x/se-cret"])
def test_password_that_libpq_would_cut_is_told_and_not_shown(signs):
    pytest.importorskip("psycopg", reason="psycopg is not installed")
    with pytest.raises(StoreError, match=r"the password for|not an address") as caught:
        PostgresStore(f"postgresql://bob:{signs}@127.0.0.1:1/team").info()
    assert not [word for word in ("cret", "bob") if word in str(caught.value)]


@pytest.mark.parametrize(
    "place",
    ["host=h dbname=team password=se-cret", " service = team password=se-cret", "service=team;password=se-cret"],
)
def test_address_in_words_is_refused_and_makes_no_directory(place):
    with pytest.raises(InvalidSetting, match="TUNEWISE_STORE is an address in words") as caught:
        parse_place(place, "TUNEWISE_STORE")
    assert "cret" not in str(caught.value)


def test_what_a_server_says_in_another_language_does_not_name_the_user():
    pytest.importorskip("psycopg", reason="psycopg is not installed")
    words = "Passwort-Authentifizierung für Benutzer »bob« fehlgeschlagen"
    assert said(Exception(words), "postgresql://bob@h/d") == words.replace("bob", "...")
