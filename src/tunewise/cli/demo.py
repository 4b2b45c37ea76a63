"""`tunewise demo`: tune a real kernel, learn from what was measured, ship it as code, and use it."""

import os
import shlex
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import click

from tunewise import settings, workloads
from tunewise.cli import demo_opencl, facts
from tunewise.cli.explain import draw
from tunewise.cli.home import FORGETS, at_home, sound_store, writable_store
from tunewise.cli.lessons import CONVOLVE, GEMM, ISIN, Course, Lesson, learn, side_by_side, unseen
from tunewise.cli.problems import Features
from tunewise.cli.progress import watching
from tunewise.cli.runs import Question, changed, gain_of, row_of, time_answers
from tunewise.cli.screen import Screen, count, example, json_option, seconds
from tunewise.decision import Config
from tunewise.errors import MissingPart
from tunewise.measure.compiler import find_compiler
from tunewise.session import drop_heuristics
from tunewise.session.ladder import show

SHAPES: dict[str, Features] = {
    "square": {"m": 256, "n": 256, "k": 256},
    "one row": {"m": 1, "n": 1024, "k": 1024},
    "skinny": {"m": 8, "n": 1024, "k": 512},
    "deep": {"m": 64, "n": 64, "k": 4096},
    "tall": {"m": 4096, "n": 64, "k": 64},
    "shallow": {"m": 512, "n": 512, "k": 8},
}
CHOICES: dict[str, tuple[str, Features]] = {
    "long signal": ("convolve1d", {"n": 100_000, "k": 1000}),
    "short signal": ("convolve1d", {"n": 1000, "k": 10}),
    "few members": ("isin", {"n": 100_000, "m": 100, "span": 1000}),
    "wide members": ("isin", {"n": 1000, "m": 10_000, "span": 1_000_000_000}),
    "random numbers": ("sort", {"n": 100_000, "dtype": "int64", "order": "random"}),
    "sorted numbers": ("sort", {"n": 100_000, "dtype": "int64", "order": "sorted"}),
}
_SECONDS = 12.0  # a shape: however slow the machine, nobody waits longer than four minutes for all of it
_UNSEEN = 3
_TUNED = 24  # configs tried on a problem never seen, to say what the learned answer leaves on the table
_CANDIDATES = 7


@click.command(
    epilog=example("tunewise demo --budget 2 --problems 8", "tunewise demo --budget 2 --problems 8 --fresh --json")
)
@click.option(
    "--backend",
    type=click.Choice(("c", "opencl")),
    default="c",
    show_default=True,
    help="What to tune: C kernels, or OpenCL kernels on a GPU or, through PoCL, on the processor.",
)
@click.option("--device", help="The OpenCL device: a number or a part of its name.  [default: a GPU if there is one]")
@click.option(
    "--budget", type=click.IntRange(min=1), default=32, show_default=True, help="Most configs to try, for each shape."
)
@click.option(
    "--problems", type=click.IntRange(min=4), help="Problems to learn from, for each decision.  [default: 100]"
)
@click.option(
    "--out", type=click.Path(path_type=Path), help="Where models, code and report go.  [default: demo, at home]"
)
@click.option("--fresh", is_flag=True, help="Begin without memory, in a home that is removed afterwards.")
@json_option
@click.pass_context
def demo(
    ctx: click.Context,
    backend: str,
    device: str | None,
    budget: int,
    problems: int | None,
    out: Path | None,
    fresh: bool,
    as_json: bool,
) -> None:
    """Tune a real kernel, learn from it, and ship that as code.

    The built-in gemm is tuned on six shapes. The winners and a choice between library functions are measured on drawn
    problems; a model is learned from most of them, judged on the others, written as Python code and used. Without a C
    compiler, choices between library functions are tuned and learned instead. With --backend opencl, the built-in
    OpenCL kernels are tuned, and that is all.
    """
    screen: Screen = ctx.obj
    with ExitStack() as stack:
        if fresh:
            ctx.meta[FORGETS] = True
            stack.enter_context(at_home(stack.enter_context(tempfile.TemporaryDirectory(prefix="tunewise-"))))
        if backend == "opencl":
            _refuse("is for the C kernels: the OpenCL demo learns nothing", problems=problems, out=out)
            demo_opencl.show(screen, budget, device, is_fresh=fresh, as_json=as_json)
            return
        _refuse("needs --backend opencl", device=device)
        stack.callback(drop_heuristics)  # what the demo loads is the demo's
        writable_store()
        questions = _questions(screen)
        rows = _tune(screen, questions, budget)
        answer_s = time_answers([question for _, question in questions])
        place = out or settings.current().home / "demo"
        lessons = _learn(screen, questions, rows, problems, place)
        table = _compare(screen, lessons[0], budget)
        explanation = lessons[0].decision.explain(unseen(_course(lessons[0]), _UNSEEN + 1)[-1])
        report = _report(lessons[0], place)
        sound_store()
        if as_json:
            document = {
                "tunings": rows,
                "answer_s": answer_s,
                "lessons": [lesson.as_json() for lesson in lessons],
                "unseen": table,
                "explanation": facts.of_explanation(explanation),
                "report": str(report),
            }
            screen.json(document)
            return
        _show(screen, rows)
        _tell(screen, [*rows, *table], sum(lesson.measured for lesson in lessons), answer_s, fresh)
        _show_lessons(screen, lessons)
        _show_unseen(screen, table)
        draw(screen, explanation)
        screen.show("")
        screen.columns("Written:" if not fresh or out else "Written, and removed now:", _written(lessons, report))
        screen.columns("Next:", _next(_command(ctx), rows[0], fresh, lessons[0]))


def _refuse(reason: str, **options: object) -> None:
    for name, value in options.items():
        if value is not None:
            raise click.UsageError(f"--{name} {reason}.")


def _questions(screen: Screen) -> list[tuple[str, Question]]:
    """Return what the demo tunes, by a name for people: gemm if it can be compiled."""
    try:
        find_compiler()
    except MissingPart as error:
        screen.say(f"{error}. The demo goes on with choices between library functions.")
        return [(name, (workloads.find(choice), problem)) for name, (choice, problem) in CHOICES.items()]
    gemm = workloads.find("gemm")
    return [(name, (gemm, problem)) for name, problem in SHAPES.items()]


def _tune(screen: Screen, questions: Sequence[tuple[str, Question]], budget: int) -> list[facts.Row]:
    """Tune one after another; what won before is tried first, and needs no compiling any more."""
    rows: list[facts.Row] = []
    won: dict[str, list[Config]] = {}
    with watching(screen) as watcher:
        for name, (decision, problem) in questions:
            seeds = won.setdefault(decision.name, [])
            plan = {"budget": budget, "seconds": _SECONDS, "seeds": tuple(seeds)}
            tuning = decision.tune(problem, listener=watcher.hear, **plan)
            row = row_of(decision, problem, tuning)
            rows.append({"name": name, **row})
            if row["config"] not in (*seeds, dict(decision.default)):  # the default is tried anyway
                seeds.insert(0, row["config"])
    return rows


def _learn(
    screen: Screen,
    questions: Sequence[tuple[str, Question]],
    rows: Sequence[facts.Row],
    problems: int | None,
    out: Path,
) -> list[Lesson]:
    """Learn the decision that was tuned, with the winners as candidates, and a library choice."""
    is_gemm = questions[0][1][0].name == GEMM.decision
    courses = (GEMM, ISIN) if is_gemm else (ISIN, CONVOLVE)
    with watching(screen) as watcher:
        return [
            learn(course, _winners(rows) if course is GEMM else (), problems or course.problems, out, watcher.hear)
            for course in courses
        ]


def _winners(rows: Sequence[facts.Row]) -> list[Config]:
    """Return the configs that won somewhere, the largest gain first."""
    won = sorted((row for row in rows if row["ending"] == "win"), key=lambda row: -row["gain"])
    found: list[Config] = []
    for row in won:
        if row["config"] not in found:
            found.append(row["config"])
    return found[:_CANDIDATES] or [row["config"] for row in rows[:1]]


def _course(lesson: Lesson) -> Course:
    return next(course for course in (GEMM, ISIN, CONVOLVE) if course.decision == lesson.decision.name)


def _compare(screen: Screen, lesson: Lesson, budget: int) -> list[dict[str, Any]]:
    """Tune problems never seen, to compare with what was learned."""
    with watching(screen) as watcher:
        return [
            side_by_side(lesson, problem, min(budget, _TUNED), _SECONDS, watcher.hear)
            for problem in unseen(_course(lesson), _UNSEEN)
        ]


def _report(lesson: Lesson, out: Path) -> Path:
    from tunewise.report.findings import gather
    from tunewise.report.page import save
    from tunewise.session.recall import trials

    path = out / f"{lesson.decision.name}_report.html"
    save(gather(lesson.held, lesson.model, trials(lesson.decision.name)), path)
    return path


def _show(screen: Screen, rows: Sequence[facts.Row]) -> None:
    screen.show(f"{', '.join(dict.fromkeys(row['decision'] for row in rows))}: default against tuned", style="bold")
    columns = ("shape", "problem", "default", "tuned", "gain", "p", "pairs", "tried", "winning config")
    numbers = ("default", "tuned", "gain", "p", "pairs", "tried")
    screen.table(columns, [_cells(row) for row in rows], right=numbers)
    screen.show("gain: default over tuned, the median of the pairs; p: the chance of such a final between equals;")
    screen.show("tie: nothing beat the default beyond the noise, so it stays")


def _cells(row: facts.Row) -> tuple[str, ...]:
    return (
        row["name"],
        show(row["problem"]),
        seconds(row.get("default_s")),
        seconds(row.get("time_s")),
        gain_of(row),
        f"{row['p_value']:.1g}" if row["ending"] == "win" else "-",
        str(row.get("pairs") or "-"),
        str(row.get("evaluations", "-")),
        changed(row),
    )


def _tell(screen: Screen, rows: Sequence[Mapping[str, Any]], collected: int, answer_s: float, is_fresh: bool) -> None:
    measured = sum(row["measured"] for row in rows) + collected
    if measured:
        kept = "all of it is forgotten now" if is_fresh else "every measurement is kept"
        screen.show(f"{count(measured, 'config')} measured, on these and on drawn problems; {kept}.")
    else:
        screen.show("Nothing was measured: all of this was known. Another --home, or --fresh, begins anew.")
    screen.show(f"The same problems again, from memory: {seconds(answer_s)} an answer.")
    screen.show("")


def _show_lessons(screen: Screen, lessons: Sequence[Lesson]) -> None:
    screen.show("Learned, and judged on problems never seen: time over the best measured, geometric mean", style="bold")
    columns = ("decision", "learned from", "judged on", "configs", "default", "best single", "learned", "answers")
    numbers = columns[1:]
    screen.table(columns, [_lesson_cells(lesson) for lesson in lessons], right=numbers)
    screen.show("")


def _lesson_cells(lesson: Lesson) -> tuple[str, ...]:
    judged = lesson.validation
    default = judged.default_regret.geomean if judged.default_regret else None
    return (
        lesson.decision.name,
        str(len(lesson.data) - len(lesson.held)),
        str(len(lesson.held)),
        str(len(lesson.data.configs)),
        "-" if default is None else f"{default:.3f}",
        f"{judged.best_single_regret.geomean:.3f}",
        f"{judged.regret.geomean:.3f}",
        f"{judged.coverage:.0%}",
    )


def _show_unseen(screen: Screen, rows: Sequence[Mapping[str, Any]]) -> None:
    screen.show(
        f"{rows[0]['decision']} on problems not learned from: learned at once, tuned afterwards",
        style="bold",
    )
    ways = ("default", "best single", "learned", "tuned")
    cells = [
        (show(row["problem"]), *(seconds(row[f"{way.replace(' ', '_')}_s"]) for way in ways), str(row["measured"]))
        for row in rows
    ]
    screen.table(("problem", *ways, "measured to tune"), cells, right=(*ways, "measured to tune"))
    screen.show("")


def _written(lessons: Sequence[Lesson], report: Path) -> Iterator[tuple[str, str]]:
    for lesson in lessons:
        yield str(lesson.files["code"]), f"{lesson.decision.name} as plain Python that imports nothing"
    yield str(lessons[0].files["model"]), "the model; the data lie beside it"
    yield str(report), "all of it as one page"


def _next(command: str, row: facts.Row, is_fresh: bool, lesson: Lesson) -> Iterator[tuple[str, str]]:
    """Yield what to do next, commands that run here, and what each is for."""
    problem = ",".join(f"{name}={value}" for name, value in row["problem"].items())
    if is_fresh:
        yield f"{command} demo", "the same, and remember it"
    else:
        yield f"{command} best {row['decision']}", "what is remembered"
        yield f"{command} explain {row['decision']} --problem {problem}", "where an answer comes from"
        model = shlex.quote(str(lesson.files["model"]))
        yield f"{command} generate {model} --lang c", "the same heuristic as a C header"
    if Path("examples/gemm.py").is_file():
        yield f"{command} tune examples/gemm.py:gemm --problem m=256,n=256,k=64", "a decision in a file"
    else:
        yield f"{command} tune isin --problem n=10000,m=100,span=1000", "another decision"
    yield f"{command} --help", "everything else"


def _command(ctx: click.Context) -> str:
    """Return how to call us from here: `make demo` runs a script that is not on the path."""
    script, home = Path(sys.argv[0]), ctx.find_root().params.get("home")
    name = "tunewise"
    if script.name == name and shutil.which(name) != str(script.absolute()):
        name = os.path.relpath(script) if script.absolute().is_relative_to(Path.cwd()) else str(script)
    return f"{name} --home {shlex.quote(home)}" if home else name
