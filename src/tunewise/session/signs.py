"""Signs of life: what runs and look-ups of this process are at, given to the store for whoever watches."""

import threading
import time
import uuid
from collections import Counter
from contextlib import suppress
from math import isfinite
from typing import Any

from tunewise import settings
from tunewise.decision import Failure, Subject, Verdict, lower_half_mean
from tunewise.errors import InvalidData
from tunewise.session import context, events
from tunewise.store import Sign, Store, before_closing, renew_in_children

_PAUSE_S = 1.0  # between two signs of one run
_LADDER_PAUSE_S = 5.0  # after so long a look-up is told at once, below that at every doubling
_CURVE = 100  # improvements that a sign tells; a run that had more tells the latest
_STATES = {"win": "won", "tie": "tied", "failed": "failed"}


class _Process:
    """Which process this is, and how many look-ups each rung of its ladder answered."""

    def __init__(self) -> None:
        self.is_registered = False
        self.renew()
        renew_in_children(self)

    def renew(self) -> None:
        """Begin anew, as a forked child must: it is somebody else."""
        self.id, self.began = uuid.uuid4().hex[:12], time.time()
        self.lock = threading.RLock()  # a signal handler may ask a question in the middle of another
        self.answered: dict[str, Counter[str]] = {}
        self.total = self.told = 0
        self.told_at = 0.0
        self.store: Store | None = None

    def count(self, decision: str, rung: str, store: Store) -> None:
        """Count a look-up, and tell it at 1, 2, 4, 8, ... of them or when the last sign is some seconds old."""
        with self.lock:
            if store is not self.store:  # of another home: what was asked there is not told here
                self.store, self.answered, self.total, self.told = store, {}, 0, 0
            self.answered.setdefault(decision, Counter())[rung] += 1
            self.total += 1
            if self.total & (self.total - 1) == 0 or time.time() - self.told_at > _LADDER_PAUSE_S:
                self.tell()
        if not self.is_registered:
            self.is_registered = True
            before_closing(self.tell)

    def tell(self) -> None:
        """Give a sign of the look-ups so far, unless that has been told."""
        if self.store is not None and self.total > self.told and context.is_current(self.store):
            self.told, self.told_at = self.total, time.time()
            decisions = {name: dict(rungs) for name, rungs in list(self.answered.items())}
            _give(self.store, Sign("ladder", self.id, self.told_at, {"decisions": decisions, "began": self.began}))


_process = _Process()


def looked_up(decision: str, rung: str, store: Store) -> None:
    """Count a look-up that a rung answered."""
    if settings.current().signs:
        _process.count(decision, rung, store)


class RunSigns:
    """Listens to one run and tells the store about it, once a second at most and whenever it begins or ends."""

    def __init__(self, store: Store, subject: Subject, hardware: str, run: str) -> None:
        self._store, self._run = store, run
        self._told_at = 0.0
        self._said: dict[str, Any] = {
            "decision": subject.decision,
            "problem": dict(subject.problem),
            "hardware": hardware,
            "process": _process.id,
            "began": time.time(),
            "budget": 0,
            "done": 0,
            "failed": 0,
            "best_s": None,
            "default_s": None,
            "state": "running",
            "curve": [],
            "gain": None,
            "source": None,
        }

    def hear(self, event: events.Event) -> None:
        """Take an event in, and tell of it if it is time."""
        if isinstance(event, events.Started):
            self._said["budget"] = event.budget
        elif isinstance(event, events.Evaluated):
            self._evaluated(event)
        elif isinstance(event, events.Concluded):
            self._concluded(event.verdict)
        is_due = isinstance(event, events.Started | events.Building | events.Concluded)
        if is_due or time.time() - self._told_at >= _PAUSE_S:
            self._tell()

    def end(self) -> None:
        """Say that the run was broken off, unless it has ended."""
        if self._said["state"] == "running":
            self._said["state"] = "stopped"
            self._tell()

    def _evaluated(self, event: events.Evaluated) -> None:
        said = self._said
        said["done"], said["budget"] = event.done, event.budget
        said["failed"] += isinstance(event.outcome, Failure)
        said["default_s"] = event.default_s if isfinite(event.default_s) else None
        if isfinite(event.best_s) and event.best_s != said["best_s"]:
            said["best_s"] = event.best_s
            said["curve"] = [*said["curve"], [event.done, event.best_s]][-_CURVE:]

    def _concluded(self, verdict: Verdict) -> None:
        if self._said["state"] == "running":  # a search that was stopped has a best so far, and no winner
            gain = verdict.gain if verdict.ending == "win" else None
            self._said |= {"state": _STATES[verdict.ending], "gain": gain, "source": verdict.source or None}
            if verdict.incumbent_s:  # single samples of the search are not what was concluded from
                self._said |= {"best_s": verdict.time_s, "default_s": lower_half_mean(verdict.incumbent_s)}

    def _tell(self) -> None:
        if settings.current().signs:
            self._told_at = time.time()
            _give(self._store, Sign("run", self._run, self._told_at, dict(self._said)))


def _give(store: Store, sign: Sign) -> None:
    with suppress(InvalidData):  # names without end: nobody has to read them
        store.show(sign)
