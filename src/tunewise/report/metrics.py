"""What is going on as numbers for Prometheus: the text format, version 0.0.4, with a bounded number of series."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import tunewise
from tunewise.report.live_state import Snapshot
from tunewise.report.markup import short

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
REST = "other"  # the label of everything beyond the most frequent ones
_MOST = 20  # decisions, heuristics and plans that have series of their own
_NAME = 100  # characters of a label
_RUN_STATES = ("running", "stale", "won", "tied", "failed", "stopped")
_NODE_STATES = ("busy", "idle", "stale", "gone")
_HEURISTIC = ("decision", "heuristic")
_ESCAPES = str.maketrans({"\\": "\\\\", "\n": "\\n", '"': '\\"'})
Labels = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Family:
    """One metric: a gauge with a value for each set of labels.

    Everything is a gauge: pruning makes counts of the store fall, and what processes tell is kept for a day.
    """

    name: str
    help: str
    samples: Mapping[Labels, float]


def text(snapshot: Snapshot) -> str:
    """Return a snapshot in the text format."""
    return "".join(_written(family) for family in families(snapshot))


def families(snapshot: Snapshot) -> list[Family]:
    """Return the metrics of a snapshot; those of which nothing is known are left out."""
    found = [*_store(snapshot), *_runs(snapshot), *_ladder(snapshot), *_heuristics(snapshot), *_fleet(snapshot)]
    return [family for family in found if family.samples]


def _store(snapshot: Snapshot) -> Iterator[Family]:
    health, info = snapshot.health, snapshot.health.info
    yield _one("build_info", "The version that tells this.", 1, version=tunewise.__version__)
    yield _one("store_up", "1 if the store can be read and written, 0 if not.", _is_up(snapshot))
    yield _one("store_read_seconds", "Time it took to read what processes are at.", health.read_s)
    if info is None or info.trouble is not None:  # what is held in memory meanwhile is not the store
        return
    yield _one("store_size_bytes", "Size of the store.", info.size_bytes)
    yield _one("store_count_seconds", "Time it took to count what the store holds.", health.counted_s)
    yield _one("store_counted_timestamp_seconds", "When that was counted.", health.counted_at)
    yield _one("verdicts", "Concluded tuning runs in the store.", info.verdicts)
    yield _one("problems", "Problems with trials or verdicts in the store.", info.subjects)
    yield _most("trials", "Trials in the store.", "decision", info.decisions)
    yield _last("last_trial", "trial", info.last_trial_at)
    yield _last("last_verdict", "verdict", info.last_verdict_at)
    layers = {_labels(layer=str(n)): float(layer.trouble is None) for n, layer in enumerate(info.layers, 1)}
    yield Family("tunewise_layer_up", "1 if a read-only layer can be read, 0 if not.", layers)


def _is_up(snapshot: Snapshot) -> bool:
    info, trouble = snapshot.health.info, snapshot.health.trouble
    if info is None or info.trouble is not None:
        return False
    return trouble is None or trouble in [layer.trouble for layer in info.layers]


def _last(name: str, what: str, at: float | None) -> Family:
    told = f"When the {what} that was added last was measured."
    samples: Mapping[Labels, float] = {} if at is None else {(): at}
    return Family(f"tunewise_{name}_timestamp_seconds", told, samples)


def _runs(snapshot: Snapshot) -> Iterator[Family]:
    yield _one("runs_active", "Tuning runs that go on now.", snapshot.runs.get("running", 0))
    yield _states("runs", "Tuning runs of the last day; stale ones were not heard of.", _RUN_STATES, snapshot.runs)
    yield _one("evaluations", "Configs that runs of the last day evaluated.", snapshot.evaluations)
    yield _one("evaluation_failures", "Configs that failed in runs of the last day.", snapshot.failures)


def _ladder(snapshot: Snapshot) -> Iterator[Family]:
    asked: dict[Labels, float] = {}
    left = dict(snapshot.rungs)  # of decisions beyond those that the snapshot lists too
    for row in snapshot.ladder.rows[:_MOST]:
        for rung, number in row.rungs.items():
            _add(asked, number, decision=row.decision, rung=rung)
            left[rung] = left.get(rung, 0) - number
    for rung, number in left.items():
        if number > 0:
            _add(asked, number, decision=REST, rung=rung)
    yield Family("tunewise_lookups", "First look-ups of the last day, by the rung that answered.", asked)
    info = snapshot.health.info
    waiting = {row.decision: row.problems for row in snapshot.missing.rows}
    times = {row.decision: row.asked for row in snapshot.missing.rows}
    told = "Problems that were asked in vain and wait to be tuned."
    yield _most("misses", told, "decision", waiting, info.misses if info is not None else 0)
    yield _most("misses_asked", "How often these were asked.", "decision", times)


def _heuristics(snapshot: Snapshot) -> Iterator[Family]:
    runs: dict[Labels, float] = {}
    wins: dict[Labels, float] = {}
    for place, row in enumerate(snapshot.heuristics.rows):
        names = {"decision": row.decision, "heuristic": row.name} if place < _MOST else dict.fromkeys(_HEURISTIC, REST)
        _add(runs, row.runs, **names)
        _add(wins, row.wins, **names)
    yield Family("tunewise_heuristic_runs", "Concluded runs that a heuristic proposed configs for.", runs)
    yield Family("tunewise_heuristic_wins", "Those of them that one of its configs won.", wins)


def _fleet(snapshot: Snapshot) -> Iterator[Family]:
    if snapshot.node_states:
        told = "Nodes of fleets; stale ones were not heard of."
        yield _states("fleet_nodes", told, _NODE_STATES, snapshot.node_states)
    units: dict[Labels, float] = {}
    for plan in snapshot.plans.rows[:_MOST]:
        waiting = max(0, plan.units - plan.done - plan.failed - plan.running)
        states = {"done": plan.done, "failed": plan.failed, "running": plan.running, "waiting": waiting}
        for state, number in states.items():
            _add(units, number, plan=plan.name, state=state)
    yield Family("tunewise_plan_units", "Units of work of a fleet's plans.", units)


def _one(name: str, told: str, value: float, **labels: str) -> Family:
    return Family(f"tunewise_{name}", told, {_labels(**labels): float(value)})


def _states(name: str, told: str, states: Sequence[str], counts: Mapping[str, int]) -> Family:
    return Family(f"tunewise_{name}", told, {_labels(state=state): float(counts.get(state, 0)) for state in states})


def _most(name: str, told: str, label: str, values: Mapping[str, float], total: float = 0) -> Family:
    """Return the largest values by name, and the sum of all others; `total` is that of all if more exist."""
    ranked = sorted(values.items(), key=lambda one: (-one[1], one[0]))
    samples: dict[Labels, float] = {}
    for key, value in ranked[:_MOST]:
        _add(samples, value, **{label: key})
    rest = max(total, sum(values.values())) - sum(value for _, value in ranked[:_MOST])
    if rest > 0:
        _add(samples, rest, **{label: REST})
    return Family(f"tunewise_{name}", told, samples)


def _add(samples: dict[Labels, float], value: float, **labels: str) -> None:
    """Count a value; names that are alike once they are cut off are one series: no two may have the same labels."""
    key = _labels(**labels)
    samples[key] = samples.get(key, 0.0) + value


def _labels(**labels: str) -> Labels:
    return tuple((name, short(value, _NAME).encode(errors="replace").decode()) for name, value in labels.items())


def _written(family: Family) -> str:
    lines = [f"# HELP {family.name} {family.help}", f"# TYPE {family.name} gauge"]
    for labels, value in family.samples.items():
        spelled = ",".join(f'{name}="{text.translate(_ESCAPES)}"' for name, text in labels)
        lines.append(f"{family.name}{{{spelled}}} {_number(value)}" if spelled else f"{family.name} {_number(value)}")
    return "\n".join(lines) + "\n"


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) else repr(value)
