"""A space that is a list: the legal configs are exactly those of a recording, and one rule says so."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tunewise.decision import canonical
from tunewise.decision.params import Param, Scalar, boolean, named
from tunewise.decision.rules import Rule
from tunewise.errors import InvalidSpace

Places = tuple[int, ...]
Values = Param | Sequence[Scalar]


@dataclass(frozen=True)
class Listed(Rule):
    """The rule that a config is one of a list; `rows` are their places, in the space's order."""

    rows: tuple[Places, ...] = field(default=(), compare=False, repr=False)


def listed(
    configs: Sequence[Mapping[str, Any]], order: Mapping[str, Values] | None = None
) -> tuple[dict[str, Values], Listed]:
    """Return the parameters and the one rule of a space that holds exactly `configs`.

    A parameter's values are those `order` gives, else those seen: numbers by size, anything else as it came. Raises
    InvalidSpace where the configs do not all name the same parameters, or have a value that `order` does not.
    """
    if isinstance(configs, str | Mapping) or not isinstance(configs, Sequence) or not configs:
        raise InvalidSpace("a space of recorded configs needs a list with at least one config")
    if not isinstance(configs[0], Mapping):
        raise InvalidSpace(f"config {configs[0]!r} is not a mapping of names to values")
    names = tuple(configs[0])
    for which, config in enumerate(configs):
        if not isinstance(config, Mapping) or config.keys() != configs[0].keys():
            raise InvalidSpace(f"config {which} has not the parameters {', '.join(map(str, names))} of the first one")
    given = order or {}
    params = [named(n, given[n] if n in given else _seen(n, [c[n] for c in configs])) for n in names]
    rows = tuple(sorted({_places(params, config) for config in configs}))
    return {param.name: param for param in params}, _rule(params, rows)


def _rule(params: Sequence[Param], rows: tuple[Places, ...]) -> Listed:
    names, held = [param.name for param in params], frozenset(rows)
    code = canonical.digest([names, rows])

    def is_listed(config: Mapping[str, Any]) -> bool:
        return tuple([param.index(config[param.name]) for param in params]) in held

    text = f"one of {len(rows)} recorded configs"
    return Listed(text, f"it is not {text}", frozenset(names), is_listed, code, rows=rows)


def _seen(name: str, values: Sequence[Any]) -> Values:
    """Return the distinct values: a switch, numbers by size, or anything else in the order it came."""
    try:
        plain = [canonical.scalar(value) for value in values]
    except ValueError as error:
        raise InvalidSpace(f"a recorded value of {name} {error}; give the values of {name} in `order`") from None
    distinct = list({(type(value), value): value for value in plain}.values())
    if {type(value) for value in distinct} == {bool}:
        return boolean() if len(distinct) == 2 else distinct
    numbers = [value for value in distinct if isinstance(value, int | float) and not isinstance(value, bool)]
    return sorted(numbers) if len(numbers) == len(distinct) else distinct


def _places(params: Sequence[Param], config: Mapping[str, Any]) -> Places:
    places = []
    for param in params:
        place = param.index(config[param.name])
        if place is None:
            raise InvalidSpace(
                f"{param.name}={config[param.name]!r} is recorded, but not among the values given for it"
            )
        places.append(place)
    return tuple(places)
