"""`tunewise collect`: measure every config on every problem, for a data set."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from tunewise.cli.drawing import draw_options, drawn_problems
from tunewise.cli.home import sound_store, writable_store
from tunewise.cli.problems import Features, gather, problem_options
from tunewise.cli.runs import collect_all, pair_up, report
from tunewise.cli.screen import example, json_option
from tunewise.cli.targets import find


@click.command(
    epilog=example(
        "tunewise collect isin --problem n=5000,m=50,span=500",
        "tunewise collect isin --log-uniform n=100:5000,m=10:500,span=100:100000 --num-problems 2",
        "tunewise collect sort --grid n=1000:2000,dtype=int64:float32,order=random",
    ),
)
@click.argument("targets", metavar="TARGET...", nargs=-1)
@problem_options
@draw_options
@click.option(
    "--budget",
    type=click.IntRange(min=1),
    default=1000,
    show_default=True,
    help="Most configs to measure, for each problem.",
)
@click.option("--again", is_flag=True, help="Measure although the answer is known.")
@json_option
@click.pass_context
def collect(
    ctx: click.Context,
    /,
    targets: Sequence[str],
    given: Sequence[Features],
    file: Path | None,
    budget: int,
    again: bool,
    as_json: bool,
    **draws: Any,
) -> None:
    """Measure every config, for a data set.

    TARGET is path/to/file.py:name, package.module:name, or a built-in decision such as gemm. No config is dropped
    early, and at most --budget are measured on each problem. What is known is not measured again, so the same
    command goes on where it was stopped, and a larger --num-problems adds to what is there. Problems whose inputs
    cannot be made are passed over, and told.
    """
    writable_store()
    asked = [*gather(given, file), *drawn_problems(**draws)]
    questions = pair_up(find(targets), asked, verb="collect")
    rows = collect_all(ctx.obj, questions, budget=budget, again=again)
    report(ctx.obj, rows, as_json)
    sound_store()
    if any(row["ending"] == "failed" and row["is_set_up"] for row in rows):
        ctx.exit(1)
