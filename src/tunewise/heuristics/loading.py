"""Where heuristics come from: model files, generated modules, directories of both, and installed packages by name."""

import difflib
import logging
from collections.abc import Iterable, Mapping
from importlib.metadata import entry_points
from pathlib import Path

from tunewise import models
from tunewise.decision import Config
from tunewise.errors import InvalidModel, NotFound, TunewiseError
from tunewise.heuristics.base import Heuristic

GROUP = "tunewise.heuristics"
MAX_FILES = 1000  # of a directory

_SUFFIXES = (".json", ".py")
_log = logging.getLogger(__name__)


def load_path(path: Path | str) -> tuple[Heuristic, ...]:
    """Return the heuristic of a model file or generated module, or all those of a directory, in order of their names.

    A file that is no heuristic is logged and left out where others of its directory are. Raises NotFound where there
    is nothing, and InvalidModel for a file that is not sound.
    """
    place = Path(path)
    if not place.is_dir():
        return (_load_file(place),)
    found = [file for file in sorted(place.iterdir()) if file.suffix in _SUFFIXES and not file.name.startswith(".")]
    loaded = tuple(heuristic for file in found[:MAX_FILES] for heuristic in _or_logged(file))
    if not loaded:
        raise NotFound(f"{place} holds no heuristic: no sound model (.json) and no generated module (.py)")
    return loaded


def load_places(places: Iterable[Path]) -> tuple[Heuristic, ...]:
    """Return the heuristics of places, in order. What cannot be loaded is logged; a place that is empty has none."""
    return tuple(heuristic for place in places for heuristic in _or_logged(place, missing=logging.INFO))


def load_plugin(name: str) -> tuple[Heuristic, ...]:
    """Return the heuristics of an installed package that offers them under a name, by the entry point of that name.

    The entry point is a path of what `load_path` takes, a Heuristic, or several of those. Raises NotFound for a name
    nobody offers, and InvalidModel where what is offered does not load or is something else.
    """
    offered = {point.name: point for point in entry_points(group=GROUP)}
    if name not in offered:
        close = difflib.get_close_matches(name, offered, 1) or sorted(offered)
        hint = f"did you mean {close[0]!r}?" if close else f"none offers the entry point {GROUP}"
        raise NotFound(f"no installed package offers heuristics named {name!r}; {hint}")
    try:
        return tuple(_flat(name, offered[name].load()))
    except TunewiseError:
        raise
    except Exception as error:  # code of somebody else
        raise InvalidModel(f"heuristics {name!r} do not load: {type(error).__name__}: {error}") from error


def _flat(name: str, offered: object) -> Iterable[Heuristic]:
    if isinstance(offered, Heuristic):
        yield offered
    elif isinstance(offered, str | Path):
        yield from load_path(offered)
    elif isinstance(offered, Iterable):
        for one in offered:
            yield from _flat(name, one)
    else:
        raise InvalidModel(f"heuristics {name!r} are a {type(offered).__name__}, not a path or a tunewise.Heuristic")


def _or_logged(place: Path, missing: int = logging.WARNING) -> tuple[Heuristic, ...]:
    try:
        return load_path(place)
    except NotFound as error:
        _log.log(missing, "no heuristic: %s", error)
    except (TunewiseError, OSError) as error:
        _log.warning("heuristic %s is left out: %s", place, error)
    return ()


def _load_file(path: Path) -> Heuristic:
    return _of_source(path) if path.suffix == ".py" else _of_model(path)


def _of_model(path: Path) -> Heuristic:
    model = models.load(path)

    def ranking(features: Mapping[str, object]) -> list[Config]:
        return [model.choices[number] for number in model.rank(features)]

    names = tuple(column.name for column in model.columns.problem)
    return Heuristic(path.name, model.card.decision, ranking, model.card.fence, _about(model.card), names)


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
