"""Plans: what a fleet is to measure, as plain values that travel between machines as JSON."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, get_args

import msgspec

from tunewise.decision import canonical
from tunewise.errors import InvalidFile

PlanKind = Literal["tune", "collect", "verify"]
KINDS: tuple[PlanKind, ...] = get_args(PlanKind)
BUDGETS: dict[PlanKind, int] = {"tune": 100, "collect": 1000, "verify": 10}  # where the plan says nothing
MAX_PROBLEMS = 100_000
_SLICES, _SHORTEST = 256, 16  # of one table: enough for many devices, and few enough to look each up in the store


class Work(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A decision, or a recording that stands for one, and the problems it is asked."""

    target: str = ""
    problems: tuple[dict[str, Any], ...] = ()
    replay: str = ""  # a file of recorded trials that is replayed instead of a target
    pause_s: float = 0.0  # what an evaluation of a replay takes
    size: int = 0  # configs of a table to collect


class FleetPlan(msgspec.Struct, frozen=True, forbid_unknown_fields=True, dict=True):
    """What to do, for which problems, at which cost; `directory` is where its targets are looked for."""

    name: str
    kind: PlanKind
    budget: int
    work: tuple[Work, ...]
    directory: str = ""
    devices: int = 1  # of a node without GPUs
    seed: int = 0

    @cached_property
    def id(self) -> str:
        """What tells this plan from others: equal for equal content, whatever its file is called."""
        said = msgspec.to_builtins(self)
        return canonical.digest({key: value for key, value in said.items() if key not in ("name", "devices")})[:16]


@dataclass(frozen=True, slots=True)
class Unit:
    """What one device does at a time: tune or verify a problem, measure a slice of its table, or conclude it."""

    id: str
    kind: Literal["tune", "verify", "slice", "conclude"]
    work: int
    problem: int
    start: int = 0
    stop: int = 0


def written(plan: FleetPlan) -> str:
    """Return a plan as JSON."""
    return msgspec.json.encode(plan).decode()


def read(text: str) -> FleetPlan:
    """Return the plan of a JSON text that `written` made; raises InvalidFile for anything else."""
    try:
        return msgspec.json.decode(text, type=FleetPlan)
    except msgspec.MsgspecError as error:
        raise InvalidFile(f"this is no plan of a fleet: {error}") from None


def unit_of(said: Mapping[str, Any]) -> Unit:
    """Return the unit that a message tells; raises InvalidFile for anything else."""
    try:
        return msgspec.convert(said, Unit)
    except msgspec.ValidationError as error:
        raise InvalidFile(f"this is no unit of a plan: {error}") from None


def units(plan: FleetPlan) -> list[Unit]:
    """Return what is to be done on each kind of hardware, in order.

    A table that is collected comes as slices, so that it spreads over all devices of a kind, and a unit that
    concludes it when they are done.
    """
    found: list[Unit] = []
    for place, work in enumerate(plan.work):
        for number in range(len(work.problems)):
            if plan.kind == "collect":
                found += _table(place, number, work.size)
            else:
                found.append(Unit(f"{place}.{number}", plan.kind, place, number))
    return found


def title(plan: FleetPlan, unit: Unit) -> str:
    """Return a unit as people name it."""
    work = plan.work[unit.work]
    name = work.target.rpartition("/")[2] or work.replay.rpartition("/")[2]
    problem = " ".join(f"{key}={value}" for key, value in work.problems[unit.problem].items())
    part = f", configs {unit.start + 1} to {unit.stop}" if unit.kind == "slice" else ""
    return f"{name} {problem}".strip() + part + (", conclusion" if unit.kind == "conclude" else "")


def _table(work: int, problem: int, size: int) -> list[Unit]:
    step = max(_SHORTEST, -(-size // _SLICES))
    name = f"{work}.{problem}"
    slices = [
        Unit(f"{name}/{start}-{min(start + step, size)}", "slice", work, problem, start, min(start + step, size))
        for start in range(0, size, step)
    ]
    return [*slices, Unit(f"{name}/end", "conclude", work, problem)]
