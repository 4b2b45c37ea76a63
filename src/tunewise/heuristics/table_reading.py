"""Tables as JSON and back: read with bounds, and refused with the rule and the feature that are malformed."""

from collections.abc import Mapping
from math import inf
from pathlib import Path
from typing import Any

import msgspec

from tunewise.decision import Config, Scalar, Value, canonical
from tunewise.decision.problem import MAX_FEATURES
from tunewise.decision.regular import open_regular
from tunewise.errors import InvalidFile, NotFound
from tunewise.heuristics.table import Rule, Table
from tunewise.heuristics.table_conditions import Condition, OneOf, condition

MAX_BYTES = 8 << 20
MAX_RULES = 20_000
MAX_CONFIGS = 64  # of a rule
MAX_TEXT = 2000
SCHEMA = Path(__file__).with_name("table.schema.json")

_TEXTS = ("name", "about", "version")
_FIELDS = ("$schema", "decision", "rules", "nearest", "hardware", *_TEXTS)
_RULE = ("when", "configs", "time_s", "versions")


class Outline(msgspec.Struct, frozen=True):
    """What tells a table from a model: its rules."""

    rules: msgspec.Raw = msgspec.Raw()


_DECODER = msgspec.json.Decoder(Outline)


def is_table(raw: bytes) -> bool:
    """Return whether some JSON is a table: an object with `rules`."""
    try:
        return bytes(_DECODER.decode(raw).rules) != b""
    except (msgspec.DecodeError, RecursionError):
        return False


def load_table(path: Path | str) -> Table:
    """Return the table of a file; raises NotFound, or InvalidFile with the rule and the feature that are malformed."""
    try:
        with open_regular(path) as file:
            raw = file.read(MAX_BYTES + 1)
    except (OSError, ValueError) as error:  # a ValueError is a name with a zero byte in it
        raise NotFound(f"{path} cannot be read: {getattr(error, 'strerror', None) or error}") from None
    return parse(raw, str(path))


def parse(raw: bytes | str, where: str = "the table") -> Table:
    """Return the table of some JSON; raises InvalidFile, with the place, for what is malformed or far too much."""
    try:
        found = _object("it", canonical.decode(raw, MAX_BYTES))
        _known("it", found, _FIELDS)
        decision = _text("decision", found.get("decision"), least=1)
        nearest = _text("nearest", found["nearest"], least=1) if found.get("nearest") is not None else None
        return Table(
            decision,
            tuple(_rule(number, one, nearest) for number, one in enumerate(_rules(found.get("rules")), 1)),
            nearest,
            _scalars("hardware", found.get("hardware", {})),
            **{name: _text(name, found.get(name, "")) for name in _TEXTS},
        )
    except ValueError as error:
        raise InvalidFile(f"{where} is no sound table: {error}") from None


def dump(table: Table) -> bytes:
    """Return a table as JSON that reads back equal, one rule a line."""
    head: dict[str, Any] = {"decision": table.decision}
    head |= {name: getattr(table, name) for name in _TEXTS if getattr(table, name)}
    head |= {"hardware": dict(table.hardware)} if table.hardware else {}
    head |= {"nearest": table.nearest} if table.nearest is not None else {}
    lines = [f"  {canonical.encode(name)}: {_spaced(value)}," for name, value in head.items()]
    rules = ",\n".join(f"    {_spaced(_plain(rule))}" for rule in table.rules)
    return "\n".join(["{", *lines, '  "rules": [', rules, "  ]", "}", ""]).encode()


def _plain(rule: Rule) -> dict[str, Any]:
    plain: dict[str, Any] = {"when": {name: one.plain for name, one in rule.when.items()}}
    plain["configs"] = [dict(config) for config in rule.configs]
    plain |= {"time_s": rule.time_s} if rule.time_s is not None else {}
    return plain | ({"versions": dict(rule.versions)} if rule.versions else {})


def _spaced(value: Any) -> str:
    canonical.encode(value)  # refuses what JSON cannot say
    return msgspec.json.format(msgspec.json.encode(value), indent=0).decode()


def _rules(raw: object) -> list[Any]:
    if not isinstance(raw, list) or not raw:
        raise ValueError('`rules` is not a list of rules such as [{"when": {"m": 64}, "configs": [{"tile": 8}]}]')
    if len(raw) > MAX_RULES:
        raise ValueError(f"{len(raw)} rules are more than the {MAX_RULES} a table may have")
    return raw


def _rule(number: int, raw: object, nearest: str | None) -> Rule:
    place = f"rule {number}"
    found = _object(place, raw)
    _known(place, found, _RULE)
    when = {name: _condition(f"{place}, {name}", name, one) for name, one in _when(place, found).items()}
    if nearest is not None and not _is_number(when.get(nearest)):
        raise ValueError(
            f"{place}, {nearest}: in a table that answers the nearest {nearest}, every rule names a number"
        )
    configs = found.get("configs")
    if not isinstance(configs, list) or not 0 < len(configs) <= MAX_CONFIGS:
        raise ValueError(f"{place}: `configs` is not a list of 1 to {MAX_CONFIGS} configs, best first")
    listed = tuple(_config(f"{place}, config {place_in}", one) for place_in, one in enumerate(configs, 1))
    return Rule(when, listed, _time_s(place, found.get("time_s")), _versions(place, found.get("versions", {})))


def _when(place: str, found: Mapping[str, Any]) -> Mapping[str, Any]:
    when = _object(f"{place}, when", found.get("when", {}))
    if len(when) > MAX_FEATURES:
        raise ValueError(f"{place}: {len(when)} conditions are more than the {MAX_FEATURES} features of any problem")
    return when


def _condition(place: str, name: str, raw: object) -> Condition:
    try:
        return condition(name, raw)
    except ValueError as error:
        raise ValueError(f"{place}: {error}") from None


def _is_number(one: Condition | None) -> bool:
    return isinstance(one, OneOf) and isinstance(one.exact, int | float)


def _config(place: str, raw: object) -> Config:
    config = _object(place, raw)
    if not 0 < len(config) <= MAX_FEATURES:
        raise ValueError(f"{place}: a config has 1 to {MAX_FEATURES} parameters, not {len(config)}")
    return {name: _value(f"{place}, {name}", value) for name, value in config.items()}


def _value(place: str, raw: object) -> Value:
    try:
        return tuple(canonical.scalar(one) for one in raw) if isinstance(raw, list) else canonical.scalar(raw)
    except ValueError as error:
        raise ValueError(f"{place}: a value {error}") from None


def _scalars(place: str, raw: object) -> dict[str, Scalar]:
    found = _object(place, raw)
    for name, value in found.items():
        if isinstance(value, list | dict) or value is None:
            raise ValueError(f"{place}, {name}: {value!r:.100} is not a number or a word")
    return {name: canonical.scalar(value) for name, value in found.items()}


def _time_s(place: str, raw: object) -> float | None:
    if raw is None:
        return None
    if isinstance(raw, bool) or not isinstance(raw, int | float) or not 0 < raw < inf:
        raise ValueError(f"{place}: time_s={raw!r:.100} is not a positive number of seconds")
    return float(raw)


def _versions(place: str, raw: object) -> dict[str, str]:
    found = _object(f"{place}, versions", raw)
    return {name: _text(f"{place}, versions, {name}", value) for name, value in found.items()}


def _object(place: str, raw: object) -> dict[str, Any]:
    if not isinstance(raw, dict):
        raise ValueError(f"{place} is {_kind(raw)}, not an object")
    return raw


def _known(place: str, found: Mapping[str, Any], fields: tuple[str, ...]) -> None:
    strange = [name for name in found if name not in fields]
    if strange:
        raise ValueError(f"{place} has a field {strange[0]!r:.100}; there are {', '.join(fields)}")


def _text(place: str, raw: object, least: int = 0) -> str:
    if not isinstance(raw, str) or not least <= len(raw) <= MAX_TEXT:
        raise ValueError(f"`{place}` is {_kind(raw)}, not a text of {least} to {MAX_TEXT} characters")
    return raw


def _kind(raw: object) -> str:
    if isinstance(raw, str):
        return f"a text of {len(raw)} characters"
    kinds = {dict: "an object", list: "a list", bool: "a switch", type(None): "missing"}
    return kinds.get(type(raw), "a number")
