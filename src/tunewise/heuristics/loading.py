"""Where heuristics come from: models, tables, generated modules, directories of them, installed packages by name."""

import difflib
import hashlib
import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

from tunewise import models
from tunewise.decision import Config
from tunewise.decision.regular import open_regular
from tunewise.errors import InvalidModel, NotFound, TunewiseError
from tunewise.eventlog import logger
from tunewise.heuristics.base import Heuristic
from tunewise.heuristics.expert import Expert
from tunewise.heuristics.table_reading import MAX_BYTES, is_table, load_table

GROUP, PACKAGES = "tunewise.heuristics", "tunewise.models"
MAX_FILES = 1000  # of a directory

_SUFFIXES = (".json", ".py")
_log = logger(__name__)


def load_path(path: Path | str) -> tuple[Heuristic, ...]:
    """Return the heuristic of a model, table or generated module, or all those of a directory, in order of their names.

    A directory with a manifest is a package: every file of it is checked, and its models are fenced by it. In any other
    a file that is no heuristic is logged and left out where others are, as are those beyond 1,000; directories in it
    are not looked into. Raises NotFound where there is nothing, InvalidModel for a file that is not sound, and
    InvalidFile for such a table or package.
    """
    if path == "":
        raise NotFound("no place of heuristics is named; name a file or a directory, such as . for this one")
    place = Path(path)
    if not place.is_dir():
        return (_load_file(place),)
    if (place / "manifest.json").exists():
        return _of_package(place)
    found = [file for file in sorted(place.iterdir()) if _may_be_heuristic(file)]
    if len(found) > MAX_FILES:
        _log.warning("%s holds %d heuristics, and only the first %d by name are loaded", place, len(found), MAX_FILES)
    loaded = tuple(heuristic for file in found[:MAX_FILES] for heuristic in _or_logged(file))
    if not loaded:
        raise NotFound(f"{place} holds no heuristic: no sound model or table (.json) and no generated module (.py)")
    return loaded


def _may_be_heuristic(file: Path) -> bool:
    return file.suffix in _SUFFIXES and not file.name.startswith(".") and not file.is_dir()


def load_places(places: Iterable[Path]) -> tuple[Heuristic, ...]:
    """Return the heuristics of places, in order. What cannot be loaded is logged; a place that is empty has none."""
    return tuple(heuristic for place in places for heuristic in _or_logged(place, missing=logging.INFO))


def load_plugin(name: str) -> tuple[Heuristic | Expert, ...]:
    """Return the heuristics of an installed package that offers them under a name, by the entry point of that name.

    The entry point is a path of what `load_path` takes, a Heuristic, an Expert, or several of those; or it names a
    package of models, of which no code is run. Raises NotFound for a name nobody offers, and InvalidModel where what is
    offered does not load or is something else.
    """
    offered = {point.name: point for point in entry_points(group=GROUP)}
    if name not in offered and name in {point.name for point in entry_points(group=PACKAGES)}:
        return _of_offer(name)
    if name not in offered:
        close = difflib.get_close_matches(name, offered, 1) or sorted(offered)
        hint = f"did you mean {close[0]!r}?" if close else f"none offers the entry point {GROUP}"
        raise NotFound(f"no installed package offers heuristics named {name!r}; {hint}")
    return _all_of(name, offered[name].load)


def load_object(offered: object) -> tuple[Heuristic | Expert, ...]:
    """Return a heuristic given as such, or as a class that makes one; raises InvalidModel for what is none."""
    return _all_of(getattr(offered, "__name__", type(offered).__name__), lambda: offered)


def _all_of(name: str, load: Callable[[], object]) -> tuple[Heuristic | Expert, ...]:
    try:
        return tuple(_flat(name, load()))
    except TunewiseError:
        raise
    except (Exception, SystemExit) as error:  # code of somebody else
        raise InvalidModel(f"heuristics {name!r} do not load: {type(error).__name__}: {error}") from error


def _flat(name: str, offered: object) -> Iterable[Heuristic | Expert]:
    if isinstance(offered, Heuristic):
        yield offered
    elif callable(getattr(offered, "seeds", None)):
        yield _expert(name, offered() if isinstance(offered, type) else offered)
    elif isinstance(offered, str | Path):
        yield from load_path(offered)
    elif isinstance(offered, Iterable):
        for one in offered:
            yield from _flat(name, one)
    else:
        raise InvalidModel(f"heuristics {name!r} are a {type(offered).__name__}, not a path, a Heuristic or an Expert")


def _expert(name: str, offered: Any) -> Expert:
    """Return a rule of thumb once it is known to be sound; what it lacks, but for a name, has a meaning of its own."""
    if not isinstance(getattr(offered, "name", None), str) or not offered.name.strip():
        raise InvalidModel(f"heuristic {name!r} has no name: give its class name = 'my-rule'")
    for fact in ("backend", "decision"):
        value = getattr(offered, fact, "")
        if not isinstance(value, str):
            raise InvalidModel(f"heuristic {offered.name!r}: {fact}={value!r} is not a word; leave it out for all")
    most, on = getattr(offered, "most", 1), getattr(offered, "hardware", None)
    if type(most) is not int:
        raise InvalidModel(f"heuristic {offered.name!r}: most={most!r} is not a number of seeds, such as 2")
    if on is not None and not callable(getattr(on, "why_not", None)):
        raise InvalidModel(f"heuristic {offered.name!r}: hardware={on!r} is not devices, such as On(kinds=('cpu',))")
    expert: Expert = offered
    return expert


def _or_logged(place: Path, missing: int = logging.WARNING) -> tuple[Heuristic, ...]:
    try:
        return load_path(place)
    except NotFound as error:
        _log.log(missing, "no heuristic: %s", error)
    except (TunewiseError, OSError) as error:
        _log.warning("heuristic %s is left out: %s", place, error)
    return ()


def _load_file(path: Path) -> Heuristic:
    return replace(_read_file(path), fingerprint=hashlib.sha256(path.read_bytes()).hexdigest())


def _read_file(path: Path) -> Heuristic:
    if path.suffix == ".py":
        return _of_source(path)
    return load_table(path).heuristic(path.name) if _is_table(path) else _of_model(path)


def _is_table(path: Path) -> bool:
    try:
        with open_regular(path) as file:
            return is_table(file.read(MAX_BYTES + 1))
    except (OSError, ValueError):  # whoever reads it as a model says what is wrong
        return False


def _of_model(path: Path) -> Heuristic:
    model = models.load(path)

    def ranking(features: Mapping[str, object]) -> list[Config]:
        return [model.choices[number] for number in model.rank(features)]

    names = tuple(column.name for column in model.columns.problem)
    return Heuristic(
        path.name,
        model.card.decision,
        ranking,
        model.card.fence,
        _about(model.card),
        names,
        only_seeds=model.card.only_seeds,
    )


def _of_offer(name: str) -> tuple[Heuristic, ...]:
    from tunewise.heuristics.packages.opening import heuristics_of, of_offer

    return heuristics_of(Path(of_offer(name).where))


def _of_package(path: Path) -> tuple[Heuristic, ...]:
    from tunewise.heuristics.packages.opening import heuristics_of  # which loads its models through this module

    return heuristics_of(path)


def _of_source(path: Path) -> Heuristic:
    from tunewise.models.source import load_source  # checking code takes a parser, and few processes load any

    code = load_source(path)
    about = f"generated code, learned from data {code.fingerprint[:8]}" if code.fingerprint else "generated code"
    return Heuristic(path.name, code.decision, code.rank, code.fence, about, code.features)


def _about(card: models.Card) -> str:
    said = f"{card.learner or 'learned'} of {card.created}" if card.created else card.learner or "learned"
    regret, default = card.scores.get("regret"), card.scores.get("default_regret")
    if regret is not None:
        said += f", regret {regret:.3g} on problems held out"
    return said if default is None else f"{said}, the default's {default:.3g}"
