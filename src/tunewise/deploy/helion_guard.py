"""Trouble of ours never reaches a program that uses Helion: it is logged once, and Helion goes on without us."""

from collections.abc import Callable
from typing import TypeVar

from tunewise.eventlog import logger

T = TypeVar("T")

_log = logger("tunewise.helion")
_reported: set[str] = set()


def or_none(what: str, work: Callable[[], T]) -> T | None:
    """Return what some work of ours gives, or None with one warning for each kind of trouble."""
    try:
        return work()
    except Exception as error:  # whatever it is, Helion can do without us
        said = f"{what}: {type(error).__name__}: {error}"
        if said not in _reported:
            _reported.add(said)
            _log.warning("Helion goes on without tunewise; %s", said)
        return None
