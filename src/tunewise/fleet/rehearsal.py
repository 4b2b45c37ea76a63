"""What a device works on: a decision of the user's, or a recording that is replayed to try a fleet without devices."""

import hashlib
import time
from collections.abc import Iterable, Mapping
from math import inf
from pathlib import Path
from typing import Any, NoReturn, Protocol

from tunewise.decision import Config, Declaration, Outcome, Problem, Subject, Timing, Trial, detect, environment
from tunewise.errors import InvalidFile
from tunewise.formats import recorded
from tunewise.measure import measurer_for
from tunewise.measure import work as measuring
from tunewise.measure.replay import Replay
from tunewise.session import Decision
from tunewise.session.plan import Task


class Target(Protocol):
    """Something whose configs can be measured on a problem."""

    @property
    def declaration(self) -> Declaration:
        """What there is to choose from."""

    def subject(self, problem: Mapping[str, Any]) -> Subject:
        """Return what measurements of a problem are about, on this device."""

    def task(self, problem: Mapping[str, Any]) -> Task:
        """Return a problem ready to be measured."""

    def measurer(self, work: measuring.Work) -> measuring.Measurer:
        """Return what runs and times the configs of a task."""


class Declared:
    """A decision that the user declared, with its implementation and inputs."""

    def __init__(self, decision: Decision) -> None:
        self.declaration = self._decision = decision

    def subject(self, problem: Mapping[str, Any]) -> Subject:
        """Return what measurements of a problem are about, on this device."""
        return self._decision.subject(self._decision.problem(problem))

    def task(self, problem: Mapping[str, Any]) -> Task:
        """Return a problem with its inputs made; raises InvalidProblem or MissingPart where they cannot be."""
        return self._decision.bound().task(*self._decision.make_inputs(problem))

    def measurer(self, work: measuring.Work) -> measuring.Measurer:
        """Return a measurer that isolates configs as the decision's policy says."""
        return measurer_for(work)


class Rehearsed:
    """A recording in the place of a device: every config takes a pause and gives its recorded time."""

    def __init__(self, path: Path, pause_s: float) -> None:
        found = recorded.read(path)
        if len(found) != 1:
            raise InvalidFile(f"{path} holds {len(found)} recordings; a plan replays a file of one")
        self._trials, self._pause_s = found[0].trials, pause_s
        self._digest = hashlib.sha256(path.read_bytes()).hexdigest()[:16]
        first = next(trial for trial in self._trials if isinstance(trial.outcome, Timing))
        self.declaration = Declaration(f"rehearsal {path.name}"[:200], space=found[0].space, default=first.config)

    def subject(self, problem: Mapping[str, Any]) -> Subject:
        """Return a subject of its own, that no measurement can be confused with."""
        here = environment(detect(), must={"rehearsal": self._digest, "rehearsal.pause_s": self._pause_s})
        return Subject(self.declaration.name, Problem(problem), (), here)

    def task(self, problem: Mapping[str, Any]) -> Task:
        """Return a task that only `measurer` can do."""
        work = measuring.Work(_never, (), self.declaration.default)
        return Task(self.declaration, self.subject(problem), work)

    def measurer(self, work: measuring.Work) -> measuring.Measurer:
        """Return what answers from the recording, after a pause."""
        return _Slow(self._trials, self._pause_s)


class _Slow(Replay):
    """Replays trials; the first look at a config takes as long as measuring it would."""

    def __init__(self, trials: Iterable[Trial], pause_s: float) -> None:
        super().__init__(trials)
        self._pause_s = pause_s

    def first(self, config: Config, best_s: float = inf) -> Outcome:
        """Return the recorded outcome as one sample."""
        time.sleep(self._pause_s)
        return super().first(config, best_s)


def _never(config: Config) -> NoReturn:
    raise AssertionError("a recording is replayed, never run")
