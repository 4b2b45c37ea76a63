"""Helion's `.best_config` files: the config that won for one kernel, its arguments and a device."""

import ast
import json
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from tunewise.decision import Feature, Problem, canonical
from tunewise.formats.findings import Finding, problem_of, slug, versions_of, word
from tunewise.formats.helionconfig import flat, whole
from tunewise.formats.torn import Content, decode
from tunewise.formats.writing import Written, json_text

SUFFIX = ".best_config"
_KEY, _HARDWARE, _TYPE = "specialization_key", "hardware", "LooseAutotuneCacheKey"
_MAX_KEY = 100_000


class _Key(msgspec.Struct, frozen=True):
    """What a config was tuned for."""

    fields: dict[str, Any]
    type: str = _TYPE


class _Best(msgspec.Struct, frozen=True):
    """The fields of a file."""

    config: str
    key: _Key
    flat_config: Any = None


def read(content: Content) -> list[Finding]:
    """Return the one config of a file; everything else its key tells, beside the device, counts as a version.

    The kernel's name is not in the file: the finding has no decision yet. Where the key tells the arguments, they are
    features such as arg0_dim1 and arg0_dtype.
    """
    found = decode(content, _Best)
    try:
        config = canonical.decode(found.config)
    except ValueError as error:
        raise ValueError(f"config: {error}") from None
    told = versions_of(found.key.fields, "key, fields")
    device = told.pop(_HARDWARE, "")
    problem = _problem(told.get(_KEY, ""))
    if canonical.encode(dict(problem)) == told.get(_KEY):
        told.pop(_KEY)  # written by us, from features alone
    extra = {"flat_config": found.flat_config, "type": found.key.type, "stem": content.path.name.removesuffix(SUFFIX)}
    return [Finding("", problem, flat(config, "config"), None, device, told, extra=extra)]


def write(findings: Sequence[Finding]) -> list[Written]:
    """Return a file for every finding; only those that come from such a file have the name Helion looks for."""
    return [_written(finding, number) for number, finding in enumerate(findings, 1)]


def _written(finding: Finding, number: int) -> Written:
    fields = {_KEY: canonical.encode(dict(finding.problem)), **finding.versions}
    fields |= {_HARDWARE: finding.device} if finding.device else {}
    document: dict[str, Any] = {
        "config": json.dumps(whole(finding.config), indent=2),
        "key": {"type": finding.extra.get("type", _TYPE), "fields": fields},
    }
    kept = finding.extra.get("flat_config")
    document |= {"flat_config": kept} if kept is not None else {}
    stem = finding.extra.get("stem") or f"{finding.decision}-{number}"
    return Written(f"{slug(stem)}{SUFFIX}", json_text(document, indent=2))


def _problem(key: str) -> Problem:
    """Return what a key tells of the arguments, by the names Helion's own ahead-of-time tuning gives them."""
    if not key:
        return problem_of({})
    if key.startswith("{"):
        return _features(key)
    try:
        if len(key) > _MAX_KEY:
            raise ValueError("it is too long")
        told = ast.parse(_without_frozensets(key), mode="eval").body
        args = told.elts if isinstance(told, ast.Tuple) else []
        features = {name: value for place, arg in enumerate(args) for name, value in _argument(f"arg{place}", arg)}
    except (SyntaxError, ValueError, TypeError, RecursionError, MemoryError):
        features = {}
    return problem_of(features or {_KEY: word(key, _KEY) if len(key) <= 1000 else f"sha256:{canonical.digest(key)}"})


def _features(key: str) -> Problem:
    try:
        found = canonical.decode(key)
    except ValueError as error:
        raise ValueError(f"key, {_KEY}: {error}") from None
    return problem_of(found if isinstance(found, Mapping) else {})


def _without_frozensets(key: str) -> str:
    return key.replace("frozenset()", "()")


def _argument(name: str, arg: ast.expr) -> list[tuple[str, Feature]]:
    """Return the features of one argument: of a tensor its type, sizes and layout; of a number itself."""
    if isinstance(arg, ast.Tuple) and len(arg.elts) >= 3 and isinstance(arg.elts[1], ast.Call) and arg.elts[1].args:
        sizes = [int(size) for size in ast.literal_eval(arg.elts[1].args[0])]
        strides = [int(stride) for stride in ast.literal_eval(arg.elts[2])]
        told: list[tuple[str, Feature]] = [(f"{name}_dim{axis}", size) for axis, size in enumerate(sizes)]
        told += [(f"{name}_dtype", ast.unparse(arg.elts[0]).removeprefix("torch."))]
        return [*told, (f"{name}_contiguous", int(_is_contiguous(sizes, strides)))]
    return []


def _is_contiguous(sizes: Sequence[int], strides: Sequence[int]) -> bool:
    step = 1
    for size, stride in zip(reversed(sizes), reversed(strides), strict=True):
        if size != 1 and stride != step:
            return False
        step *= size
    return True
