"""What the demo learns: a decision is collected on drawn problems, learned, judged on problems never seen, and used."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tunewise import models, workloads
from tunewise.cli.problems import Features
from tunewise.codegen import generate
from tunewise.decision import Config, Problem, Scalar, Timing, canonical, merged
from tunewise.decision.draws import Draw, LogUniform, drawn
from tunewise.heuristics import Heuristic
from tunewise.heuristics.shipped import DATA, MODEL
from tunewise.session import Decision, evidence, load_heuristic
from tunewise.session.context import current_store
from tunewise.session.events import Listener

if TYPE_CHECKING:
    from tunewise.formats.dataset import DataSet
    from tunewise.learn.validate import Validation

_HELD = 0.3  # of the problems are never learned from
_NEW_SEED = 1  # of problems that are not even collected


@dataclass(frozen=True, slots=True)
class Course:
    """Which problems of a built-in decision to learn from, and how many."""

    decision: str
    features: Mapping[str, Draw]
    problems: int


GEMM = Course("gemm", {name: LogUniform(8, 1024, 8) for name in "mnk"}, 100)
ISIN = Course("isin", {"n": LogUniform(16, 100_000), "m": LogUniform(2, 10_000), "span": LogUniform(100, 10**8)}, 100)
CONVOLVE = Course("convolve1d", {"n": LogUniform(16, 100_000), "k": LogUniform(2, 2000)}, 100)


@dataclass(frozen=True, slots=True)
class Lesson:
    """What came of a course: the model and its code in files, the heuristic in force, and how it did."""

    decision: Decision
    data: "DataSet"
    held: "DataSet"
    model: models.Model
    heuristic: Heuristic
    validation: "Validation"
    measured: int
    files: Mapping[str, Path]

    def as_json(self) -> dict[str, Any]:
        """Return the lesson as plain values."""
        return {
            "decision": self.decision.name,
            "problems": len(self.data),
            "held_out": len(self.held),
            "configs": len(self.data.configs),
            "measured": self.measured,
            "validation": self.validation.as_json(),
            "files": {name: str(path) for name, path in self.files.items()},
        }


def learn(course: Course, candidates: Sequence[Config], problems: int, out: Path, listener: Listener) -> Lesson:
    """Collect a course's problems, learn from most of them, and judge the generated code on the others.

    `candidates` are measured on every problem beside the default; with none, the whole space is. The model, the code
    and the data are written to `out`.
    """
    from tunewise.formats.datasets import write
    from tunewise.learn.options import Training
    from tunewise.learn.split import by_problem
    from tunewise.learn.training import train
    from tunewise.learn.validate import validate
    from tunewise.models.source import load_source

    decision = workloads.find(course.decision)
    asked = drawn(course.features, problems)
    measured = _collect(decision, asked, candidates, listener)
    data = _data(decision, asked)
    known, held = by_problem(data, _HELD)
    model = train(known, Training(fence=_fence(decision)))
    files = {kind: out / f"{decision.name}{end}" for kind, end in _ENDINGS.items()}
    out.mkdir(parents=True, exist_ok=True)
    models.save(model, files["model"])
    files["code"].write_text(generate(model, "python"))
    write(data, files["data"])
    (heuristic,) = load_heuristic(files["code"])
    judged = validate(load_source(files["code"]), held)
    return Lesson(decision, data, held, model, heuristic, judged, measured, files)


_ENDINGS = {"model": MODEL, "code": "_heuristic.py", "data": DATA}


def unseen(course: Course, count: int) -> list[Features]:
    """Return problems that were neither learned from nor collected."""
    known = set(drawn(course.features, course.problems))
    fresh = [problem for problem in drawn(course.features, course.problems, _NEW_SEED) if problem not in known]
    return [dict(problem) for problem in fresh[:count]]


def side_by_side(lesson: Lesson, problem: Features, budget: int, seconds: float, listener: Listener) -> dict[str, Any]:
    """Tune a problem never seen, and return the times of default, best single choice, learned choice and winner."""
    decision = lesson.decision
    learned = lesson.heuristic.choose(decision.derive(decision.problem(problem))) or decision.default
    single = lesson.validation.best_single
    seeds = [dict(config) for config in (learned, single) if config != decision.default]
    # The known ones by turns first, so that their times can be compared; then tuned on top of that, once. What
    # tuning finds is compared with the default only, by turns too: its time is told by how much faster it was there.
    measured = _collect(decision, [problem], seeds or [dict(decision.default)], listener)
    tuning = decision.tune(problem, listener=listener, budget=budget, seconds=seconds, seeds=seeds, again=measured > 0)
    times_s = _times(decision, problem)
    ways = {"default": decision.default, "best_single": single, "learned": learned}
    known_s = {way: times_s.get(canonical.encode(dict(config))) for way, config in ways.items()}
    tuned_s = times_s.get(canonical.encode(dict(tuning.answer.config))) or _won_s(decision, problem, known_s["default"])
    return {
        "decision": decision.name,
        "problem": dict(problem),
        "measured": measured + tuning.measured,
        **{f"{way}_s": time_s for way, time_s in {**known_s, "tuned": tuned_s}.items()},
    }


_FENCE = (
    *("hardware.kind", "hardware.name", "hardware.capability", "hardware.isa"),
    *("hardware.l1d", "hardware.l2", "hardware.l3", "kernel", "source"),
)


def _fence(decision: Decision) -> dict[str, Scalar]:
    """Return what must be equal where the model is used: the model of the CPU, and the code that was measured."""
    must = decision.subject(Problem({})).environment.must
    return {name: must[name] for name in _FENCE if name in must}


def _collect(decision: Decision, problems: Sequence[Features], candidates: Sequence[Config], listener: Listener) -> int:
    seeds = [dict(config) for config in candidates]
    budget = 1 + len(seeds) if seeds else decision.space.count()
    tunings = decision.collect(problems, budget=budget, seeds=seeds, listener=listener)
    return sum(tuning.measured for tuning in tunings)


def _data(decision: Decision, problems: Sequence[Features]) -> "DataSet":
    """Return what was measured of these problems here and now; the store may hold much more."""
    from tunewise.formats.trials import data_of

    wanted = {decision.subject(decision.problem(problem)).digest for problem in problems}
    records = (record for record in current_store().records(decision.name) if record.subject.digest in wanted)
    return data_of(records, decision.name)


def _times(decision: Decision, problem: Features) -> dict[str, float]:
    """Return the seconds of the configs that first ran on a problem, by turns in one run, by their JSON."""
    taken: dict[str, list[Timing]] = {}
    trials = current_store().trials(decision.subject(decision.problem(problem)))
    for trial in trials:
        if isinstance(trial.outcome, Timing) and trial.run == trials[0].run:
            taken.setdefault(canonical.encode(dict(trial.config)), []).append(trial.outcome)
    whole = {key: merged(timings) for key, timings in taken.items()}
    return {key: timing.time_s for key, timing in whole.items() if isinstance(timing, Timing)}


def _won_s(decision: Decision, problem: Features, default_s: float | None) -> float | None:
    """Return the seconds of what won against the default last, in terms of the default's; None where nothing did."""
    verdicts = evidence.answering(current_store().verdicts(decision.subject(decision.problem(problem))))
    win = next((verdict for verdict in verdicts if verdict.ending == "win"), None)
    return default_s / win.gain if win is not None and default_s is not None else None
