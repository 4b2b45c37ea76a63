"""Inductor's lookup table from what we know: memory, tables and models for a GPU that need not be here."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tunewise.decision import Config, Hardware, Problem, Subject, detect
from tunewise.decision.devices import known_device
from tunewise.deploy.inductor.gpu_problems import decision_for
from tunewise.deploy.inductor.gpu_ranking import ranked
from tunewise.errors import NotFound, TunewiseError
from tunewise.eventlog import logger
from tunewise.formats.inductortable import DECISION, entries_of, key_of
from tunewise.formats.operands import OPS, features_of, operands_of
from tunewise.formats.writing import json_text
from tunewise.models.whole import write_whole
from tunewise.session import context
from tunewise.session.ladder import in_force

_log = logger(__name__)
Lines = list[dict[str, Any]]
Problems = Mapping[str, Iterable[Mapping[str, Any]]]


@dataclass(frozen=True)
class LookupTable:
    """A table for `torch._inductor.config.lookup_table.table`, and the problems that are not in it with the reason."""

    device: str
    table: dict[str, Lines]
    left_out: list[tuple[str, Problem, str]] = field(default_factory=list)

    def save(self, path: Path | str) -> Path:
        """Write the table as JSON, whole or not at all, and return where it lies."""
        place = Path(path)
        write_whole(place, json_text(self.table, indent=1))
        return place


def lookup_table(
    problems: Problems | None = None,
    *,
    device: str | None = None,
    top_k: int = 1,
    is_dynamic: bool = False,
    is_hashed: bool = True,
) -> LookupTable:
    """Return a lookup table for a GPU: for each product the best `top_k` configs, and ATen.

    `problems` maps ops (mm, addmm, bmm) to features; they are answered by memory, tables and models as in a running
    program. Without them it is every problem that was tuned on that device, with any version, and what won there.
    `device` is a name such as `H100`, by default the GPU that is here. Say `is_dynamic` for a program whose sizes may
    change: a table is looked up by hints, and nothing may be taken for even then. With `is_hashed`, lines of Triton
    templates name the source they were made for, where torch is installed: another source leaves them out.
    """
    hardware = _hardware(device)
    asked = _remembered(hardware) if problems is None else _answered(hardware, problems, top_k)
    found = LookupTable(hardware.name, {})
    hashes = _hashes() if is_hashed else {}
    for op, problem, configs in asked:
        try:
            if isinstance(configs, str):
                raise ValueError(configs)
            key = key_of(op, operands_of(op, problem), hardware.name)
            lines = entries_of(op, configs, {**problem, "dynamic": 1} if is_dynamic else problem)
        except ValueError as error:
            found.left_out.append((op, problem, str(error)))
        else:
            found.table[key] = [_hashed(line, hashes) for line in lines]
    return found


Asked = Iterator[tuple[str, Problem, Sequence[Config] | str]]


def _answered(hardware: Hardware, problems: Problems, top_k: int) -> Asked:
    """Yield what the ladder says of problems; why not, where it says nothing."""
    for op, all_features in problems.items():
        if op not in OPS:
            raise NotFound(f"there is no op {op!r} in a lookup table of ours; there are {', '.join(OPS)}")
        decision = decision_for(op, hardware)
        for features in all_features:
            try:  # a layout that is not told is that of a plain tensor
                told = features_of(op, operands_of(op, features), is_dynamic=bool(features.get("dynamic", 0)))
                problem = decision.problem({**features, **told})
            except ValueError as error:
                yield op, decision.problem(features), str(error)
                continue
            answer = decision.decide(problem, mode="use")
            is_known = answer.rung != "default"
            yield op, problem, ranked(decision, problem, answer, top_k) if is_known else "nothing is known of it"


def _remembered(hardware: Hardware) -> Asked:
    """Yield what won on a device, whatever the versions were; of several verdicts on one problem, the latest."""
    for op in OPS:
        decision, store = decision_for(op, hardware), context.current_store()
        won: dict[Problem, Subject] = {}
        for subject in store.subjects(decision.name):
            if subject.environment.must.get("hardware.name") == hardware.name and store.verdicts(subject):
                before = won.get(subject.problem)
                if before is None or _latest(before) <= _latest(subject):
                    won[subject.problem] = subject
        for problem, subject in sorted(won.items(), key=lambda pair: bool(pair[0].get("dynamic", 0))):
            verdict = in_force(store.verdicts(subject), decision)
            yield op, problem, "no verdict on it holds" if verdict is None else [verdict.winner]


def _latest(subject: Subject) -> float:
    return max(verdict.at for verdict in context.current_store().verdicts(subject))


def _hardware(device: str | None) -> Hardware:
    if device is None:
        return detect("cuda")
    known = known_device(device) or _measured(device)
    if known is None:
        raise NotFound(f"the GPU {device!r} is neither in our table of devices nor in the store")
    return known


def _measured(device: str) -> Hardware | None:
    """Return a GPU by its full name where the store has measurements of it."""
    store = context.current_store()
    for subject in (subject for op in OPS for subject in store.subjects(f"{DECISION}{op}")):
        told = {name.removeprefix("hardware."): value for name, value in subject.environment.must.items()}
        if told.get("name") == device:
            kind, capability = (str(told.get(fact, "")) for fact in ("kind", "capability"))
            return Hardware(kind, device, capability, int(told.get("cores", 0)), 0)
    return None


def _hashes() -> dict[str, str]:
    """Return the hash of each Triton template's source, by its name; none where torch is not installed."""
    from tunewise.deploy.inductor.gpu_lists import templates_of

    try:
        templates = [templates_of("mm")[1], templates_of("bmm")[1]]
    except TunewiseError as error:
        _log.info("the lookup table names no sources: %s", error)
        return {}
    return {one.uid: str(one.src_hash) for one in templates if getattr(one, "src_hash", None)}


def _hashed(line: dict[str, Any], hashes: Mapping[str, str]) -> dict[str, Any]:
    known = hashes.get(line["template_id"])
    return {**line, "template_hash": known} if known else line
