"""`tunewise import`: others' tuning files taken in, after saying what they would add and where they conflict."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from tunewise import settings
from tunewise.cli.home import sound_store, writable_store
from tunewise.cli.problems import Pairs
from tunewise.cli.screen import Screen, count, example, json_option, pass_screen
from tunewise.decision import Failure, Timing
from tunewise.formats.foreign import FORMATS, Foreign, read
from tunewise.session.conflicts import Conflict, OnConflict
from tunewise.session.importing import ImportPlan, carry_out, plan_import
from tunewise.session.ladder import show

_SHOWN = 5  # conflicts
format_option = click.option(
    "--format", "name", type=click.Choice([one.name for one in FORMATS]), help="What the files are; shown by them."
)
rename_option = click.option(
    "--rename", type=Pairs(), help="Other names for features and parameters, such as key_0=m,key_1=n."
)


@click.command(
    "import",
    epilog=example(
        "tunewise tune isin --problem n=10000,m=100,span=1000",
        "tunewise export isin --format t4 --out isin.t4.json",
        "tunewise import isin.t4.json --dry-run",
        "tunewise import isin.t4.json --decision isin",
    ),
)
@click.argument("files", metavar="FILE...", nargs=-1, required=True, type=click.Path(path_type=Path))
@format_option
@click.option("--decision", help="The decision they are about, where they do not say or you call it otherwise.")
@click.option("--nearest", metavar="FEATURE", help="Let tables answer the nearest number of it, as vLLM does with M.")
@rename_option
@click.option(
    "--on-conflict",
    type=click.Choice(["best", "newest", "fail"]),
    default="best",
    show_default=True,
    help="What stands where two tell different things of one problem.",
)
@click.option("--dry-run", is_flag=True, help="Only say what would be added and what conflicts.")
@json_option
@pass_screen
def import_(
    screen: Screen,
    files: Sequence[Path],
    name: str | None,
    decision: str | None,
    nearest: str | None,
    rename: Mapping[str, Any] | None,
    on_conflict: OnConflict,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Take in others' tuning files.

    Each FILE is of vLLM or SGLang, torch.cuda.tunable, Triton, Kernel Tuner, T4, Helion or diode. What was measured
    goes into the store: never an exact answer here, but a start for every search. What won becomes a table in the home,
    which answers on the device it is for.
    """
    store = sound_store() if dry_run else writable_store()
    found = [read(file, name) for file in files]
    names = {old: str(new) for old, new in (rename or {}).items()}
    plan = plan_import(found, store, decision=decision, nearest=nearest, rename=names, on_conflict=on_conflict)
    if not dry_run:
        carry_out(plan, store)
    if as_json:
        screen.json({"files": [of_file(one) for one in found], **_of_plan(plan), "is_done": not dry_run})
        return
    _tell(screen, found, plan, is_done=not dry_run)


def of_file(found: Foreign) -> dict[str, Any]:
    """Return what a file told, in counts."""
    outcomes = [finding.outcome for finding in found.findings]
    return {
        "file": str(found.path),
        "format": found.format.name,
        "configs": len(outcomes),
        "timed": sum(isinstance(outcome, Timing) for outcome in outcomes),
        "failed": sum(isinstance(outcome, Failure) for outcome in outcomes),
        "remark": found.remark,
    }


def _of_plan(plan: ImportPlan) -> dict[str, Any]:
    return {
        "added": len(plan.records),
        "known": plan.known,
        "tables": [{"file": str(path), "rules": len(table.rules)} for path, table in plan.tables.items()],
        "conflicts": [_of_conflict(conflict) for conflict in plan.conflicts],
    }


def _of_conflict(conflict: Conflict) -> dict[str, Any]:
    return {
        "decision": conflict.decision,
        "problem": dict(conflict.problem),
        "about": conflict.about,
        "kept": conflict.kept,
        "dropped": conflict.dropped,
    }


def _tell(screen: Screen, found: Sequence[Foreign], plan: ImportPlan, *, is_done: bool) -> None:
    rows = [of_file(one) for one in found]
    columns = ("file", "format", "configs", "timed", "failed")
    screen.table(columns, [[row[name] for name in columns] for row in rows], right=columns[2:])
    for row in rows:
        if row["remark"]:
            screen.say(f"warning: {row['file']} {row['remark']}")
    done = "" if is_done else "would be "
    screen.show(f"{count(len(plan.records), 'trial')} {done}added, {plan.known} known already")
    for path, table in plan.tables.items():
        screen.show(f"a table of {count(len(table.rules), 'rule')} {done}written to {path}")
    if plan.tables and settings.current().heuristics is not None:
        screen.say("warning: TUNEWISE_HEURISTICS names other places, so the table is not asked")
    _tell_conflicts(screen, plan.conflicts)


def _tell_conflicts(screen: Screen, conflicts: Sequence[Conflict]) -> None:
    for conflict in conflicts[:_SHOWN]:
        about = f"{conflict.decision} {show(conflict.problem)}, {conflict.about}"
        screen.show(f"conflict: {about}: {conflict.kept} stands, not {conflict.dropped}")
    if len(conflicts) > _SHOWN:
        screen.show(f"and {len(conflicts) - _SHOWN} more conflicts")
