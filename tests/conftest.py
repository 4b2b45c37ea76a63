"""Every test gets a home of its own, so that nothing a test remembers outlives it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

import tunewise
from tunewise.settings import VARIABLES


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Point TUNEWISE_HOME at a fresh private directory and forget every answer before and after."""
    place = tmp_path / "home"
    for name in VARIABLES:
        if name.startswith("TUNEWISE_"):
            monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TUNEWISE_HOME", str(place))
    tunewise.configure()
    yield place
    tunewise.configure()
