"""`tunewise demo`: tune a real kernel on real shapes, then answer from memory."""

import os
import shlex
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

import click

from tunewise import workloads
from tunewise.cli import facts
from tunewise.cli.explain import draw
from tunewise.cli.home import FORGETS, at_home, sound_store
from tunewise.cli.problems import Features
from tunewise.cli.progress import watching
from tunewise.cli.runs import Question, gain_of, row_of
from tunewise.cli.screen import Screen, count, example, json_option, seconds
from tunewise.decision import Config
from tunewise.errors import MissingPart
from tunewise.measure.compiler import find_compiler
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
_ANSWERS = 1000
_SECONDS = 25.0  # a shape: however slow the machine, nobody waits longer than three minutes


@click.command(epilog=example("tunewise demo --budget 2", "tunewise demo --budget 2 --json"))
@click.option(
    "--budget", type=click.IntRange(min=1), default=64, show_default=True, help="Most configs to try, for each shape."
)
@click.option("--fresh", is_flag=True, help="Begin without memory, in a home that is removed afterwards.")
@json_option
@click.pass_context
def demo(ctx: click.Context, budget: int, fresh: bool, as_json: bool) -> None:
    """Tune a real kernel on real shapes.

    The built-in gemm is tuned, default and winner are shown, and the same problems are answered from memory. Without
    a C compiler, choices between library functions are tuned instead.
    """
    screen: Screen = ctx.obj
    with ExitStack() as stack:
        if fresh:
            ctx.meta[FORGETS] = True
            stack.enter_context(at_home(stack.enter_context(tempfile.TemporaryDirectory(prefix="tunewise-"))))
        sound_store()
        questions = _questions(screen)
        rows = _tune(screen, questions, budget)
        answer_s = _time_answers([question for _, question in questions])
        shown = max(range(len(rows)), key=lambda place: rows[place].get("gain", 1.0))
        decision, problem = questions[shown][1]
        explanation = decision.explain(problem)
        sound_store()
        if as_json:
            screen.json({"tunings": rows, "answer_s": answer_s, "explanation": facts.of_explanation(explanation)})
            return
        _show(screen, rows)
        _tell(screen, rows, answer_s, fresh)
        draw(screen, explanation)
        screen.show("")
        screen.columns("Next:", _next(_command(ctx), rows[shown], fresh))


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


def _time_answers(questions: Sequence[Question]) -> float:
    """Return the seconds an answer from memory takes, once it has been looked up."""
    for decision, problem in questions:
        decision.decide(problem)
    start = time.perf_counter()
    for _ in range(_ANSWERS):
        for decision, problem in questions:
            decision.decide(problem)
    return (time.perf_counter() - start) / (_ANSWERS * len(questions))


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
        _changed(row),
    )


def _changed(row: facts.Row) -> str:
    """Return only what differs from the default: that is what tuning found."""
    default = row.get("default", {})
    return show({name: value for name, value in row["config"].items() if default.get(name) != value}) or "the default"


def _tell(screen: Screen, rows: Sequence[facts.Row], answer_s: float, is_fresh: bool) -> None:
    measured, spent = sum(row["measured"] for row in rows), sum(row["seconds"] for row in rows)
    if measured:
        kept = "all of it is forgotten now" if is_fresh else "every measurement is kept"
        screen.show(f"{count(measured, 'config')} measured in {spent:.0f} s; {kept}.")
    else:
        screen.show("Nothing was measured: all of this was known. Another --home, or --fresh, begins anew.")
    screen.show(f"The same problems again, from memory: {seconds(answer_s)} an answer. Where one of them comes from:")
    screen.show("")


def _next(command: str, row: facts.Row, is_fresh: bool) -> Iterator[tuple[str, str]]:
    """Yield what to do next, commands that run here, and what each is for."""
    problem = ",".join(f"{name}={value}" for name, value in row["problem"].items())
    if is_fresh:
        yield f"{command} demo", "the same, and remember it"
    else:
        yield f"{command} best {row['decision']}", "what is remembered"
        yield f"{command} explain {row['decision']} --problem {problem}", "where an answer comes from"
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
