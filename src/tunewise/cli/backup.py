"""`tunewise store backup` and `restore`: the whole store as one file, and the way back."""

from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

import click

from tunewise import settings
from tunewise.cli.home import sound_store
from tunewise.cli.screen import Screen, count, example, json_option, pass_screen, size
from tunewise.settings import Place
from tunewise.store import backup as back_up
from tunewise.store import restore as put_back

_TENTH = 10


@click.command(epilog=example("tunewise store backup tuned.sqlite3", "tunewise store backup tuned.sqlite3 --force"))
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--force", is_flag=True, help="Replace FILE if there is one, once the new copy is checked.")
@json_option
@pass_screen
def backup(screen: Screen, file: Path, force: bool, as_json: bool) -> None:
    """Copy the whole store to one file.

    FILE gets every trial, verdict and miss as they are at one moment, whatever others do meanwhile, and its name ends
    in .sqlite3. It appears whole and checked, or not at all.
    """
    sound_store()
    made = back_up(_place(), file, force=force, progress=_progress(screen))
    if as_json:
        screen.json(asdict(made))
        return
    holds = {"trial": made.trials, "verdict": made.verdicts, "miss": made.misses}
    counts = ", ".join(count(number, thing) for thing, number in holds.items())
    screen.show(f"{counts} written to {file} and checked, {size(made.size_bytes)}")


@click.command(epilog=example("tunewise store backup saved.sqlite3", "tunewise store restore saved.sqlite3 --dry-run"))
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--dry-run", is_flag=True, help="Only say what would be added.")
@json_option
@pass_screen
def restore(screen: Screen, file: Path, dry_run: bool, as_json: bool) -> None:
    """Add everything of a backup that is not known.

    FILE was written by `tunewise store backup`. Nothing is removed and nothing doubled: what the store has learned
    since stays.
    """
    sound_store()
    added = put_back(file, _place(), dry_run=dry_run, progress=_progress(screen))
    if as_json:
        screen.json({**asdict(added), "is_done": not dry_run})
        return
    what = f"{count(added.added, 'record')} and {count(added.misses, 'miss')}"
    screen.show(f"{what} {'would be ' if dry_run else ''}added, {count(added.known, 'record')} known already")
    if added.damaged:
        screen.say(f"warning: {count(added.damaged, 'damaged record')} passed over")


def _place() -> Place:
    in_force = settings.current()
    return in_force.store or in_force.home


def _progress(screen: Screen) -> Callable[[int, int], None]:
    """Return what tells how far it is, at every tenth of the way and where there is a way at all."""
    told = [0]

    def tell(done: int, all_: int) -> None:
        tenth = _TENTH * done // max(1, all_)
        if told[0] < tenth < _TENTH:
            told[0] = tenth
            screen.say(f"{_TENTH * tenth} % done")

    return tell
