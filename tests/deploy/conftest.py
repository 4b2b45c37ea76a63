"""Every test of the drop-in begins with no log open and no heuristic loaded."""

from collections.abc import Iterator
from pathlib import Path

import pytest

import tunewise as tw
from tunewise.deploy import autoheuristic


@pytest.fixture(autouse=True)
def nothing_open(home: Path) -> Iterator[None]:
    """Forget what an earlier test has opened, as a new process would have."""
    autoheuristic._logs.clear()
    autoheuristic._told.clear()
    yield
    tw.drop_heuristics()
