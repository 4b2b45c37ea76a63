"""What the store knows of other problems and devices: told to a search as evidence from elsewhere, nearest first."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import inf, log

from tunewise.decision import Outcome, Places, Problem, Space, Subject, Trial, merged
from tunewise.store import Store

MOST = 12  # how many other problems are told; a search learns little from a thirteenth
_OTHER_WORD = 3.0  # another word in a feature is as far away as a number twenty times larger


@dataclass(frozen=True, slots=True)
class Prior:
    """The trials of one other problem or device: comparable with each other, not with ours."""

    origin: str
    trials: Sequence[Trial]


def of(store: Store, subject: Subject, space: Space) -> Iterator[Prior]:
    """Yield what is known of the same decision elsewhere, the nearest problem on the most similar machine first."""
    told = 0
    for other in nearest(store, subject):
        trials = _summed(store.trials(other), space)
        if trials and told < MOST:
            told += 1
            yield Prior(other.digest, trials)


def nearest(store: Store, subject: Subject) -> list[Subject]:
    """Return the other subjects of the same decision, the nearest problem on the most similar machine first."""
    own = subject.digest
    others = [other for other in store.subjects(subject.decision) if other.digest != own]
    return sorted(others, key=lambda other: _distance(subject, other))


def _distance(ours: Subject, theirs: Subject) -> tuple[float, int, str]:
    """Return how far off a subject is: its problem first, then its machine; never equal for two subjects."""
    elsewhere = [name for name in ours.difference(theirs) if not name.startswith("problem.")]
    return _apart(ours.problem, theirs.problem), len(elsewhere), theirs.digest


def _apart(ours: Problem, theirs: Problem) -> float:
    words = sum(theirs.categorical.get(name) != word for name, word in ours.categorical.items())
    return _OTHER_WORD * words + _log_distance(ours.numeric, theirs.numeric)


def _log_distance(ours: Mapping[str, float], theirs: Mapping[str, float]) -> float:
    total = 0.0
    for name, value in ours.items():
        other = theirs.get(name, inf)
        if value != other:
            total += abs(log(other / value)) if value > 0 and 0 < other < inf else _OTHER_WORD
    return total


def _summed(trials: Sequence[Trial], space: Space) -> list[Trial]:
    """Return one trial a config that our space has too, in the order they were first measured."""
    parts: dict[Places, list[Outcome]] = {}
    firsts: dict[Places, Trial] = {}
    for trial in trials:
        if trial.config in space:
            places = space.places(trial.config)
            firsts.setdefault(places, trial)
            parts.setdefault(places, []).append(trial.outcome)
    return [Trial(firsts[places].config, merged(outcomes)) for places, outcomes in parts.items()]
