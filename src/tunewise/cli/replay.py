"""`tunewise replay`: how a strategy does on spaces that were recorded, without any device."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from tunewise import search, system
from tunewise.cli.outputs import check_outputs
from tunewise.cli.screen import Screen, count, example, json_option, pass_screen
from tunewise.errors import InvalidFile
from tunewise.report.curves import Line, picture
from tunewise.session.contest import Contest, hold, recordings
from tunewise.session.scores import Score, marks

_LINES = 4  # plain lines of progress where nothing can move
_NAMED = 2  # spaces in the title of a picture
_PICTURE = Path("replay.svg")  # where a comparison is drawn unless told otherwise
_FILE = click.Path(path_type=Path)


class Names(click.ParamType[tuple[str, ...]]):
    """A list of names with commas between them, none of them twice."""

    name = "a,b,c"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, ...]:
        """Return the names in order; an empty list is a usage error."""
        names = tuple(dict.fromkeys(name.strip() for name in str(value).split(",") if name.strip()))
        if not names:
            self.fail(f"{value!r} names no strategy; write --compare random,local.", param, ctx)
        return names


@click.command(
    epilog=example(
        "tunewise tune sort --problem n=1000,dtype=int64,order=random",
        "tunewise store export facts.jsonl",
        "tunewise replay facts.jsonl --strategy random --budget 3 --seeds 5",
        "tunewise replay facts.jsonl --compare random,local --budget 3 --svg curves.svg",
    )
)
@click.argument("files", metavar="FILE...", nargs=-1, required=True, type=_FILE)
@click.option("--strategy", default=search.AUTO, show_default=True, help="Which strategy to run.")
@click.option("--compare", type=Names(), help="Several strategies, side by side, instead of one.")
@click.option("--budget", type=click.IntRange(min=1), default=100, show_default=True, help="Configs tried in a run.")
@click.option("--seeds", type=click.IntRange(min=1), default=10, show_default=True, help="Runs, each of its own seed.")
@click.option("--prior", "priors", type=_FILE, multiple=True, help="What is told first, as of elsewhere; repeatable.")
@click.option("--noise", is_flag=True, help="Tell one recorded sample of a config instead of its time.")
@click.option("--svg", type=_FILE, help="Draw the curves into this file; --compare draws them anyway.")
@click.option("--jobs", type=click.IntRange(min=1), help="Processes; by default one a core. They change no result.")
@json_option
@pass_screen
def replay(
    screen: Screen,
    /,
    files: Sequence[Path],
    strategy: str,
    compare: tuple[str, ...] | None,
    svg: Path | None,
    jobs: int | None,
    as_json: bool,
    **options: Any,
) -> None:
    """Run strategies on recorded spaces.

    FILE is a Kernel Tuner cache or a T4 file, plain or .gz, or a `tunewise store export`. Shown is the best time found
    over the best recorded time, the geometric mean over seeds, after so many evaluations; configs that fail count.
    """
    svg = svg or (_PICTURE if compare else None)
    check_outputs({"--svg": svg}, [*files, *options["priors"]])
    contest = Contest(tuple(files), compare or (strategy,), **options)
    for recording in recordings(contest):
        if recording.remark:
            screen.say(f"warning: {recording.name}: {recording.remark}")
    with _watching(screen) as progress:
        scores = hold(contest, jobs=jobs or system.cores(), progress=progress)
    if svg is not None:
        _draw(svg, scores)
        screen.say(f"curves drawn into {svg}")
    if as_json:
        rows = [_document(score) for score in scores]
        screen.json({"strategies": rows} if compare else rows[0])
    elif compare:
        _show_strategies(screen, scores)
    else:
        _show_spaces(screen, scores[0])


def _document(score: Score) -> dict[str, Any]:
    return {
        "strategy": score.strategy,
        "budget": score.budget,
        "seeds": score.seeds,
        "spaces": [
            {
                "file": space.name,
                "optimum": space.optimum_s,
                "best_over_optimum": {str(n): value for n, value in space.best_over_optimum.items()},
                "to_5_percent": space.to_5_percent,
                "to_1_percent": space.to_1_percent,
                "overhead_ms": space.overhead_ms,
            }
            for space in score.spaces
        ],
        "geomean": {str(n): value for n, value in score.geomean.items()},
    }


def _show_spaces(screen: Screen, score: Score) -> None:
    at = [f"@{n}" for n in marks(score.budget)]
    columns = ("space", *at, "to 5 %", "to 1 %", "ms/eval")
    rows = [
        (
            Path(space.name).name,
            *(f"{value:.3f}" for value in space.best_over_optimum.values()),
            space.to_5_percent or "-",
            space.to_1_percent or "-",
            f"{space.overhead_ms:.2f}",
        )
        for space in score.spaces
    ]
    if len(score.spaces) > 1:
        means = (f"{value:.3f}" for value in score.geomean.values())
        rows.append(("geometric mean", *means, "", "", f"{score.overhead_ms:.2f}"))
    screen.table(columns, rows, right=columns[1:])
    screen.say(f"{score.strategy}: best time found / optimum, {_of(score)}")


def _show_strategies(screen: Screen, scores: Sequence[Score]) -> None:
    columns = ("strategy", *(f"@{n}" for n in marks(scores[0].budget)), "ms/eval")
    rows = [
        (score.strategy, *(f"{value:.3f}" for value in score.geomean.values()), f"{score.overhead_ms:.2f}")
        for score in scores
    ]
    screen.table(columns, rows, right=columns[1:])
    screen.say(f"best time found / optimum, {_of(scores[0])}")


def _of(score: Score) -> str:
    return f"geometric mean over {count(len(score.spaces), 'space')} and {count(score.seeds, 'seed')}"


def _draw(path: Path, scores: Sequence[Score]) -> None:
    lines = [Line(score.strategy, score.curve) for score in scores]
    names = [Path(space.name).name.removesuffix(".gz").removesuffix(".json") for space in scores[0].spaces]
    title = ", ".join(names[:_NAMED]) + (f" and {len(names) - _NAMED} more" if len(names) > _NAMED else "")
    text = picture(lines, title=title, note=f"{_of(scores[0])}; failed configs count")
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise InvalidFile(f"{path} cannot be written: {error.strerror}; choose another place for it") from error


@contextmanager
def _watching(screen: Screen) -> Iterator[Callable[[int, int], None]]:
    """Give a listener for progress: a moving line on a terminal, a few plain lines elsewhere."""
    if not screen.err.is_terminal:
        yield lambda done, total: screen.say(f"{done}/{total} runs") if _is_due(done, total) else None
        return
    columns = (TextColumn("replaying"), BarColumn(20), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=screen.err, auto_refresh=False, transient=True) as bar:
        task = bar.add_task("", total=None)

        def move(done: int, total: int) -> None:
            bar.update(task, completed=done, total=total)
            bar.refresh()

        yield move


def _is_due(done: int, total: int) -> bool:
    return total >= 2 * _LINES and done < total and done % max(1, total // _LINES) == 0
