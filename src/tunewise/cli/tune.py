"""`tunewise tune`: find the best config for problems, and remember it."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from tunewise import search, workloads
from tunewise.cli.home import sound_store, writable_store
from tunewise.cli.problems import Features, Pairs, gather, problem_options
from tunewise.cli.runs import Question, check_seeds, pair_up, report, tune_all
from tunewise.cli.screen import Amount, Screen, count, example, json_option
from tunewise.cli.targets import find
from tunewise.session import Decision
from tunewise.session.recall import misses as recorded_misses

STRATEGIES = (search.AUTO, *(strategy.name for strategy in search.STRATEGIES))


@click.command(
    epilog=example(
        "tunewise tune gemm --problem m=96,n=96,k=96 --budget 8",
        "tunewise tune isin --problem n=10000,m=100,span=1000 --seed-config choice=table",
        "tunewise tune convolve1d --misses",
    ),
)
@click.argument("targets", metavar="TARGET...", nargs=-1)
@problem_options
@click.option("--misses", is_flag=True, help="Tune the problems that programs asked about in vain.")
@click.option(
    "--budget",
    type=click.IntRange(min=1),
    default=100,
    show_default=True,
    help="Most configs to try, for each problem.",
)
@click.option("--seconds", type=Amount(min=0, min_open=True), help="Most seconds to search, for each problem.")
@click.option("--no-heuristics", is_flag=True, help="Do not ask rules, tables and models what to try first.")
@click.option("--seed-config", "seeds", type=Pairs(), multiple=True, help="A config to try first; repeatable.")
@click.option(
    "--strategy", type=click.Choice(STRATEGIES), default=search.AUTO, show_default=True, help="How to search the space."
)
@click.option(
    "--seed",
    type=click.IntRange(min=0),
    default=0,
    show_default=True,
    help="Seed of random choices; equal seeds search alike.",
)
@click.option("--again", is_flag=True, help="Measure although the answer is known.")
@click.option(
    "--wait", "wait_s", type=Amount(min=0), help="Most seconds to wait for another process that tunes the same."
)
@json_option
@click.pass_context
def tune(
    ctx: click.Context,
    /,
    targets: Sequence[str],
    given: Sequence[Features],
    file: Path | None,
    misses: bool,
    no_heuristics: bool,
    wait_s: float | None,
    as_json: bool,
    **plan: Any,
) -> None:
    """Find the best config for problems, and remember it.

    TARGET is path/to/file.py:name, package.module:name, or a built-in decision such as gemm. What is known is not
    measured again. With --misses and no TARGET, the built-in decisions are tuned.
    """
    writable_store()
    decisions = find(targets)
    check_seeds(ctx.obj, decisions, plan["seeds"])
    asked = gather(given, file)
    questions = _missed(ctx.obj, decisions) if misses else []
    if asked or not misses:
        questions += pair_up(decisions, asked, verb="tune")
    waits = {} if wait_s is None else {"wait_s": wait_s}
    rows = tune_all(ctx.obj, questions, heuristics=not no_heuristics, **plan, **waits)
    report(ctx.obj, rows, as_json)
    sound_store()
    if any(row["ending"] == "failed" for row in rows):
        ctx.exit(1)


def _missed(screen: Screen, decisions: Sequence[Decision]) -> list[Question]:
    """Return the recorded misses of the decisions, or of all built-in ones if none is named."""
    by_name = {decision.name: decision for decision in decisions}
    others: dict[str, int] = {}
    questions: list[Question] = []
    for miss in recorded_misses():
        if not decisions and miss.decision in workloads.names():
            by_name.setdefault(miss.decision, workloads.find(miss.decision))
        if miss.decision in by_name:
            questions.append((by_name[miss.decision], miss.problem))
        elif not decisions:
            others[miss.decision] = others.get(miss.decision, 0) + 1
    for name, missed in others.items():
        screen.say(f"{count(missed, 'miss')} of {name} left: tunewise tune path/to/file.py:{name} --misses")
    if not questions:
        screen.say("no misses to tune")
    return questions
