"""`tunewise fleet plan`: write the plan of a fleet for targets and problems given as on every other command line."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
import msgspec

from tunewise.cli.drawing import draw_options, drawn_problems
from tunewise.cli.problems import Features, gather, problem_options
from tunewise.cli.runs import pair_up
from tunewise.cli.screen import Screen, example, json_option
from tunewise.cli.targets import find
from tunewise.fleet.plans import BUDGETS, KINDS
from tunewise.formats.writing import replaced


@click.command(
    epilog=example(
        "tunewise fleet plan isin --problem n=1000,m=10,span=100 --out plan.toml",
        "tunewise fleet plan sort --grid n=1000:2000,dtype=int64,order=random --kind collect --out table.toml",
    )
)
@click.argument("targets", metavar="TARGET...", nargs=-1)
@problem_options
@draw_options
@click.option("--kind", type=click.Choice(KINDS), default="tune", show_default=True, help="What to do with them.")
@click.option("--budget", type=click.IntRange(min=1), help="Most configs for each problem: 100, 1000 or 10 by kind.")
@click.option("--out", type=click.Path(dir_okay=False, path_type=Path), required=True, help="The file to write.")
@json_option
@click.pass_context
def plan(
    ctx: click.Context,
    /,
    targets: Sequence[str],
    given: Sequence[Features],
    file: Path | None,
    kind: str,
    budget: int | None,
    out: Path,
    as_json: bool,
    **draws: Any,
) -> None:
    """Write a plan for `tunewise fleet run`.

    TARGET is path/to/file.py:name, package.module:name, or a built-in decision such as gemm; a file is looked for
    beside the plan.
    """
    screen: Screen = ctx.obj
    asked = [*gather(given, file), *drawn_problems(**draws)]
    if asked or kind != "verify":
        pair_up(find(targets), asked, verb="fleet plan")
    usual = {str(name): number for name, number in BUDGETS.items()}
    with replaced(out) as beside:
        beside.write_text(_toml(targets, asked, kind, budget or usual[kind]))
    if as_json:
        screen.json({"plan": str(out), "kind": kind, "targets": list(targets), "problems": len(asked)})
    else:
        screen.show(f"{out}; run it with: tunewise fleet run {out}")


def _toml(targets: Sequence[str], problems: Sequence[Features], kind: str, budget: int) -> str:
    lines = [f"kind = {_value(kind)}", f"budget = {budget}"]
    rows = [
        f"  {{{', '.join(f'{_value(name)} = {_value(value)}' for name, value in row.items())}}}," for row in problems
    ]
    listed = ["problems = [", *rows, "]"] if rows else []
    for target in targets:
        lines += ["", "[[work]]", f"target = {_value(target)}", *listed]
    return "\n".join(lines) + "\n"


def _value(value: object) -> str:
    # Numbers, words and switches are written alike in TOML, one character apart.
    return msgspec.json.encode(value).decode().replace("\x7f", "\\u007f")
