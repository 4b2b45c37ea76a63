"""The store on a PostgreSQL server: the contract of every store, and what only a server can do."""

import socket
import threading
from pathlib import Path

import pytest

from limits import HANG_S
from tunewise.decision import Environment, Part, Problem, Subject
from tunewise.errors import StoreError
from tunewise.store import (
    Imported,
    LayeredStore,
    MemoryStore,
    PostgresStore,
    Prune,
    SafeStore,
    SqliteStore,
    Store,
    connecting,
    migrate,
    postgres,
    postgres_rows,
)
from tunewise.store import (
    server as server_module,
)
from tunewise.testing.store_contract import StoreContract, subject, timed, won


class _OnServer(StoreContract):
    @pytest.fixture(autouse=True)
    def _databases(self, server):
        self._server, self._urls, self._made = server, {}, []
        yield
        for store in self._made:
            store.close()
        for url in self._urls.values():
            server.give_back(url)

    def _url(self, path: Path) -> str:
        if path not in self._urls:
            self._urls[path] = self._server.database()
        return self._urls[path]

    def _keep(self, store: Store) -> Store:
        self._made.append(store)
        return store


class TestPostgresStore(_OnServer):
    def make(self, path: Path) -> Store:
        return self._keep(PostgresStore(self._url(path)))


class TestSafeStoreOnAServer(_OnServer):
    def make(self, path: Path) -> Store:
        return self._keep(SafeStore(PostgresStore(self._url(path))))


class TestFileOverAServer(_OnServer):
    def make(self, path: Path) -> Store:
        PostgresStore(self._url(path)).info()
        return self._keep(LayeredStore(SqliteStore(path), [PostgresStore(self._url(path), is_shared=True)]))


@pytest.fixture
def store(url):
    made = PostgresStore(url)
    yield made
    made.close()


HOSTILE = ["'; DROP SCHEMA tunewise CASCADE; --", 'a"b', "%s", "\\", "\\0", "a\0b", "\\\1", "ü\u2028\n", "x" * 5000]


@pytest.mark.parametrize("name", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_names_come_back_and_harm_nothing(store, name):
    about = Subject(name, Problem({name[:200]: name[:900]}), (), Environment((Part("x." + name, name, "must"),)))
    store.add(about, [timed(8, run=name)] * 9)
    store.conclude(about, won())
    store.miss(about, 3)
    assert store.trials(about) == [timed(8, run=name)] * 9
    assert store.subjects(name) == [about]
    assert store.decisions() == [name]
    assert [(miss.decision, miss.count) for miss in store.misses(name)] == [(name, 3)]
    assert store.info().decisions == {name: 9}
    other = MemoryStore()
    assert other.absorb(store.records(name)) == 2
    assert store.absorb(other.records()) == 0


def test_many_trials_keep_their_order(store):
    given = [timed(tile, run="many") for tile in range(1000)]
    store.add(subject(), given[: postgres_rows.MANY - 1])
    store.add(subject(), given[postgres_rows.MANY - 1 :])
    assert store.trials(subject()) == given


def test_misses_are_capped_and_the_least_asked_oldest_goes(store, monkeypatch):
    monkeypatch.setattr(postgres, "MAX_MISSES", 5)
    store.miss(subject(m=100), 9)
    for m in range(8):
        store.miss(subject(m=m))
    assert [miss.problem["m"] for miss in store.misses("gemm")] == [100, 4, 5, 6, 7]


def test_damaged_rows_are_passed_over(store, url, server):
    store.add(subject(), [timed(8), timed(16)])
    name = url.partition("@/")[2].partition("?")[0]
    server.sql("UPDATE tunewise.trials SET body = replace(body, '0.5', '0.1') WHERE id = 1", name)
    assert store.trials(subject()) == [timed(16)]


def test_newer_schema_is_read_and_not_written(store, url, server):
    store.add(subject(), [timed(8)])
    server.sql("UPDATE tunewise.schema_number SET number = 99", url.partition("@/")[2].partition("?")[0])
    later = PostgresStore(url)
    assert later.trials(subject()) == [timed(8)]
    with pytest.raises(StoreError, match="schema 99, newer than our"):
        later.add(subject(), [timed(8)])
    later.close()


def test_layer_that_does_not_exist_is_not_begun(url):
    layer = PostgresStore(url, is_shared=True)
    with pytest.raises(StoreError, match="there is no store at postgresql:///store"):
        layer.info()
    assert SafeStore(layer, warn=lambda text: None).trials(subject()) == []


def test_layer_is_never_written(store, url):
    store.add(subject(), [timed(8)])
    layer = PostgresStore(url, is_shared=True)
    with pytest.raises(StoreError, match="reading only"):
        layer.add(subject(), [timed(8)])
    layer.close()


def _guest(server, url, rights):
    """Return the address for a role that has some rights on the tables of a store."""
    import postgres_server

    name = url.partition("@/")[2].partition("?")[0]
    guest = server.guest_url(url, postgres_server.PASSWORD)
    server.sql("GRANT USAGE ON SCHEMA tunewise TO guest", name)
    server.sql(f"GRANT {rights} ON ALL TABLES IN SCHEMA tunewise TO guest", name)
    return guest


def test_role_that_may_only_read_can_be_a_layer(store, url, server):
    store.conclude(subject(), won())
    guest = _guest(server, url, "SELECT")
    layer = PostgresStore(guest, is_shared=True)
    assert layer.verdicts(subject()) == [won()]
    layer.close()


def test_role_with_the_rights_of_the_documents_can_write(store, url, server):
    store.conclude(subject(), won())
    guest = _guest(server, url, "SELECT, INSERT, UPDATE, DELETE")
    mine = PostgresStore(guest)
    mine.add(subject(m=2), [timed(8)] * 20)
    mine.conclude(subject(m=2), won())
    mine.miss(subject(m=3))
    mine.forget_miss(subject(m=3))
    assert mine.prune(Prune(decision="gemm")).trials == 20
    mine.close()


@pytest.mark.parametrize("is_committed", [True, False])
def test_commit_that_is_not_answered_counts_once(store, url, server, monkeypatch, is_committed):
    store.add(subject(), [timed(1)])
    cut = []

    def cutting(db, statement, *values):
        if statement == "COMMIT" and not cut:
            cut.append(True)
            if is_committed:
                original(db, statement)
            db.close()
            raise server_module.driver().OperationalError("the connection is gone")
        return original(db, statement, *values)

    kind = type(store._server._db)
    original = kind.execute
    monkeypatch.setattr(kind, "execute", cutting)
    store.add(subject(), [timed(2)])
    assert cut
    assert [trial.config["tile"] for trial in store.trials(subject())] == [1, 2]


def test_unanswered_commit_is_looked_up_when_the_program_tries_again(store, monkeypatch):
    told = []
    safe = SafeStore(store, warn=told.append, retry_s=0.0)
    safe.add(subject(), [timed(1)])
    kind, is_down = type(store._server._db), []
    original, connect = kind.execute, server_module.connect

    def cutting(db, statement, *values):
        result = original(db, statement, *values)
        if statement == "COMMIT" and not is_down:
            is_down.append(True)
            db.close()
            raise server_module.driver().OperationalError("the connection is gone")
        return result

    def refused(place):
        if is_down == [True]:
            raise StoreError("nobody answers")
        return connect(place)

    monkeypatch.setattr(kind, "execute", cutting)
    monkeypatch.setattr(server_module, "connect", refused)
    safe.add(subject(), [timed(2)])
    assert told
    is_down.append(False)
    safe.add(subject(), [timed(3)])
    assert [trial.config["tile"] for trial in store.trials(subject())] == [1, 2, 3]


def test_pruning_while_others_add_fails_nobody(store, url):
    errors, stop = [], threading.Event()

    def add():
        mine = PostgresStore(url)
        try:
            while not stop.is_set():
                mine.add(subject(m=1), [timed(8, at=1.0)])
        except BaseException as error:
            errors.append(error)
        mine.close()

    threads = [threading.Thread(target=add) for _ in range(3)]
    for thread in threads:
        thread.start()
    for _ in range(20):
        store.prune(Prune(decision="gemm"))
    stop.set()
    for thread in threads:
        thread.join(HANG_S)
    assert errors == []


def test_server_that_never_answers_costs_a_bounded_time():
    pytest.importorskip("psycopg", reason="psycopg is not installed")
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        told = []
        place = f"postgresql://somebody:secret@127.0.0.1:{port}/team?connect_timeout=2"
        store = SafeStore(PostgresStore(place), warn=told.append)
        store.add(subject(), [timed(8)])
    assert f"postgresql://127.0.0.1:{port}/team cannot be reached" in told[0]
    assert not any(word in text for text in told for word in ("somebody", "secret"))


def test_without_the_driver_a_program_goes_on_and_is_told_what_to_install(monkeypatch):
    def missing(name):
        raise ImportError(f"No module named {name!r}")

    connecting.driver.cache_clear()
    monkeypatch.setattr(connecting.importlib, "import_module", missing)
    told = []
    store = SafeStore(PostgresStore("postgresql://host/team"), warn=told.append)
    store.add(subject(), [timed(8)])
    with store.flight(subject()):
        assert store.trials(subject()) == [timed(8)]
    store.close()
    assert "pip install 'tunewise[postgres]'" in told[0]


def test_migrating_there_and_back_copies_everything_once(url, tmp_path):
    home, back, heard = tmp_path / "from", tmp_path / "back", []
    source = SqliteStore(home)
    for m in range(30):
        source.add(subject(m=m), [timed(tile, run=str(m)) for tile in range(100)])
        source.conclude(subject(m=m), won(m + 1))
    assert migrate(home, url, lambda read, expected: heard.append((read, expected))) == Imported(3030, 0)
    assert heard == [(2000, 3030)]
    assert migrate(home, url) == Imported(0, 3030)
    assert migrate(url, back) == Imported(3030, 0)
    assert migrate(url, back) == Imported(0, 3030)
    assert list(SqliteStore(back).records()) == list(source.records())


def test_migrating_to_itself_or_from_nowhere_is_refused(url, tmp_path):
    with pytest.raises(StoreError, match="cannot be copied to itself"):
        migrate(url, url)
    with pytest.raises(StoreError, match="there is no store"):
        migrate(url, tmp_path / "copy")
    assert not (tmp_path / "copy").exists()
