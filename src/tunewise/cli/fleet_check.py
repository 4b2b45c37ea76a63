"""`tunewise fleet check`: what a plan comes to, before anything is measured."""

from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any

import click

from tunewise.cli.fleet_plan import read_plan
from tunewise.cli.home import sound_store
from tunewise.cli.screen import Screen, count, example, json_option, seconds
from tunewise.cli.targets import find
from tunewise.fleet import plans
from tunewise.fleet.plans import FleetPlan, Work
from tunewise.fleet.rehearsal import Declared, Rehearsed, Target
from tunewise.fleet.supervisor import nodes_at
from tunewise.store import Store

_LOOKED_AT = 20  # subjects of a decision whose trials tell how long one takes
_LONGEST_GAP_S = 600.0  # between two trials of one run; more is a night in between


@click.command(
    epilog=example(
        "tunewise fleet plan isin --problem n=1000,m=10,span=100 --out plan.toml", "tunewise fleet check plan.toml"
    )
)
@click.argument("plan", metavar="PLAN", type=click.Path(dir_okay=False, path_type=Path))
@click.option("--address", default="auto", show_default=True, help="HOST:PORT of the cluster's head.")
@json_option
@click.pass_context
def check(ctx: click.Context, plan: Path, address: str, as_json: bool) -> None:
    """Say what PLAN comes to, and measure nothing.

    What is known is looked up for the hardware of this machine. The time is estimated by what an evaluation took
    before, if the store knows.
    """
    screen: Screen = ctx.obj
    store = sound_store()
    asked = read_plan(plan)
    rows = [_row(asked, work, store) for work in asked.work]
    nodes = nodes_at(address)
    devices = sum(_devices(asked, node) for node in nodes) if nodes is not None else None
    known = None not in [row["estimate_s"] for row in rows]
    estimate = sum(row["estimate_s"] for row in rows) / max(1, devices or 1) if known else None
    told = {"plan": asked.id, "kind": asked.kind, "units": len(plans.units(asked)), "work": rows}
    told |= {"nodes": nodes, "devices": devices, "estimate_s": estimate}
    if as_json:
        screen.json(told)
        return
    _show(screen, told)


def _show(screen: Screen, told: dict[str, Any]) -> None:
    columns = ("work", "problems", "done", "evaluations", "one takes", "time on one device")
    cells = [
        (row["work"], row["problems"], row["known"], f"<= {row['evaluations']}", *_times(row)) for row in told["work"]
    ]
    screen.table(columns, cells, right=columns[1:])
    where = "no cluster runs here; a run starts one node" if told["nodes"] is None else _where(told)
    about = f", about {seconds(told['estimate_s'])}" if told["estimate_s"] is not None else ""
    screen.show(f"{count(told['units'], 'unit')} to {told['kind']}{about}; {where}")


def _times(row: dict[str, Any]) -> tuple[str, str]:
    return seconds(row["each_s"]), seconds(row["estimate_s"])


def _where(told: dict[str, Any]) -> str:
    return f"{count(told['devices'], 'device')} on {count(len(told['nodes']), 'node')}"


def _row(plan: FleetPlan, work: Work, store: Store) -> dict[str, Any]:
    target: Target = Rehearsed(Path(work.replay), work.pause_s) if work.replay else Declared(find([work.target])[0])
    known = [_known(plan, work, target, problem, store) for problem in work.problems]
    most = work.size if plan.kind == "collect" else plan.budget
    left = sum(max(0, most - done) for done, is_over in known if not is_over)
    each_s = work.pause_s if work.replay else _each_s(target, store)
    return {
        "work": (work.target or work.replay).rpartition("/")[2],
        "problems": len(work.problems),
        "known": sum(is_over for _, is_over in known),
        "evaluations": left,
        "each_s": each_s,
        "estimate_s": None if each_s is None else left * each_s,
    }


def _known(plan: FleetPlan, work: Work, target: Target, problem: dict[str, Any], store: Store) -> tuple[int, bool]:
    """Return how many evaluations of a problem are stored, and whether it is done."""
    subject = target.subject(problem)
    space = target.declaration.space
    done = len({space.places(trial.config) for trial in store.trials(subject) if trial.config in space})
    is_over = done >= work.size if plan.kind == "collect" else bool(store.verdicts(subject))
    return done, is_over


def _each_s(target: Target, store: Store) -> float | None:
    """Return the seconds between two evaluations of the same run, or None if nothing was measured before."""
    gaps: list[float] = []
    for subject in store.subjects(target.declaration.name, last=_LOOKED_AT):
        measured = [trial for trial in store.trials(subject) if trial.source not in ("race", "final", "check")]
        pairs = [(a, b) for a, b in pairwise(measured) if a.run == b.run and b.at > a.at]
        gaps += [b.at - a.at for a, b in pairs if b.at - a.at < _LONGEST_GAP_S]
    return median(gaps) if gaps else None


def _devices(plan: FleetPlan, node: dict[str, Any]) -> int:
    return int(node["gpus"]) or (plan.devices if node["cpus"] else 0)
