"""A store that was away for a while: the command that ends after it is back is no failure."""

import pytest

from tunewise.cli.home import sound_store
from tunewise.errors import StoreError, UnreachableStore
from tunewise.session import context
from tunewise.store import MemoryStore, SafeStore
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
