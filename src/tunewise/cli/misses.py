"""`tunewise misses`: problems that programs asked about in vain."""

import click

from tunewise.cli import facts
from tunewise.cli.home import sound_store
from tunewise.cli.screen import Screen, count, example, json_option, pass_screen
from tunewise.session.ladder import show
from tunewise.session.recall import misses as recorded


@click.command(epilog=example("tunewise misses", "tunewise misses gemm --json"))
@click.argument("decision", required=False)
@json_option
@pass_screen
def misses(screen: Screen, decision: str | None, as_json: bool) -> None:
    """Show what programs asked in vain.

    The problems most often asked come first. They are tuned with: tunewise tune TARGET --misses
    """
    sound_store()
    rows = [facts.of_miss(miss) for miss in recorded(decision)]
    if as_json:
        screen.json({"misses": rows})
        return
    if rows:
        cells = [(row["decision"], show(row["problem"]), row["count"]) for row in rows]
        screen.table(("decision", "problem", "asked"), cells, right=("asked",))
    screen.say(count(len(rows), "miss") + (f" of {decision}" if decision else ""))
