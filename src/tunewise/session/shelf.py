"""The heuristics in force in this process: loaded by a call, then of the places the settings name, then ours."""

import logging
import threading
from collections.abc import Sequence
from pathlib import Path

from tunewise import settings
from tunewise.errors import InvalidSetting
from tunewise.heuristics import Heuristic, load_path, load_places, load_plugin
from tunewise.heuristics.shipped import shipped
from tunewise.session import context
from tunewise.store import renew_in_children

_log = logging.getLogger(__name__)


class _Shelf:
    """What was loaded, and what was found; it looks again when answers are to be forgotten."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.loaded: tuple[Heuristic, ...] = ()  # the latest first
        self.found: tuple[Heuristic, ...] | None = None
        self.broken: set[str] = set()
        renew_in_children(self)
        context.remember_to_forget(self)

    def forget(self) -> None:
        """Look into the places again at the next question."""
        self.found = None

    def renew(self) -> None:
        """Begin a forked child with a lock of its own."""
        self.lock = threading.RLock()

    def all(self) -> tuple[Heuristic, ...]:
        """Return all heuristics in force, in the order they are asked."""
        with self.lock:
            found = self.found  # another thread may forget at any moment: what was read once is used from here on
            if found is None:
                places = [*settings.current().heuristic_places, *(one.path for one in shipped())]
                self.found = found = load_places(places)
            return self.loaded + found


_shelf = _Shelf()


def load_heuristic(path: str | Path | None = None, *, plugin: str | None = None) -> tuple[Heuristic, ...]:
    """Put heuristics in force for this process and return them: of a model file, a generated module or a directory.

    `plugin` names what an installed package offers instead; nothing of it is loaded before that. Of several heuristics
    for one decision the one loaded last is asked first. Raises NotFound, or InvalidModel for what is not sound.
    """
    if (path is None) == (plugin is None):
        raise InvalidSetting("load_heuristic takes a path or the name of a plugin, and not both")
    loaded = load_plugin(plugin) if plugin is not None else load_path(path or "")
    with _shelf.lock:
        _shelf.loaded = loaded + _shelf.loaded
    context.refresh()
    return loaded


def drop_heuristics() -> None:
    """Drop all heuristics that were loaded by a call; those of the places the settings name, and ours, stay."""
    with _shelf.lock:
        _shelf.loaded = ()
    context.refresh()


def heuristics_for(decision: str) -> Sequence[Heuristic]:
    """Return the heuristics in force for a decision, in the order they are asked."""
    return [heuristic for heuristic in _shelf.all() if heuristic.decision == decision]


def decisions_known() -> list[str]:
    """Return the names of all decisions that heuristics are in force for."""
    return sorted({heuristic.decision for heuristic in _shelf.all()})


def report(heuristic: Heuristic, error: Exception) -> None:
    """Log that a heuristic broke, once by its name; the program goes on without it."""
    if heuristic.name not in _shelf.broken:
        _shelf.broken.add(heuristic.name)
        said = f"{type(error).__name__}: {error}"
        _log.warning("heuristic %s of %s broke and is passed over: %s", heuristic.name, heuristic.decision, said)
