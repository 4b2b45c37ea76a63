"""Nothing that one test puts into Helion's lists, or leaves in its cache, is there for the next."""

from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def clean(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("HELION_CACHE_DIR", str(tmp_path / "helion"))
    yield
    if find_spec("helion") is not None:
        from tunewise.deploy import helion

        helion.uninstall()
