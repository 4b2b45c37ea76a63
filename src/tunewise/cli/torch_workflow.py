"""`tunewise torch workflow`: collect, create-validation, train, validate and compare in one command."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tunewise.cli import torch_collect as collecting
from tunewise.cli import torch_compare as comparing
from tunewise.cli import torch_learn as learning
from tunewise.cli.home import sound_store
from tunewise.cli.screen import Screen, example, json_option, pass_screen
from tunewise.cli.torch_collect import Measuring, Target
from tunewise.cli.torch_machine import ready
from tunewise.cli.torch_shapes import Wanted, shape_options
from tunewise.deploy.inductor import datafiles
from tunewise.deploy.inductor.collecting import Collected
from tunewise.deploy.inductor.comparing import Compared, ways_of
from tunewise.deploy.inductor.learning import LEARNERS, save
from tunewise.deploy.inductor.shapes import Shape, write_shapeset
from tunewise.deploy.inductor.statistics import scores_of, statistics_of
from tunewise.errors import InvalidFile
from tunewise.formats.writing import json_text
from tunewise.models.whole import write_whole

if TYPE_CHECKING:
    from tunewise.deploy.inductor.learning import Judged

SHAPES, DATA, HELD_OUT, MODELS, STATISTICS = "shapes.json", "data.json", "validation.json", "models", "statistics.json"
_WORST = 3


@click.command(
    "workflow",
    epilog=example(
        "tunewise torch workflow --op linear --power-of-two --min-size 4 --max-size 128 --num-shapes 5"
        " --validation-shapes 2 --compare-shapes 1 --out work"
    ),
)
@shape_options(seed=0)
@collecting.measuring_options
@click.option("--out", required=True, type=click.Path(path_type=Path, file_okay=False), help="Directory of all files.")
@click.option(
    "--model", "kind", type=click.Choice(list(LEARNERS)), default="auto", show_default=True, help="What kind."
)
@click.option(
    "--validation-shapes",
    type=click.IntRange(min=1),
    default=5,
    show_default=True,
    help="Hold out so many, drawn with the next seed.",
)
@click.option(
    "--compare-shapes",
    type=click.IntRange(min=1),
    default=3,
    show_default=True,
    help="Compare with max-autotune on so many of those.",
)
@json_option
@pass_screen
@click.pass_context
def workflow(
    ctx: click.Context,
    screen: Screen,
    wanted: Wanted,
    measuring: Measuring,
    out: Path,
    kind: str,
    validation_shapes: int,
    compare_shapes: int,
    as_json: bool,
) -> None:
    """Collect, hold out, train, validate, compare.

    Shapes of a script, with its ARGUMENTS, or of a shapeset are learned from; those held out are drawn. The store
    keeps what was measured: the same command goes on where it was stopped.
    """
    _make(out)
    sound_store()
    unseen = replace(wanted, script=None, shapeset=None, seed=wanted.seed + 1, number=validation_shapes)
    with ready(screen, measuring.threads):
        screen.say("1/5 collect")
        rows = _collected(screen, wanted, measuring, out)
        screen.say("2/5 create-validation")
        shapes = unseen.shapes(screen, collecting.known_sizes(None))
        held = _held_out(screen, shapes, measuring, out, unseen.seed)
        screen.say("3/5 train")
        models = _trained(screen, kind, out, measuring.threads)
        screen.say("4/5 validate")
        judged = learning.judged(out / MODELS, datafiles.read([out / HELD_OUT]), _WORST)
        screen.say("5/5 compare")
        ways = ways_of(variants=measuring.search_space == "EXHAUSTIVE")
        compared = comparing.compared(screen, out / MODELS, shapes[:compare_shapes], ways, seed=unseen.seed)
    write_whole(out / STATISTICS, json_text(statistics_of(scores_of(compared)), indent=2))
    if as_json:
        screen.json(_document(rows, held, models, judged, compared))
    else:
        learning.tell_models(screen, models)
        learning.tell_judged(screen, judged, _WORST)
        comparing.tell_scores(screen, scores_of(compared))
    if any([*(row.trouble for row in (*rows, *held)), *(one.trouble for one in compared)]):
        ctx.exit(1)


def _collected(screen: Screen, wanted: Wanted, measuring: Measuring, out: Path) -> list[Collected]:
    shapes = wanted.shapes(screen)
    write_shapeset(shapes, out / SHAPES)
    rows = collecting.measure(screen, shapes, measuring, wanted.seed)
    collecting.written(rows, Target(out / DATA, "json"))
    return rows


def _held_out(screen: Screen, shapes: Sequence[Shape], measuring: Measuring, out: Path, seed: int) -> list[Collected]:
    with collecting.apart():
        sound_store()
        rows = collecting.measure(screen, shapes, measuring, seed)
        collecting.written(rows, Target(out / HELD_OUT, "json"))
    return rows


def _trained(screen: Screen, kind: str, out: Path, threads: int) -> list[dict[str, Any]]:
    data = datafiles.read([out / DATA])
    learned = learning.trained(screen, data, kind, {"weights": out / SHAPES, "threads": threads})
    files = save(learned, out / MODELS)
    return [learning.of_model(learned[name], data[name], file) for name, file in files.items()]


def _document(
    rows: Sequence[Collected],
    held: Sequence[Collected],
    models: Sequence[dict[str, Any]],
    judged: "Sequence[Judged]",
    compared: Sequence[Compared],
) -> dict[str, Any]:
    return {
        "collected": [collecting.of_collected(row) for row in rows],
        "held_out": [collecting.of_collected(row) for row in held],
        "models": list(models),
        "validation": learning.of_judged(judged),
        "compared": [comparing.of_compared(one) for one in compared],
        "statistics": statistics_of(scores_of(compared)),
    }


def _make(directory: Path) -> None:
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InvalidFile(f"{directory} cannot be made: {error.strerror}; choose another place for it") from None
