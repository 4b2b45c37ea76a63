"""No heuristic that one test loads is in force in the next."""

from collections.abc import Iterator

import pytest

import tunewise as tw


@pytest.fixture(autouse=True)
def empty_shelf(home: object) -> Iterator[None]:
    """Drop what the test loaded."""
    yield
    tw.drop_heuristics()
