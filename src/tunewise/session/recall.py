"""What is remembered, by name: winners, trials and misses, without the code that declared the decision."""

import difflib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tunewise.decision import Failure, Miss, Problem, Subject, Trial, Verdict
from tunewise.errors import InvalidProblem, NotFound
from tunewise.session import evidence
from tunewise.session.context import current_store


@dataclass(frozen=True, slots=True)
class Winner:
    """What the last tuning run of a problem came to."""

    subject: Subject
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class Measured:
    """A trial and what it is about."""

    subject: Subject
    trial: Trial


def winners(decision: str, like: Mapping[str, Any] | None = None) -> list[Winner]:
    """Return the verdict that answers for every problem with the features `like`, in the order they were first seen.

    One problem tuned in several environments has one winner in each. Raises NotFound if nothing is remembered of the
    decision, and InvalidProblem for a feature it never had.
    """
    subjects = _subjects(decision, like or {})
    best = ((subject, next(evidence.answering(current_store().verdicts(subject)), None)) for subject in subjects)
    return [Winner(subject, verdict) for subject, verdict in best if verdict is not None]


def trials(decision: str, like: Mapping[str, Any] | None = None, *, failed: bool = False) -> Iterator[Measured]:
    """Yield the trials of every problem that has the features `like`, or only those that failed, oldest first.

    Raises as `winners` does.
    """
    for subject in _subjects(decision, like or {}):
        for trial in current_store().trials(subject):
            if not failed or isinstance(trial.outcome, Failure):
                yield Measured(subject, trial)


def misses(decision: str | None = None) -> list[Miss]:
    """Return the problems that were asked in vain, most often asked first."""
    return current_store().misses(decision)


def _subjects(decision: str, like: Mapping[str, Any]) -> list[Subject]:
    subjects = current_store().subjects(decision)
    if not subjects:
        raise NotFound(unknown(decision))
    wanted = Problem(like)
    known = sorted({name for subject in subjects for name in subject.problem})
    for name in wanted:
        if name not in known:
            raise InvalidProblem(f"{decision} was never asked about {name!r}; its features are {', '.join(known)}")
    return [s for s in subjects if all(s.problem.get(name) == value for name, value in wanted.items())]


def unknown(decision: str) -> str:
    """Return a sentence about a decision of which nothing is remembered, with the name that may be meant."""
    names = current_store().decisions()
    if not names:
        return f"nothing is remembered of {decision!r}, nor of any other decision: tune one first"
    close = difflib.get_close_matches(decision, names, 1)
    hint = f"did you mean {close[0]!r}?" if close else f"there are {', '.join(names)}"
    return f"nothing is remembered of {decision!r}; {hint}"
