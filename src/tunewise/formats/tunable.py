"""torch.cuda.tunable's results, a CSV file: validators, then the solution that won for every operator and shape."""

import csv
import io
import re
from collections.abc import Iterator, Mapping, Sequence
from math import inf
from typing import Any

from tunewise.decision import Problem, Timing
from tunewise.formats.findings import Finding, grouped, in_unit, problem_of, word
from tunewise.formats.torn import Content
from tunewise.formats.writing import Written

_MS = 1e-3
_VALIDATOR, _SOLUTION, _PARAMS, _BLAS = "Validator", "solution", "params", "blas_params"
_ARCH = "GCN_ARCH_NAME"  # the one validator that is a device
_LINE = re.compile(rb"Validator,[^,\n]+,[^\n]*|\w*TunableOp_?[^,\n]*,[^,\n]+,[^,\n]+")
_N = r"(\d{1,18})"
_SHAPE = re.compile(rf"([ntc]{{2}})_{_N}_{_N}_{_N}(?:_B_{_N})?(?:_ld_{_N}_{_N}_{_N})?", re.ASCII)
_SIZES, _BATCH, _LEADING = ("layout", "m", "n", "k"), "batch", ("lda", "ldb", "ldc")
_MAX_ROWS = 1_000_000


def is_results(content: Content) -> bool:
    """Return whether a file looks like tuning results: a validator or the result of a tunable operator first."""
    return _LINE.match(content.raw.lstrip()) is not None


def read(content: Content) -> list[Finding]:
    """Return the solution for every operator and shape, with its milliseconds where it has any.

    The operator is the decision, and validators are versions. A shape such as nt_64_32_16 becomes the features layout,
    m, n and k, with batch, lda, ldb and ldc where it has those; one that reads otherwise is the feature `params` as it
    stands.
    """
    rows = list(_rows(content))
    versions = {cells[1]: cells[2] for _, cells in rows if cells[0] == _VALIDATOR}
    found = [_finding(line, cells, versions) for line, cells in rows if cells[0] != _VALIDATOR]
    if not found:
        raise ValueError("it holds no solution")
    return found


def write(findings: Sequence[Finding]) -> list[Written]:
    """Return a file for every set of validators; a solution that was never timed has the time 0, as in theirs."""
    groups = grouped(findings, "versions", "device")
    return [_written(group, number if len(groups) > 1 else 0) for number, group in enumerate(groups, 1)]


def _rows(content: Content) -> Iterator[tuple[int, list[str]]]:
    try:
        text = content.raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(f"byte {error.start} is not text") from None
    reader = csv.reader(io.StringIO(text, newline=""))
    try:
        for cells in reader:
            if len(cells) == 0:
                continue
            if reader.line_num > _MAX_ROWS:
                raise ValueError(f"it has more than {_MAX_ROWS} lines")
            if len(cells) < 3 or (cells[0] == _VALIDATOR and len(cells) != 3) or not all(cells[:3]):
                raise ValueError(f"line {reader.line_num} is not operator,params,solution,milliseconds")
            yield reader.line_num, cells
    except csv.Error as error:
        raise ValueError(f"line {reader.line_num}: {error}") from None


def _finding(line: int, cells: list[str], versions: Mapping[str, str]) -> Finding:
    place = f"line {line}"
    operator, params, solution = (word(cell, place) for cell in cells[:3])
    extra = {_BLAS: cells[4:]} if len(cells) > 4 else {}
    outcome = _timing(cells[3], place) if len(cells) > 3 else None
    device = versions.get(_ARCH, "")
    return Finding(operator, _problem(params), {_SOLUTION: solution}, outcome, device, versions, extra=extra)


def _timing(cell: str, place: str) -> Timing | None:
    try:
        time_ms = float(cell)
    except ValueError:
        raise ValueError(f"{place}: {cell!r:.100} is not a number of milliseconds") from None
    if not 0 <= time_ms < inf:
        raise ValueError(f"{place}: {cell!r:.100} is not a time")
    return Timing((time_ms * _MS,)) if time_ms * _MS > 0 else None


def _problem(params: str) -> Problem:
    shape = _SHAPE.fullmatch(params)
    features: dict[str, Any] = {_PARAMS: params}
    if shape is not None:
        named = zip((*_SIZES, _BATCH, *_LEADING), shape.groups(), strict=True)
        told = {name: cell if name == _SIZES[0] else int(cell) for name, cell in named if cell is not None}
        features = told if _params(problem_of(told)) == params else features
    return problem_of(features)


def _params(problem: Problem) -> str:
    """Return a problem as the file writes it; raises ValueError for one that no such file can be about."""
    if set(problem) == {_PARAMS}:
        return str(problem[_PARAMS])
    parts = [("", _SIZES), ("B_", (_BATCH,)), ("ld_", _LEADING)]
    told = [(mark, names) for mark, names in parts if names == _SIZES or names[0] in problem]
    if set(problem) != {name for _, names in told for name in names}:
        raise ValueError(f"a tunable result is about {', '.join(_SIZES)} and the like, not about {problem}")
    return "_".join(mark + "_".join(str(problem[name]) for name in names) for mark, names in told)


def _written(group: Sequence[Finding], number: int) -> Written:
    stream = io.StringIO()
    lines = csv.writer(stream, lineterminator="\n")
    for name, value in group[0].versions.items():
        lines.writerow([_VALIDATOR, name, value])
    if group[0].device and _ARCH not in group[0].versions:
        lines.writerow([_VALIDATOR, _ARCH, group[0].device])
    for finding in group:
        time_ms = in_unit(finding.time_s, _MS) if finding.time_s is not None else 0
        cells = [finding.decision, _params(finding.problem), _solution(finding), repr(time_ms)]
        lines.writerow([*cells, *finding.extra.get(_BLAS, ())])
    return Written(f"tunableop_results{number or ''}.csv", stream.getvalue().encode())


def _solution(finding: Finding) -> str:
    if set(finding.config) != {_SOLUTION} or not isinstance(finding.config[_SOLUTION], str):
        raise ValueError(f"a tunable result is a {_SOLUTION}, not the config {dict(finding.config)}")
    return str(finding.config[_SOLUTION])
