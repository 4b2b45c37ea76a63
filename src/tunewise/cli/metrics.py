"""`tunewise metrics`: what is going on as numbers for Prometheus, for a textfile collector or a cron job."""

import os
import sys
import time
from pathlib import Path

import click

from tunewise import settings
from tunewise.cli.doctor_store import PATIENCE_S, within
from tunewise.cli.screen import Screen, count, example, harmless, json_option, pass_screen
from tunewise.formats.writing import replaced
from tunewise.report import metrics as gathered
from tunewise.report.live_state import Health, Snapshot, snapshot
from tunewise.session.context import current_store
from tunewise.settings import shown

_READABLE = 0o644  # who collects is somebody else


@click.command(epilog=example("tunewise metrics", "tunewise metrics --output tunewise.prom"))
@click.option(
    "--output", type=click.Path(dir_okay=False, path_type=Path), help="Write them to a file, whole or not at all."
)
@json_option
@pass_screen
def metrics(screen: Screen, output: Path | None, as_json: bool) -> None:
    """Print what is going on as numbers for Prometheus.

    Runs, look-ups, misses, the fleet and the store, in its text format. A store in trouble is told by
    tunewise_store_up, and is no error; one that does not answer is waited for 15 seconds.
    """
    seen = _seen()
    text = gathered.text(seen)
    if output is not None:
        with replaced(output) as beside:
            beside.write_text(text)
            os.chmod(beside, _READABLE)
        screen.say(f"{count(len(gathered.families(seen)), 'metric')} written to {output}")
    if as_json:
        screen.json({"metrics": [_row(family) for family in gathered.families(seen)]})
    elif output is None:
        # A collector gets every name as it is; a terminal would obey it.
        click.echo(harmless(text) if sys.stdout.isatty() else text, nl=False)


def _seen() -> Snapshot:
    try:
        return within(PATIENCE_S, lambda: snapshot(current_store(), time.time()))
    except TimeoutError:
        place = shown(settings.current().store or settings.current().home)
        said = f"{place} did not answer within {PATIENCE_S:g} s"
        return Snapshot(time.time(), health=Health(trouble=said, read_s=PATIENCE_S))


def _row(family: gathered.Family) -> dict[str, object]:
    samples = [{"labels": dict(labels), "value": value} for labels, value in family.samples.items()]
    return {"name": family.name, "help": family.help, "samples": samples}
