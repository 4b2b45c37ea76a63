"""The sections of the live page: what a snapshot tells, in words, tables and curves of a fixed number of elements."""

from collections.abc import Callable

from tunewise.report.live_cards import running
from tunewise.report.live_signs import RUNGS, Node, Plan, Run
from tunewise.report.live_slots import Slots, table
from tunewise.report.live_state import Snapshot
from tunewise.report.markup import Markup, fragment
from tunewise.report.wording import count, percent, seconds, size, span
from tunewise.store import StoreInfo

FINISHED, DECISIONS, HEURISTICS, PLANS, NODES, LAYERS = 15, 12, 12, 4, 24, 4  # rows there are places for


def key_figures(slots: Slots, seen: Snapshot) -> Markup:
    """Return the numbers a reader looks for first, large."""
    boxes = [
        slots.fixed(
            "div",
            slots.fixed("dt", name),
            slots.text("dd", f"figure-{number}", value),
            slots.text("dd", f"figure-{number}-remark", remark, class_="remark"),
        )
        for number, (name, value, remark) in enumerate(_figures(seen))
    ]
    return slots.fixed("dl", *boxes, class_="figures")


def finished(slots: Slots, seen: Snapshot) -> Markup:
    """Return the runs that ended lately."""
    rows = seen.finished.rows[:FINISHED]
    columns = ("decision", "problem", "ended", "when", "default", "best", "evaluations", "winner by")
    return fragment(
        slots.sentence("finished-none", "" if rows else "No run has ended in the last day."),
        table(
            slots,
            "finished",
            "Runs that ended, the latest first",
            columns,
            [_ended(run, seen.at) for run in rows],
            most=FINISHED,
            total=seen.finished.total,
            things="of the last day",
            numbers=columns[4:7],
            dim=[place for place, run in enumerate(rows) if run.is_stale or run.state in ("failed", "stopped")],
        ),
    )


def ladder(slots: Slots, seen: Snapshot) -> Markup:
    """Return how often each rung answered, by decision, and what was asked in vain."""
    asked, missing = seen.ladder.rows[:DECISIONS], seen.missing.rows[:DECISIONS]
    columns = ("decision", "look-ups", "answered", "", *RUNGS[:-1], "missed")
    rows: list[tuple[str | float, ...]] = [
        (
            one.decision,
            f"{one.lookups:,}",
            percent(one.hits / one.lookups),
            one.hits / one.lookups,
            *(f"{one.rungs.get(rung, 0):,}" for rung in RUNGS),
        )
        for one in asked
    ]
    waiting = [(one.decision, f"{one.problems:,}", f"{one.asked:,}") for one in missing]
    nothing = "" if rows or waiting else "Nothing has been looked up in the last day, and nothing was asked in vain."
    numbers = tuple(column for column in columns[1:] if column)
    return fragment(
        slots.sentence("ladder-none", nothing),
        table(
            slots,
            "ladder",
            "First look-ups of the last day, by the rung that answered; a miss got the default",
            columns,
            rows,
            most=DECISIONS,
            total=seen.ladder.total,
            things="decisions",
            numbers=numbers,
        ),
        table(
            slots,
            "missing",
            "Asked in vain and not tuned yet; `tunewise tune DECISION --misses` tunes them",
            ("decision", "problems", "asked"),
            waiting,
            most=DECISIONS,
            total=seen.missing.total,
            things="decisions",
            numbers=("problems", "asked"),
        ),
    )


def heuristics(slots: Slots, seen: Snapshot) -> Markup:
    """Return who proposed the winners, and how often."""
    rows = [
        (one.name, one.kind, one.decision, f"{one.runs:,}", f"{one.wins:,}", percent(one.win_rate), one.win_rate)
        for one in seen.heuristics.rows[:HEURISTICS]
    ]
    columns = ("heuristic", "kind", "decision", "runs", "won", "win rate", "")
    nothing = "" if rows else "No heuristic has proposed anything in a run that ended."
    return fragment(
        slots.sentence("heuristics-none", nothing),
        table(
            slots,
            "heuristics",
            "Runs in which it proposed anything, and those that its config won against the default",
            columns,
            rows,
            most=HEURISTICS,
            total=seen.heuristics.total,
            things="heuristics",
            numbers=columns[3:6],
        ),
    )


def fleet(slots: Slots, seen: Snapshot) -> Markup:
    """Return the plans of fleets, and their nodes."""
    plans, nodes = seen.plans.rows[:PLANS], seen.nodes.rows[:NODES]
    nothing = (
        ""
        if plans or nodes
        else "No fleet has been at work in the last day. To start one, run: tunewise fleet run PLAN"
    )
    columns = ("plan", "kind", "state", "done", "", "failed", "running", "nodes", "evaluations", "for")
    node_columns = ("node", "device", "state", "at", "done", "failed", "evaluations", "heard of")
    return fragment(
        slots.sentence("fleet-none", nothing),
        table(
            slots,
            "plans",
            "Plans, those that run first",
            columns,
            [_plan(plan, seen.at) for plan in plans],
            most=PLANS,
            total=seen.plans.total,
            things="plans",
            numbers=("done", "failed", "running", "nodes", "evaluations"),
            dim=[place for place, plan in enumerate(plans) if plan.is_stale],
        ),
        table(
            slots,
            "nodes",
            "Nodes, busy ones first",
            node_columns,
            [_node(node, seen.at) for node in nodes],
            most=NODES,
            total=seen.nodes.total,
            things="nodes",
            numbers=node_columns[4:7],
            dim=[place for place, node in enumerate(nodes) if node.is_stale or node.state == "gone"],
        ),
    )


def store(slots: Slots, seen: Snapshot) -> Markup:
    """Return what the store holds and how it is."""
    health = seen.health
    stores = [] if health.info is None else [health.info, *health.info.layers][: LAYERS + 1]
    columns = ("store", "trials", "verdicts", "problems", "missed", "size", "schema", "state")
    trouble = f"In trouble: {health.trouble}" if health.trouble else ""
    counted = f", counted {span(max(0.0, seen.at - health.counted_at))} ago in {seconds(health.counted_s)}"
    told = f"Signs of life were read in {seconds(health.read_s)}{counted if health.counted_at else ''}."
    return fragment(
        slots.sentence("store-trouble", trouble, look="note"),
        table(
            slots,
            "stores",
            "The store, and the read-only layers below it",
            columns,
            [_store(one) for one in stores],
            most=LAYERS + 1,
            total=0 if health.info is None else 1 + len(health.info.layers),
            things="layers",
            numbers=columns[1:7],
        ),
        slots.text("p", "store-told", told, class_="soft"),
    )


SECTIONS: tuple[tuple[str, str, Callable[[Slots, Snapshot], Markup]], ...] = (
    ("now", "Being tuned now", running),
    ("ended", "Ended lately", finished),
    ("asked", "The ladder", ladder),
    ("proposed", "Heuristics", heuristics),
    ("fleet", "The fleet", fleet),
    ("memory", "The store", store),
)


def _figures(seen: Snapshot) -> list[tuple[str, str, str]]:
    states, rungs, nodes = seen.runs, seen.rungs, seen.node_states
    stale, won = states.get("stale", 0), states.get("won", 0)
    ended = sum(states.get(state, 0) for state in ("won", "tied", "failed"))
    lookups = sum(rungs.values())
    answered = lookups - rungs.get("default", 0)
    info = seen.health.info
    in_all = sum(nodes.values()) - nodes.get("gone", 0)
    return [
        ("being tuned", f"{states.get('running', 0):,}", f"{stale:,} not heard of lately" if stale else "right now"),
        ("evaluations", f"{seen.evaluations:,}", f"in the last day; {seen.failures:,} failed"),
        ("runs won", f"{won:,} of {ended:,}", "beat the default, in the last day"),
        ("answered", percent(answered / lookups) if lookups else "-", f"of {count(lookups, 'first look-up')}"),
        ("nodes busy", f"{nodes.get('busy', 0):,} of {in_all:,}", f"{nodes.get('stale', 0):,} not heard of lately"),
        (
            "store",
            "trouble" if seen.health.trouble else "-" if info is None else size(info.size_bytes),
            "not counted yet"
            if info is None
            else f"{count(info.trials, 'trial')} of {count(len(info.decisions), 'decision')}",
        ),
    ]


def _ended(run: Run, now: float) -> tuple[str, ...]:
    gain = f"won, {run.gain:.2f}\u00a0x" if run.state == "won" and run.gain is not None else run.state
    ending = "fell silent" if run.is_stale else gain
    return (
        run.decision,
        run.problem,
        ending,
        _ago(now - run.at),
        seconds(run.default_s),
        seconds(run.best_s),
        f"{run.done:,}",
        run.source or "-",
    )


def _plan(plan: Plan, now: float) -> tuple[str | float, ...]:
    state = f"not heard of for {span(now - plan.at)}" if plan.is_stale else plan.state
    return (
        plan.name,
        plan.kind,
        state,
        f"{plan.done:,} of {plan.units:,}",
        plan.done / plan.units if plan.units else 0.0,
        f"{plan.failed:,}",
        f"{plan.running:,}",
        f"{plan.nodes:,}",
        f"{plan.evaluations:,}",
        span((now if plan.state == "running" and not plan.is_stale else plan.at) - plan.began),
    )


def _node(node: Node, now: float) -> tuple[str, ...]:
    state = "not heard of: gone or stuck" if node.is_stale else node.state
    counts = (f"{number:,}" for number in (node.done, node.failed, node.evaluations))
    return (node.name, node.device, state, node.unit or "-", *counts, _ago(now - node.at))


def _store(info: StoreInfo) -> tuple[str, ...]:
    state = "in trouble" if info.trouble else "read only" if info.is_read_only else "sound"
    counts = (f"{number:,}" for number in (info.trials, info.verdicts, info.subjects, info.misses))
    return (info.place, *counts, size(info.size_bytes), str(info.schema), state)


def _ago(past_s: float) -> str:
    return f"{span(past_s)} ago".replace(" ", "\u00a0")  # in a narrow column it stays in one line
