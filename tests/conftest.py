"""Every test gets a home of its own, so that nothing a test remembers outlives it."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

import guardian
import tunewise
from tunewise.decision.opencl import devices, survey
from tunewise.errors import MissingPart
from tunewise.settings import VARIABLES

# What decides how text for people is drawn, besides the stream that it goes to.
_OF_TERMINALS = ("COLUMNS", "LINES", "TERM", "FORCE_COLOR", "NO_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE")


def pytest_configure() -> None:
    """Forget whose terminal and account this is, and let nothing that this process starts outlive it."""
    for name in _OF_TERMINALS:
        os.environ.pop(name, None)
    os.umask(0o022)
    guardian.watch()


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


@pytest.fixture(scope="module")
def pocl(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Let OpenCL run on one thread, with a cache that goes when the tests go. Nothing is started in this process.

    Skips, with what to install, where no device can run a kernel.
    """
    cache = tmp_path_factory.getbasetemp() / "pocl"
    cache.mkdir(exist_ok=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("POCL_MAX_PTHREAD_COUNT", "1")
        patch.setenv("POCL_CACHE_DIR", str(cache))
        survey.cache_clear()  # a test before may have asked for them with all threads
        try:
            devices()
        except MissingPart as error:
            pytest.skip(str(error))
        yield
    survey.cache_clear()
