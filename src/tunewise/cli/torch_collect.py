"""`tunewise torch collect` and `create-validation`: measure the kernels of many products."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import click

from tunewise import settings
from tunewise.cli.facts import of_answer
from tunewise.cli.home import at_home, sound_store
from tunewise.cli.outputs import check_outputs
from tunewise.cli.screen import Amount, Screen, count, example, json_option, pass_screen, seconds
from tunewise.cli.torch_machine import ready, threads_option
from tunewise.cli.torch_shapes import Wanted, of_shape, shape_options, shown
from tunewise.decision import Problem
from tunewise.deploy.inductor import collecting, datafiles
from tunewise.deploy.inductor.collecting import Collected
from tunewise.deploy.inductor.shapes import Shape, write_shapeset
from tunewise.errors import InvalidData
from tunewise.session.ladder import show

SPACES = ("DEFAULT", "EXHAUSTIVE")
VALIDATION = "validation"  # the home, in the home, of what models must not learn from
_FILE = click.Path(path_type=Path, dir_okay=False)


@dataclass(frozen=True, slots=True)
class Measuring:
    """How much to measure, and how."""

    search_space: str
    search_mode: str
    limit_s: float | None
    each_s: float | None
    threads: int


@dataclass(frozen=True, slots=True)
class Target:
    """The file that the data go to besides the store, if any."""

    path: Path | None
    kind: datafiles.Format


_OPTIONS = (
    click.option(
        "--search-space",
        type=click.Choice(SPACES, case_sensitive=False),
        default="DEFAULT",
        show_default=True,
        help="What Inductor offers, or all register blocks of its C++ template too.",
    ),
    click.option(
        "--search-mode",
        type=click.Choice(["max-autotune"]),
        default="max-autotune",
        help="Every candidate is measured: there is no other way.",
    ),
    click.option("--seconds", "limit_s", type=Amount(min=0, min_open=True), help="Begin no shape after so long."),
    click.option("--seconds-each", "each_s", type=Amount(min=0, min_open=True), help="At most so long for a shape."),
    threads_option,
)


def measuring_options(verb: Callable[..., Any]) -> Callable[..., Any]:
    """Give a verb the options of measuring, as one argument `measuring`."""

    def wrapped(*given: Any, **named: Any) -> Any:
        told = {name: named.pop(name) for name in Measuring.__dataclass_fields__}
        return verb(*given, measuring=Measuring(**{**told, "search_space": told["search_space"].upper()}), **named)

    wrapped.__doc__, wrapped.__name__ = verb.__doc__, verb.__name__
    wrapped.__dict__.update(vars(verb))
    for option in reversed(_OPTIONS):
        option(wrapped)
    return wrapped


def file_options(verb: Callable[..., Any]) -> Callable[..., Any]:
    """Give a verb `--out` and `--format`, as one argument `target`."""

    def wrapped(*given: Any, **named: Any) -> Any:
        path, kind = named.pop("out"), named.pop("format")
        found = kind or (path.suffix.lstrip(".") if path is not None else "json")
        if found not in datafiles.EXTENSIONS:  # told before minutes of measuring
            raise click.UsageError(f"{path} does not tell its format by its name; give --format json|msgpack|parquet")
        return verb(*given, target=Target(path, cast(datafiles.Format, found)), **named)

    wrapped.__doc__, wrapped.__name__ = verb.__doc__, verb.__name__
    wrapped.__dict__.update(vars(verb))
    click.option("--format", type=click.Choice(datafiles.EXTENSIONS), help="Of that file; its name tells.")(wrapped)
    click.option("--out", type=_FILE, help="Write the data set to this file too.")(wrapped)
    return wrapped


@click.command(
    "collect",
    epilog=example("tunewise torch collect --op linear --power-of-two --max-size 64 --num-shapes 1 --out data.json"),
)
@shape_options(seed=0)
@measuring_options
@file_options
@click.option("--record", type=_FILE, help="Write the shapes to this file, a shapeset with how often each is used.")
@json_option
@pass_screen
@click.pass_context
def collect(
    ctx: click.Context,
    screen: Screen,
    wanted: Wanted,
    measuring: Measuring,
    target: Target,
    record: Path | None,
    as_json: bool,
) -> None:
    """Measure the kernels of many products.

    Shapes are drawn, read from a shapeset, or those of a script with its ARGUMENTS after `--`. The kernels that
    Inductor has for each are compiled, their results compared, and timed. The store keeps everything: what is known
    is not measured again, and the same command goes on where it was stopped.
    """
    check_outputs({"--out": target.path, "--record": record}, [wanted.shapeset, wanted.script])
    sound_store()
    with ready(screen, measuring.threads):
        shapes = wanted.shapes(screen)
        if record is not None:
            write_shapeset(shapes, record)
        rows = measure(screen, shapes, measuring, wanted.seed)
    report(ctx, screen, rows, written(rows, target), as_json)


@click.command(
    "create-validation",
    epilog=example(
        "tunewise torch create-validation --op linear --power-of-two --max-size 64 --num-shapes 1 --out held-out.json"
    ),
)
@shape_options(seed=1)
@measuring_options
@file_options
@click.option("--data-dir", type=click.Path(path_type=Path), help="Training data that are not in the store.")
@json_option
@pass_screen
@click.pass_context
def create_validation(
    ctx: click.Context,
    screen: Screen,
    wanted: Wanted,
    measuring: Measuring,
    target: Target,
    data_dir: Path | None,
    as_json: bool,
) -> None:
    """Measure shapes that no model has seen.

    As `collect`, with shapes drawn by another seed; ARGUMENTS are those of a script. No shape is measured that is in
    the store or in --data-dir: models learn from these. What is measured is kept apart, in `validation` of the home.
    """
    check_outputs({"--out": target.path}, [wanted.shapeset, wanted.script])
    known = known_sizes(data_dir)
    with ready(screen, measuring.threads):
        shapes = wanted.shapes(screen, known)
        with apart():
            sound_store()
            rows = measure(screen, shapes, measuring, wanted.seed)
            files = written(rows, target)
    report(ctx, screen, rows, files, as_json)


def known_sizes(data_dir: Path | None) -> set[datafiles.Size]:
    """Return the products that models may have learned from."""
    store = sound_store()
    held = {
        datafiles.size_of(name, subject.problem)
        for name in datafiles.decisions_in(store)
        for subject in store.subjects(name)
    }
    return held if data_dir is None else held | datafiles.sizes_in(datafiles.read(datafiles.files_in(data_dir)))


@contextmanager
def apart() -> Iterator[None]:
    """Remember what is measured inside the block where models do not learn from it."""
    with at_home(str(settings.current().home / VALIDATION)):
        yield


def measure(screen: Screen, shapes: Sequence[Shape], measuring: Measuring, seed: int) -> list[Collected]:
    """Measure shapes, telling of each; raises InvalidData where Inductor asked nothing about any of them."""
    rows = []
    found = collecting.collect(
        shapes,
        variants=measuring.search_space == "EXHAUSTIVE",
        seconds=measuring.limit_s,
        seconds_each=measuring.each_s,
        seed=seed,
    )
    for row in found:
        rows.append(row)
        screen.say(f"{len(rows)}/{len(shapes)} {shown(row.shape)}: {_said(row)}, {seconds(row.seconds)}")
    if len(rows) < len(shapes):
        screen.say(f"time is up: {count(len(shapes) - len(rows), 'shape')} left; the same command goes on from here")
    if rows and not any(row.asked for row in rows):
        raise InvalidData(rows[0].trouble or "Inductor had no kernels to choose from for any of the shapes")
    return rows


def report(ctx: click.Context, screen: Screen, rows: Sequence[Collected], files: Sequence[Path], as_json: bool) -> None:
    """Show what came of shapes and where it was written; the exit code is 1 where one could not be compiled."""
    if as_json:
        screen.json({"shapes": [of_collected(row) for row in rows], "files": [str(file) for file in files]})
    else:
        columns = ("shape", "used", "measured", "best", "time")
        screen.table(columns, [_cells(row) for row in rows], right=("used", "measured", "time"))
        for file in files:
            screen.say(f"written: {file}")
    if any(row.trouble for row in rows):
        ctx.exit(1)


def of_collected(row: Collected) -> dict[str, Any]:
    """Return what came of a shape as plain values."""
    asked = [
        {
            "decision": one.decision,
            "problem": dict(one.problem),
            "measured": one.measured,
            "answer": of_answer(one.answer),
        }
        for one in row.asked
    ]
    return {**of_shape(row.shape), "asked": asked, "seconds": row.seconds, "trouble": row.trouble}


def written(rows: Sequence[Collected], target: Target) -> list[Path]:
    """Write what was measured of these very shapes, now or before, and return the files."""
    if target.path is None:
        return []
    problems: dict[str, set[Problem]] = {}
    for one in (one for row in rows for one in row.asked):
        problems.setdefault(one.decision, set()).add(one.problem)
    return datafiles.write(datafiles.remembered(problems=problems), target.path, target.kind)


def _said(row: Collected) -> str:
    if row.trouble:
        return f"failed: {' '.join(row.trouble.split())[:200]}"
    if not row.asked:
        return "Inductor has one kernel only"
    measured = sum(one.measured for one in row.asked)
    return f"{count(measured, 'config')} measured, {show(row.asked[-1].answer.config)}" if measured else "known already"


def _cells(row: Collected) -> tuple[str, ...]:
    best = row.asked[-1].answer if row.asked else None
    time_s = best.time_s if best is not None else None
    kernel = show(best.config) if best is not None else ("failed" if row.trouble else "-")
    measured = str(sum(one.measured for one in row.asked))
    return shown(row.shape), f"{row.shape.weight:g}", measured, kernel, seconds(time_s)
