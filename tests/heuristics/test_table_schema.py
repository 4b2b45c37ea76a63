"""The schema that ships and the reader agree: what one refuses, so does the other, but for what no schema can say."""

import json
import re
from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from tunewise.errors import InvalidFile
from tunewise.heuristics.table_reading import SCHEMA, parse

DOCUMENT = json.loads(SCHEMA.read_text())
KINDS: dict[str, Any] = {
    "object": dict,
    "array": list,
    "string": str,
    "boolean": bool,
    "null": type(None),
    "integer": int,
    "number": (int, float),
}


def fits(value: Any, schema: dict[str, Any]) -> bool:
    """Return whether a value is what a schema says, for the words of JSON Schema that ours uses."""
    if "$ref" in schema:
        return fits(value, DOCUMENT["$defs"][schema["$ref"].rpartition("/")[2]])
    if "anyOf" in schema:
        return any(fits(value, one) for one in schema["anyOf"])
    kinds = schema.get("type", list(KINDS))
    return any(is_kind(value, kind) for kind in ([kinds] if isinstance(kinds, str) else kinds)) and all(
        check(value, schema) for check in (_object, _array, _text, _number)
    )


def is_kind(value: Any, kind: str) -> bool:
    return isinstance(value, KINDS[kind]) and (kind == "boolean" or not isinstance(value, bool))


def _object(value: Any, schema: dict[str, Any]) -> bool:
    if not isinstance(value, dict):
        return True
    named, others = schema.get("properties", {}), schema.get("additionalProperties", True)
    rest = {name: item for name, item in value.items() if name not in named}
    return (
        set(schema.get("required", ())) <= set(value)
        and schema.get("minProperties", 0) <= len(value) <= schema.get("maxProperties", 10**9)
        and all(fits(name, schema.get("propertyNames", {})) for name in value)
        and all(fits(item, named[name]) for name, item in value.items() if name in named)
        and (all(fits(item, others) for item in rest.values()) if isinstance(others, dict) else others or not rest)
    )


def _array(value: Any, schema: dict[str, Any]) -> bool:
    if not isinstance(value, list):
        return True
    is_long = schema.get("minItems", 0) <= len(value) <= schema.get("maxItems", 10**9)
    return is_long and all(fits(item, schema.get("items", {})) for item in value)


def _text(value: Any, schema: dict[str, Any]) -> bool:
    return not isinstance(value, str) or schema.get("minLength", 0) <= len(value) <= schema.get("maxLength", 10**9)


def _number(value: Any, schema: dict[str, Any]) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return True
    return (
        value >= schema.get("minimum", -(10**99))
        and value <= schema.get("maximum", 10**99)
        and value > schema.get("exclusiveMinimum", -(10**99))
    )


NUMBERS = st.integers(-5, 200) | st.sampled_from([0.5, 64.0, 2**40])
WORDS = st.sampled_from(["", "m", "n", "float32", "a" * 1500, "é"])
SCALARS = NUMBERS | WORDS | st.booleans()
ODD = st.sampled_from([None, [], {}, [[]], {"a": {}}, "x", -1, 1.5, True, "y" * 3000])
RANGES = st.dictionaries(st.sampled_from(["min", "max", "bucket", "from"]), NUMBERS | ODD, max_size=2)
CONDITIONS = SCALARS | st.lists(SCALARS | ODD, max_size=3) | RANGES | ODD
WHEN = st.dictionaries(st.sampled_from(["m", "n", "dtype", "", "z" * 300]), CONDITIONS, max_size=3) | ODD
CONFIGS = st.dictionaries(st.sampled_from(["tile", "order"]), SCALARS | st.lists(SCALARS, max_size=2) | ODD, max_size=2)
RULES = st.fixed_dictionaries(
    {"configs": st.lists(CONFIGS | ODD, max_size=3) | ODD},
    optional={"when": WHEN, "time_s": NUMBERS | ODD, "versions": st.dictionaries(WORDS, WORDS | ODD) | ODD, "if": ODD},
)
TABLES = st.fixed_dictionaries(
    {"decision": WORDS | ODD, "rules": st.lists(RULES | ODD, max_size=3) | ODD},
    optional={
        "name": WORDS | ODD,
        "about": WORDS | ODD,
        "version": WORDS | ODD,
        "nearest": WORDS | ODD,
        "hardware": st.dictionaries(WORDS, SCALARS | ODD, max_size=2) | ODD,
        "$schema": WORDS,
        "odd": ODD,
    },
)
GOOD_RULE = st.fixed_dictionaries(
    {"configs": st.just([{"tile": 8}])},
    optional={"when": st.dictionaries(st.sampled_from(["m", "n"]), CONDITIONS, max_size=2)},
)
LIKELY = st.fixed_dictionaries({"decision": st.just("gemm"), "rules": st.lists(GOOD_RULE, min_size=1, max_size=2)})

# What a schema does not say: ends in order, a power of two, a number for the nearest, what 64 bits hold.
_BEYOND = re.compile(
    r"is more than max|a bucket is a power of two|every rule names a number|fit in 64 bits|not a finite"
)


def refused(raw: bytes) -> str | None:
    """Return why something is no table, or None if it is one."""
    try:
        parse(raw)
    except InvalidFile as error:
        return str(error)
    return None


@settings(max_examples=150, deadline=None)
@given(TABLES | LIKELY)
def test_the_schema_and_the_reader_take_the_same_tables(document: Any) -> None:
    said = refused(json.dumps(document).encode())
    if fits(document, DOCUMENT):
        assert said is None or _BEYOND.search(said), said
    else:
        assert said is not None


@settings(max_examples=100, deadline=None)
@given(st.binary(max_size=200) | st.text(max_size=200).map(str.encode) | TABLES.map(msgspec.json.encode))
def test_whatever_is_read_is_a_table_or_one_sentence(raw: bytes) -> None:
    said = refused(raw)
    assert said is None or len(said.splitlines()) == 1
