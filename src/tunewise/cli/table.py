"""`tunewise table`: tables of rules, checked, and made of what is remembered."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from tunewise import workloads
from tunewise.cli.home import sound_store
from tunewise.cli.screen import Amount, Screen, count, example, json_option, pass_screen
from tunewise.cli.targets import find
from tunewise.decision import Declaration
from tunewise.errors import MissingPart, NotFound, TunewiseError
from tunewise.heuristics.table import Table
from tunewise.heuristics.table_building import Built
from tunewise.heuristics.table_checks import remarks
from tunewise.heuristics.table_reading import dump, load_table
from tunewise.models.whole import write_whole
from tunewise.session.distilling import distil


@click.group(epilog=example("tunewise table --help"))
def table() -> None:
    """Check tables of rules, or make one."""


@table.command(
    epilog=example(
        "tunewise tune isin --problem n=10000,m=100,span=1000",
        "tunewise table build isin --out isin.json",
        "tunewise table check isin.json",
    )
)
@click.argument("files", metavar="FILE...", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--target", help="A decision whose space the configs must be in, as path/to/file.py:name.")
@json_option
@pass_screen
@click.pass_context
def check(ctx: click.Context, screen: Screen, files: Sequence[Path], target: str | None, as_json: bool) -> None:
    """Say what is wrong with tables.

    In each FILE, rules that never answer are told; configs outside the space too, where the decision is a built-in one
    or --target names it. Exit code 1 if a table is malformed or has such a config.
    """
    declared = find([target])[0] if target is not None else None
    rows = [_checked(file, declared) for file in files]
    if as_json:
        screen.json({"tables": rows})
    else:
        for row in rows:
            _tell(screen, row)
    if any(row["error"] or any(remark["is_fault"] for remark in row["remarks"]) for row in rows):
        ctx.exit(1)


@table.command(
    epilog=example(
        "tunewise collect isin --log-uniform n=100:5000,m=10:500,span=100:100000 --num-problems 8",
        "tunewise table build isin --out isin.json --tolerance 0.1",
    )
)
@click.argument("decision")
@click.option("--out", required=True, type=click.Path(dir_okay=False, path_type=Path), help="The file to write.")
@click.option("--max-rules", type=click.IntRange(1, 1000), default=32, show_default=True, help="Most rules.")
@click.option("--tolerance", type=Amount(min=0), default=0.05, show_default=True, help="Loss for sharing a rule.")
@click.option("--device", help="The device it is for, where several were measured.")
@json_option
@pass_screen
def build(
    screen: Screen, decision: str, out: Path, max_rules: int, tolerance: float, device: str | None, as_json: bool
) -> None:
    """Distil what is remembered into a small table.

    DECISION is its name. Problems share a rule where one config loses at most the tolerance on each of them. The
    regret that is printed is that on the problems measured; other problems may fare worse, and beyond the smallest and
    largest numbers measured no rule answers.
    """
    built = distil(decision, sound_store(), tolerance=tolerance, max_rules=max_rules, device=device)
    write_whole(out, dump(built.table))
    row = _of_built(built, out)
    if as_json:
        screen.json(row)
        return
    screen.show(f"{count(row['rules'], 'rule')} for {count(row['problems'], 'problem')} written to {out}")
    tail = f"{row['p95']:.3f} at 95 %, {row['worst']:.3f} at worst"
    screen.show(f"regret on these problems: {row['regret']:.3f} on average, {tail}")
    if built.untried:
        screen.say(f"warning: on {count(built.untried, 'problem')} the rule's config was never measured")
    if built.left_out:
        screen.say(f"warning: {count(built.left_out, 'problem')} with other features left out")


def _of_built(built: Built, out: Path) -> dict[str, Any]:
    return {
        "file": str(out),
        "decision": built.table.decision,
        "rules": len(built.table.rules),
        "problems": len(built.regrets) + built.untried,
        "untried": built.untried,
        "left_out": built.left_out,
        "regret": built.regret,
        "p95": built.at(0.95),
        "worst": built.at(1.0),
    }


def _checked(file: Path, declared: Declaration | None) -> dict[str, Any]:
    row: dict[str, Any] = {"file": str(file), "decision": None, "rules": 0, "error": None, "remarks": []}
    try:
        found = load_table(file)
    except TunewiseError as error:
        return {**row, "error": str(error)}
    told = remarks(found, declared if declared is not None else _built_in(found))
    said = [{"rule": remark.rule, "what": remark.what, "is_fault": remark.is_fault} for remark in told]
    return {**row, "decision": found.decision, "rules": len(found.rules), "remarks": said}


def _built_in(found: Table) -> Declaration | None:
    try:
        return workloads.find(found.decision)
    except (NotFound, MissingPart):
        return None


def _tell(screen: Screen, row: dict[str, Any]) -> None:
    if row["error"]:
        screen.show(f"{row['file']}: {row['error']}" if row["file"] not in row["error"] else row["error"])
        return
    for remark in row["remarks"]:
        place = f"{row['file']}, rule {remark['rule']}" if remark["rule"] else row["file"]
        screen.show(f"{place}: {remark['what']}")
    is_sound = not row["remarks"]
    screen.show(
        f"{row['file']}: {count(row['rules'], 'rule')} for {row['decision']}{', all sound' if is_sound else ''}"
    )
