"""torch-diode's shapesets, which name the sizes of real programs, and its solution files: configs for such sizes."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from tunewise.decision import Config, Problem
from tunewise.errors import InvalidFile
from tunewise.formats import diode
from tunewise.formats.findings import Finding, grouped, slug
from tunewise.formats.torn import MAX_OBJECTS, Content, load
from tunewise.formats.writing import Written, json_text

_SIZES = ("B", "M", "N", "K")
_NAMES = {"b": "B", **diode.SIZES, "dtype": "M_dtype"}


class _Shapes(msgspec.Struct, frozen=True):
    """The shapes of one op."""

    shapes: list[dict[str, Any]]


class _ShapeSet(msgspec.Struct, frozen=True):
    """The shapes of several ops."""

    operations: dict[str, _Shapes]


class _Solutions(msgspec.Struct, frozen=True):
    """Configs, each with the sizes it is for."""

    configs: list[dict[str, Any]]
    name: str = ""


@dataclass(frozen=True, slots=True)
class Solution:
    """A config that somebody found for some sizes; `sizes` holds m, n, k and, where it is told, b and dtype."""

    sizes: Problem
    config: Config


@dataclass(frozen=True, slots=True)
class Solutions:
    """What a solution file tells: its name and its configs, in its order."""

    name: str
    solutions: tuple[Solution, ...]


def read_shapeset(path: Path | str) -> list[tuple[str, Problem]]:
    """Return the ops and problems of a shapeset, JSON or msgpack, in its order; one that comes twice comes twice.

    Raises NotFound where there is no such file, and InvalidFile, with the place, where it is none.
    """
    content = load(Path(path))
    try:
        return parse(content)
    except ValueError as error:
        raise InvalidFile(f"{path} is no sound diode shapeset: {error}") from None


def read_solutions(path: Path | str) -> Solutions:
    """Return what a solution file tells; raises NotFound, and InvalidFile, with the place, where it is none."""
    content = load(Path(path))
    try:
        return _solutions(content)
    except ValueError as error:
        raise InvalidFile(f"{path} is no sound diode solution file: {error}") from None


def read_winners(content: Content) -> list[Finding]:
    """Return what a solution file says won, without a decision, which it does not tell; raises ValueError for none."""
    return [Finding("", one.sizes, one.config) for one in _solutions(content).solutions]


def write_winners(findings: Sequence[Finding]) -> list[Written]:
    """Return a solution file for each decision and device; raises ValueError for problems with further features."""
    files = []
    for group in grouped(findings, "decision", "device"):
        name = slug(group[0].decision, group[0].device)
        document = {"name": group[0].decision or "solution", "configs": [_raw(finding) for finding in group]}
        files.append(Written(f"{name}.json", json_text(document, indent=2)))
    return files


def _raw(finding: Finding) -> dict[str, Any]:
    problem, op = finding.problem, diode.op_of(finding.decision)
    sizes = {theirs: problem[ours] for ours, theirs in _NAMES.items() if ours in problem}
    if not {"m", "n", "k"} <= set(problem) <= set(_NAMES):
        raise ValueError(f"a solution is for m, n, k, b and a dtype, and the problem of {op} is {problem}")
    return {**sizes, **diode.raw_config(finding.config, problem, op)}


def _solutions(content: Content) -> Solutions:
    found = diode.decoded(content, _Solutions)
    solutions = tuple(_solution(one, f"config {place}") for place, one in enumerate(found.configs, 1))
    if not solutions:
        raise ValueError("it holds no config")
    return Solutions(found.name, solutions)


def is_shapeset(content: Content) -> bool:
    """Return whether a file begins like a shapeset."""
    return b"operations" in content.raw[:4096]


def parse(content: Content) -> list[tuple[str, Problem]]:
    """Return the ops and problems of a shapeset; raises ValueError, with the place, where it is none."""
    found = diode.decoded(content, _ShapeSet)
    if sum(len(of_op.shapes) for of_op in found.operations.values()) > MAX_OBJECTS:
        raise ValueError(f"more than {MAX_OBJECTS} shapes")
    told = [_shape(op, n, one) for op, of_op in found.operations.items() for n, one in enumerate(of_op.shapes, 1)]
    if not told:
        raise ValueError("it holds no shape")
    return told


def _shape(op: str, number: int, raw: dict[str, Any]) -> tuple[str, Problem]:
    try:
        return op, diode.problem_in(raw, op)
    except ValueError as error:
        raise ValueError(f"{op!r:.100}, shape {number}: {error}") from None


def _solution(raw: dict[str, Any], place: str) -> Solution:
    """Return one config and its sizes: dtypes are rarely told, and then the config is for all of them."""
    sizes = {name: value for name, value in raw.items() if name in _SIZES}
    dtype = raw.get("dtype", raw.get("M_dtype"))
    told = {**sizes, "M_dtype": dtype if isinstance(dtype, str) else "any"}
    try:
        problem = diode.problem_in(told, "")
    except ValueError as error:
        raise ValueError(f"{place}: {error}") from None
    config = {name: value for name, value in raw.items() if name not in (*_SIZES, "dtype", "M_dtype", "K_dtype")}
    known = dict(problem) if isinstance(dtype, str) else {name: problem[name] for name in problem if name != "dtype"}
    return Solution(Problem(known), diode.config_in(config, place))
