"""What tests of processes need: nobody but those under test among our children."""

from multiprocessing import resource_tracker

import pytest


@pytest.fixture(autouse=True)
def no_tracker() -> None:
    """Stop the helper that Python keeps for spawned pools, such as another test's: it lives as long as we do."""
    resource_tracker._resource_tracker._stop()  # type: ignore[attr-defined]
