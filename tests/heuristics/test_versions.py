"""Versions and ranges of them: what is within, what is a range at all, and what is installed."""

import pytest

from tunewise.errors import InvalidModel
from tunewise.heuristics import Heuristic, versions


@pytest.mark.parametrize(
    ("wanted", "version", "is_in"),
    [
        (">=2.6,<2.14", "2.13.0", True),
        (">=2.6,<2.14", "2.13.0+cpu", True),
        (">=2.6,<2.14", "2.14.0a0+git1234", False),
        (">=2.6,<2.14", "2.5.9", False),
        (">=2.6,<2.14", "2.6", True),
        ("==2.13", "2.13.0", True),
        ("!=2.13.1, <3", "2.13.1", False),
        (">2.13", "2.13.0", False),
        ("<=2.13", "2.13.0", True),
        (">=1", "no version", False),
    ],
)
def test_a_version_is_within_a_range_or_not(wanted: str, version: str, is_in: bool) -> None:
    assert versions.is_within("torch", wanted, version) is is_in


@pytest.mark.parametrize("wanted", ["", "2.6", ">=", ">=a", "~=2.6", ">=2.6,", ">=2.6;os", ",".join([">1"] * 20)])
def test_what_is_no_range_is_refused(wanted: str) -> None:
    with pytest.raises(InvalidModel, match="is not a range of versions"):
        versions.check_range("torch", wanted)


def test_a_library_has_a_name() -> None:
    with pytest.raises(InvalidModel, match="is not the name of a library"):
        versions.check_range("../torch", ">=1")


def test_the_minor_release_of_a_version() -> None:
    assert versions.minor_range("2.13.0+cpu") == ">=2.13,<2.14"
    assert versions.minor_range("7") is None


def test_a_heuristic_says_which_library_keeps_it_out() -> None:
    here = versions.installed("click")
    needs = {"click": ">=0.1", "msgspec": ">=99"}
    said = Heuristic("h", "d", lambda features: (), requires=needs).why_elsewhere({})
    assert said == f"needs msgspec >=99, and here it is {versions.installed('msgspec')}"
    assert here is not None
    assert Heuristic("h", "d", lambda features: (), requires={"click": ">=0.1"}).why_elsewhere({}) is None
    said = Heuristic("h", "d", lambda features: (), requires={"no-such-library": ">=1"}).why_elsewhere({})
    assert said == "needs no-such-library >=1, which is not installed"
    with pytest.raises(InvalidModel, match="is not a range"):
        Heuristic("h", "d", lambda features: (), requires={"torch": "new"})
