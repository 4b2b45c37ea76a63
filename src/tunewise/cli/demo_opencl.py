"""`tunewise demo --backend opencl`: tune OpenCL kernels on whatever device is here, and remember it."""

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import msgspec

from tunewise import settings, workloads
from tunewise.cli import facts
from tunewise.cli.home import sound_store
from tunewise.cli.problems import Features
from tunewise.cli.progress import watching
from tunewise.cli.runs import Question, changed, gain_of, row_of, time_answers
from tunewise.cli.screen import Screen, count, seconds
from tunewise.decision import Config, Failure, Trial
from tunewise.deploy.opencl import OpenCLDevice, choose
from tunewise.session import configure
from tunewise.session.context import current_store
from tunewise.session.ladder import show as shown

PROBLEMS: dict[str, Features] = {
    "opencl-gemm": {"m": 256, "n": 256, "k": 256},
    "opencl-conv2d": {"h": 512, "w": 512, "fh": 5, "fw": 5},
    "opencl-softmax": {"rows": 256, "columns": 1000},
}
# More work-items in a group than any device we know takes: tried once, to show what becomes of such a config.
TOO_LARGE: Config = {"wg_m": 32, "wg_n": 256, "tm": 1, "tn": 1, "vec": 1}
_SECONDS = 25.0  # a problem: drivers may need a second and more to compile a config


def show(screen: Screen, budget: int, device: str | None, *, is_fresh: bool, as_json: bool) -> None:
    """Tune the three kernels, answer the same problems from memory, and tell what came of it."""
    with _on_device(device):
        chosen = choose()
        screen.say(f"OpenCL device: {chosen.title}, {count(chosen.units, 'compute unit')}")
        questions = [(workloads.find(name), problem) for name, problem in PROBLEMS.items()]
        rows = _tune(screen, questions, budget)
        again = [decision.tune(problem, budget=budget).measured for decision, problem in questions]
        document = {
            "device": msgspec.to_builtins(chosen),
            "tunings": rows,
            "measured_again": sum(again),
            "answer_s": time_answers(questions),
        }
        sound_store()
        if as_json:
            screen.json(document)
        else:
            _show(screen, chosen, rows)
            _tell(screen, document, is_fresh)


@contextmanager
def _on_device(device: str | None) -> Iterator[None]:
    if device is None:
        yield
        return
    configure(home=settings.current().home, opencl_device=device)
    try:
        yield
    finally:
        configure()


def _tune(screen: Screen, questions: Sequence[Question], budget: int) -> list[facts.Row]:
    rows = []
    with watching(screen) as watcher:
        for decision, problem in questions:
            seeds = [TOO_LARGE] if decision.name == "opencl-gemm" else []
            tuning = decision.tune(problem, budget=budget, seconds=_SECONDS, seeds=seeds, listener=watcher.hear)
            trials = current_store().trials(decision.subject(decision.problem(problem)))
            rows.append({**row_of(decision, problem, tuning), "failures": _failures(trials)})
    return rows


def _failures(trials: Sequence[Trial]) -> dict[str, Any]:
    """Return, by kind, how many configs failed and what the first of them said, known from before or not."""
    failed = [trial.outcome for trial in trials if isinstance(trial.outcome, Failure)]
    counts = Counter(failure.kind for failure in failed)
    return {
        kind: {"count": number, "detail": next(failure.detail for failure in failed if failure.kind == kind)}
        for kind, number in counts.items()
    }


def _show(screen: Screen, device: OpenCLDevice, rows: Sequence[facts.Row]) -> None:
    screen.show(f"OpenCL on {device.title}: default against tuned", style="bold")
    columns = ("decision", "problem", "default", "tuned", "gain", "p", "pairs", "tried", "failed", "winning config")
    numbers = ("default", "tuned", "gain", "p", "pairs", "tried")
    screen.table(columns, [_cells(row) for row in rows], right=numbers)
    screen.show("times are the device's own (profiling events); gain: default over tuned, the median of the pairs;")
    screen.show("tie: nothing beat the default beyond the noise, so it stays")
    for row in rows:
        for kind, told in row["failures"].items():
            screen.show(f"{row['decision']}, {kind}: {told['detail'].splitlines()[0]}")


def _cells(row: facts.Row) -> tuple[str, ...]:
    return (
        row["decision"],
        shown(row["problem"]),
        seconds(row.get("default_s")),
        seconds(row.get("time_s")),
        gain_of(row),
        f"{row['p_value']:.1g}" if row["ending"] == "win" else "-",
        str(row.get("pairs") or "-"),
        str(row.get("evaluations", "-")),
        ", ".join(f"{told['count']} {kind}" for kind, told in row["failures"].items()) or "-",
        changed(row),
    )


def _tell(screen: Screen, document: dict[str, Any], is_fresh: bool) -> None:
    measured = sum(row["measured"] for row in document["tunings"])
    if measured:
        kept = "all of it is forgotten now" if is_fresh else "every measurement is kept"
        screen.show(f"{count(measured, 'config')} measured; {kept}.")
    else:
        screen.show("Nothing was measured: all of this was known. Another --home, or --fresh, begins anew.")
    again, answer = count(document["measured_again"], "config"), seconds(document["answer_s"])
    screen.show(f"The same problems again, from memory: {again} measured, {answer} an answer.")
