"""What ranks publish: plans, results and answers as JSON. Nothing that is read is believed before it is checked."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, Any, Literal, TypeVar

import msgspec

from tunewise.decision import Answer, Config, Failure, Outcome, Space, Timing, Verdict
from tunewise.decision.trial import FailureKind
from tunewise.errors import TunewiseError
from tunewise.fleet.boards import MOST_BYTES
from tunewise.formats import facts

SHOWN = 300  # characters of a reason
_PROPOSALS = 20  # of a verdict: the rest is in the store of whoever gave it

Positive = Annotated[float, msgspec.Meta(gt=0)]


class Note(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """Something published."""


class Terms(Note, frozen=True):
    """How a problem is tuned together: what the first rank to ask for it says."""

    run: Annotated[str, msgspec.Meta(min_length=1, max_length=64)]
    budget: Annotated[int, msgspec.Meta(ge=1)]
    repeats: Annotated[int, msgspec.Meta(ge=1)]


class Candidate(Note, frozen=True):
    """A config to measure, and who proposed it."""

    config: dict[str, Any]
    source: Annotated[str, msgspec.Meta(max_length=200)] = ""


class Candidates(Note, frozen=True):
    """The configs of a round, in order; none: the search is over."""

    configs: Annotated[list[Candidate], msgspec.Meta(max_length=1000)] = []


class Result(Note, frozen=True):
    """What became of a config: its time over that of the default on the same core, or how it failed."""

    ratio: Positive | None = None
    kind: FailureKind | None = None
    detail: str = ""


class Request(Note, frozen=True):
    """What a rank asks of a decision, as named parts that are to be equal on all ranks."""

    parts: dict[str, str]
    by: str = ""  # the name of its process


class Standing(Note, frozen=True):
    """The answer that stands for all ranks; with the verdict it was read off, where there is one."""

    config: dict[str, Any]
    rung: Literal["memory", "table", "promoted", "learned", "near", "default"] = "memory"
    source: str = ""
    reason: str = ""
    confidence: float | None = None
    time_s: Positive | None = None
    by: str = ""  # a rank, for people
    subject: str = ""  # digest of what the verdict is about; empty: of what all ranks asked together
    request: str = ""  # digest of the parts that its rank asked for
    verdict: facts.VerdictFact | None = None


_N = TypeVar("_N", bound=Note)


def write(note: Note) -> str:
    """Return a note as text."""
    return msgspec.json.encode(note).decode()


def read(text: str, kind: type[_N]) -> _N | None:
    """Return the note that a text is, or None if it is none of this kind."""
    try:
        return msgspec.json.decode(text, type=kind) if len(text) <= MOST_BYTES else None
    except (msgspec.MsgspecError, RecursionError):
        return None


def fitting(configs: Sequence[Candidate]) -> Candidates:
    """Return a list of a round with as many of the candidates as one publication holds."""
    found = Candidates(list(configs))
    while len(write(found)) > MOST_BYTES // 2:
        found = Candidates(found.configs[: len(found.configs) // 2])
    return found


def result_of(outcome: Outcome, ratio: float | None) -> Result:
    """Return what is published of an outcome."""
    if isinstance(outcome, Timing) and ratio is not None:
        return Result(ratio=ratio)
    failure = outcome if isinstance(outcome, Failure) else Failure("runtime", "it failed when it was timed again")
    return Result(kind=failure.kind, detail=failure.detail[:SHOWN])


def outcome_of(result: Result, scale_s: float) -> Outcome:
    """Return a published result as an outcome, in seconds where the default takes `scale_s`."""
    if result.ratio is not None:
        return Timing((result.ratio * scale_s,))
    return Failure(result.kind or "runtime", result.detail)


def standing_of(answer: Answer, by: str, verdict: Verdict | None = None, subject: str = "") -> Standing:
    """Return what is published of an answer."""
    rung = "memory" if answer.rung == "pin" else answer.rung
    fact = None if verdict is None else facts.verdict_fact(replace(verdict, proposals=verdict.proposals[:_PROPOSALS]))
    said = answer.source[:SHOWN], answer.reason[:SHOWN]
    shown = (*said, answer.confidence, answer.time_s or None, by, subject)
    return Standing(dict(answer.config), rung, *shown, verdict=fact)


def config_in(space: Space, given: Config) -> Config | None:
    """Return a published config as one of ours, or None if it is none."""
    try:
        return space.config(given)
    except (TunewiseError, TypeError, ValueError):
        return None


def verdict_in(standing: Standing, space: Space) -> Verdict | None:
    """Return the verdict of an answer, or None where it has none that makes sense."""
    if standing.verdict is None:
        return None
    try:
        verdict = facts.verdict_of(standing.verdict)
        return verdict if space.config(verdict.winner) == space.config(standing.config) else None
    except (TunewiseError, TypeError, ValueError):
        return None
