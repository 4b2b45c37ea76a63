"""The heuristics in force here: loaded by a call, of the places the settings name, of active packages, then ours."""

import os
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import overload

from tunewise import settings
from tunewise.decision import Declaration
from tunewise.decision.declaration import MAX_NAME
from tunewise.decision.trial import ProposerKind
from tunewise.errors import InvalidSetting
from tunewise.escaping import one_line
from tunewise.eventlog import logger
from tunewise.heuristics import Expert, Heuristic, load_object, load_path, load_places, load_plugin
from tunewise.heuristics.registry import experts_of
from tunewise.heuristics.shipped import shipped
from tunewise.session import context
from tunewise.session.packages import active_heuristics, installed
from tunewise.store import renew_in_children

Source = Heuristic | Expert

_SHOWN = 400  # characters of what somebody else's code says

_log = logger(__name__)


class _Shelf:
    """What was loaded, and what was found; it looks again when answers are to be forgotten."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.loaded: tuple[Source, ...] = ()  # the latest first
        self.found: tuple[Heuristic, ...] | None = None
        self.reported: set[object] = set()
        self.hung: set[object] = set()  # not asked again in this process
        self.is_alone = False  # only what was loaded by a call is in force
        renew_in_children(self)
        context.remember_to_forget(self)

    def forget(self) -> None:
        """Look into the places again at the next question."""
        self.found = None

    def renew(self) -> None:
        """Begin a forked child with a lock of its own."""
        self.lock = threading.RLock()

    def all(self) -> tuple[Source, ...]:
        """Return all heuristics in force but the registry's, in the order they are asked."""
        with self.lock:
            if self.is_alone:
                return self.loaded
            found = self.found  # another thread may forget at any moment: what was read once is used from here on
            if found is None:
                _report_missing(settings.current().heuristics or ())
                named = load_places(settings.current().heuristic_places)
                found = named + active_heuristics() + load_places(one.path for one in shipped())
                self.found = found
            return self.loaded + found


_shelf = _Shelf()


@overload
def load_heuristic(what: str | Path) -> tuple[Heuristic, ...]: ...
@overload
def load_heuristic(what: Source | type[Expert] | None = None, *, plugin: str | None = None) -> tuple[Source, ...]: ...
def load_heuristic(
    what: str | Path | Source | type[Expert] | None = None, *, plugin: str | None = None
) -> tuple[Source, ...]:
    """Put heuristics in force for this process and return them.

    They are of a model file, a table, a generated module, a directory of those or a model package; or an `Expert` of
    yours. `plugin` names a model package at home, or what an installed package offers, instead; nothing of it is loaded
    before that. Of several heuristics for one decision the one loaded last is asked first. Raises NotFound, or
    InvalidModel for what is not sound; of a table or a package that is InvalidFile.
    """
    if (what is None) == (plugin is None):
        raise InvalidSetting("load_heuristic takes a path or a heuristic, or the name of a plugin, and not both")
    if plugin is not None:
        loaded = _offered(plugin)
    else:
        loaded = load_path(what) if isinstance(what, str | Path) else load_object(what)
    with _shelf.lock:
        _shelf.loaded = loaded + _shelf.loaded
    context.refresh()
    return loaded


def _offered(plugin: str) -> tuple[Source, ...]:
    """Return what a model package at home, or else an installed package, offers under a name."""
    at_home = [one for one in installed() if one.name == plugin]
    return load_path(at_home[0].path) if at_home else load_plugin(plugin)


def drop_heuristics() -> None:
    """Drop all heuristics that were loaded by a call; those of the places the settings name, and ours, stay."""
    with _shelf.lock:
        _shelf.loaded = ()
    context.refresh()


@contextmanager
def alone(what: str | Path) -> Iterator[None]:
    """Let nothing but the heuristics of one place answer inside the block: neither those loaded before, nor ours."""
    loaded = load_path(what)
    with _shelf.lock:
        before = _shelf.loaded, _shelf.is_alone
        _shelf.loaded, _shelf.is_alone = loaded, True
    context.refresh()
    try:
        yield
    finally:
        with _shelf.lock:
            _shelf.loaded, _shelf.is_alone = before
        context.refresh()


def heuristics_for(decision: str) -> Sequence[Heuristic]:
    """Return the heuristics in force for a decision, in the order they are asked."""
    return [one for one in _shelf.all() if isinstance(one, Heuristic) and one.decision == decision]


def experts_for(declaration: Declaration) -> Sequence[Expert]:
    """Return the rules of thumb for a decision, in the order they are asked: loaded ones, then those that ship."""
    loaded = [one for one in _shelf.all() if not isinstance(one, Heuristic)]
    return [one for one in (*loaded, *experts_of(declaration.backend)) if _is_for(one, declaration)]


def sources_for(declaration: Declaration) -> Sequence[Source]:
    """Return all that may propose seeds for a decision: rules of thumb, tables, then what was learned."""
    named = sorted(heuristics_for(declaration.name), key=lambda one: one.kind != "table")
    return [*experts_for(declaration), *named]


def is_promoted(expert: Expert) -> bool:
    """Return whether the first seed of a rule of thumb replaces the default."""
    return bool(_says(expert, "is_promoted", False))


def kind_of(source: Source) -> ProposerKind:
    """Return what kind of heuristic it is."""
    return source.kind if isinstance(source, Heuristic) else "expert"


def decisions_known() -> list[str]:
    """Return the names of all decisions that heuristics are in force for."""
    return sorted({one.decision for one in _shelf.all() if isinstance(one, Heuristic)})


def ban(source: Source) -> None:
    """Never ask a heuristic again in this process: every time would cost as much again."""
    _shelf.hung.add(_which(source))


def is_banned(source: Source) -> bool:
    """Return whether a heuristic is not to be asked again."""
    return _which(source) in _shelf.hung


def report(source: Source, said: str) -> None:
    """Log what is wrong with a heuristic, once by its name; the program goes on without it."""
    _say_once(_which(source), shown(f"heuristic {name_of(source)} {said}"))


def report_decision(decision: str, said: str) -> None:
    """Log, once a decision, that its heuristics cannot be asked."""
    _say_once(decision, f"heuristics are not asked: {said}")


def name_of(source: Source) -> str:
    """Return what a heuristic is called in records and reports: its name, as far as that can be printed."""
    return shown(str(source.name), MAX_NAME)


def broke(error: BaseException) -> str:
    """Return how somebody else's code broke, as the end of a sentence that begins with its name."""
    try:
        said = str(error)
    except Exception:  # even its errors are broken
        said = "an error that cannot be told"
    return shown(f"broke with {type(error).__name__}: {said}")


def shown(text: str, most: int = _SHOWN) -> str:
    """Return somebody else's text as one short line: it is logged, and stored with every verdict."""
    line = one_line(text[: most + 1])
    return line if len(line) <= most else line[: most - 3] + "..."


def _which(source: Source) -> object:
    """Return what tells a heuristic from others, of the same name too; those that ship are made anew each time."""
    return type(source), name_of(source), source.decision if isinstance(source, Heuristic) else ""


def _say_once(about: object, said: str) -> None:
    with _shelf.lock:
        is_told = about in _shelf.reported
        _shelf.reported.add(about)
    if not is_told:
        _log.warning("%s", said)


def _report_missing(places: Sequence[Path]) -> None:
    """Log, once each, places that somebody named and that are not there: a misspelled one would just be silent."""
    for place in places:
        if not os.path.lexists(place):
            _say_once(place, f"no heuristic of {place} is asked: there is no such place; correct TUNEWISE_HEURISTICS")


def _is_for(expert: Expert, declaration: Declaration) -> bool:
    backend, decision = _says(expert, "backend", ""), _says(expert, "decision", "")
    return backend in ("", declaration.backend) and decision in ("", declaration.name)


def _says(expert: Expert, fact: str, otherwise: object) -> object:
    """Return what a rule of thumb says of itself; None, with one report, where that breaks."""
    try:
        return getattr(expert, fact, otherwise)
    except Exception as error:  # a property of somebody else's
        report(expert, broke(error))
        return None
