"""What a Helion log is about: the kernel, its arguments and the device, which Helion writes beside it, a line a run."""

import ast
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from tunewise.decision import Problem, canonical
from tunewise.errors import TunewiseError
from tunewise.formats.findings import Finding, problem_of
from tunewise.formats.torn import load

SUFFIX = ".meta.jsonl"
PREFIX = "helion."  # what the decisions of Helion's kernels are called by
_LOGS = (".gz", ".csv", ".jsonl", ".trace")
_MAX_BYTES = 64 << 20
_MAX_TEXT = 100_000


@dataclass(frozen=True, slots=True)
class Run:
    """What one run is about, as far as anybody tells."""

    decision: str = ""
    problem: Problem = field(default_factory=lambda: Problem({}))
    device: str = ""

    @property
    def id(self) -> str:
        """A name for it that is equal for equal runs."""
        return canonical.digest([self.decision, dict(self.problem), self.device])[:32]


def beside(log: Path) -> Path:
    """Return where the runs of a log are told."""
    name = log.name
    for suffix in _LOGS:
        name = name.removesuffix(suffix)
    return log.with_name(name + SUFFIX)


def runs_of(log: Path) -> dict[str, Run]:
    """Return what is told beside a log, by the id of the run; nothing where there is no such file, or no sound one."""
    try:
        raw = load(beside(log), _MAX_BYTES).raw
        told = [msgspec.json.decode(line, type=dict[str, Any]) for line in raw.splitlines() if line.strip()]
        return {str(one.get("run_id")): _run(one) for one in told}
    except (TunewiseError, ValueError, RecursionError):  # the log stands without it
        return {}


def run_of(finding: Finding) -> Run:
    """Return the run that a finding belongs to."""
    return Run(finding.decision, finding.problem, finding.device)


def told_of(findings: Sequence[Finding]) -> bytes:
    """Return the runs of some findings as Helion tells them; empty where nothing is known of any."""
    runs = {run.id: run for run in map(run_of, findings) if run != Run()}
    lines = [json.dumps(_raw(run)) for run in runs.values()]
    return "".join(f"{line}\n" for line in lines).encode()


def _raw(run: Run) -> dict[str, Any]:
    name = run.decision.removeprefix(PREFIX)
    return {
        "run_id": run.id,
        "kernel_name": name,
        "hardware": run.device,
        "decision": run.decision,
        "problem": dict(run.problem),
    }


def _run(told: Mapping[str, Any]) -> Run:
    kernel, device = told.get("kernel_name"), told.get("hardware")
    decision = told.get("decision", PREFIX + kernel if isinstance(kernel, str) and kernel else "")
    problem = told.get("problem")
    features = problem if isinstance(problem, dict) else _arguments(told)
    return Run(str(decision), problem_of(features), device if isinstance(device, str) else "")


def _arguments(told: Mapping[str, Any]) -> dict[str, Any]:
    """Return the features of tensors, by the names Helion's own ahead-of-time tuning gives them."""
    shapes, dtypes = _literal(told.get("input_shapes")), _literal(told.get("dtypes"))
    features: dict[str, Any] = {}
    for place, shape in enumerate(shapes if all(isinstance(shape, list | tuple) for shape in shapes) else ()):
        features |= {f"arg{place}_dim{axis}": size for axis, size in enumerate(shape) if type(size) is int}
    return features | {f"arg{place}_dtype": str(kind).removeprefix("torch.") for place, kind in enumerate(dtypes)}


def _literal(text: object) -> Sequence[Any]:
    if not isinstance(text, str) or len(text) > _MAX_TEXT:
        return ()
    try:
        found = ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return ()
    return found if isinstance(found, list | tuple) else ()
