"""`tunewise fleet`: measure a list of problems on every device of a Ray cluster."""

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any, Protocol

import click
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from tunewise.cli.fleet_check import check
from tunewise.cli.fleet_new import plan as new_plan
from tunewise.cli.fleet_plan import read_plan
from tunewise.cli.fleet_status import status
from tunewise.cli.home import sound_store
from tunewise.cli.screen import Screen, count, example, json_option, one_line, seconds
from tunewise.fleet.supervisor import Result, Supervisor

PROGRAM = "tunewise.cli.fleet_device"  # what a device's actor starts
_LINE_S = 5.0  # between two plain lines of progress
INTERRUPTED = 130


_NEW = "tunewise fleet plan isin --problem n=1000,m=10,span=100 --out plan.toml"


@click.group(epilog=example(_NEW, "tunewise fleet check plan.toml"))
def fleet() -> None:
    """Measure many problems on every device of a Ray cluster."""


fleet.add_command(new_plan)
fleet.add_command(check)
fleet.add_command(status)


@fleet.command(epilog=example(_NEW, "tunewise fleet run plan.toml --local-nodes 2"))
@click.argument("plan", metavar="PLAN", type=click.Path(dir_okay=False, path_type=Path))
@click.option(
    "--address",
    default="auto",
    show_default=True,
    help="HOST:PORT of the cluster's head; auto is a cluster that runs on this machine, or else a new one of one node.",
)
@click.option(
    "--local-nodes", type=click.IntRange(min=1, max=64), help="Start so many Ray nodes on this machine, to try a plan."
)
@json_option
@click.pass_context
def run(ctx: click.Context, plan: Path, address: str, local_nodes: int | None, as_json: bool) -> None:
    """Do all that PLAN says, on every device there is.

    Results go to the store, which all nodes must share. What is known is not measured again, so the same command goes
    on where it was stopped, by Ctrl-C or by a crash.
    """
    screen: Screen = ctx.obj
    if local_nodes and address != "auto":
        raise click.UsageError("--local-nodes starts a cluster of its own; leave out --address.")
    sound_store()
    asked = read_plan(plan)
    with watching(screen, asked.name) as watcher:
        supervisor = Supervisor(
            asked, program=PROGRAM, hear=watcher.hear, address=address, local_nodes=local_nodes or 0
        )
        result = supervisor.run()
    _report(screen, result, as_json)
    if result.state == "stopped":
        screen.say("stopped: everything measured so far is kept; run the same command again to go on from there")
        ctx.exit(INTERRUPTED)
    if result.failed or result.state != "done":
        ctx.exit(1)


def _report(screen: Screen, result: Result, as_json: bool) -> None:
    if as_json:
        screen.json(asdict(result))
    for failure in result.failed:
        screen.say(one_line(f"failed: {failure['unit']}: {failure['why']}"))
    for reason in result.refused:
        screen.say(one_line(f"left out: {reason}"))
    left = result.units - result.done - len(result.failed)
    if result.state in ("left", "refused"):
        screen.say(f"no device is left to do {count(left, 'unit')}; add nodes and run the same command again")
    if not as_json:
        done = f"{result.done} of {count(result.units, 'unit')} done ({result.known} known before)"
        rate = f"{result.evaluations / result.seconds:.1f}/s" if result.seconds else "-"
        screen.show(f"{done}, {count(result.evaluations, 'evaluation')} in {seconds(result.seconds)} ({rate})")


class Watcher(Protocol):
    """Hears how a plan goes."""

    def hear(self, message: Mapping[str, Any]) -> None:
        """Show what a driver tells."""


@contextmanager
def watching(screen: Screen, name: str) -> Iterator[Watcher]:
    """Give somebody who shows how a plan goes, and tidy up behind."""
    if not screen.err.is_terminal:
        yield Lines(screen)
        return
    columns = (TextColumn("{task.description}", markup=False), BarColumn(20), MofNCompleteColumn(), TimeElapsedColumn())
    note = TextColumn("{task.fields[note]}", markup=False)
    # Children are started from this thread while the bar is shown: no thread of the bar's may be in the way.
    with Progress(*columns, note, console=screen.err, auto_refresh=False) as progress:
        yield Bar(screen, progress, one_line(name))


class Lines:
    """A plain line now and then, for logs and pipes."""

    def __init__(self, screen: Screen) -> None:
        self._screen, self._due = screen, time.monotonic() + _LINE_S

    def hear(self, message: Mapping[str, Any]) -> None:
        """Print a remark at once, and progress every few seconds."""
        if "say" in message:
            self._screen.say(one_line(message["say"]))
        elif "progress" in message and time.monotonic() > self._due:
            self._due = time.monotonic() + _LINE_S
            self._screen.say(_line(message["progress"]))


class Bar:
    """One moving line for the whole plan."""

    def __init__(self, screen: Screen, progress: Progress, name: str) -> None:
        self._screen, self._progress = screen, progress
        self._task = progress.add_task(name, total=None, note="starting")

    def hear(self, message: Mapping[str, Any]) -> None:
        """Move the line, or print a remark above it."""
        if "say" in message:
            self._screen.say(one_line(message["say"]))
        elif "progress" in message:
            counts = message["progress"]
            note = f"{count(counts['nodes'], 'device')}, {count(counts['evaluations'], 'evaluation')}"
            self._progress.update(self._task, completed=counts["done"], total=counts["units"], note=note)
        self._progress.refresh()


def _line(counts: Mapping[str, Any]) -> str:
    failed = f", {counts['failures']} failed" if counts["failures"] else ""
    return (
        f"{counts['done']}/{counts['units']} units{failed}, {count(counts['running'], 'device')} busy, "
        f"{count(counts['evaluations'], 'evaluation')}"
    )
