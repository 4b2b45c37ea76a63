"""A store that was away for a while: the command that ends after it is back is no failure."""

import pytest

from tunewise.cli.home import sound_store, writable_store
from tunewise.errors import DamagedStore, StoreError, UnreachableStore
from tunewise.session import context
from tunewise.store import MemoryStore, SafeStore, SqliteStore, database
from tunewise.testing.store_contract import subject, timed


class Server(MemoryStore):
    """A store that can be out of reach."""

    is_away = True

    def add(self, subject, trials):
        if self.is_away:
            raise UnreachableStore("the server is away")
        super().add(subject, trials)


@pytest.fixture
def server(monkeypatch):
    made = Server()
    store = SafeStore(made, warn=lambda text: None)
    monkeypatch.setattr(context._process, "store", store)
    store.add(subject(), [timed(8)])
    return made


def test_trouble_that_has_passed_is_no_error_and_what_waited_is_written(server):
    server.is_away = False
    sound_store()
    assert server.trials(subject()) == [timed(8)]


def test_trouble_that_lasts_is_an_error(server):
    with pytest.raises(StoreError, match="the server is away"):
        sound_store()
    server.is_away = False


@pytest.fixture
def read_only(home, monkeypatch):
    SqliteStore(home).add(subject(), [timed(8)])
    monkeypatch.setattr(database, "_is_writable", lambda path: False)
    return home


def test_a_store_that_may_only_be_read_is_no_place_to_measure_for(read_only, cli, toy):
    assert sound_store().trials(subject()) == [timed(8)]
    with pytest.raises(StoreError, match=r"can be read but not written; make it .* writable, or set TUNEWISE_HOME"):
        writable_store()
    for words in (("tune", toy, "--problem", "n=1"), ("collect", toy, "--problem", "n=1")):
        result = cli(*words)
        assert result.exit_code == 1
        assert "can be read but not written" in result.stderr


def test_a_store_that_may_only_be_read_is_shown(read_only, cli):
    assert cli("trials", subject().decision).exit_code == 0
    assert "it can be read but not written" in cli("doctor").stdout.replace("\n", " ")


def test_a_store_without_its_tables_is_damaged(home):
    SqliteStore(home).add(subject(), [timed(8)])
    with SqliteStore(home)._database.writing() as db:
        db.execute("DROP TABLE trials")
    with pytest.raises(DamagedStore, match="what it says of its own tables is damaged"):
        SqliteStore(home).trials(subject())
