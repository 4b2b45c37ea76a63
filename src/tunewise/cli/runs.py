"""Runs: questions asked one after another with progress, and what came of them as rows."""

import itertools
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tunewise.cli import facts
from tunewise.cli.problems import Features, check_names, expected_names
from tunewise.cli.progress import Watcher, watching
from tunewise.cli.screen import Screen, count, one_line, seconds
from tunewise.decision import Verdict
from tunewise.errors import FailedInputs, InvalidConfig, InvalidProblem, NotFound
from tunewise.session import Decision, Tuning
from tunewise.session.context import current_store
from tunewise.session.ladder import in_force, show
from tunewise.session.seeding import usable

Question = tuple[Decision, Features]
_ANSWERS = 1000

EXAMPLES = {
    "gemm": "m=256,n=256,k=64",
    "conv2d": "h=128,w=128,fh=3,fw=3",
    "softmax": "rows=64,columns=1024",
    "convolve1d": "n=20000,k=200",
    "isin": "n=10000,m=100,span=1000",
    "sort": "n=10000,dtype=int64,order=random",
    "opencl-gemm": "m=256,n=256,k=64",
    "opencl-conv2d": "h=128,w=128,fh=3,fw=3",
    "opencl-softmax": "rows=64,columns=1024",
}


def pair_up(decisions: Sequence[Decision], problems: Sequence[Features], *, verb: str) -> list[Question]:
    """Return every decision with every problem; raises if there is none, or a problem does not suit a decision."""
    if not decisions:
        raise NotFound(f"name what to {verb}, such as: tunewise {verb} gemm --problem {EXAMPLES['gemm']}")
    if not problems:
        such_as = EXAMPLES.get(decisions[0].name) or _like(decisions[0])
        raise InvalidProblem(
            f"name the problems to {verb}, such as --problem {such_as}, or --problems FILE with a CSV or JSON file"
        )
    for decision in decisions:
        check_names(decision, problems)
    return [(decision, problem) for decision in decisions for problem in problems]


def _like(decision: Decision) -> str:
    names = expected_names(decision, {})
    return ",".join(f"{name}=8" for name in names) if names else "NAME=VALUE,..."


def check_seeds(screen: Screen, decisions: Iterable[Decision], seeds: Sequence[Features]) -> None:
    """Raise InvalidConfig for a seed that could only be dropped, and tell of one that is tried as something else."""
    for decision, seed in itertools.product(decisions, seeds):
        kept, dropped = usable(decision, [seed])
        for _, reason in dropped:
            raise InvalidConfig(f"{decision.name} cannot try the seed {show(seed)}: {reason}")
        if any(kept[0][name] != value for name, value in seed.items()):
            screen.say(f"{decision.name}: the seed {show(seed)} is not in the space; {show(kept[0])} is tried instead")


def tune_all(screen: Screen, questions: Sequence[Question], **plan: Any) -> list[facts.Row]:
    """Tune one question after another and return a row for each."""
    with watching(screen) as watcher:
        return [_tuned(watcher, *question, plan) for question in questions]


def collect_all(screen: Screen, questions: Sequence[Question], **plan: Any) -> list[facts.Row]:
    """Measure one question after another and return a row for each.

    A problem whose inputs cannot be made is told and passed over: a row with `is_set_up` false. Raises FailedInputs
    where that is so of all.
    """
    rows: list[facts.Row] = []
    failed: list[FailedInputs] = []
    with watching(screen) as watcher:
        for decision, problem in questions:
            try:
                rows.append({**_tuned(watcher, decision, problem, {**plan, "measure_all": True}), "is_set_up": True})
            except FailedInputs as error:
                failed.append(error)
                screen.say(one_line(f"warning: {error}"))
                rows.append(_not_set_up(decision, problem, error))
    if failed and len(failed) == len(rows):
        raise failed[0]
    if failed:
        screen.say(f"{len(failed)} of {count(len(rows), 'problem')} could not be set up; the others were measured")
    return rows


def _tuned(watcher: Watcher, decision: Decision, problem: Features, plan: Mapping[str, Any]) -> facts.Row:
    return row_of(decision, problem, decision.tune(problem, listener=watcher.hear, **plan))


def _not_set_up(decision: Decision, problem: Features, error: FailedInputs) -> facts.Row:
    default, asked = dict(decision.default), dict(decision.problem(problem))
    nothing = {"is_set_up": False, "is_known": False, "measured": 0, "failures": {}, "seconds": 0.0}
    ended = {"ending": "failed", "config": default, "default": default, "detail": str(error), "reason": str(error)}
    return {"decision": decision.name, "problem": asked, **nothing, **ended}


def row_of(decision: Decision, problem: Features, tuning: Tuning) -> facts.Row:
    """Return what a tuning run came to; `ending` is null if another process is still at it."""
    verdict = tuning.verdict or last_verdict(decision, problem)
    row = {
        "decision": decision.name,
        "problem": dict(decision.problem(problem)),
        "is_known": verdict is not None and tuning.verdict is None,
        "measured": tuning.measured,
        "failures": dict(tuning.failures),
        "seconds": tuning.seconds,
        "reason": tuning.answer.reason,
    }
    ended = facts.of_verdict(verdict) if verdict else {"ending": None, "config": dict(tuning.answer.config)}
    return {**row, **ended}


def last_verdict(decision: Decision, problem: Features) -> Verdict | None:
    """Return the verdict that answers a problem here and now, or None if there is none."""
    return in_force(current_store().verdicts(decision.subject(decision.problem(problem))), decision)


def report(screen: Screen, rows: Sequence[facts.Row], as_json: bool) -> None:
    """Show what runs came to: JSON under `tunings`, or a table and how much was measured."""
    if as_json:
        screen.json({"tunings": rows})
        return
    if not rows:
        return
    columns = ("decision", "problem", "default", "tuned", "gain", "p", "config")
    screen.table(columns, [_cells(row) for row in rows], right=("default", "tuned", "gain", "p"))
    measured, known = sum(row["measured"] for row in rows), sum(row["is_known"] for row in rows)
    before = f"; {known} of {count(len(rows), 'problem')} known before" if known else ""
    screen.say(f"{count(measured, 'config')} measured{before}")


def gain_of(row: facts.Row) -> str:
    """Return the gain of a row in a word."""
    return f"{row['gain']:.2f}x" if row["ending"] == "win" else row["ending"] or "busy"


def changed(row: facts.Row) -> str:
    """Return only what differs from the default: that is what tuning found."""
    default = row.get("default", {})
    return show({name: value for name, value in row["config"].items() if default.get(name) != value}) or "the default"


def time_answers(questions: Sequence[Question]) -> float:
    """Return the seconds an answer from memory takes, once it has been looked up."""
    for decision, problem in questions:
        decision.decide(problem)
    start = time.perf_counter()
    for _ in range(_ANSWERS):
        for decision, problem in questions:
            decision.decide(problem)
    return (time.perf_counter() - start) / (_ANSWERS * len(questions))


def _cells(row: facts.Row) -> tuple[str, ...]:
    return (
        row["decision"],
        show(row["problem"]),
        seconds(row.get("default_s")),
        seconds(row.get("time_s")),
        gain_of(row),
        f"{row['p_value']:.1g}" if row["ending"] == "win" else "-",
        show(row["config"]),
    )
