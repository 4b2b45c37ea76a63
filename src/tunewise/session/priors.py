"""What the store knows of other problems and devices: told to a search as evidence from elsewhere, nearest first."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import inf

from tunewise.decision import Config, Outcome, Places, Problem, Space, Subject, Trial, Verdict, merged
from tunewise.session import evidence, shelf
from tunewise.store import Remembered, Store, log_ratio

MOST = 12  # how many other problems are told; a search learns little from a thirteenth
WINNERS = 3  # how many winners of elsewhere are tried first: who is right needs no fourth guess
_COMPARED = 64  # others that are compared, of the nearest and of those seen last
_NAMED = 3  # parts of an environment that are told by name
_DEVICE = 60  # characters of a device's name
_OTHER_WORD = 3.0  # another word in a feature is as far away as a number twenty times larger


@dataclass(frozen=True, slots=True)
class Prior:
    """The trials of one other problem or device: comparable with each other, not with ours."""

    origin: str
    trials: Sequence[Trial]


@dataclass(frozen=True, slots=True)
class Winner:
    """What won elsewhere: by whose memory, and in words where that was. It answers nothing here until it is measured.

    Neither tells a host or a user: a device is told by its name, an environment by the names of its parts.
    """

    by: str
    config: Config
    said: str
    is_same: bool  # of the very same problem, on another machine


def of(store: Store, subject: Subject, space: Space) -> Iterator[Prior]:
    """Yield what is known of the same decision elsewhere, the nearest problem on the most similar machine first."""
    told = 0
    for other in nearest(store, subject):
        trials = summed(store.trials(other.subject), space)
        if trials and told < MOST:
            told += 1
            yield Prior(other.subject.digest, trials)


def winners(
    store: Store,
    subject: Subject,
    default: Config | None = None,
    *,
    most: int = WINNERS,
    only_same: bool = False,
    known: Sequence[Remembered] | None = None,
) -> list[Winner]:
    """Return what won elsewhere and is not `default`, each config once, at most so many: the nearest subjects' first.

    With `only_same` those of the very same problem on other machines are looked at, 64 at most, and no others.
    Who has asked the store for the others already gives them as `known`.
    """
    found = [] if only_same else _of_others(store, subject, default)[:most]
    if len(found) == most:
        return found
    others = ranked(subject, store.kin(subject, _COMPARED) if known is None else known)
    same = [other for other in others if other.subject.problem == subject.problem]
    for one in same if only_same else others[:MOST]:
        verdict, other = next(reversed(one.verdicts), None), one.subject
        configs = [default, *(winner.config for winner in found)]
        if verdict is not None and verdict.ending != "failed" and verdict.winner not in configs:
            is_same = other.problem == subject.problem
            found.append(Winner(_whose(subject, other), verdict.winner, _where(subject, other, verdict), is_same))
        if len(found) == most:
            break
    return found


def _of_others(store: Store, subject: Subject, default: Config | None) -> list[Winner]:
    """Return what won for the very same subject as others have measured it, the latest first, each config once."""
    found: list[Winner] = []
    for verdict in reversed(store.verdicts(subject)):
        known = [default, *(winner.config for winner in found)]
        if verdict.origin != "own" and verdict.ending == "win" and verdict.winner not in known:
            found.append(Winner("memory", verdict.winner, shelf.shown(_done(verdict)), True))
    return found


def nearest(store: Store, subject: Subject) -> list[Remembered]:
    """Return other subjects of the same decision, the nearest problem on the most similar machine first.

    Of a large memory they are those that an index finds, whose problems differ in numbers only, and the last ones.
    """
    return ranked(subject, store.kin(subject, _COMPARED))


def ranked(subject: Subject, others: Sequence[Remembered]) -> list[Remembered]:
    """Return other subjects, the nearest problem on the most similar machine first."""
    return sorted(others, key=lambda other: _distance(subject, other.subject))


def _whose(ours: Subject, theirs: Subject) -> str:
    """Return whose memory it is: `memory`, and of which device unless it is one like ours."""
    here, there = (subject.environment.must.get("hardware.name") for subject in (ours, theirs))
    return "memory" if here == there else f"memory of {shelf.shown(str(there or 'another device'), _DEVICE)}"


def _where(ours: Subject, theirs: Subject, verdict: Verdict) -> str:
    """Return what the winner did and where that differs from here: values of problems, but only names of the rest."""
    did = _done(verdict)
    problem = f" for {theirs.problem}" if theirs.problem != ours.problem else ""
    names = [name for name in ours.difference(theirs) if not name.startswith("problem.")]
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return shelf.shown(did + problem + (f" with another {', '.join(names[:_NAMED])}{more}" if names else ""))


def _done(verdict: Verdict) -> str:
    """Return in words what the winner of a verdict did."""
    gain = evidence.gain_in(verdict)
    won = "won over the default" if gain is None else f"won {gain:.2f}x over the default"
    return won if verdict.ending == "win" else "was the default"


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
            total += log_ratio(value, other) if value > 0 and 0 < other < inf else _OTHER_WORD
    return total


def summed(trials: Sequence[Trial], space: Space) -> list[Trial]:
    """Return one trial a config that our space has too, in the order they were first measured."""
    parts: dict[Places, list[Outcome]] = {}
    firsts: dict[Places, Trial] = {}
    for trial in trials:
        if trial.config in space:
            places = space.places(trial.config)
            firsts.setdefault(places, trial)
            parts.setdefault(places, []).append(trial.outcome)
    return [Trial(firsts[places].config, merged(outcomes)) for places, outcomes in parts.items()]
