"""`tunewise best`: the winners that are remembered."""

from collections.abc import Sequence
from datetime import datetime

import click

from tunewise.cli import facts
from tunewise.cli.home import sound_store
from tunewise.cli.problems import Features, Pairs
from tunewise.cli.runs import gain_of
from tunewise.cli.screen import Screen, count, example, json_option, pass_screen, seconds
from tunewise.session.ladder import show
from tunewise.session.recall import last_winners

_SHOWN = 40  # characters of a part of an environment


@click.command(
    epilog=example(
        "tunewise tune isin --problem n=10000,m=100,span=1000",
        "tunewise best isin",
        "tunewise best isin --problem n=10000 --json",
    )
)
@click.argument("decision")
@click.option("--problem", "like", type=Pairs(), help="Only problems with these features.")
@click.option(
    "--limit", type=click.IntRange(min=0), default=50, show_default=True, help="Show the last so many; 0 for all."
)
@json_option
@pass_screen
def best(screen: Screen, decision: str, like: Features | None, limit: int, as_json: bool) -> None:
    """Show the remembered winners.

    DECISION is its name. Where several environments are remembered, the parts in which they differ are shown.
    """
    sound_store()
    found = last_winners(decision, like, limit or None)
    rows = [facts.of_winner(winner) for winner in found.rows]
    if as_json:
        screen.json({"winners": rows, "total": found.total})
        return
    if not rows:
        screen.say("no tuning run has ended for such a problem" if like else "no tuning run has ended")
        return
    parts = differing([row["environment"] for row in rows])
    columns = ("problem", "config", "gain", "p", "pairs", "time", "tuned at", *parts)
    screen.table(columns, [_cells(row, parts) for row in rows], right=("gain", "p", "pairs", "time"))
    if found.total > len(rows):
        screen.say(f"{count(found.total, 'winner')}, the last {len(rows)} shown; --limit 0 shows all")


def differing(environments: Sequence[facts.Row]) -> list[str]:
    """Return the names of the parts that are not equal in all environments."""
    names = {name: None for environment in environments for name in environment}
    return [name for name in names if len({str(environment.get(name)) for environment in environments}) > 1]


def _cells(row: facts.Row, parts: Sequence[str]) -> tuple[str, ...]:
    return (
        show(row["problem"]),
        show(row["config"]),
        gain_of(row),
        f"{row['p_value']:.1g}" if row["ending"] == "win" else "-",
        str(row["pairs"] or "-"),
        seconds(row["time_s"]),
        datetime.fromtimestamp(row["at"]).strftime("%Y-%m-%d %H:%M"),
        *(str(row["environment"].get(part))[:_SHOWN] for part in parts),
    )
