"""Arguments of a function that is tuned: which keywords are its own, and in which places they belong."""

import inspect
from collections.abc import Callable, Collection, Mapping
from typing import Any

from tunewise.decision import Args
from tunewise.errors import InvalidDecision
from tunewise.session.plan import Plan

_OPTIONS = frozenset(Plan.__dataclass_fields__)
_PLACED = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
_NAMED = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


def apart(
    name: str, function: Callable[..., Any], args: Args, given: Mapping[str, Any], config: Collection[str]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the keywords of a `tune` that are arguments of the function, and the others, which a plan may know.

    `config` names what is tuned, which nobody gives here. Raises InvalidDecision for a keyword that may be both.
    """
    parameters = _parameters(function).values()
    placed = [parameter.name for parameter in parameters if parameter.kind in _PLACED][: len(args)]
    own = {parameter.name for parameter in parameters if parameter.kind in _NAMED}.difference(placed, config)
    for keyword in own & _OPTIONS & set(given):
        raise InvalidDecision(
            f"{name}: {keyword} is an argument of the function and an option of tune; give the argument by its place, "
            f"or call the function with it in a block: with tunewise.mode('tune')"
        )
    takes_any = any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters)
    known = set(given).difference(_OPTIONS, config) if takes_any else own
    mine = {keyword: value for keyword, value in given.items() if keyword in known}
    return mine, {keyword: value for keyword, value in given.items() if keyword not in known}


def in_places(
    function: Callable[..., Any], args: Args, kwargs: Mapping[str, Any], config: Collection[str]
) -> tuple[Args, dict[str, Any]]:
    """Return the same arguments with keywords moved to the places that the function has for them.

    There they are what `inputs` and `writes` are about. What has no place stays a keyword.
    """
    found, rest = list(args), dict(kwargs)
    places = [parameter for parameter in _parameters(function).values() if parameter.kind in _PLACED]
    placed = {place.name for place in places if place.kind in _NAMED}.intersection(rest)
    for parameter in places[len(args) :]:
        is_left_out = parameter.name not in placed
        if not placed or parameter.name in config or (is_left_out and parameter.default is parameter.empty):
            break
        if is_left_out and not any(later.name in placed for later in places[len(found) :]):
            break
        found.append(parameter.default if is_left_out else rest.pop(parameter.name))
    return tuple(found), rest


def _parameters(function: Callable[..., Any]) -> Mapping[str, inspect.Parameter]:
    """Return what a function takes, by name; nothing is known of some that are not written in Python."""
    try:
        return inspect.signature(function).parameters
    except (ValueError, TypeError):
        return {}
