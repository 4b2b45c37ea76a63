"""`tunewise torch compare`: models against max-autotune, in compile time and run time."""

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from tunewise.cli.facts import of_answer
from tunewise.cli.home import FORGETS, at_home
from tunewise.cli.outputs import check_outputs
from tunewise.cli.screen import Amount, Screen, count, example, json_option, pass_screen, seconds
from tunewise.cli.torch_collect import SPACES
from tunewise.cli.torch_machine import ready, threads_option
from tunewise.cli.torch_shapes import Wanted, of_shape, shape_options, shown
from tunewise.deploy.inductor import learning
from tunewise.deploy.inductor.comparing import MAX_AUTOTUNE, Compared, Run, Way, compare_shapes, ways_of
from tunewise.deploy.inductor.shapes import Shape
from tunewise.deploy.inductor.statistics import ALL, Score, scores_of, statistics_of
from tunewise.errors import InvalidData
from tunewise.formats.diode_shapes import Solution, read_solutions
from tunewise.formats.writing import json_text
from tunewise.models.whole import write_whole
from tunewise.session.ladder import show
from tunewise.session.shelf import alone

_FILE = click.Path(path_type=Path, dir_okay=False)


@click.command(
    "compare",
    epilog=example(
        "tunewise torch collect --op linear --power-of-two --min-size 4 --max-size 128 --num-shapes 5",
        "tunewise torch train --out models",
        "tunewise torch compare models --op linear --power-of-two --min-size 4 --max-size 128 --num-shapes 1",
    ),
)
@click.argument("models", type=click.Path(path_type=Path))
@shape_options(seed=1)
@click.option(
    "--top",
    type=click.IntRange(min=1),
    multiple=True,
    default=(1,),
    show_default=True,
    help="Let Inductor time the first so many choices of a model; repeatable.",
)
@click.option(
    "--search-space",
    type=click.Choice(SPACES, case_sensitive=False),
    default="EXHAUSTIVE",
    show_default=True,
    help="What models may choose from.",
)
@click.option("--measured", is_flag=True, help="Measure all candidates too, as `collect` does.")
@click.option("--solutions", type=_FILE, help="A solution file: configs that somebody found for some sizes.")
@click.option("--seconds", "limit_s", type=Amount(min=0, min_open=True), help="Begin no shape after so long.")
@threads_option
@click.option("--out", type=_FILE, help="Write the statistics of every op to this file, as JSON.")
@json_option
@pass_screen
@click.pass_context
def compare(
    ctx: click.Context,
    screen: Screen,
    models: Path,
    wanted: Wanted,
    top: Sequence[int],
    search_space: str,
    measured: bool,
    solutions: Path | None,
    limit_s: float | None,
    threads: int,
    out: Path | None,
    as_json: bool,
) -> None:
    """Compare models with max-autotune.

    MODELS is a directory of `tunewise torch train`, or one model. Every shape is compiled in each way with empty
    caches, and the compiled programs are timed by turns. Only the models answer: the store is not asked, and nothing
    is kept. ARGUMENTS are those of a script.
    """
    ctx.meta[FORGETS] = True
    check_outputs({"--out": out}, [models, solutions, wanted.shapeset])
    learning.load(models)
    ways = ways_of(top, variants=search_space.upper() == "EXHAUSTIVE", measured=measured)
    known = () if solutions is None else read_solutions(solutions).solutions
    with ready(screen, threads):
        found = compared(screen, models, wanted.shapes(screen), ways, known, limit_s, wanted.seed)
    report(ctx, screen, found, out, as_json)


def compared(
    screen: Screen,
    models: Path,
    shapes: Sequence[Shape],
    ways: Sequence[Way],
    solutions: Sequence[Solution] = (),
    limit_s: float | None = None,
    seed: int = 1,
) -> list[Compared]:
    """Compare the models of a directory on shapes, telling of each; raises InvalidData where none could be."""
    found = []
    with only(models):
        for one in compare_shapes(shapes, ways, solutions=solutions, seconds=limit_s, seed=seed):
            found.append(one)
            assert one.shape is not None
            screen.say(f"{len(found)}/{len(shapes)} {shown(one.shape)}: {_said(one)}")
    if not any(one.runs for one in found):
        raise InvalidData(f"nothing could be compared: {found[0].trouble if found else 'time is up'}")
    return found


@contextmanager
def only(models: Path) -> Iterator[None]:
    """Let nothing but these models answer inside the block, and keep nothing."""
    with tempfile.TemporaryDirectory() as home, at_home(home), alone(models):
        yield


def report(ctx: click.Context, screen: Screen, found: Sequence[Compared], out: Path | None, as_json: bool) -> None:
    """Show comparisons and write their statistics; the exit code is 1 where a shape could not be compared."""
    scores = scores_of(found)
    if out is not None:
        write_whole(out, json_text(statistics_of(scores), indent=2))
    if as_json:
        screen.json({"programs": [of_compared(one) for one in found], "statistics": statistics_of(scores)})
    else:
        columns = ("program", "way", "compiles in", "runs in", "chosen")
        screen.table(columns, [row for one in found for row in _rows(one)], right=columns[2:4])
        tell_scores(screen, scores)
    if any(one.trouble for one in found):
        ctx.exit(1)


def tell_scores(screen: Screen, scores: Sequence[Score]) -> None:
    """Show what comparisons come to, as ratios to max-autotune."""
    columns = (f"beside {MAX_AUTOTUNE}", "way", "programs", "compile time", "run time", "worst", "faster", "slower")
    rows = [
        (
            ALL if score.op == ALL else f"{score.op} {score.dtype}",
            score.way,
            score.programs,
            f"{score.compile_ratio:.2f}x",
            f"{score.run_ratio:.2f}x",
            f"{score.worst_run_ratio:.2f}x",
            score.wins,
            score.losses,
        )
        for score in scores
    ]
    screen.table(columns, rows, right=columns[2:])


def of_compared(one: Compared) -> dict[str, Any]:
    """Return a comparison as plain values."""
    shape = {} if one.shape is None else of_shape(one.shape)
    return {**shape, "ways": {name: _of_run(run) for name, run in one.runs.items()}, "trouble": one.trouble}


def _of_run(run: Run) -> dict[str, Any]:
    answers = [
        {"decision": a.decision, "problem": dict(a.problem), "answer": of_answer(a.answer), "measured": a.measured}
        for a in run.asked
    ]
    return {"compile_s": run.compile_s, "run_s": run.run_s, "error": run.error, "asked": answers}


def _said(one: Compared) -> str:
    if one.trouble:
        return f"failed: {' '.join(one.trouble.split())[:200]}"
    theirs = one.runs[MAX_AUTOTUNE]
    ratios = [
        f"{run.way} compiles in {run.compile_s / theirs.compile_s:.2f}x, runs in {run.run_s / theirs.run_s:.2f}x"
        for run in one.runs.values()
        if run is not theirs
    ]
    return "; ".join(ratios)


def _rows(one: Compared) -> list[tuple[str, ...]]:
    name = "-" if one.shape is None else shown(one.shape)
    if one.trouble:
        return [(name, "-", "-", "-", "failed")]
    return [
        (name if place == 0 else "", run.way, seconds(run.compile_s), seconds(run.run_s), _chosen(run))
        for place, run in enumerate(one.runs.values())
    ]


def _chosen(run: Run) -> str:
    if not run.asked:
        return "by Inductor"
    first = run.asked[0].answer
    more = f" and {count(len(run.asked) - 1, 'other')}" if len(run.asked) > 1 else ""
    return f"{show(first.config)} ({first.rung}){more}"
