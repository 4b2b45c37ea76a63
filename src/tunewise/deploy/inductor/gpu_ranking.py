"""The best few configs for a problem: the answer first, then what the same source, and others, hold next best."""

from collections.abc import Iterator

from tunewise.decision import Answer, Config, Problem, Timing
from tunewise.deploy.triton_configs import key_of
from tunewise.heuristics import Heuristic
from tunewise.session import Decision, context, shelf
from tunewise.session.learned import facts_of


def ranked(decision: Decision, problem: Problem, answer: Answer, most: int) -> list[Config]:
    """Return at most `most` configs, best first, the answer's at the head; what is pinned stands alone."""
    found: dict[str, Config] = {key_of(answer.config): answer.config}
    if answer.rung == "pin":
        return list(found.values())
    for config in _next_best(decision, problem):
        if len(found) >= most:
            break
        found.setdefault(key_of(config), config)
    return list(found.values())


def _next_best(decision: Decision, problem: Problem) -> Iterator[Config]:
    """Yield what was fastest on this very problem, then what tables and models rank."""
    subject = decision.subject(problem)
    trials = context.current_store().trials(subject)
    timed = [(trial.outcome.time_s, trial.config) for trial in trials if isinstance(trial.outcome, Timing)]
    yield from (config for _, config in sorted(timed, key=lambda pair: pair[0]) if config in decision.space)
    facts = facts_of(subject.environment)
    for heuristic in sorted(shelf.heuristics_for(decision.name), key=lambda one: one.kind != "table"):
        if heuristic.why_elsewhere(facts) is None and not heuristic.only_seeds:
            yield from _of(heuristic, decision, problem)


def _of(heuristic: Heuristic, decision: Decision, problem: Problem) -> Iterator[Config]:
    try:
        configs = heuristic.rank(decision.derive(problem))
    except Exception as error:  # somebody else's code: the ladder's answer stands without it
        shelf.report(heuristic, f"of {heuristic.decision} {shelf.broke(error)}")
        return
    whole = ({**decision.default, **config} for config in configs)
    yield from (decision.space.config(config) for config in whole if config in decision.space)
