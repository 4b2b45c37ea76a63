"""What is remembered, by name: winners, trials and misses, without the code that declared the decision."""

import difflib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tunewise.decision import Miss, Problem, Subject, Verdict
from tunewise.errors import InvalidProblem, NotFound
from tunewise.session import evidence
from tunewise.session.context import current_store
from tunewise.store import Measured as Measured
from tunewise.store import Page

_LATELY = 256  # problems that tell which features a decision has


@dataclass(frozen=True, slots=True)
class Winner:
    """What the last tuning run of a problem came to."""

    subject: Subject
    verdict: Verdict


def winners(decision: str, like: Mapping[str, Any] | None = None) -> list[Winner]:
    """Return the verdict that answers for every problem with the features `like`, in the order they were first seen.

    One problem tuned in several environments has one winner in each. Raises NotFound if nothing is remembered of the
    decision, and InvalidProblem for a feature it never had.
    """
    return list(last_winners(decision, like).rows)


def last_winners(decision: str, like: Mapping[str, Any] | None = None, limit: int | None = None) -> Page[Winner]:
    """Return the last so many of `winners`, and how many there are in all."""
    found = current_store().tuned(decision, _wanted(decision, like or {}), limit)
    best = ((one.subject, next(evidence.answering(one.verdicts), None)) for one in found.rows)
    return Page([Winner(subject, verdict) for subject, verdict in best if verdict is not None], found.total)


def trials(decision: str, like: Mapping[str, Any] | None = None, *, failed: bool = False) -> Iterator[Measured]:
    """Yield the trials of every problem that has the features `like`, or only those that failed, oldest first.

    Raises as `winners` does.
    """
    yield from last_trials(decision, like, failed=failed).rows


def last_trials(
    decision: str, like: Mapping[str, Any] | None = None, limit: int | None = None, *, failed: bool = False
) -> Page[Measured]:
    """Return the last so many of `trials`, and how many there are in all."""
    return current_store().measured(decision, _wanted(decision, like or {}), limit, failed=failed)


def misses(decision: str | None = None) -> list[Miss]:
    """Return the problems that were asked in vain, most often asked first."""
    return current_store().misses(decision)


def _wanted(decision: str, like: Mapping[str, Any]) -> Problem:
    """Return features as a problem; raises NotFound and InvalidProblem where they can be of no problem known."""
    store, wanted = current_store(), Problem(like)
    lately = store.subjects(decision, _LATELY)
    if not lately:
        raise NotFound(unknown(decision))
    known = sorted({name for subject in lately for name in subject.problem})
    for name in wanted:
        one = Problem({name: wanted[name]})
        if name not in known and not (store.tuned(decision, one, 1).total or store.measured(decision, one, 1).total):
            raise InvalidProblem(f"{decision} was never asked about {name!r}; its features are {', '.join(known)}")
    return wanted


def unknown(decision: str) -> str:
    """Return a sentence about a decision of which nothing is remembered, with the name that may be meant."""
    names = current_store().decisions()
    if not names:
        return f"nothing is remembered of {decision!r}, nor of any other decision: tune one first"
    close = difflib.get_close_matches(decision, names, 1)
    hint = f"did you mean {close[0]!r}?" if close else f"there are {', '.join(names)}"
    return f"nothing is remembered of {decision!r}; {hint}"
