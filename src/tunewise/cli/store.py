"""`tunewise store`: what is remembered as a whole: look, merge, prune, export, import, back up."""

import time
from dataclasses import asdict
from pathlib import Path

import click

from tunewise.cli.backup import backup, restore
from tunewise.cli.home import sound_store, writable_store
from tunewise.cli.screen import Amount, Screen, count, example, json_option, pass_screen, size
from tunewise.decision import detect, environment
from tunewise.errors import NotFound
from tunewise.session.recall import unknown
from tunewise.settings import parse_place
from tunewise.store import Imported, Prune, Pruned, StoreInfo, elsewhere, export_to, import_from
from tunewise.store import merge as merge_stores
from tunewise.store import migrate as migrate_store

_DAY_S = 86_400.0
_existing = click.Path(path_type=Path)


@click.group(epilog=example("tunewise store info"))
def store() -> None:
    """Look after what is remembered."""


store.add_command(backup)
store.add_command(restore)


@store.command(epilog=example("tunewise store info", "tunewise store info --json"))
@json_option
@pass_screen
def info(screen: Screen, as_json: bool) -> None:
    """Show where the store lies and what it holds."""
    held = sound_store().info()
    if as_json:
        screen.json(asdict(held))
        return
    screen.table(("store", held.place), info_rows(held))
    for layer in held.layers:
        screen.show("")
        screen.table(("layer", layer.place), info_rows(layer))


def info_rows(held: StoreInfo) -> list[tuple[str, str]]:
    """Return what a store holds as names and values."""
    by_name = [(f"trials of {name}", str(trials)) for name, trials in held.decisions.items()]
    engine = f"PostgreSQL {held.postgres}" if held.postgres else f"SQLite {held.sqlite}"
    return [
        ("schema", f"{held.schema} ({engine})" + (", read only" if held.is_read_only else "")),
        ("size", size(held.size_bytes)),
        ("trials", str(held.trials)),
        *by_name,
        ("verdicts", str(held.verdicts)),
        ("problems", str(held.subjects)),
        ("misses", str(held.misses)),
    ]


@store.command(
    epilog=example(
        "tunewise tune isin --problem n=10000,m=100,span=1000",
        "tunewise store export facts.jsonl",
        "tunewise store export isin.jsonl --decision isin",
    )
)
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@click.option("--decision", help="Only this decision.")
@json_option
@pass_screen
def export(screen: Screen, file: Path, decision: str | None, as_json: bool) -> None:
    """Write everything to a file.

    FILE gets one line with a checksum for every trial and verdict; an older FILE is replaced. Problems, configs and
    environments are in it; no host, user or path is, and of what failed only the kind and a signal, exit code or the
    name of an exception.
    """
    held = sound_store()
    if decision is not None and decision not in held.decisions():  # a misspelled name must not empty an older file
        raise NotFound(unknown(decision))
    written = export_to(held, file, decision)
    if as_json:
        screen.json({"file": str(file), "records": written})
    else:
        screen.show(f"{count(written, 'record')} written to {file}")


@store.command("import", epilog=example("tunewise store export facts.jsonl", "tunewise store import facts.jsonl"))
@click.argument("file", type=_existing)
@json_option
@pass_screen
def import_(screen: Screen, file: Path, as_json: bool) -> None:
    """Add the facts of a file.

    FILE was written by `tunewise store export`. What is known already is passed over.
    """
    _tell_imported(screen, import_from(writable_store(), file), as_json)


@store.command(epilog=example("tunewise --home other store info", "tunewise store merge other"))
@click.argument("other")
@json_option
@pass_screen
def merge(screen: Screen, other: str, as_json: bool) -> None:
    """Add what another store knows.

    OTHER is its home directory, or its file, or the address of a PostgreSQL database.
    """
    _tell_imported(screen, merge_stores(writable_store(), parse_place(other, "OTHER")), as_json)


@store.command(
    epilog=example(
        "tunewise --home other store info",
        "tunewise store migrate --from other --to copy",
    )
)
@click.option("--from", "source", required=True, metavar="PLACE", help="The store that is read.")
@click.option(
    "--to", "target", required=True, metavar="PLACE", help="The store that is added to, begun if there is none."
)
@json_option
@pass_screen
def migrate(screen: Screen, source: str, target: str, as_json: bool) -> None:
    """Copy everything from one store to another.

    PLACE is a store's home directory, its file, or the address of a PostgreSQL database, such as
    postgresql:///?service=team. What is known there already is passed over; the source stays as it is.
    """

    def tell(read: int, expected: int) -> None:
        screen.say(f"{read} of {count(expected, 'record')} looked at")

    copied = migrate_store(parse_place(source, "--from"), parse_place(target, "--to"), tell)
    _tell_imported(screen, copied, as_json)


@store.command(
    epilog=example(
        "tunewise store prune --older-than 90 --keep-answers",
        "tunewise store prune --decision gemm --elsewhere --yes",
    )
)
@click.option("--decision", help="Only facts about this decision; alone, its misses too.")
@click.option("--older-than", "days", type=Amount(min=0), help="Only facts older than so many days.")
@click.option("--elsewhere", "is_elsewhere", is_flag=True, help="Only facts of other hardware or systems.")
@click.option("--keep-answers", is_flag=True, help="Keep the verdicts that answers are read off, however old.")
@click.option("--yes", is_flag=True, help="Really remove them; otherwise you are only told what would go.")
@json_option
@pass_screen
def prune(
    screen: Screen,
    decision: str | None,
    days: float | None,
    is_elsewhere: bool,
    keep_answers: bool,
    yes: bool,
    as_json: bool,
) -> None:
    """Remove facts, after saying which.

    Those go that match every condition given; without --yes nothing does. With --keep-answers no program gets another
    answer from memory than before.
    """
    rule = Prune(
        decision=decision,
        before=None if days is None else time.time() - days * _DAY_S,
        where=elsewhere(environment(detect())) if is_elsewhere else None,
        keep_answers=keep_answers,
    )
    held = sound_store()
    gone = held.prune(rule, dry_run=not yes)
    if decision is not None and decision not in held.decisions() and gone == Pruned(0, 0):
        screen.say(unknown(decision))
    if as_json:
        screen.json({**asdict(gone), "is_done": yes})
    else:
        _tell_pruned(screen, gone, yes)


def _tell_imported(screen: Screen, imported: Imported, as_json: bool) -> None:
    if as_json:
        screen.json(asdict(imported))
        return
    misses = f" and {count(imported.misses, 'miss')}" if imported.misses else ""
    screen.show(f"{count(imported.added, 'record')}{misses} added, {imported.known} known already")
    if imported.damaged or imported.refused:
        screen.say(f"warning: {imported.damaged} damaged and {imported.refused} senseless records were passed over")


def _tell_pruned(screen: Screen, gone: Pruned, is_done: bool) -> None:
    facts = f"{count(gone.trials, 'trial')} and {count(gone.verdicts, 'verdict')}"
    if gone.misses:
        facts = f"{count(gone.trials, 'trial')}, {count(gone.verdicts, 'verdict')} and {count(gone.misses, 'miss')}"
    screen.show(f"{facts} removed" if is_done else f"{facts} would be removed; add --yes to do it")
    if gone.answers:
        has = "has" if gone.answers == 1 else "have"
        ends = f"{has} no answer in memory any more" if is_done else "would have no answer in memory any more"
        screen.say(f"{count(gone.answers, 'problem')} {ends}; --keep-answers keeps those")
