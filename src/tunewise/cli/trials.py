"""`tunewise trials`: every measurement that is remembered."""

import click

from tunewise.cli import facts
from tunewise.cli.home import sound_store
from tunewise.cli.problems import Features, Pairs
from tunewise.cli.screen import Screen, count, example, json_option, pass_screen, seconds
from tunewise.session.ladder import show
from tunewise.session.recall import last_trials

_SHOWN = 60  # characters of a failure's detail


@click.command(
    epilog=example(
        "tunewise tune sort --problem n=1000,dtype=int64,order=random",
        "tunewise trials sort --problem n=1000 --limit 5",
        "tunewise trials sort --failed --json",
    )
)
@click.argument("decision")
@click.option("--problem", "like", type=Pairs(), help="Only problems with these features.")
@click.option("--failed", is_flag=True, help="Only configs that did not run to a right answer.")
@click.option(
    "--limit", type=click.IntRange(min=0), default=50, show_default=True, help="Show the last so many; 0 for all."
)
@json_option
@pass_screen
def trials(screen: Screen, decision: str, like: Features | None, failed: bool, limit: int, as_json: bool) -> None:
    """Show every measurement, oldest first.

    DECISION is its name.
    """
    sound_store()
    found = last_trials(decision, like, limit or None, failed=failed)
    rows = [facts.of_measured(measured) for measured in found.rows]
    if as_json:
        screen.json({"trials": rows, "total": found.total})
        return
    if rows:
        columns = ["problem", "config", "time", "samples", "compile", "source", "failure"]
        cells = [_cells(row) for row in rows]
        if not any(row["failure"] for row in rows):
            columns, cells = columns[:-1], [cell[:-1] for cell in cells]
        screen.table(columns, cells, right=("time", "samples", "compile"))
    left = found.total - len(rows)
    screen.say(
        f"{count(found.total, 'trial')}" + (f", the last {len(rows)} shown; --limit 0 shows all" if left else "")
    )


def _cells(row: facts.Row) -> tuple[str, ...]:
    detail = " ".join(row["detail"].split())
    return (
        show(row["problem"]),
        show(row["config"]),
        seconds(row["time_s"]),
        str(len(row["samples_s"]) or "-"),
        seconds(row["compile_s"]),
        row["source"],
        f"{row['failure']}: {detail[:_SHOWN]}" if row["failure"] else "",
    )
