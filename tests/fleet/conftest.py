"""A cluster of three Ray nodes that the tests of a module share."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fleets import below, wait_until


@pytest.fixture(scope="module")
def nodes() -> Iterator[object]:
    """Start three nodes on this machine, and stop them when the tests are over."""
    pytest.importorskip("ray", reason="ray is not installed: pip install 'tunewise[ray]'")
    from tunewise.fleet.cluster import LocalNodes

    started = LocalNodes(3)
    started.start()
    wait_until(lambda: len(below("agent", started._keeper.pid)) == 3)
    yield started
    started.stop()


@pytest.fixture
def postgres() -> Iterator[Any]:
    """Start a PostgreSQL server, and stop it when the test is over."""
    pytest.importorskip("psycopg", reason="psycopg is not installed: pip install 'tunewise[postgres]'")
    sys.path.insert(0, str(Path(__file__).parents[1] / "store"))
    import postgres_server

    sys.path.pop(0)
    try:
        running = postgres_server.started()
    except postgres_server.NoServer as error:
        pytest.skip(f"no PostgreSQL server can be run here: {error}")
    yield running
    running.remove()
