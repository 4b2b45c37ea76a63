"""Tuning progress: how the best time of every problem fell from evaluation to evaluation."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import exp, log

from tunewise.decision import Outcome, Timing, Trial, canonical, merged
from tunewise.report.curves import Line
from tunewise.session.recall import Measured

_MOST_LINES = 6  # problems drawn each for itself


@dataclass(frozen=True, slots=True)
class Progress:
    """Curves of best so far / best found, and what they are made of."""

    lines: tuple[Line, ...]
    problems: int
    evaluations: int
    failures: int

    def as_json(self) -> dict[str, int]:
        """Return the counts as plain values."""
        return {"problems": self.problems, "evaluations": self.evaluations, "failures": self.failures}


def progress(measured: Iterable[Measured]) -> Progress | None:
    """Return the progress over all problems of which two configs or more were tried; None where there is none."""
    names: dict[str, str] = {}
    trials: dict[str, list[Trial]] = {}
    for one in measured:
        digest = one.subject.digest
        names[digest] = str(one.subject.problem) or one.subject.decision
        trials.setdefault(digest, []).append(one.trial)
    outcomes = {digest: _by_config(found) for digest, found in trials.items()}
    lines = [Line(names[digest], best_so_far(found)) for digest, found in outcomes.items()]
    lines = [line for line in lines if len(line.values) > 1]
    if not lines:
        return None
    tried = [outcome for found in outcomes.values() for outcome in found]
    failures = sum(not isinstance(outcome, Timing) for outcome in tried)
    return Progress(_shown(lines), len(lines), len(tried), failures)


def best_so_far(outcomes: Sequence[Outcome]) -> list[float]:
    """Return best so far / best found after every evaluation; until one has a time, the worst time stands."""
    times = [outcome.time_s for outcome in outcomes if isinstance(outcome, Timing)]
    if not times:
        return []
    best, found = max(times), []
    for outcome in outcomes:
        if isinstance(outcome, Timing):
            best = min(best, outcome.time_s)
        found.append(best / min(times))
    return found


def _by_config(trials: Sequence[Trial]) -> list[Outcome]:
    """Return the outcome of every config, in the order in which they were first tried."""
    outcomes: dict[str, list[Outcome]] = {}
    for trial in trials:
        outcomes.setdefault(canonical.encode(dict(trial.config)), []).append(trial.outcome)
    return [merged(several) for several in outcomes.values()]


def _shown(lines: Sequence[Line]) -> tuple[Line, ...]:
    """Return one line, a line for every problem of a few, or the mean and the worst of many."""
    if len(lines) == 1:
        return tuple(lines)
    longest = max(len(line.values) for line in lines)
    levels = [[line.values[min(n, len(line.values) - 1)] for line in lines] for n in range(longest)]
    mean = Line("geometric mean", [exp(sum(map(log, level)) / len(level)) for level in levels])
    if len(lines) <= _MOST_LINES:
        return (mean, *lines)
    return (mean, Line("worst problem", [max(level) for level in levels]))
