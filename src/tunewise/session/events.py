"""What a tuning run tells whoever watches: small facts, in order."""

from collections.abc import Callable
from dataclasses import dataclass

from tunewise.decision import Config, Outcome, Proposal, Subject, Verdict


@dataclass(frozen=True, slots=True)
class Started:
    """A run begins; `known` configs were measured before and are not measured again."""

    subject: Subject
    budget: int
    known: int


@dataclass(frozen=True, slots=True)
class Waiting:
    """Another process is tuning the same problem."""

    subject: Subject


@dataclass(frozen=True, slots=True)
class Proposed:
    """What users, memory and heuristics propose to try first, those that cannot be used included."""

    proposals: tuple[Proposal, ...]


@dataclass(frozen=True, slots=True)
class Building:
    """So many configs are being built, in parallel, before they are measured."""

    configs: int


@dataclass(frozen=True, slots=True)
class Evaluated:
    """A config was measured for the first time; `done` of `budget` so far, the best time so far, who proposed it."""

    config: Config
    outcome: Outcome
    source: str
    done: int
    budget: int
    best_s: float
    default_s: float


@dataclass(frozen=True, slots=True)
class Final:
    """The best candidate meets the default."""

    challenger: Config
    incumbent: Config


@dataclass(frozen=True, slots=True)
class Stopping:
    """Somebody does not want to wait: the search ends, and the best so far meets the default."""


@dataclass(frozen=True, slots=True)
class Concluded:
    """The run is over."""

    verdict: Verdict


@dataclass(frozen=True, slots=True)
class Resumed:
    """The call that waited for a run goes on, with an answer or an error. Runs that nobody called for never say so."""


Event = Started | Waiting | Proposed | Building | Evaluated | Final | Stopping | Concluded | Resumed
Listener = Callable[[Event], None]


def ignore(event: Event) -> None:
    """Listen to nothing."""
