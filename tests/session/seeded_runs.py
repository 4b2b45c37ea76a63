"""Runs on a small valley of configs, seeded by heuristics that a test makes up."""

from typing import Any

from tunewise.decision import (
    Config,
    Declaration,
    Outcome,
    Problem,
    Proposal,
    Space,
    Subject,
    Timing,
    Trial,
    detect,
    environment,
)
from tunewise.heuristics import Expert
from tunewise.measure import Replay, Work
from tunewise.session.plan import Plan, Task
from tunewise.session.tune import Tuning, tune
from tunewise.store import MemoryStore, Store

SPACE = Space({"a": list(range(10)), "b": list(range(10))})
BEST = {"a": 7, "b": 3}


def valley(config: Config) -> Outcome:
    distance = abs(int(config["a"]) - 7) + abs(int(config["b"]) - 3)  # type: ignore[arg-type]
    return Timing((1.0 + distance / 10,))


def run(*sources: Any, declaration: Declaration | None = None, store: Store | None = None, **plan: Any) -> Tuning:
    known = declaration or Declaration("seeded", space=SPACE, default={"a": 0, "b": 0})
    subject = Subject(known.name, Problem({"n": 1}), (), environment(detect()))
    work = Work(lambda config: lambda: None, (), dict(known.default), known.check, policy=known.policy)
    replayed = Replay(Trial(config, valley(config)) for config in known.space)
    return tune(
        Task(known, subject, work, sources=sources), Plan(**plan), store or MemoryStore(), lambda work: replayed
    )


def rule(*seeds: Any, name: str = "rule", **attributes: Any) -> Expert:
    """Return a heuristic that always proposes the same."""
    body = {"name": name, "seeds": lambda self, problem: list(seeds), "most": max(1, len(seeds)), **attributes}
    made: Expert = type("Rule", (Expert,), body)()
    return made


def proposals(result: Tuning) -> tuple[Proposal, ...]:
    assert result.verdict is not None
    return result.verdict.proposals


def fates(result: Tuning) -> list[tuple[str, str]]:
    return [(proposal.by, proposal.fate) for proposal in proposals(result)]
