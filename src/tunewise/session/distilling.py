"""What the store knows of a decision, distilled into a small table."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import inf

from tunewise.decision import Config, Outcome, Subject, Timing, canonical, merged
from tunewise.errors import InvalidData, NotFound
from tunewise.heuristics.table_building import Built, Known, build
from tunewise.session import evidence
from tunewise.session.recall import unknown
from tunewise.store import Store

_DEVICE = "hardware.name"
_BEATEN = 1 + 1e-6  # what looks as fast as the winner of a tuning run, which met it in pairs
_FAILED = 1000.0  # how much slower a config that fails counts


@dataclass(frozen=True, slots=True)
class _Measured:
    subject: Subject
    times_s: Mapping[str, float]  # by the config's JSON; infinite where it failed
    winner: str | None  # of a tuning run


def distil(
    decision: str, store: Store, *, tolerance: float = 0.05, max_rules: int = 32, device: str | None = None
) -> Built:
    """Return a table for a decision on one device, made of everything the store knows, and its regret there.

    `device` is needed where several were measured. Raises NotFound where nothing is known, InvalidData where nothing
    ran or the device is not told.
    """
    subjects = store.subjects(decision)
    if not subjects:
        raise NotFound(unknown(decision))
    chosen = _device(decision, subjects, device)
    configs: dict[str, Config] = {}
    measured = [_measured(store, subject, configs) for subject in subjects if _name(subject) == chosen]
    ran = [one for one in measured if _best_s(one) < inf or one.winner is not None]
    known = _latest(decision, ran)
    numbers = {key: number for number, key in enumerate(configs)}
    built = build(
        decision,
        [Known(one.subject.problem, _costs(one, numbers)) for one in known],
        list(configs.values()),
        tolerance=tolerance,
        max_rules=max_rules,
        hardware={"name": chosen} if chosen else {},
        about=f"distilled from {len(known)} measured problem{'s' if len(known) != 1 else ''}",
    )
    others = {str(one.subject.problem) for one in ran} - {str(one.subject.problem) for one in known}
    return replace(built, left_out=len(others))


def _device(decision: str, subjects: list[Subject], wanted: str | None) -> str:
    names = sorted({_name(subject) for subject in subjects})
    if wanted is None and len(names) > 1:
        listed = ", ".join(name or "an unnamed one" for name in names)
        raise InvalidData(f"{decision} was measured on {listed}; name one of them with --device")
    if wanted is not None and wanted not in names:
        raise NotFound(f"{decision} was never measured on {wanted!r}; there are {', '.join(names)}")
    return names[0] if wanted is None else wanted


def _name(subject: Subject) -> str:
    return str(subject.environment.must.get(_DEVICE, ""))


def _measured(store: Store, subject: Subject, configs: dict[str, Config]) -> _Measured:
    outcomes: dict[str, list[Outcome]] = {}
    for trial in store.trials(subject):
        key = canonical.encode(dict(sorted(trial.config.items())))
        configs.setdefault(key, dict(trial.config))
        outcomes.setdefault(key, []).append(trial.outcome)
    verdict = next((one for one in evidence.answering(store.verdicts(subject)) if one.ending != "failed"), None)
    winner = canonical.encode(dict(sorted(verdict.winner.items()))) if verdict is not None else None
    if verdict is not None and winner is not None:
        configs.setdefault(winner, dict(verdict.winner))
    return _Measured(subject, {key: _time_s(merged(told)) for key, told in outcomes.items()}, winner)


def _time_s(outcome: Outcome) -> float:
    return outcome.time_s if isinstance(outcome, Timing) else inf


def _best_s(one: _Measured) -> float:
    return min(one.times_s.values(), default=inf)


def _latest(decision: str, measured: list[_Measured]) -> list[_Measured]:
    """Return one for every problem: of a tuning run if there is one, else the latest; all with the same features."""
    if not measured:
        raise InvalidData(f"{decision}: nothing ran on any problem, so there is nothing to make a table of")
    names = set(measured[-1].subject.problem)
    found: dict[str, _Measured] = {}
    for one in measured:
        key = str(one.subject.problem)
        before = found.get(key)
        if set(one.subject.problem) == names and (before is None or one.winner is not None or before.winner is None):
            found[key] = one
    return list(found.values())


def _costs(one: _Measured, numbers: Mapping[str, int]) -> dict[int, float]:
    """Return how much slower each config is than the winner, which a tuning run names more surely than a time does."""
    best_s = one.times_s.get(one.winner, inf) if one.winner is not None else inf
    best_s = best_s if best_s < inf else _best_s(one)
    least = 1.0 if one.winner is None else _BEATEN
    costs = {numbers[key]: _cost(time_s, best_s, least) for key, time_s in one.times_s.items()}
    return costs | ({numbers[one.winner]: 1.0} if one.winner is not None else {})


def _cost(time_s: float, best_s: float, least: float) -> float:
    return max(time_s / best_s, least) if time_s < inf else _FAILED
