"""What a tuning run is given: the task, and how much to spend on it."""

import reprlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tunewise.decision import Config, Declaration, Hardware, Subject, detect
from tunewise.errors import InvalidSetting
from tunewise.measure.work import Work
from tunewise.search import AUTO
from tunewise.session import amounts, events, shelf


@dataclass(frozen=True, slots=True)
class Plan:
    """How much to spend and where to begin."""

    budget: int = 100
    seconds: float | None = None
    seeds: Sequence[Mapping[str, Any]] = ()
    heuristics: bool = True  # ask rules of thumb, tables and models what to try first
    strategy: str = AUTO
    seed: int = 0
    again: bool = False  # measure although the answer is known: new configs, and what failed before
    wait_s: float | None = None  # for another process that tunes the same problem; None: until it is done
    measure_all: bool = False  # no config is dropped early: for a data set
    thorough: bool = False  # the whole space, whatever the budget
    stop: Callable[[], bool] = (
        bool  # asked between configs: True ends the search, and the best so far meets the default
    )
    listener: events.Listener = events.ignore

    def __post_init__(self) -> None:
        amounts.check_budget(self.budget)
        amounts.check_seconds("seconds", self.seconds)
        amounts.check_seconds("wait_s", self.wait_s, may_be_zero=True)
        amounts.check_seed(self.seed)
        if isinstance(self.seeds, str) or not isinstance(self.seeds, Sequence):
            raise InvalidSetting(f"seeds={reprlib.repr(self.seeds)} is not a list of configs, such as [{{'tile': 8}}]")
        if not isinstance(self.strategy, str):
            raise InvalidSetting(f"strategy={reprlib.repr(self.strategy)} is not a name, such as {AUTO!r}")
        for name in ("stop", "listener"):
            if not callable(getattr(self, name)):
                raise InvalidSetting(f"{name}={reprlib.repr(getattr(self, name))} is not a function")


@dataclass(frozen=True)
class Task:
    """One decision on one problem, with a way to run it and, where configs are compiled, to build them ahead."""

    declaration: Declaration
    subject: Subject
    work: Work
    build: Callable[[Config], object] | None = None
    hardware: Hardware = field(default_factory=detect)
    sources: Sequence[shelf.Source] = ()  # of seeds
