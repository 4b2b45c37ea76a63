"""Helion's configs as ours: a list becomes a parameter for each of its items, what is nested deeper its JSON."""

import ast
import re
from collections.abc import Mapping
from keyword import iskeyword
from typing import Any

from tunewise.decision import Config, Value, canonical
from tunewise.formats.findings import config_of

_ITEM = re.compile(r"(.+)_(0|[1-9]\d{0,3})", re.DOTALL)
_MAX_TEXT = 100_000
_EMPTY = "[]"


def flat(raw: object, place: str) -> dict[str, Value]:
    """Return a Helion config with every list taken apart: `block_sizes=[16, 64]` is block_sizes_0 and block_sizes_1.

    An item that is a list itself becomes its JSON, as a word. Raises ValueError, with the place, for what is none.
    """
    if not isinstance(raw, Mapping):
        raise ValueError(f"{place} is not a config")
    found: dict[str, Any] = {}
    for name, value in raw.items():
        items = {f"{name}_{number}": item for number, item in enumerate(value)} if _is_full(value) else {name: value}
        for key, item in items.items():
            if key in found:
                raise ValueError(f"{place} has {key!r:.100} twice")
            found[key] = canonical.encode(item) if isinstance(item, list | tuple | dict) else item
    return config_of(found, place)


def whole(config: Config) -> dict[str, Any]:
    """Return a config with its lists put together again, as Helion takes it."""
    lists: dict[str, dict[int, Any]] = {}
    for name, value in config.items():
        item = _ITEM.fullmatch(name)
        if item is not None:
            lists.setdefault(item[1], {})[int(item[2])] = _decoded(value)
    told = {base: [items[place] for place in range(len(items))] for base, items in lists.items() if _is_list(items)}
    told = {base: items for base, items in told.items() if base not in config and base not in lists_in(told, base)}
    parts = {f"{base}_{place}" for base, items in told.items() for place in range(len(items))}
    rest = {name: _object(value) for name, value in config.items() if name not in parts}
    return {**rest, **told}


def lists_in(told: Mapping[str, Any], base: str) -> set[str]:
    """Return the names of other lists' items: a list that is an item of another one stays a parameter."""
    return {f"{other}_{place}" for other, items in told.items() if other != base for place in range(len(items))}


def from_text(text: str, place: str) -> dict[str, Value]:
    """Return the config that Helion prints as `Config(block_sizes=[16, 64], ...)`; nothing of it is run."""
    if len(text) > _MAX_TEXT:
        raise ValueError(f"{place}: a config of {len(text)} characters")
    try:
        call = ast.parse(text.strip(), mode="eval").body
        is_call = isinstance(call, ast.Call) and not call.args and ast.unparse(call.func) in ("Config", "helion.Config")
        if not isinstance(call, ast.Call) or not is_call:
            raise ValueError("it is no Config(...)")
        named = {keyword.arg: ast.literal_eval(keyword.value) for keyword in call.keywords}
    except (SyntaxError, ValueError, TypeError, RecursionError, MemoryError) as error:
        raise ValueError(f"{place}: {text!r:.100} is not a config as Helion prints it: {error!s:.100}") from None
    return flat(named, place)


def as_text(config: Config) -> str:
    """Return a config as Helion prints it; raises ValueError for a name that no Python argument can have."""
    told = sorted(whole(config).items())
    strange = [name for name, _ in told if not name.isidentifier() or iskeyword(name)]
    if strange:
        raise ValueError(f"a Helion config has no parameter {strange[0]!r:.100}")
    return f"Config({', '.join(f'{name}={value!r}' for name, value in told)})"


def _is_full(value: Any) -> bool:
    return isinstance(value, list | tuple) and len(value) > 0


def _is_list(items: Mapping[int, Any]) -> bool:
    return sorted(items) == list(range(len(items)))


def _decoded(value: Value) -> Any:
    """Return an item of a list that is the JSON of a list or an object as that, and any other as it is."""
    if isinstance(value, tuple):
        return list(value)
    if not isinstance(value, str) or value[:1] not in ("[", "{"):
        return value
    try:
        found = canonical.decode(value)
    except ValueError:
        return value
    return found if canonical.encode(found) == value else value


def _object(value: Value) -> Any:
    found = _decoded(value)
    return found if isinstance(found, dict) or value == _EMPTY or isinstance(value, tuple) else value
