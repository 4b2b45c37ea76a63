"""A PostgreSQL server that the tests share, and a new database on it for each."""

from collections.abc import Iterator

import postgres_server
import pytest


@pytest.fixture(scope="session")
def server() -> Iterator[postgres_server.PgServer]:
    """Start a PostgreSQL server, and stop it when the tests are over."""
    pytest.importorskip("psycopg", reason="psycopg is not installed: pip install 'tunewise[postgres]'")
    try:
        running = postgres_server.started()
    except postgres_server.NoServer as error:
        pytest.skip(f"no PostgreSQL server can be run here: {error}")
    yield running
    running.remove()


@pytest.fixture
def url(server: postgres_server.PgServer) -> Iterator[str]:
    """Give the address of an empty database."""
    place = server.database()
    yield place
    server.give_back(place)
