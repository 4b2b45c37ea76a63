"""Trials: what was run and what became of it. Verdicts: how a tuning run ended."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from tunewise.decision import canonical
from tunewise.decision.hardware import Environment
from tunewise.decision.origin import Origin
from tunewise.decision.problem import Problem
from tunewise.decision.space import Config

FailureKind = Literal["compile", "runtime", "constraints", "correctness", "timeout", "crash", "memory"]
FAILURE_KINDS: tuple[FailureKind, ...] = get_args(FailureKind)
Ending = Literal["win", "tie", "failed"]
ProposerKind = Literal["user", "memory", "expert", "table", "learned"]
Fate = Literal["tried", "known", "repeated", "dropped", "skipped"]


@dataclass(frozen=True, slots=True)
class Timing:
    """The configuration ran: seconds per call, one number a sample, in the order they were taken."""

    samples_s: tuple[float, ...]
    compile_s: float | None = None  # building and first launch, never part of a sample

    @property
    def time_s(self) -> float:
        """The one number that stands for the samples: the mean of their lower half."""
        return lower_half_mean(self.samples_s)


@dataclass(frozen=True, slots=True)
class Failure:
    """The configuration did not run to a right answer."""

    kind: FailureKind
    detail: str = ""


Outcome = Timing | Failure


@dataclass(frozen=True, slots=True)
class Subject:
    """What a measurement is about: everything that must be equal before two trials may be compared."""

    decision: str
    problem: Problem
    policy: tuple[tuple[str, Any], ...]
    environment: Environment

    @property
    def parts(self) -> dict[str, Any]:
        """The key by named parts, such as `problem.m`, `policy.clock`, `hardware.name`: what `explain` compares."""
        return {
            "decision": self.decision,
            **{f"problem.{name}": value for name, value in self.problem.items()},
            **{f"policy.{name}": value for name, value in self.policy},
            **self.environment.must,
        }

    @property
    def digest(self) -> str:
        """The key as 64 hex digits, equal in every process that means the same."""
        return canonical.digest(self.parts)

    def difference(self, other: "Subject") -> dict[str, tuple[Any, Any]]:
        """Return the parts that differ, as name -> (ours, theirs); a part that one side lacks is None there."""
        ours, theirs = self.parts, other.parts
        names = [*ours, *(name for name in theirs if name not in ours)]
        return {n: (ours.get(n), theirs.get(n)) for n in names if not _are_equal(ours, theirs, n)}


@dataclass(frozen=True, slots=True)
class Trial:
    """One config, what became of it, and who proposed it. Several trials of one config add up."""

    config: Config
    outcome: Outcome
    source: str = ""  # the strategy, heuristic or file that proposed it
    run: str = ""  # the tuning run it belongs to
    at: float = 0.0  # seconds since the epoch, for people only: nothing is decided by it
    origin: Origin = field(default="own", compare=False)  # told by the store that was read, and not kept


@dataclass(frozen=True, slots=True)
class Proposal:
    """A config that somebody proposed to try first, and what became of it.

    `known` was measured already (the default, or an earlier run), `repeated` was proposed by somebody before, `dropped`
    is not in the space, and `skipped` was not tried because earlier ones of the same proposer were poor.
    """

    by: str
    kind: ProposerKind
    rank: int  # among those of one proposer, from 1
    config: Config  # completed and repaired; empty where it was dropped, and `detail` tells what it was
    fate: Fate = "tried"
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Verdict:
    """How a tuning run ended: the best candidate against the incumbent (the default), in interleaved pairs.

    A verdict is a measurement like any other: the answer is read off it, and a later verdict outranks an earlier one.
    """

    ending: Ending
    incumbent: Config
    challenger: Config
    incumbent_s: tuple[float, ...] = ()
    challenger_s: tuple[float, ...] = ()
    gain: float = 1.0  # median of incumbent / challenger over the pairs; above 1 the challenger is faster
    p_value: float = 1.0
    evaluations: int = 0
    run: str = ""
    source: str = ""  # who proposed the challenger
    detail: str = ""
    at: float = 0.0
    proposals: tuple[Proposal, ...] = ()  # of users, memory and heuristics, for the record
    origin: Origin = field(default="own", compare=False)  # told by the store that was read, and not kept

    @property
    def winner(self) -> Config:
        """The config to use: the challenger only if it won."""
        return self.challenger if self.ending == "win" else self.incumbent

    @property
    def time_s(self) -> float | None:
        """Seconds per call of the winner in the final pairs, or None if it was never timed."""
        samples = self.challenger_s if self.ending == "win" else self.incumbent_s
        return lower_half_mean(samples) if samples else None


@dataclass(frozen=True, slots=True)
class Miss:
    """A problem that was asked about and not known."""

    decision: str
    problem: Problem
    count: int
    digest: str = field(default="", compare=False)


def _are_equal(ours: Mapping[str, Any], theirs: Mapping[str, Any], name: str) -> bool:
    """Return whether a part is spelled alike on both sides: 1, 1.0 and true are three values."""
    if name not in ours or name not in theirs:
        return False
    one, other = ours[name], theirs[name]
    if type(one) is type(other) and type(one) in (str, int):  # most are: spelling them out costs far more
        return bool(one == other)
    return canonical.encode(one) == canonical.encode(other)


def lower_half_mean(samples: Sequence[float]) -> float:
    """Return the mean of the faster half: steadier than the minimum, and blind to what the machine did meanwhile.

    The middle one of an odd number is left out: with it, four spoiled samples of seven spoil the mean. Raises
    ValueError where there is no sample.
    """
    if not samples:
        raise ValueError("no samples: a config that was never timed has no time")
    ordered = sorted(samples)
    half = ordered[: half_of(len(ordered))]
    return sum(half) / len(half)


def half_of(count: int) -> int:
    """Return how many of so many samples are their lower half; at least one."""
    return max(count // 2, 1)


def merged(outcomes: Sequence[Outcome]) -> Outcome:
    """Return several outcomes of one config as one: the first failure if any, else all samples together."""
    assert outcomes
    for outcome in outcomes:
        if isinstance(outcome, Failure):
            return outcome
    timings = [outcome for outcome in outcomes if isinstance(outcome, Timing)]
    compile_s = next((t.compile_s for t in timings if t.compile_s is not None), None)
    return Timing(tuple(s for timing in timings for s in timing.samples_s), compile_s)
