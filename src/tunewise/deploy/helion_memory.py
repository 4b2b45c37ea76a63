"""What our store knows of a Helion kernel: the answer for a call, what to try first, and every result put in."""

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any, get_args

from tunewise import settings
from tunewise.decision import (
    Answer,
    Config,
    Failure,
    FailureKind,
    Outcome,
    Proposal,
    Rung,
    Timing,
    Trial,
    Verdict,
    merged,
)
from tunewise.deploy.helion_problem import Call
from tunewise.errors import InvalidConfig
from tunewise.eventlog import logger
from tunewise.heuristics import Heuristic
from tunewise.session import context, priors, seeding, shelf
from tunewise.session.context import current_store
from tunewise.session.ladder import Question, climb
from tunewise.settings import Mode

MEMORY = "memory"  # who proposes what was fast before
HELION = "helion"  # who proposes what Helion's own heuristics say
_DONORS = 4  # other problems whose best configs are proposed
_KINDS: Mapping[str, FailureKind] = {
    "timeout": "timeout",
    "peer_compilation_fail": "compile",
    "accuracy_error": "correctness",
    "filtered": "constraints",
    "source_rejected": "constraints",
}
_log = logger("tunewise.helion")


@dataclass(frozen=True, slots=True)
class Known:
    """A config that was measured before, with what became of it."""

    config: Config
    outcome: Outcome


def mode_of(call: Call) -> Mode:
    """Return the mode that counts for a call: the innermost block's, the environment's, or `use`."""
    frame = context.FRAME.get()
    return frame.mode if frame is not None else settings.current().mode_of(call.declaration.name) or "use"


def unless_off(call: Call) -> Call | None:
    """Return a call that is fully understood, or None where tunewise is off; raises where it is not understood."""
    assert call.subject.decision == call.declaration.name  # both are worked out here, where trouble is expected
    return None if mode_of(call) == "off" else call


def answer(call: Call) -> Answer | None:
    """Return what spares tuning in the mode in force, or None where Helion is to tune.

    That is a verdict of this very call, a table or a model; in `tune` the verdict alone, and what the block accepts; in
    `replay` the verdict or the default; in `collect` and `off` nothing.
    """
    mode = mode_of(call)
    if mode in ("collect", "off"):
        return None
    found = climb(_question(call), mode)
    if mode == "replay":
        return found
    frame = context.FRAME.get()
    accepted = frame.accept if frame is not None else frozenset[str]()
    spares = {"pin", "memory"} if mode == "tune" else set(get_args(Rung)) - {"near", "default"}
    return found if found.rung in spares | accepted else None


def proposals(call: Call, seeds: Iterable[Config] = (), theirs: Sequence[Config] = ()) -> list[Proposal]:
    """Return what to try first, the best guesses first, and who proposes it.

    Those are users, by `seeds`; memory, rules of thumb, tables and models; and Helion's own heuristics, by `theirs`.
    """
    known_to = [_saying(call, MEMORY, _remembered(call)), *shelf.sources_for(call.declaration)]
    sources = [*known_to, _saying(call, HELION, theirs)]
    return seeding.propose(call.declaration, call.subject, call.hardware, seeds, sources)


def known(call: Call) -> list[Known]:
    """Return every config that was measured for this very call, and what became of it, oldest first."""
    space = call.knobs.space
    outcomes: dict[tuple[int, ...], list[Outcome]] = {}
    for trial in current_store().trials(call.subject):
        if trial.config in space and trial.origin == "own":  # what others say they measured is no measurement
            outcomes.setdefault(space.places(trial.config), []).append(trial.outcome)
    configs = {places: dict(zip(space.names, _at(call, places), strict=True)) for places in outcomes}
    return [Known(configs[places], merged(found)) for places, found in outcomes.items()]


def donors(call: Call) -> list[tuple[str, list[Trial]]]:
    """Return the trials of the nearest other problems, fitted to this one's space, each with its origin."""
    store, found = current_store(), []
    for other in priors.nearest(store, call.subject)[: priors.MOST]:
        trials = _fitted(call, store.trials(other.subject))
        if trials:
            found.append((other.subject.digest, trials))
    return found


def record(call: Call, results: Sequence[Any], source: Sequence[str], run: str) -> list[Trial]:
    """Put Helion's benchmark results into the store and return them as trials; what is not of our space is left out."""
    at, trials = time.time(), []
    for result, who in zip(results, source, strict=True):
        try:
            config = call.knobs.ours(result.config)
        except InvalidConfig as error:
            _log.debug("%s: a config is not remembered: %s", call.name, error)
            continue
        trials.append(Trial(config, outcome_of(result), who, run, at))
    current_store().add(call.subject, trials)
    return trials


def outcome_of(result: Any) -> Outcome:
    """Return one of Helion's benchmark results, which are milliseconds or a status, as an outcome."""
    compile_s = result.compile_time if isinstance(result.compile_time, int | float) else None
    if isfinite(result.perf) and result.perf > 0:
        return Timing((result.perf / 1e3,), compile_s)
    # An error without compile time never came to a run.
    kind = _KINDS.get(result.status, "compile" if compile_s is None else "runtime")
    return Failure(kind, f"Helion says: {result.status}")


def conclude(call: Call, verdict: Verdict) -> None:
    """Put how a tuning run ended into the store, and drop what was asked in vain before."""
    current_store().conclude(call.subject, verdict)
    current_store().forget_miss(call.subject)


def keep(call: Call, config: Any, who: str, run: str) -> None:
    """Remember the config that a search of Helion's chose, without a final of ours."""
    chosen, default = call.knobs.ours(config), call.knobs.default
    is_default = chosen == call.knobs.settled(default)[0]
    verdict = Verdict(
        "tie" if is_default else "win",
        default,
        default if is_default else chosen,
        detail=f"chosen by Helion's {who}",
        evaluations=len(known(call)),
        run=run,
        source=who,
        at=time.time(),
    )
    conclude(call, verdict)


def _question(call: Call) -> Question:
    store, declaration = current_store(), call.declaration
    return Question(
        declaration,
        call.subject,
        (),
        store,
        heuristics=lambda: shelf.heuristics_for(declaration.name),
        experts=lambda: shelf.experts_for(declaration),
    )


def _at(call: Call, places: tuple[int, ...]) -> list[Any]:
    return [param.values[place] for param, place in zip(call.knobs.space.params, places, strict=True)]


def _saying(call: Call, name: str, guesses: Sequence[Config]) -> Heuristic:
    return Heuristic(name, call.declaration.name, lambda features: guesses, kind="table")


def _remembered(call: Call) -> list[Config]:
    """Return what was fastest here, then what was fastest for the nearest problems."""
    own = _fastest([Trial(one.config, one.outcome) for one in known(call)])
    theirs = [_fastest(trials) for _, trials in donors(call)[:_DONORS]]
    return [config for config in (own, *theirs) if config is not None]


def _fastest(trials: Sequence[Trial]) -> Config | None:
    timed = [(trial.outcome.time_s, trial.config) for trial in trials if isinstance(trial.outcome, Timing)]
    return min(timed, key=lambda pair: pair[0])[1] if timed else None


def _fitted(call: Call, trials: Sequence[Trial]) -> list[Trial]:
    """Return the trials of another problem as configs of this one, the fastest of those that become the same.

    Helion bounds blocks by the sizes of a problem. What was the largest there is the largest here too: a block that
    covered a whole dimension is to cover it again.
    """
    space = call.knobs.space
    largest = {param.name: _largest(trials, param.name) for param in space.params}
    best: dict[tuple[int, ...], Trial] = {}
    for trial in trials:
        moved = {
            param.name: param.values[-1]
            if param.is_ordered and trial.config.get(param.name) == largest[param.name] is not None
            else trial.config.get(param.name, call.knobs.default[param.name])
            for param in space.params
        }
        config = space.repair(moved)
        if config is not None:
            places = space.places(config)
            best[places] = min(best.get(places, trial), Trial(config, trial.outcome), key=_time_s)
    return [Trial(dict(zip(space.names, _at(call, places), strict=True)), t.outcome) for places, t in best.items()]


def _largest(trials: Sequence[Trial], name: str) -> int | None:
    numbers = [value for trial in trials if type(value := trial.config.get(name)) is int]
    return max(numbers, default=None)


def _time_s(trial: Trial) -> float:
    return trial.outcome.time_s if isinstance(trial.outcome, Timing) else float("inf")
