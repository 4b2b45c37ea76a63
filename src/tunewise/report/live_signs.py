"""Signs of life as rows of a page: whatever a sign's body holds, what comes out is short, finite and of one type."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import isfinite
from typing import Any, get_args

from tunewise.decision import Rung
from tunewise.report.markup import short
from tunewise.store import Sign

STALE_S = 15.0  # who says that it works and was not heard of for so long is gone or stuck
GONE_S = 3_600.0  # and is not waited for any more
RUNGS: tuple[Rung, ...] = get_args(Rung)
_TEXT = 160  # characters of a name
_FEATURES = 12  # of a problem
_LARGEST = 10**15
_POINTS = 100  # of a curve
_DECISIONS = 1_000  # of one process
_STATES = ("running", "won", "tied", "failed", "stopped")
NODE_STATES = ("busy", "idle", "gone")
_PLAN_STATES = ("running", "stopped", "done")


@dataclass(frozen=True, slots=True)
class Run:
    """A tuning run, as it last told of itself."""

    key: str
    decision: str
    problem: str
    hardware: str
    process: str
    state: str  # running, won, tied, failed or stopped
    is_stale: bool  # says that it runs, and was not heard of lately
    began: float
    at: float
    budget: int | None
    done: int
    failed: int
    best_s: float | None
    default_s: float | None
    gain: float | None
    source: str  # who proposed the winner
    curve: tuple[tuple[int, float], ...]  # evaluations and the best time after them, where it improved


@dataclass(frozen=True, slots=True)
class Ladder:
    """How often each rung answered first look-ups of a decision; `default` are the misses."""

    decision: str
    rungs: Mapping[str, int] = field(default_factory=dict)

    @property
    def lookups(self) -> int:
        """All look-ups."""
        return sum(self.rungs.values())

    @property
    def misses(self) -> int:
        """Look-ups that nothing but the default answered."""
        return self.rungs.get("default", 0)

    @property
    def hits(self) -> int:
        """Look-ups that a rung above the default answered."""
        return self.lookups - self.misses


@dataclass(frozen=True, slots=True)
class Plan:
    """A fleet's plan, as its driver last told of it."""

    key: str
    name: str
    kind: str
    state: str  # running, stopped or done
    is_stale: bool
    units: int
    done: int
    failed: int
    running: int
    nodes: int
    evaluations: int
    began: float
    at: float


@dataclass(frozen=True, slots=True)
class Node:
    """A node of a fleet, as it last told of itself."""

    key: str
    name: str
    plan: str
    device: str
    state: str  # busy, idle or gone
    is_stale: bool
    unit: str  # what it is at
    done: int
    failed: int
    evaluations: int
    since: float
    at: float


def whole(value: Any) -> int:
    """Return a count as it may be shown: at least 0, and 0 for what is none."""
    return int(min(max(number(value) or 0.0, 0.0), _LARGEST))


def text(value: Any) -> str:
    """Return a text as it may be shown, cut off where it is too long; empty for what is none."""
    return short(value, _TEXT) if isinstance(value, str) else ""


def run_of(sign: Sign, now: float) -> Run:
    """Return the run that a sign tells of."""
    body, state = sign.body, state_of(sign)
    return Run(
        key=text(sign.key),
        decision=text(body.get("decision")) or "?",
        problem=_problem(body.get("problem")),
        hardware=text(body.get("hardware")),
        process=text(body.get("process")),
        state=state,
        is_stale=state == "running" and now - sign.at > STALE_S,
        began=number(body.get("began")) or sign.at,
        at=sign.at,
        budget=whole(body.get("budget")) or None,
        done=whole(body.get("done")),
        failed=whole(body.get("failed")),
        best_s=_positive(body.get("best_s")),
        default_s=_positive(body.get("default_s")),
        gain=_positive(body.get("gain")),
        source=text(body.get("source")),
        curve=tuple(_curve(body.get("curve"))),
    )


def plan_of(sign: Sign, now: float) -> Plan:
    """Return the plan that a sign tells of."""
    body, state = sign.body, state_of(sign, _PLAN_STATES)
    counts = {name: whole(body.get(name)) for name in ("units", "done", "failed", "running", "nodes", "evaluations")}
    return Plan(
        key=text(sign.key),
        name=text(body.get("name")) or text(sign.key),
        kind=text(body.get("kind")),
        state=state,
        is_stale=state == "running" and now - sign.at > STALE_S,
        began=number(body.get("began")) or sign.at,
        at=sign.at,
        **counts,
    )


def node_of(sign: Sign, now: float) -> Node:
    """Return the node that a sign tells of."""
    body, state, is_silent = sign.body, state_of(sign, NODE_STATES), now - sign.at > STALE_S
    if state == "idle" and is_silent:
        state = "gone"  # its plan is over: that is no trouble
    return Node(
        key=text(sign.key),
        name=text(body.get("name")) or text(sign.key),
        plan=text(body.get("plan")),
        device=text(body.get("device")),
        state=state,
        is_stale=state == "busy" and is_silent,
        unit=text(body.get("unit")),
        done=whole(body.get("done")),
        failed=whole(body.get("failed")),
        evaluations=whole(body.get("evaluations")),
        since=number(body.get("since")) or sign.at,
        at=sign.at,
    )


def state_of(sign: Sign, known: Sequence[str] = _STATES) -> str:
    """Return the state that a sign tells; the last one for what is none."""
    said = sign.body.get("state")
    return said if isinstance(said, str) and said in known else known[-1]


def _problem(value: Any) -> str:
    if not isinstance(value, Mapping):
        return text(value)
    parts = [f"{short(str(name), 40)}={short(str(each), 40)}" for name, each in list(value.items())[:_FEATURES]]
    return short(", ".join(parts), _TEXT)


def _curve(value: Any) -> Iterator[tuple[int, float]]:
    """Yield the points of a curve that can be drawn: evaluations that grow, with a time each."""
    last = 0
    for point in value[-_POINTS:] if isinstance(value, list | tuple) else ():
        if not isinstance(point, list | tuple) or len(point) != 2:
            continue
        at, time_s = whole(point[0]), _positive(point[1])
        if at > last and time_s is not None:
            last = at
            yield at, time_s


def lookups_of(sign: Sign) -> Iterator[tuple[str, str, int]]:
    """Yield decision, rung and count of the look-ups that a sign tells of."""
    decisions = sign.body.get("decisions")
    for decision, rungs in list(decisions.items())[:_DECISIONS] if isinstance(decisions, Mapping) else ():
        for rung, answered in rungs.items() if isinstance(rungs, Mapping) else ():
            if rung in RUNGS and (count := whole(answered)):
                yield text(decision) or "?", rung, count


def number(value: Any) -> float | None:
    """Return a finite number, or None for what is none."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        found = float(value)
    except OverflowError:
        return None
    return found if isfinite(found) else None


def _positive(value: Any) -> float | None:
    found = number(value)
    return found if found is not None and 1e-12 < found < 1e12 else None
